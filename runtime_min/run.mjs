// run.mjs - runs a model that was built as WebAssembly, by Node.js 16 or newer:
//
//     node run.mjs IN OUT          what ./model IN OUT is elsewhere; --help tells more
//
// The module is the .wasm file beside this one. It sees the files that its user sees.
import {readdirSync, readFileSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {exit} from 'node:process';
import {fileURLToPath} from 'node:url';

process.removeAllListeners('warning'); // WASI is called experimental whenever it is used
const {WASI} = await import('node:wasi');

const folder = dirname(fileURLToPath(import.meta.url));
const file = readdirSync(folder).find((name) => name.endsWith('.wasm'));
if (!file) {
    console.error('run.mjs: there is no .wasm file in this folder; make builds it');
    exit(1);
}
const path = join(folder, file);
const wasi = new WASI({version: 'preview1', args: [path, ...process.argv.slice(2)],
                       env: {PWD: process.cwd()}, preopens: {'/': '/'}, returnOnExit: true});
const module = await WebAssembly.compile(readFileSync(path));
const instance = await WebAssembly.instantiate(module, {wasi_snapshot_preview1: wasi.wasiImport});
exit(wasi.start(instance));
