"""Who looks after the workers: what ends is started again, and all end together."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

from vizformer.serving.workers import Service, Supervisor

STAYS = "import time; print('up', flush=True); time.sleep(600)"


def service(name, code):
    return Service(name, [sys.executable, "-c", code])


class Lines(list):
    """What was said; `then` is called with each line."""

    def __init__(self, then=lambda line, lines: None):
        self.then = then

    def __call__(self, line):
        self.append(line)
        self.then(line, self)


def asked_to_end():
    os.kill(os.getpid(), signal.SIGTERM)


def gone(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def wait(for_what, seconds=120):
    end = time.monotonic() + seconds
    while not for_what():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def test_what_ends_is_started_again_and_the_others_go_on():
    first, second = service("first", STAYS), service("second", STAYS)

    def kill_once(line, lines):
        if line == "first | up" and lines.count(line) == 1:
            lines.killed = first.process.pid
            os.kill(lines.killed, signal.SIGKILL)
        elif line == "first | up":
            asked_to_end()

    lines = Lines(kill_once)
    with Supervisor(lines, pause=0.01) as supervisor:
        supervisor.start(second)
        supervisor.start(first)
        other = second.process.pid
        supervisor.watch()
        assert first.process.pid != lines.killed
        assert second.process.pid == other
        assert second.runs
    assert any("first has ended (killed by signal 9)" in line for line in lines)
    assert not any("second has ended" in line for line in lines)


def test_what_ends_at_once_again_and_again_is_tried_less_and_less_often():
    def four_times(line, lines):
        if sum("has ended" in one for one in lines) == 4:
            asked_to_end()

    lines = Lines(four_times)
    started = time.monotonic()
    with Supervisor(lines, pause=0.1) as supervisor:
        supervisor.start(service("bad", "raise SystemExit(7)"))
        supervisor.watch()
    assert time.monotonic() - started > 0.1 + 0.2 + 0.4
    assert all("exit status 7" in line for line in lines)


def test_all_end_with_a_signal_and_the_handlers_are_those_of_before():
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    services = [service(str(number), STAYS) for number in range(3)]
    lines = Lines(lambda line, lines: asked_to_end() if len(lines) == 3 else None)
    with Supervisor(lines) as supervisor:
        for one in services:
            supervisor.start(one)
        supervisor.watch()
    assert not any(one.runs for one in services)
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


def test_what_does_not_end_when_it_is_told_is_killed(monkeypatch):
    monkeypatch.setattr("vizformer.serving.workers.PATIENCE", 0.2)
    deaf = service("deaf", f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {STAYS}")
    with Supervisor(Lines(lambda line, lines: asked_to_end())) as supervisor:
        supervisor.start(deaf)
        supervisor.watch()
    assert deaf.process.returncode == -signal.SIGKILL


def test_a_service_that_ends_before_all_are_ready_is_an_error():
    lines = Lines()
    with Supervisor(lines) as supervisor:
        stays = service("stays", STAYS)
        supervisor.start(stays)
        supervisor.start(service("bad", "print('no such file', flush=True); raise SystemExit(3)"))
        with pytest.raises(click.ClickException, match=r"bad did not start \(exit status 3\)"):
            supervisor.until(lambda: False)
    assert not stays.runs


def test_who_is_asked_to_end_waits_no_longer():
    lines = Lines(lambda line, lines: asked_to_end())
    with Supervisor(lines) as supervisor:
        supervisor.start(service("slow", STAYS))
        assert supervisor.until(lambda: False) is False


def test_each_line_says_who_wrote_it():
    ready = Lines()
    with Supervisor(ready) as supervisor:
        supervisor.start(service("worker 7", "print('one\\n\\ntwo', flush=True)" + "; import time; time.sleep(600)"))
        supervisor.until(lambda: len(ready) == 2)
    assert ready == ["worker 7 | one", "worker 7 | two"]


@pytest.mark.skipif(sys.platform != "linux", reason="the system ends them on Linux only")
def test_a_killed_supervisor_leaves_nobody_behind(tmp_path):
    code = f"""
import sys
from vizformer.serving.workers import Service, Supervisor
with Supervisor() as supervisor:
    service = Service("child", [sys.executable, "-c", {STAYS!r}])
    supervisor.start(service)
    print(service.process.pid, file=sys.stderr, flush=True)
    supervisor.watch()
"""
    pipes = {
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
    }  # two: what threads write into one may stand in one line
    parent = subprocess.Popen([sys.executable, "-c", code], text=True, **pipes)
    assert parent.stdout.readline() == "child | up\n"
    child = int(parent.stderr.readline())
    assert not gone(child)
    parent.kill()
    parent.wait()
    wait(lambda: gone(child))
