"""The head report on a Dask cluster: the same bytes as on one machine, whichever workers or commands are killed."""

import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests import tiny
from vizformer import cli
from vizformer.analysis.corpus_heads import Corpus
from vizformer.analysis.corpus_heads.cluster import measure_there
from vizformer.analysis.corpus_heads.running import VERSION, measure_group
from vizformer.checkpoints import load, save

ROOT = Path(__file__).resolve().parents[2]
GROUPS = 12  # of eight texts


def heads(*arguments):
    return CliRunner().invoke(cli.main, ["heads", *map(str, arguments)])


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    path = tmp_path_factory.mktemp("texts") / "texts.txt"
    path.write_text("".join(f"{text} {n}\n" for n in range(8) for text in (*tiny.TEXTS, "a", "b")), encoding="utf-8")
    assert len(path.read_text(encoding="utf-8").splitlines()) == 8 * GROUPS
    return path


@pytest.fixture
def cluster(tmp_path):
    """A scheduler and two workers as they are started by hand: processes on loopback; its address and the workers."""
    distributed = pytest.importorskip("distributed")
    found = tmp_path / "scheduler.json"
    with ExitStack() as stack:

        def start(*arguments):
            program = [sys.executable, "-m", *arguments]
            process = stack.enter_context(subprocess.Popen(program, cwd=ROOT, stderr=subprocess.DEVNULL))
            stack.callback(process.kill)
            return process

        started = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(found))
        start("distributed.cli.dask_scheduler", *started)
        on = ("--scheduler-file", str(found), "--nthreads", "1", "--no-nanny", "--no-dashboard")
        workers = [start("distributed.cli.dask_worker", *on, "--local-directory", str(tmp_path)) for __ in range(2)]
        with distributed.Client(scheduler_file=str(found), timeout=60, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=60)
        yield json.loads(found.read_text(encoding="utf-8"))["address"], workers


@pytest.mark.sweep
@pytest.mark.slow
def test_workers_and_commands_that_are_killed_change_no_byte(tmp_path, texts, cluster):
    address, workers = cluster
    out, work = tmp_path / "out.csv", tmp_path / "work"
    command = [sys.executable, "-m", "vizformer", "heads", "cloze", "--texts", str(texts), "--out", str(out)]
    command += ["--work", str(work), "--scheduler", address]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as first:
        assert first.stderr is not None
        assert first.stderr.readline().strip() == f"{address}: 2 workers"
        assert first.stderr.readline().strip() == f"8 of {8 * GROUPS} texts"
        first.kill()
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as second:
        assert second.stderr is not None
        said = [second.stderr.readline().strip() for __ in range(2)]
        workers[0].kill()
        rest = second.communicate()
    assert second.returncode == 0, rest
    done = int(said[1].split()[0])
    assert 8 < done < 4 * GROUPS  # it went on, and there was much left when the worker was killed
    assert f"{8 * GROUPS} of {8 * GROUPS} texts" in rest[1]
    assert f"measured on {8 * GROUPS} texts" in rest[0]
    alone = heads("cloze", "--texts", texts, "--out", tmp_path / "alone.csv", "--work", tmp_path / "other")
    assert alone.exit_code == 0, alone.output
    assert out.read_bytes() == (tmp_path / "alone.csv").read_bytes()


def test_a_worker_measures_only_the_model_that_is_meant(tmp_path):
    checkpoint = tiny.checkpoint("encoder-only")
    save(checkpoint, tmp_path / "model")
    passages, here = Corpus.of(tiny.TEXTS).passages, load(tmp_path / "model")
    model = (str(tmp_path / "model"), "float32", "cpu")
    found, expected = measure_there(model, here.key, VERSION, passages, 8), measure_group(here, passages, 8)
    assert found.read == expected.read == len(passages)
    for name, array in found.sums["encoder"].arrays("x").items():
        assert array.tobytes() == expected.sums["encoder"].arrays("x")[name].tobytes()
    assert "another model here" in measure_there(model, "0" * 24, VERSION, passages, 0)
    assert "another version" in measure_there(model, here.key, VERSION + 1, passages, 0)
    assert "There is no model" in measure_there(("no-such-model", "float32", "cpu"), here.key, VERSION, passages, 0)


@pytest.mark.sweep
def test_what_keeps_a_cluster_from_measuring_is_said(texts, monkeypatch):
    asked = ("cloze", "--texts", texts, "--scheduler")
    monkeypatch.setattr("vizformer.analysis.corpus_heads.cluster.PATIENCE", 0.2)
    pytest.importorskip("distributed")
    nobody = heads(*asked, "tcp://127.0.0.1:9")
    assert nobody.exit_code == 1
    assert "No Dask scheduler answers at tcp://127.0.0.1:9" in nobody.output
    assert "--threads is of this machine" in heads(*asked, "tcp://127.0.0.1:9", "--threads", 2).output
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert "pip install vizformer[cluster]" in heads(*asked, "tcp://127.0.0.1:9").output
