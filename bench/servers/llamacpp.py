"""llama.cpp's own HTTP server, as `xllamacpp` carries it, with a command line.

    python -m bench.servers.llamacpp MODEL.gguf [--port 0] [--slots 1] [--ctx 2048] [--alias NAME]

Prints `listening http://HOST:PORT` once it serves. SIGTERM ends it.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading

import xllamacpp


def parameters(options: argparse.Namespace) -> xllamacpp.CommonParams:
    params = xllamacpp.CommonParams()
    params.model.path = options.model
    params.hostnames = [options.host]
    params.port = options.port
    params.n_parallel = options.slots
    params.n_ctx = options.ctx * options.slots
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options.threads
    params.n_threads_http = options.threads_http
    params.endpoint_metrics = params.endpoint_slots = params.endpoint_props = True
    if options.embeddings:
        params.embedding = True
        params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    params.cache_ram_mib = 0  # prompts of an earlier test must not make a later one quicker
    if options.alias:
        params.model_alias = set(options.alias)
    return params


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve one GGUF file with llama.cpp.")
    parser.add_argument("model")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0: a free one")
    parser.add_argument("--slots", type=int, default=1, help="calls served at once")
    parser.add_argument("--ctx", type=int, default=2048, help="tokens per slot")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads")
    # Each open stream holds one of these; with the default of a small machine even /health has to wait for one.
    parser.add_argument("--threads-http", type=int, default=64)
    parser.add_argument("--alias", action="append", help="name to serve the model under; may be repeated")
    parser.add_argument("--embeddings", action="store_true", help="serve embeddings")
    options = parser.parse_args()
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    server = xllamacpp.Server(parameters(options))
    # One write that starts a line of its own: llama.cpp's threads write to the same log, in the middle of a line too.
    os.write(sys.stdout.fileno(), f"\nlistening {server.listening_address}\n".encode())
    ended.wait()
    sys.stdout.flush()
    os._exit(0)  # the destructor waits for open streams to end


if __name__ == "__main__":
    main()
