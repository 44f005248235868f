"""The benchmarks run, at the size of a toy; their figures are not judged here."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from click.testing import CliRunner

from tests import tiny
from tests.benchmarks import causes, views
from tests.benchmarks import trace as benchmark
from vizformer.config import ModelConfig


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    config = tiny.config(
        "decoder-only", vocab_size=100, max_positions=1024, positions="learned", norm_order="pre", final_norm=True
    )
    monkeypatch.setattr(ModelConfig, "preset", classmethod(lambda cls, name, **changes: config))


def run(*arguments: str) -> tuple[int, str]:
    threads = torch.get_num_threads()
    try:
        result = CliRunner().invoke(benchmark.main, [*arguments, "--vocab-size", "100", "--repeats", "1"])
    finally:
        torch.set_num_threads(threads)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


@pytest.mark.sweep
@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_the_table_and_the_bytes() -> None:
    pytest.importorskip("transformers")
    code, output = run("--lengths", "32,1024")
    rows = [line.strip("| ").split(" | ") for line in output.splitlines() if line.startswith("| ")]
    heads, _, short, long = rows
    assert len(heads) == len(short) == len(long) == 8
    assert (short[0], long[0]) == ("32", "1024")
    # Ours: q, k, v of two layers, six points of the residual stream, one mask.  Theirs: a map per head, three states.
    n, d = 1024, 16
    ours = 4 * (2 * 3 * n * d + 6 * n * d + n * n) + n * n
    assert float(long[4]) == pytest.approx(ours / benchmark.MIB, abs=0.6)
    assert float(long[7]) == pytest.approx(4 * (2 * 4 * n * n + 3 * n * d) / benchmark.MIB, abs=0.6)
    assert code in (0, 1)


@pytest.mark.sweep
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("limit", "expected"), [(1e9, 0), (0.0, 1)])
def test_the_limit_decides_the_exit_code(limit: float, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "LIMIT", limit)
    code, output = run("--lengths", "1024", "--skip-transformers")
    assert code == expected
    assert ("within" in output) == (expected == 0)
    assert run("--lengths", "16", "--skip-transformers")[0] == 0  # judged at 1024 tokens only


@pytest.mark.usefixtures("small")
def test_a_trace_that_changed_the_result_would_stop_it(monkeypatch: pytest.MonkeyPatch) -> None:
    forward = benchmark.Transformer.forward
    monkeypatch.setattr(
        benchmark.Transformer, "forward", lambda self, *args, **options: forward(self, *args, **options) + len(options)
    )
    with pytest.raises(SystemExit, match="tracing changed the result"):
        benchmark.ours(ModelConfig.preset("gpt2-small"), "cpu")


@pytest.mark.sweep
@pytest.mark.browser
@pytest.mark.slow
def test_the_views_are_measured_on_both_sides(capsys: pytest.CaptureFixture[str]) -> None:
    config = tiny.config(
        "decoder-only", vocab_size=tiny.tokenizer().vocab_size, max_positions=64, n_heads=8, bos_id=None, eos_id=None
    )
    with ThreadPoolExecutor(1) as other:  # Playwright allows a thread no second browser beside that of the other tests
        other.submit(views.measure, config, [40]).result()
    rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    assert [row[:2] for row in rows[2:]] == [["VizFormer", "40"], ["px.imshow", "40"]]
    for _, _, painted, _, _, _, switched, _, server, browser in rows[2:]:
        assert float(painted) > 0
        assert float(switched) > 0
        assert float(server) > 100
        assert float(browser) > 50
    assert all(float(value) > 0 for value in rows[2][1:])  # of ours everything is measured


def test_a_text_has_as_many_tokens_as_were_asked_for() -> None:
    checkpoint = tiny.checkpoint("decoder-only", max_positions=700, bos_id=None, eos_id=None)
    assert [len(checkpoint.encode(views.text_of(checkpoint, n))) for n in (5, 64, 600)] == [5, 64, 600]


@pytest.mark.sweep
@pytest.mark.slow
def test_causes_are_measured_and_the_bar_decides_the_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    small = ["--layers", "2", "--d-model", "48", "--vocab-size", "400", "--tokens", "9", "--pairs", "2", "--texts", "2"]
    result = CliRunner().invoke(causes.main, small)
    assert result.exit_code == 0, result.output
    rows = [line.strip("| ").split(" | ") for line in result.stdout.splitlines() if line.startswith("| ")][2:]
    assert [row[0] for row in rows] == list(causes.ABOUT.values())
    monkeypatch.setitem(causes.BARS, "heads", -1)
    assert CliRunner().invoke(causes.main, [*small, "--only", "heads"]).exit_code == 1
