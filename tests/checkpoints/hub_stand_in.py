"""A hub on loopback that serves one folder as one repository, with the two addresses that `huggingface_hub` asks for.

with serve(folder, "somebody/tiny") as hub:
    ...                                    # HF_ENDPOINT=hub.url
hub.asked                                  # what was asked for, in order
"""

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SHA = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class Hub:
    """The address, what was asked, and how it behaves: "open", "gated", "gone", or "silent" about sizes."""

    url: str = ""
    asked: list[str] = field(default_factory=list)
    mode: str = "open"


@contextmanager
def serve(folder: Path, repository: str, *, extra: dict[str, bytes] | None = None) -> Iterator[Hub]:
    """Serves `folder` (and `extra` files) as `repository`; the only revisions are main and its commit."""
    hub = Hub()
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} | (extra or {})

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer(body=True)

        def do_HEAD(self) -> None:
            self._answer(body=False)

        def log_message(self, *_: object) -> None: ...

        def _answer(self, body: bool) -> None:
            path = self.path.split("?")[0]
            hub.asked.append(f"{self.command} {path}")
            info = re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/revision/([^/]+))?", path)
            file = re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path)
            found = info or file
            if found is None or found[1] != repository or hub.mode == "gone":
                self._send(404, b"{}", {"X-Error-Code": "RepoNotFound"}, body)
            elif hub.mode == "gated":
                self._send(403, b"{}", {"X-Error-Code": "GatedRepo"}, body)
            elif found[2] not in (None, "main", SHA):
                self._send(404, b"{}", {"X-Error-Code": "RevisionNotFound"}, body)
            elif info:
                siblings = [
                    {"rfilename": name, "blobId": _tag(data)} | ({} if hub.mode == "silent" else {"size": len(data)})
                    for name, data in files.items()
                ]
                listed = {"id": repository, "modelId": repository, "sha": SHA, "siblings": siblings}
                self._send(200, json.dumps(listed).encode(), {"Content-Type": "application/json"}, body)
            elif file and file[3] in files:
                data = files[file[3]]
                self._send(200, data, {"ETag": f'"{_tag(data)}"', "X-Repo-Commit": SHA}, body)
            else:
                self._send(404, b"", {"X-Error-Code": "EntryNotFound"}, body)

        def _send(self, status: int, data: bytes, headers: dict[str, str], body: bool) -> None:
            start = 0
            wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
            if wanted and status == 200:
                start, whole = int(wanted[1]), len(data)
                data = data[start : int(wanted[2]) + 1 if wanted[2] else None]
                status, headers = 206, {**headers, "Content-Range": f"bytes {start}-{start + len(data) - 1}/{whole}"}
            self.send_response(status)
            silent = hub.mode == "silent" and status == 200 and "ETag" in headers
            length = {"Transfer-Encoding": "chunked"} if silent else {"Content-Length": str(len(data))}
            for name, value in {**headers, **length}.items():
                self.send_header(name, value)
            self.end_headers()
            if body and silent:
                with suppress(OSError):  # of whoever hung up, which the test asks for
                    self.wfile.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(data), data))
            elif body:
                self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()


def _tag(data: bytes) -> str:
    return hashlib.sha1(data).hexdigest()
