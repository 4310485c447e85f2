/*
 * Perfetto's trace processor, as the page ui.perfetto.dev runs it, outside of a browser.
 *
 *   node perfetto.mjs FOLDER TRACE QUERY...     FOLDER has engine_bundle.js and trace_processor.wasm
 *
 * Prints a line of JSON for each query: its rows. Status 1: the trace or a query is refused.
 *
 * The engine is a script of a worker that is handed a port and speaks protobuf over it
 * (protos/perfetto/trace_processor/trace_processor.proto): a stream of messages TraceProcessorRpc.
 */
import { webcrypto as crypto } from "node:crypto"; // a global one only since Node 19
import { readFileSync } from "node:fs";
import { join } from "node:path";
import vm from "node:vm";

const [folder, trace, ...queries] = process.argv.slice(2);

// ---- protobuf ------------------------------------------------------------------------------------

function varint(n) {
    const bytes = [];
    for (n = BigInt(n); n > 127n; n >>= 7n) bytes.push(Number(n & 127n) | 128);
    return Uint8Array.of(...bytes, Number(n));
}

function joined(...parts) {
    return new Uint8Array(Buffer.concat(parts));
}

const number = (field, n) => joined(varint(field << 3), varint(n));
const bytes = (field, data) => joined(varint((field << 3) | 2), varint(data.length), data);

function read_varint(data, at) {
    let n = 0n;
    for (let shift = 0n; ; shift += 7n) {
        n |= BigInt(data[at] & 127) << shift;
        if (data[at++] < 128) return [BigInt.asIntN(64, n), at];
    }
}

/* [field, value] of a message: a number, or bytes. */
function* fields(data) {
    for (let at = 0; at < data.length;) {
        let key, value;
        [key, at] = read_varint(data, at);
        if ((key & 7n) === 0n) [value, at] = read_varint(data, at);
        else if ((key & 7n) === 1n) (value = data.subarray(at, at + 8)), (at += 8);
        else {
            [value, at] = read_varint(data, at);
            const end = at + Number(value);
            [value, at] = [data.subarray(at, end), end];
        }
        yield [Number(key >> 3n), value];
    }
}

function* packed(data) {
    for (let at = 0, n; at < data.length;) {
        [n, at] = read_varint(data, at);
        yield Number(n);
    }
}

// ---- the worker ------------------------------------------------------------------------------------

const APPEND = 1, FINALIZE = 2, QUERY = 3;
let answered;
const port = { postMessage: (data) => answered(data) };
const self = {
    location: { href: "file:///engine_bundle.js" },
    console: { log() {}, warn() {}, error() {} },
    XMLHttpRequest: class {
        open(_, name) {
            this.response = new Uint8Array(readFileSync(join(folder, name.split("/").pop()))).buffer;
        }
        send() {}
    },
    importScripts() {},
    WorkerGlobalScope: Object,
    Uint8Array, URL, TextDecoder, TextEncoder, performance, setTimeout, clearTimeout, crypto,
};
self.self = self;
vm.runInNewContext(readFileSync(join(folder, "engine_bundle.js"), "utf8"), self);
self.onmessage({ data: port });

let sequence = 0;

/* What the processor answers to one request: its fields. */
function ask(request, ...more) {
    const message = joined(number(1, ++sequence), number(2, request), ...more);
    const replies = [];
    answered = (data) => replies.push(data);
    port.onmessage({ data: bytes(1, message) });
    return replies.flatMap((r) => [...fields(r)].flatMap(([, m]) => [...fields(m)]));
}

function check(error) {
    if (!error?.length) return;
    console.error(Buffer.from(error).toString());
    process.exit(1);
}

function rows_of(answer) {
    const names = [], cells = [];
    for (const [field, result] of answer) {
        if (field !== 203) continue;
        for (const [k, value] of fields(result)) {
            if (k === 1) names.push(Buffer.from(value).toString());
            if (k === 2) check(value);
            if (k !== 3) continue;
            const kinds = [], ints = [], floats = [];
            let texts = [];
            for (const [f, v] of fields(value)) {
                if (f === 1) kinds.push(...packed(v));
                if (f === 2) ints.push(...packed(v));
                if (f === 3)
                    for (let i = 0; i < v.length; i += 8) floats.push(Buffer.from(v).readDoubleLE(i));
                if (f === 5) texts = Buffer.from(v).toString().split("\0");
            }
            const of_kind = { 1: [], 2: ints, 3: floats, 4: texts };
            for (const kind of kinds) cells.push(of_kind[kind].shift() ?? null);
        }
    }
    const rows = [];
    for (let i = 0; i < cells.length; i += names.length)
        rows.push(Object.fromEntries(names.map((n, k) => [n, cells[i + k]])));
    return rows;
}

await new Promise((ready) => setTimeout(ready)); // its own start is in the queue before us
for (const [, v] of ask(APPEND, bytes(101, new Uint8Array(readFileSync(trace)))))
    if (v instanceof Uint8Array) for (const [k, e] of fields(v)) if (k === 2) check(e);
ask(FINALIZE);
for (const q of queries)
    console.log(JSON.stringify(rows_of(ask(QUERY, bytes(103, bytes(1, Buffer.from(q)))))));
