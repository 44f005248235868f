"""A Redis of its own for a test: Debian's redis-server on a free port of this machine, without a file."""

import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import programs

if TYPE_CHECKING:
    import redis

PATIENCE = 20.0  # seconds


class RedisServer:
    """A server that can be killed and started again at the same address."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Starts it, empty, and waits until it answers."""
        program = programs.find(programs.REDIS)
        assert program is not None
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        with (self._folder / "redis.log").open("ab") as log:
            self._process = subprocess.Popen([program, *options], stdout=log, stderr=log, cwd=self._folder)
        self._wait()

    def client(self) -> "redis.Redis":
        """Somebody else who knows this server."""
        import redis

        return redis.Redis(port=self.port, decode_responses=True)

    def _wait(self) -> None:
        import redis

        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                if self.client().ping():
                    return
            except redis.RedisError:
                time.sleep(0.02)
        raise RuntimeError("redis-server did not start")

    def hang(self) -> None:
        """Takes what it is sent, and answers nothing."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Answers again, with all that it held."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kills it, as a machine dies."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def start_or_skip(folder: Path) -> RedisServer:
    """A running server; the test is skipped where the program is missing."""
    if programs.find(programs.REDIS) is None:
        pytest.skip(programs.way_out(programs.REDIS))
    return RedisServer(folder)
