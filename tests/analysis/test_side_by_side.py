"""Two runs side by side: against plain loops, and against changes whose answer is known."""

import math

import numpy as np
import pytest
import torch

from recipes.vocabulary import train_bpe
from tests import tiny
from vizformer.analysis import (
    head_divergences,
    head_maps,
    head_pair,
    moved_weights,
    row_divergences,
    stream_cosines,
    two_answers,
    two_runs,
)
from vizformer.analysis.side_by_side.heads import differing_rows
from vizformer.analysis.side_by_side.runs import _dominant
from vizformer.checkpoints import Checkpoint
from vizformer.errors import TraceError
from vizformer.text import Tokenizer

IDS, OTHER_IDS = [30, 31, 32, 33, 34], [30, 31, 40, 33, 34]
KINDS = {"decoder-only": "decoder", "encoder-only": "encoder"}


def made(architecture="decoder-only", **options):
    return tiny.checkpoint(architecture, vocab_size=320, **options)


def on_two_texts(checkpoint, ids=IDS, others=OTHER_IDS):
    return two_runs(checkpoint, checkpoint.trace(ids=ids), checkpoint, checkpoint.trace(ids=others))


def changed(checkpoint, name, change):
    """The same model with one tensor changed."""
    other = tiny.checkpoint("decoder-only", vocab_size=320)
    other.model.load_state_dict(checkpoint.model.state_dict())
    with torch.no_grad():
        change(dict(other.model.named_parameters())[name])
    return Checkpoint("other", other.model, checkpoint.tokenizer)


def by_loops(p, q):
    """The Jensen-Shannon divergence as Lin writes it: H((p + q) / 2) - H(p) / 2 - H(q) / 2, in bits."""

    def entropy(row):
        return -sum(value * math.log2(value) for value in row if value > 0)

    return entropy((p + q) / 2) - entropy(p) / 2 - entropy(q) / 2


@pytest.mark.parametrize("architecture", KINDS)
@pytest.mark.sample(1)
def test_divergences_are_means_of_plain_loops_over_the_rows(architecture, monkeypatch):
    monkeypatch.setattr("vizformer.analysis.side_by_side.heads.AT_ONCE", 11)  # some rows at a time
    runs, kind = on_two_texts(made(architecture)), KINDS[architecture]
    found = head_divergences(runs, kind)
    first, second = (head_maps(trace, kind).weights.astype(float) for trace in (runs.trace, runs.other))
    choosing = range(0 if kind == "encoder" else 1, 5)  # row 0 of a decoder sees itself alone
    for layer, head in np.ndindex(found.shape):
        rows = [by_loops(first[layer, head, row], second[layer, head, row]) for row in choosing]
        assert found[layer, head] == pytest.approx(np.mean(rows), abs=1e-6)
        pair = head_pair(runs, kind, layer, head)
        assert np.allclose(pair.difference, second[layer, head] - first[layer, head], atol=1e-6)
        assert np.allclose(pair.divergence[list(choosing)], rows, atol=1e-6)
    assert found.max() > 1e-4


def test_a_run_beside_itself_differs_nowhere_and_rows_without_a_key_in_common_by_one_bit():
    from vizformer.analysis.side_by_side.heads import divergence

    same = on_two_texts(made(), IDS, IDS)
    assert np.abs(head_divergences(same, "decoder")).max() < 1e-9
    assert np.allclose(stream_cosines(same, "decoder").cosines, 1)
    assert two_answers(same, 4).divergence < 1e-9
    p, q = torch.tensor([0.25, 0.75, 0, 0]).double(), torch.tensor([0, 0, 0.5, 0.5]).double()
    assert float(divergence(p, q)) == 1
    assert float(divergence(p, p)) == 0


def test_a_head_whose_queries_were_changed_is_the_only_one_of_its_layer_that_differs():
    checkpoint = made()
    d_head = checkpoint.model.config.d_model // 4

    def change(weight):
        weight[2 * d_head : 3 * d_head] *= -4

    other = changed(checkpoint, "decoder.layers.0.self_attention.W_Q.weight", change)
    runs = two_runs(checkpoint, checkpoint.trace(ids=IDS), other, other.trace(ids=IDS))
    found = head_divergences(runs, "decoder")
    assert found[0].argmax() == 2
    assert found[0, 2] > 1e-3
    assert np.delete(found[0], 2).max() < 1e-9
    moved = moved_weights(checkpoint, other)
    assert moved.tensors[0].name == "decoder.layers.0.self_attention.W_Q.weight"
    assert all(one.distance == 0 for one in moved.tensors[1:])


