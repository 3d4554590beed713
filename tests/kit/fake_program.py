"""Stands in for etcd and for kube-apiserver: takes their flags, answers their health checks, ends when asked.

Run as `NAME FOLDER FLAGS...`. What it does differently is in files in FOLDER: NAME.exit (an exit code), NAME.stubborn
(ignores SIGTERM).
"""

import json
import os
import signal
import ssl
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

name, folder, *flags = sys.argv[1:]
directory = Path(folder)
options = dict(flag.removeprefix("--").split("=", 1) for flag in flags)


def note(what: str) -> None:
    with (directory / "journal").open("a") as journal:
        journal.write(f"{name} {what}\n")


def leave(*_: object) -> None:
    if (directory / f"{name}.stubborn").exists():
        return
    note("left")
    os._exit(0)


class Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    num_requests = 0

    def do_GET(self) -> None:
        Answers.num_requests += 1
        token = (self.headers["Authorization"] or "").removeprefix("Bearer ")
        users = (
            dict(line.split(",")[:2] for line in Path(options["token-auth-file"]).read_text().splitlines())
            if "token-auth-file" in options
            else {}
        )
        if Answers.num_requests == 1:  # not yet ready
            self.reply(500, {})
        elif users and token not in users:
            self.reply(401, {"kind": "Status", "reason": "Unauthorized", "message": "Unauthorized", "code": 401})
        else:
            self.reply(200, {"kind": "Answer", "path": self.path, "user": users.get(token, "")})

    def reply(self, status: int, body: object) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        pass


signal.signal(signal.SIGTERM, leave)
note("came")
(directory / f"{name}.flags").write_text(json.dumps(options))
if (directory / f"{name}.exit").exists():
    print("first words\nlast words", file=sys.stderr)
    sys.exit(int((directory / f"{name}.exit").read_text()))
port = int(options["secure-port"]) if "secure-port" in options else urlsplit(options["listen-client-urls"]).port
server = ThreadingHTTPServer(("127.0.0.1", port or 0), Answers)
if "tls-cert-file" in options:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(options["tls-cert-file"], options["tls-private-key-file"])
    server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
