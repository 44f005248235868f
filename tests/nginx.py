"""nginx before two servers on this machine, as deploy/nginx.conf has it."""

import subprocess
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests import programs
from tests.browser.driver import ROOT, TIMEOUT, Server, free_port


def configuration(folder: Path, port: int, servers: Sequence[Server]) -> str:
    """deploy/nginx.conf with the test's ports, in a file that nginx can run from as anybody."""
    text = (ROOT / "deploy" / "nginx.conf").read_text(encoding="utf-8")
    for written, server in zip(("127.0.0.1:8501", "127.0.0.1:8502"), servers, strict=True):
        assert written in text
        text = text.replace(written, f"127.0.0.1:{server.port}")
    assert "listen 80;" in text
    text = text.replace("listen 80;", f"listen 127.0.0.1:{port};")
    temporary = "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in ("proxy", "fastcgi", "uwsgi", "scgi"))
    return (
        f"daemon off;\npid {folder}/pid;\nerror_log {folder}/error.log;\nevents {{}}\n"
        f"http {{\naccess_log off;\nclient_body_temp_path {folder}/body;\n{temporary}{text}\n}}\n"
    )


@contextmanager
def before(folder: Path, servers: Sequence[Server]) -> Iterator[tuple[str, int]]:
    """The address of an nginx that leads to two servers, and its process."""
    port, written = free_port(), folder / "nginx.conf"
    written.write_text(configuration(folder, port, servers), encoding="utf-8")
    command = [str(programs.find(programs.NGINX)), "-p", str(folder), "-c", str(written)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    try:
        url, end = f"http://127.0.0.1:{port}", time.monotonic() + TIMEOUT
        while True:
            try:
                urllib.request.urlopen(f"{url}/_stcore/health", timeout=5).close()
                break
            except OSError:
                assert process.poll() is None, process.stderr and process.stderr.read().decode()
                assert time.monotonic() < end, "nginx does not listen"
                time.sleep(0.05)
        yield url, process.pid
    finally:
        process.terminate()
        process.wait(15)
