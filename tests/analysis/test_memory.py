"""What is written from another memory than the encoder's output."""

import numpy as np
import pytest
import torch

from tests import tiny
from tests.bundled import load
from vizformer.analysis.decoding.teacher_forcing import change_memory, probabilities, written
from vizformer.errors import TraceError

TEXT = "他喜欢喝水。"


@pytest.fixture(scope="module")
def translator():
    checkpoint = load("zh-en")
    return checkpoint, checkpoint.trace(TEXT)


def test_its_own_memory_gives_the_translation_and_its_probabilities(translator):
    checkpoint, trace = translator
    memory = change_memory(checkpoint, trace, "own")
    found = written(checkpoint, memory)
    assert found.text == checkpoint.generate(TEXT).text
    assert found.ended
    p = probabilities(checkpoint, trace, memory)
    ids = [*(token.id for token in trace.tokens["decoder"][1:]), checkpoint.model.config.eos_id]
    expected = trace.logits.double().softmax(-1)[torch.arange(len(ids)), torch.tensor(ids)]
    np.testing.assert_allclose(p, expected.numpy(), atol=1e-5)


def test_another_sentences_memory_gives_its_translation(translator):
    checkpoint, trace = translator
    other = written(checkpoint, change_memory(checkpoint, trace, "other", other="我有一只猫。"))
    assert other.text == checkpoint.generate("我有一只猫。").text != checkpoint.generate(TEXT).text


def test_a_row_left_out_is_the_attention_without_that_column(translator):
    checkpoint, trace = translator
    at = [token.text for token in trace.tokens["encoder"]].index("水")
    memory = change_memory(checkpoint, trace, "without", token=at)
    own = trace.residual("encoder.final")
    assert torch.equal(memory, own[[i for i in range(len(own)) if i != at]])
    padding = torch.zeros(1, len(own), dtype=torch.bool)
    padding[0, at] = True
    ids = checkpoint.tensor(trace.tokens["decoder"])
    with torch.inference_mode():
        rows = checkpoint.model.decode(ids, own[None], memory_padding=padding)
        p = checkpoint.model.logits(rows)[0].double().softmax(-1)
    asked = [token.id for token in trace.tokens["decoder"][1:]]
    found = probabilities(checkpoint, trace, memory)[: len(asked)]
    np.testing.assert_allclose(found, p[torch.arange(len(asked)), torch.tensor(asked)].numpy(), atol=1e-5)
    assert "water" not in written(checkpoint, memory).text


def test_zeros_lose_the_source(translator):
    checkpoint, trace = translator
    zero = change_memory(checkpoint, trace, "zero")
    assert zero.shape == trace.residual("encoder.final").shape
    assert not zero.any()
    other = checkpoint.trace("我有一只猫。")
    assert written(checkpoint, zero).text == written(checkpoint, change_memory(checkpoint, other, "zero")).text


def test_what_cannot_be_done_is_refused(translator):
    checkpoint, trace = translator
    with pytest.raises(TraceError, match="token 99"):
        change_memory(checkpoint, trace, "without", token=99)
    alone = tiny.checkpoint("decoder-only")
    with pytest.raises(TraceError, match="one stack"):
        change_memory(alone, alone.trace("a cat"), "zero")


def test_a_text_without_an_end_is_cut_off(translator):
    checkpoint, trace = translator
    found = written(checkpoint, change_memory(checkpoint, trace, "own"), longest=2)
    assert (len(found.tokens), found.ended) == (2, False)
