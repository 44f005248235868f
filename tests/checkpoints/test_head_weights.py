"""A model converted and its own code recorded have the same matrices of heads, asked through the one protocol."""

from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer as Backend
from tokenizers import models
from torch.testing import assert_close

pytest.importorskip("transformers")

import vizformer as vf
from tests.checkpoints import folders
from tests.parity.against_transformers import theirs
from vizformer.checkpoints import AnyCheckpoint
from vizformer.errors import TraceError

CLASSES = {
    "gpt2": "GPT2LMHeadModel",
    "bert": "BertForMaskedLM",
    "t5": "T5ForConditionalGeneration",
    "llama": "LlamaForCausalLM",
}
NOT_FOUND = {"bert": {"W_O"}, "llama": {"q", "k"}}  # a norm follows the sum; positions turn queries and keys
IDS = [17, 7, 11, 22, 8, 9]  # no marks: our own BERT begins another segment behind [SEP]


def opened(kind: str, folder: Path) -> tuple[AnyCheckpoint, AnyCheckpoint]:
    """Converted, and recorded."""
    own = vf.load(folders.FAMILIES[kind](folder))
    words = {str(id): id for id in range(own.shape.vocab_size)}
    return own, vf.wrap(theirs(folder, CLASSES[kind]), Backend(models.WordLevel(words, unk_token="0")))


@pytest.mark.parametrize("kind", CLASSES)
def test_the_matrices_of_a_model_converted_and_recorded_are_the_same(kind: str, tmp_path: Path) -> None:
    own, recorded = opened(kind, tmp_path)
    given: dict[str, Any] = {"ids": IDS, "target_ids": IDS[:4]} if kind == "t5" else {"ids": IDS}
    one, two = own.trace(**given), recorded.trace(**given)
    assert one.sites == two.sites
    for site in one.sites:
        ours, found = own.head_weights(one, site), recorded.head_weights(two, site)
        assert {name for name in ("q", "k", "v", "W_O") if getattr(found, name) is None} == NOT_FOUND.get(kind, set())
        for a, b in ((ours.q, found.q), (ours.k, found.k), (ours.v, found.v)):
            if b is not None:
                assert a is not None
                assert_close(tuple(a), tuple(b), rtol=0, atol=1e-5)  # weight, bias and the rows that are read
        if found.W_O is not None:
            assert_close(ours.W_O, found.W_O, rtol=0, atol=1e-5)


def test_what_a_recording_does_not_find_our_own_parameters_give(tmp_path: Path) -> None:
    own, _ = opened("llama", tmp_path)
    trace = own.trace(ids=IDS)
    found, record = own.head_weights(trace, "decoder.1.self"), trace["decoder.1.self"]
    for made, projection in ((record.q, found.q), (record.k.repeat_interleave(2, 0), found.k)):
        assert projection is not None
        weight, bias, x = projection
        assert_close((x @ weight + bias[:, None])[:, 0], made[:, 0])  # position 0 is turned by no angle


def test_the_sum_over_heads_is_what_the_attention_makes_before_a_norm(tmp_path: Path) -> None:
    own, _ = opened("bert", tmp_path)
    trace = own.trace(ids=IDS)
    block: Any = own.model.get_submodule("encoder.layers.1")
    z, W_O = trace["encoder.1.self"].z, own.head_weights(trace, "encoder.1.self").W_O
    assert W_O is not None
    made = torch.stack([z(head) @ W_O[head] for head in range(len(W_O))]).sum(0) + block.self_attention.W_O.bias
    summed = block.self_norm(trace.residual("encoder.1.pre") + made)
    assert_close(summed, trace.residual("encoder.1.mid"))


def test_a_site_that_is_not_there_is_refused(tmp_path: Path) -> None:
    for checkpoint in opened("gpt2", tmp_path):
        with pytest.raises(TraceError, match="no attention site"):
            checkpoint.head_weights(checkpoint.trace(ids=IDS), "decoder.9.self")
