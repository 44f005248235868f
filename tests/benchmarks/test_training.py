"""The benchmark of a training step runs, at the size of a toy; its figures are not judged here."""

import statistics

import pytest
from click.testing import CliRunner

from tests.benchmarks import training as benchmark
from vizformer.config import ModelConfig

TINY = dict(
    vocab_size=50,
    d_model=16,
    n_heads=2,
    d_ff=16,
    n_encoder_layers=1,
    n_decoder_layers=1,
    dropout=0.0,
    pad_id=0,
    bos_id=1,
    eos_id=2,
    scaled_embedding=True,
)


@pytest.mark.slow
def test_both_sides_see_every_target_token_in_as_many_updates() -> None:
    config = ModelConfig(**TINY)
    pairs = benchmark.sentences(60, config.vocab_size)
    real = sum(len(target) - 1 for _, target in pairs)
    updates, tokens = benchmark.ours(config, pairs, 300, 1)(1)
    assert tokens == real
    assert benchmark.theirs(config, pairs, updates, 1)(1) == (updates, real)


def test_lengths_are_those_of_short_sentences() -> None:
    lengths = [len(source) for source, _ in benchmark.sentences(2000, 50)]
    assert 8 <= statistics.median(lengths) <= 12
    assert 20 < max(lengths) <= 81


@pytest.mark.sweep
@pytest.mark.sample(1)
@pytest.mark.slow
@pytest.mark.parametrize(("limit", "expected"), [(1e9, 0), (0.0, 1)])
def test_the_table_and_the_limit(limit: float, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "SHAPE", TINY)
    monkeypatch.setattr(benchmark, "LIMIT", limit)
    result = CliRunner().invoke(benchmark.main, ["--rounds", "1", "--pairs", "40", "--tokens", "200", "--threads", "1"])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == expected
    assert "| VizFormer |" in result.output
    assert ("within" in result.output) == (expected == 0)