def test_texts_of_unequal_length_are_compared_where_a_mask_hides_the_rest():
    decoder = made()
    runs = on_two_texts(decoder, IDS, [30, 31, 40])
    assert not runs.of_equal_length("decoder")
    short = on_two_texts(decoder, IDS[:3], [30, 31, 40])
    assert np.allclose(head_divergences(runs, "decoder"), head_divergences(short, "decoder"), atol=1e-6)
    assert head_pair(runs, "decoder", 1, 1).difference.shape == (3, 3)
    assert stream_cosines(runs, "decoder").cosines.shape == (3, 3)
    assert two_answers(runs, 4, 2).divergence > 0
    encoder = on_two_texts(made("encoder-only"), IDS, [30, 31, 40])
    with pytest.raises(TraceError, match="5 and 3 tokens"):
        head_divergences(encoder, "encoder")
    pair = head_pair(encoder, "encoder", 0, 0)
    assert pair.difference is None
    assert (pair.first.shape, pair.second.shape) == ((5, 5), (3, 3))


def test_only_some_rows_and_keys_of_a_head_are_those_of_the_whole():
    runs = on_two_texts(made())
    whole, some = head_pair(runs, "decoder", 1, 2), head_pair(runs, "decoder", 1, 2, range(2, 5), range(1, 4))
    assert np.allclose(some.difference, whole.difference[2:5, 1:4])
    assert np.allclose(some.divergence, whole.divergence[2:5])
    assert np.array_equal(some.reasons[0], whole.reasons[0][2:5, 1:4])


def test_cosines_are_those_of_the_rows():
    runs = on_two_texts(made("encoder-only"))
    compared = stream_cosines(runs, "encoder")
    found = compared.whole
    assert compared.left_out == ((), (), ())
    np.testing.assert_array_equal(compared.cosines, found)
    for point, name in enumerate(("encoder.0.pre", "encoder.0.post", "encoder.1.post")):
        x, y = (trace.residual(name).double() for trace in (runs.trace, runs.other))
        assert np.allclose(found[point], torch.cosine_similarity(x, y, dim=-1), atol=1e-9)
    assert np.allclose(found[0, [0, 1, 3, 4]], 1)  # the same tokens
    assert found[0, 2] < 0.99


def test_dimensions_that_make_all_cosines_1_are_left_out_and_named():
    plain = made()

    def massive(weight):
        weight[:, 7], weight[:, 11] = 300.0, -2000.0  # of every token, as in many trained models

    runs = on_two_texts(changed(plain, "embedding.weight", massive))
    found, alone = stream_cosines(runs, "decoder"), stream_cosines(on_two_texts(plain), "decoder")
    assert found.left_out[0] == (11, 7)
    assert found.whole[0, 2] > 0.999  # where the tokens differ
    x, y = (trace.residual("decoder.0.pre")[2].double().numpy() for trace in (runs.trace, runs.other))
    kept = [at for at in range(len(x)) if at not in (7, 11)]
    expected = x[kept] @ y[kept] / np.linalg.norm(x[kept]) / np.linalg.norm(y[kept])
    assert found.cosines[0, 2] == pytest.approx(expected)
    assert found.cosines[0, 2] < 0.9
    assert alone.left_out[0] == ()


def test_each_dimension_that_is_dominant_is_left_out_once():
    rows = torch.zeros(5, 16, dtype=torch.float64)
    rows[:, :3] = torch.tensor([900.0, 0.5, 0.1])
    assert _dominant(rows) == (0, 1, 2)


