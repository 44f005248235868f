"""Where the encoder meets the decoder: who asks, who answers, one memory for all layers, and none."""

import math

import pytest
import torch

from tests import tiny
from vizformer.errors import TraceError
from vizformer.explain.encoder_decoder import (
    add_and_norms,
    attended,
    empty_memory,
    encoder_outputs,
    memory_readers,
)
from vizformer.model import Cell, Edit, Reason

SITES = ("encoder.0.self", "decoder.0.self", "decoder.0.cross")
KINDS = {
    "post": {},
    "pre": dict(norm_order="pre", final_norm=True),
    "t5": tiny.T5_1,
    "shared": dict(n_kv_heads=2),
    "bart": tiny.BART,
}


def traced(edit=None, **changes):
    checkpoint = tiny.checkpoint("encoder-decoder", **changes)
    return checkpoint, checkpoint.trace("我有一只猫。", target="a cat", edit=edit)


@pytest.mark.parametrize("kind", KINDS)
def test_the_three_attentions_are_recomputed_from_who_asks_and_who_answers(kind):
    checkpoint, trace = traced(**KINDS[kind])
    n, m = (len(trace.tokens[stack]) for stack in ("encoder", "decoder"))
    own, causal, cross = attended(checkpoint, trace, SITES)
    assert [one.scores[1:] for one in (own, causal, cross)] == [(n, n), (m, m), (m, n)]
    assert (own.blocked, causal.blocked, cross.blocked) == ({}, {Reason.FUTURE: m * (m - 1) // 2}, {})
    assert (cross.asks, cross.answers) == ("decoder.0.mid_self", "encoder.final")
    assert causal.asks == causal.answers == "decoder.0.pre"
    assert all(one.proof.holds and one.proof.direct for one in (own, causal, cross))


def test_another_memory_would_be_noticed():
    checkpoint, trace = traced()
    trace._residuals["encoder.final"] = trace.residual("encoder.0.post")
    assert not attended(checkpoint, trace, SITES)[2].proof.holds
    assert not memory_readers(checkpoint, trace)[0].same


@pytest.mark.parametrize("kind", KINDS)
def test_every_decoder_layer_reads_the_end_of_the_encoder_with_matrices_of_its_own(kind):
    checkpoint, trace = traced(**KINDS[kind])
    readers = memory_readers(checkpoint, trace)
    assert [reader.layer for reader in readers] == [0, 1]
    for reader in readers:
        assert reader.same
        assert reader.proof.holds
        assert list(reader.distances) == list(encoder_outputs(trace)) == ["encoder.0.post", "encoder.final"]
        assert reader.distances["encoder.final"] == 0
        assert reader.distances["encoder.0.post"] > 0.1
    assert readers[0].apart == 0
    assert readers[1].apart > 0.1


def test_numbers_set_by_hand_are_not_the_memorys():
    edit = Edit((Cell("decoder.1.cross.k", (0, 0, 0), 9.0),))
    checkpoint, trace = traced(edit)
    assert [reader.same for reader in memory_readers(checkpoint, trace)] == [True, False]


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_memory_adds_the_same_to_every_row(kind):
    checkpoint, trace = traced(**KINDS[kind])
    found = empty_memory(checkpoint, trace, 1)
    assert found.proof.holds
    assert found.weight == pytest.approx(1 / len(trace.tokens["encoder"]))
    assert found.out.any() == (checkpoint.model.config.out_bias or checkpoint.model.config.qkv_bias)
    with torch.no_grad():
        attention = checkpoint.model.decoder.layers[1].cross_attention
        if attention.W_V.bias is not None:
            attention.W_V.bias += 1
            assert not math.isclose(float(empty_memory(checkpoint, trace, 1).out[0]), float(found.out[0]), abs_tol=1e-6)
            attention.W_V.bias -= 1


def test_three_add_and_norms_and_two_without_an_encoder():
    _, trace = traced()
    assert add_and_norms(trace, 1) == ("decoder.1.mid_self", "decoder.1.mid_cross", "decoder.1.post")
    alone = tiny.checkpoint("decoder-only").trace("a cat")
    assert add_and_norms(alone, 0) == ("decoder.0.mid", "decoder.0.post")


def test_a_model_of_one_stack_has_no_memory():
    checkpoint = tiny.checkpoint("decoder-only")
    trace = checkpoint.trace("a cat")
    with pytest.raises(TraceError):
        memory_readers(checkpoint, trace)
    with pytest.raises(TraceError):
        empty_memory(checkpoint, trace, 0)
