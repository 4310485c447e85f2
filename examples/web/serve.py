#!/usr/bin/env python3
"""Serves a folder to browsers on this machine: serve.py [FOLDER [PORT]].

With every file go the two headers that let a page share memory between threads: a server of yours
has to send them too.
"""

import functools
import http.server
import sys

HEADERS = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
}


class Files(http.server.SimpleHTTPRequestHandler):
    extensions_map = {
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        ".wasm": "application/wasm",
        ".mjs": "text/javascript",
    }

    def end_headers(self):
        for name, value in HEADERS.items():
            self.send_header(name, value)
        super().end_headers()


if __name__ == "__main__":
    folder = sys.argv[1] if len(sys.argv) > 1 else "."
    port = int(sys.argv[2]) if len(sys.argv) > 2 else 8000
    files = functools.partial(Files, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", port), files) as server:
        print(f"http://localhost:{server.server_port}/", flush=True)
        server.serve_forever()
