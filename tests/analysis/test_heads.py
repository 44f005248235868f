"""The maps of all heads, their reasons, next tokens and alignment."""

import numpy as np
import pytest
import torch

from tests import tiny
from tests.bundled import load
from vizformer.analysis import (
    AlignedPair,
    alignment_score,
    head_maps,
    kinds,
    n_layers,
    next_tokens,
    read_alignments,
    site_name,
)
from vizformer.assets import asset
from vizformer.errors import TraceError, VizformerError
from vizformer.model import Cell, Edit, Reason


def traced(architecture="encoder-decoder", edit=None):
    checkpoint = tiny.checkpoint(architecture)
    target = "a cat" if architecture == "encoder-decoder" else None
    return checkpoint, checkpoint.trace("我有一只猫。", target=target, edit=edit)


@pytest.mark.parametrize(
    ("architecture", "expected"),
    [
        ("encoder-decoder", ("encoder", "decoder", "cross")),
        ("decoder-only", ("decoder",)),
        ("encoder-only", ("encoder",)),
    ],
)
def test_kinds_and_maps(architecture, expected):
    _, trace = traced(architecture)
    assert kinds(trace) == expected
    for kind in expected:
        maps = head_maps(trace, kind)
        assert maps.weights.shape == maps.scores.shape
        assert maps.weights.shape[0] == n_layers(trace, kind)
        np.testing.assert_allclose(maps.weights.sum(-1), 1.0, atol=1e-5)
        for layer in range(maps.weights.shape[0]):
            record = trace[site_name(kind, layer)]
            np.testing.assert_array_equal(maps.weights[layer, 1], record.pattern(1).numpy())
            np.testing.assert_array_equal(maps.scores[layer, 1], record.scores(1).numpy())
        n = maps.reasons.shape[1]
        future = np.triu(np.ones((n, n)), 1) * int(Reason.FUTURE) if kind == "decoder" else np.zeros(maps.reasons.shape)
        np.testing.assert_array_equal(maps.reasons, np.broadcast_to(future, maps.reasons.shape))
        assert (maps.weights[np.broadcast_to(maps.reasons[:, None] > 0, maps.weights.shape)] == 0).all()


def test_layers_with_a_window_have_masks_of_their_own():
    checkpoint = tiny.checkpoint("decoder-only", **tiny.LLAMA, sliding_window=3, sliding_layers=(1,))
    maps = head_maps(checkpoint.trace(ids=list(range(3, 12))), "decoder")
    distance = np.arange(9)[:, None] - np.arange(9)[None, :]
    np.testing.assert_array_equal(maps.reasons[0], np.where(distance < 0, 2, 0))
    np.testing.assert_array_equal(maps.reasons[1], np.where(distance < 0, 2, np.where(distance >= 3, 3, 0)))
    assert (maps.weights[1, :, maps.reasons[1] > 0] == 0).all()
    assert (maps.weights[0, :, distance >= 3] > 0).all()


def test_a_cell_blocked_by_hand_in_one_layer_is_not_masked_in_the_others():
    edit = Edit((Cell("encoder.0.self.mask", (0, 1), -float("inf")),))
    _, trace = traced(edit=edit)
    maps = head_maps(trace, "encoder")
    assert maps.reasons[:, 0, 1].tolist() == [int(Reason.PAINTED), 0]
    assert (maps.weights[0, :, 0, 1] == 0).all()
    assert (maps.weights[1:, :, 0, 1] > 0).all()


def test_a_kind_that_is_not_there():
    _, trace = traced("decoder-only")
    with pytest.raises(TraceError, match="no cross attention; it has: decoder"):
        head_maps(trace, "cross")


def test_next_tokens_are_the_softmax_of_the_logits():
    checkpoint, trace = traced()
    found = next_tokens(checkpoint, trace, 1, count=4)
    probabilities = torch.softmax(trace.logits[1].double(), -1)
    assert [p.token.id for p in found] == probabilities.argsort(descending=True)[:4].tolist()
    assert [p.probability for p in found] == pytest.approx([float(probabilities[p.token.id]) for p in found])
    with pytest.raises(TraceError, match="no position 99"):
        next_tokens(checkpoint, trace, 99)


def test_the_bundled_model_finds_the_words():
    """The figure of the card: at least 60 % of the content words of 30 pairs aligned by hand."""
    pairs = read_alignments(asset("models", "zh-en", "alignment.tsv"))
    assert len(pairs) == 30
    score = alignment_score(load("zh-en"), pairs)
    assert score.words > 100
    assert score.found[score.best_layer] >= 0.6


@pytest.mark.sweep
def test_alignment_is_not_found_by_chance():
    """The same pairs with the links of another pair: the score falls, so it measures something."""
    pairs = read_alignments(asset("models", "zh-en", "alignment.tsv"))
    wrong = [AlignedPair(p.source, p.target, tuple((word, p.source[-2]) for word, _ in p.links)) for p in pairs]
    assert alignment_score(load("zh-en"), wrong).found.max() < 0.3


@pytest.mark.parametrize("line", ["猫\tcat", "猫\tcat\tdog=猫", "猫\tcat\tcat=狗", "猫\tcat\tcat"])
def test_an_unreadable_alignment(tmp_path, line):
    path = tmp_path / "a.tsv"
    path.write_text(f"# comment\n{line}\n", encoding="utf-8")
    with pytest.raises(VizformerError, match="line 2"):
        read_alignments(path)


@pytest.mark.parametrize("options", [{}, tiny.ALIBI, tiny.LLAMA])
def test_the_first_rows_alone_are_those_of_the_whole_map(options):
    trace = tiny.checkpoint("decoder-only", **options).trace("我有一只猫和两只狗。")
    whole, first = head_maps(trace, "decoder"), head_maps(trace, "decoder", queries=3)
    assert first.weights.shape == (*whole.weights.shape[:2], 3, whole.weights.shape[3])
    np.testing.assert_allclose(first.weights, whole.weights[:, :, :3], atol=1e-6)
    np.testing.assert_allclose(first.scores, whole.scores[:, :, :3], atol=1e-5)
    np.testing.assert_array_equal(first.reasons, whole.reasons[:, :3])
    for kind in ("encoder", "cross"):
        both = traced()[1]
        np.testing.assert_allclose(
            head_maps(both, kind, queries=2).weights, head_maps(both, kind).weights[:, :, :2], atol=1e-6
        )