def test_answers_are_the_most_probable_tokens_of_either_with_both_probabilities():
    runs = on_two_texts(made())
    found = two_answers(runs, 3, count=3)
    p, q = (torch.softmax(trace.logits[3].double(), -1) for trace in (runs.trace, runs.other))
    assert {one.token.id for one in found.tokens} == {*p.topk(3).indices.tolist(), *q.topk(3).indices.tolist()}
    for one in found.tokens:
        assert one.first == pytest.approx(float(p[one.token.id]))
        assert one.second == pytest.approx(float(q[one.token.id]))
    assert found.divergence == pytest.approx(by_loops(p.numpy(), q.numpy()), abs=1e-9)
    with pytest.raises(TraceError, match="no position 5"):
        two_answers(runs, 5)
    best = [trace.logits.argmax(dim=-1).tolist() for trace in (runs.trace, runs.other)]
    assert differing_rows(runs) == tuple(
        row for row, (one, other) in enumerate(zip(*best, strict=True)) if one != other
    )
    assert differing_rows(runs)


def test_a_change_of_rank_one_has_one_singular_value_and_its_size_is_measured_by_the_first_model():
    checkpoint = made()
    name = "decoder.layers.1.feedforward.W_in.weight"
    weight = dict(checkpoint.model.named_parameters())[name].double()
    u, v = torch.randn(weight.shape[0]).double(), torch.randn(weight.shape[1]).double()

    def change(other):
        other += torch.outer(u, v).float()

    found = moved_weights(checkpoint, changed(checkpoint, name, change))
    moved = found.tensors[0]
    size = float(u.norm() * v.norm())
    assert moved.name == name
    assert moved.distance == pytest.approx(size, rel=1e-5)
    assert moved.relative == pytest.approx(size / float(weight.norm()), rel=1e-5)
    assert moved.singular[0] == pytest.approx(size, rel=1e-5)
    assert max(moved.singular[1:]) < 1e-5 * size
    every = [one.double() for one in checkpoint.model.parameters()]
    assert found.relative == pytest.approx(size / math.sqrt(sum(float(one.norm()) ** 2 for one in every)), rel=1e-5)


def test_tensors_that_were_0_stand_at_the_end_and_others_than_the_same_are_named():
    checkpoint = made()
    bias = "decoder.layers.0.feedforward.W_in.bias"
    zero = changed(checkpoint, bias, lambda weight: weight.zero_())
    found = moved_weights(zero, checkpoint)
    assert (found.tensors[-1].name, found.tensors[-1].relative) == (bias, math.inf)
    wider = made(d_ff=48)
    found = moved_weights(checkpoint, wider)
    assert set(found.only_in_one) >= {bias, "decoder.layers.1.feedforward.W_out.weight"}
    assert {one.name for one in found.tensors} & set(found.only_in_one) == set()


def test_singular_values_of_what_is_dear_are_left_out(monkeypatch):
    monkeypatch.setattr("vizformer.analysis.side_by_side.weights.CHEAP", 10)
    assert all(one.singular is None for one in moved_weights(made(), made(seed=1)).tensors)


def test_models_that_read_the_text_otherwise_are_refused_with_the_reason():
    first = made()
    other = Checkpoint("other", tiny.model("decoder-only", vocab_size=300), Tokenizer(train_bpe(tiny.TEXTS, 300)))
    assert first.tokenizer.to_json() != other.tokenizer.to_json()
    text = "The cats are here."
    runs = [checkpoint.trace(text) for checkpoint in (first, other)]
    ids = [[token.id for token in run.tokens["decoder"]] for run in runs]
    assert ids[0] != ids[1]
    with pytest.raises(TraceError, match="other token ids"):
        two_runs(first, runs[0], other, runs[1])
    same = two_runs(first, first.trace(ids=IDS), other, other.trace(ids=IDS))  # the ids agree: that is what is compared
    assert np.isfinite(head_divergences(same, "decoder")).all()
    assert two_answers(same, 4).divergence > 0  # vocabularies of other sizes
    with pytest.raises(TraceError, match="no stack that does the same"):
        two_runs(first, runs[0], (encoder := made("encoder-only")), encoder.trace(text))


def test_models_of_other_shapes_are_compared_as_far_as_both_go():
    first, deeper = made(), made(n_decoder_layers=3, d_model=40, n_heads=5)
    runs = two_runs(first, first.trace(ids=IDS), deeper, deeper.trace(ids=IDS))
    assert not runs.whole_shape("decoder")
    assert head_divergences(runs, "decoder").shape == (2, 4)
    with pytest.raises(TraceError, match="no angle"):
        stream_cosines(runs, "decoder")
    with pytest.raises(TraceError, match="no head 4 in layer 0"):
        row_divergences(runs, "decoder", 0, 4)
