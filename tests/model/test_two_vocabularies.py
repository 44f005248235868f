"""An encoder that reads ids of another vocabulary than the decoder's."""

import pytest
import torch

from tests import tiny
from vizformer.errors import TraceError

SOURCE, TARGET = torch.tensor([[4, 5, 40, 3]]), torch.tensor([[1, 7, 5]])


def test_each_stack_looks_up_its_own_table():
    model = tiny.model("encoder-decoder", source_vocab_size=50, positions="none", scaled_embedding=False)
    assert model.source_embedding is not None
    assert torch.equal(model.embed(SOURCE), model.source_embedding.weight[SOURCE])
    assert torch.equal(model.embed(TARGET, stack="decoder"), model.embedding.weight[TARGET])
    assert model(SOURCE, TARGET).shape == (1, 3, model.config.vocab_size)


def test_ids_are_held_against_the_vocabulary_of_their_stack():
    model = tiny.model("encoder-decoder", source_vocab_size=50)
    with pytest.raises(TraceError, match="Token id 50 is outside the vocabulary: ids go from 0 to 49"):
        model(torch.tensor([[50]]), TARGET)
    with pytest.raises(TraceError, match="Token id 40 is outside the vocabulary: ids go from 0 to 28"):
        model(SOURCE, torch.tensor([[40]]))


def test_without_the_option_the_stacks_share_one():
    model = tiny.model("encoder-decoder")
    assert model.source_embedding is None
    assert not any(name.startswith("source_") for name in model.state_dict())
