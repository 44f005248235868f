"""Options that encoder-decoders of the field bring: against plain loops, with the cache, counted, saved and read."""

from pathlib import Path
from typing import Any

import pytest
import torch

from tests import tiny
from tests.eager_transformer import Eager
from vizformer.checkpoints import load, save
from vizformer.model import Cache, count_parameters
from vizformer.model.positions import sinusoidal_encoding

OPTIONS: dict[str, dict[str, Any]] = {"marian": tiny.MARIAN, "bart": tiny.BART, "t5": tiny.T5_1}
everywhere = pytest.mark.parametrize("name", OPTIONS)
SOURCE, TARGET = tiny.ids(7, seed=1), tiny.ids(9, seed=2)


@everywhere
def test_as_plain_loops_do_it(name: str) -> None:
    model = tiny.model(**OPTIONS[name])
    with torch.inference_mode():
        tiny.assert_close(model(SOURCE, TARGET)[0], Eager(model).run(SOURCE[0], TARGET[0]).logits.float())


@everywhere
def test_the_cache_changes_nothing(name: str) -> None:
    model = tiny.model(**OPTIONS[name])
    cache = Cache()
    with torch.inference_mode():
        memory = model.encode(SOURCE)
        parts = (slice(0, 4), slice(4, 5), slice(5, 9))
        rows = [model.decode(TARGET[:, part], memory, cache=cache) for part in parts]
        tiny.assert_close(torch.cat(rows, 1), model.decode(TARGET, memory))


def test_what_each_option_adds() -> None:
    def count(**changes: Any) -> int:
        return count_parameters(tiny.config(**{"positions": "learned", "embedding_norm": True, **changes}))

    plain = count()  # 32 positions, d_model 16, 29 tokens
    assert count(stack_inputs="own") == plain + 32 * 16 + 2 * 16
    assert count(stack_inputs="own", embedding_norm=False) == count(embedding_norm=False) + 32 * 16
    assert count(logit_bias=True) == plain + 29
    assert count(attention_scale=1.0, logit_scale=0.25, sinusoids="halves", never_pad=True) == plain


def test_each_stack_reads_its_own_tables() -> None:
    model = tiny.model(**tiny.BART)
    with torch.inference_mode():
        before = model.encode(SOURCE), model.decode(TARGET, model.encode(SOURCE))
        assert model.decoder_position_embedding is not None
        model.decoder_position_embedding.weight[3, 0] += 1  # (1 everywhere would go with the mean)
        assert torch.equal(model.encode(SOURCE), before[0])
        changed = (model.decode(TARGET, before[0]) - before[1]).abs().amax(-1)[0] > 1e-4
    assert changed.tolist() == [False] * 3 + [True] * 6


def test_halves_are_the_waves_in_another_order() -> None:
    mixed, halves = sinusoidal_encoding(40, 12), sinusoidal_encoding(40, 12, "halves")
    assert torch.equal(halves[:, :6], mixed[:, 0::2])
    assert torch.equal(halves[:, 6:], mixed[:, 1::2])


@everywhere
@pytest.mark.sample(1)
def test_saved_and_read(name: str, tmp_path: Path) -> None:
    checkpoint = tiny.checkpoint(**OPTIONS[name])
    save(checkpoint, tmp_path, torch.float32)
    again = load(tmp_path)
    assert again.model.config == checkpoint.model.config
    assert again.key == checkpoint.key
    trace = checkpoint.trace("我有 cat")
    assert trace.tokens == again.trace("我有 cat").tokens
    assert torch.equal(trace.logits, again.trace("我有 cat").logits)
