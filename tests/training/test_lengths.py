"""The tiny models of the lesson Positions read a text further than they learned."""

import pytest
import torch

from vizformer.assets import asset
from vizformer.checkpoints import load
from vizformer.training import lengths


def test_a_text_is_continued_by_a_passage_or_by_itself() -> None:
    assert lengths.continued("猫", "abc" * 100) == ("猫\n" + "abc" * 100).encode()[:257]
    assert lengths.continued("ab", None) == (b"ab " * 86)[:257]
    assert len(lengths.continued("x" * 300, None)) == 257


def test_losses_of_a_text_are_those_of_its_bytes_as_far_as_the_model_reads() -> None:
    data = lengths.continued("我有一只猫。", None)
    for scheme, length in (("alibi", 256), ("learned", 64)):
        model = load(asset("lessons", "positions", scheme)).model
        found = lengths.byte_losses(model, data)
        assert found.tolist() == pytest.approx(lengths.losses(model, torch.tensor([list(data)]))[0].tolist())
        assert len(found) == length
        assert lengths.mean_from(found, 64) == (pytest.approx(sum(found[64:]) / 192) if length > 64 else None)
