"""The numbers of the token that the path follows, against the model and the trace that they are taken from."""

from typing import Any

import numpy as np
import pytest
import torch

from tests import tiny
from vizformer.analysis import next_tokens
from vizformer.analysis.head_outputs import contributions
from vizformer.analysis.one_forward.followed_token import SHOWN, follow_token
from vizformer.analysis.one_forward.picture_numbers import CELLS
from vizformer.errors import TraceError
from vizformer.explain import position_terms

KINDS: list[tuple[str, dict[str, Any]]] = [
    ("encoder-decoder", {}),
    ("encoder-decoder", tiny.BART),
    ("encoder-decoder", tiny.T5_1),
    ("decoder-only", tiny.LLAMA),
    ("decoder-only", tiny.ROPE),
    ("decoder-only", tiny.SCALED),
    ("decoder-only", tiny.ALIBI),
    ("decoder-only", {"positions": "none"}),
    ("encoder-only", tiny.BERT),
]


def traced(architecture: str, options: dict[str, Any], text: str = "我有一只猫。"):
    checkpoint = tiny.checkpoint(architecture, d_model=48, **options)
    return checkpoint, checkpoint.trace(text, target="a cat" if architecture == "encoder-decoder" else None)


@pytest.mark.parametrize(("architecture", "options"), KINDS)
def test_every_number_is_the_traces(architecture: str, options: dict[str, Any]) -> None:
    checkpoint, trace = traced(architecture, options)
    found = follow_token(checkpoint, trace, 2)
    stack = "decoder" if architecture == "decoder-only" else "encoder"
    tokens, n = trace.tokens[stack], len(trace.tokens[stack])
    assert n <= SHOWN
    assert (found.tokens, found.count, found.width) == (tokens, n, 48)
    entering = trace.residual(f"{stack}.0.pre").numpy()
    np.testing.assert_array_equal(found.entering, entering[:, :CELLS])
    ids = torch.tensor([token.id for token in tokens])
    scale = 48**0.5 if checkpoint.model.config.scaled_embedding else 1
    table = checkpoint.model.embedding.weight.detach()
    np.testing.assert_allclose(found.embedded, scale * table[ids, :CELLS].numpy(), rtol=1e-6, atol=1e-6)
    total = found.embedded if found.added is None else found.embedded + found.added
    plain = not checkpoint.model.config.embedding_norm
    assert found.plain == np.allclose(total, found.entering, atol=1e-5) == plain
    look = found.look
    record = trace[f"{stack}.{look.layer}.self"]
    np.testing.assert_allclose(look.weights, record.pattern(look.head).numpy(), atol=1e-6)
    np.testing.assert_array_equal(look.blocked, record.reason(look.head).numpy() > 0)
    assert look.query == 2
    words = [i for i, token in enumerate(tokens) if i != 2 and not token.special and any(map(str.isalnum, token.text))]
    others = words or [i for i in range(n) if i != 2]
    sites = [site for site in trace.sites if site.endswith("self") and site.startswith(stack)]
    every = [float(trace[s].pattern(h)[2, key]) for s in sites for h in range(record.n_heads) for key in others]
    assert look.weights[look.query, look.key] == pytest.approx(max(every), abs=1e-6)
    layer = f"{stack}.{look.layer}"
    after = "mid_self" if f"{layer}.mid_self" in trace.residuals else "mid"
    rows = [trace.residual(f"{layer}.{point}")[2].numpy() for point in ("pre", after, "post")]
    brought = contributions(checkpoint, trace, f"{layer}.self", 2).slices.out
    np.testing.assert_allclose(found.sublayers.cells[1], brought[:CELLS], atol=1e-5)
    np.testing.assert_array_equal(found.sublayers.cells[[0, 2, 3]], [row[:CELLS] for row in rows])
    lengths = [np.linalg.norm(row) for row in (rows[0], brought, *rows[1:])]
    np.testing.assert_allclose(found.sublayers.lengths, lengths, rtol=1e-5)
    ways = [entering[2], *(trace.residual(f"{stack}.{i}.post")[2].numpy() for i in range(len(sites)))]
    np.testing.assert_allclose(found.layers.lengths, np.linalg.norm(ways, axis=1), rtol=1e-5)
    cosines = [way @ ways[0] / np.linalg.norm(way) / np.linalg.norm(ways[0]) for way in ways]
    np.testing.assert_allclose(found.cosines, cosines, atol=1e-5)


@pytest.mark.parametrize(("architecture", "options"), KINDS)
def test_how_positions_are_told(architecture: str, options: dict[str, Any]) -> None:
    checkpoint, trace = traced(architecture, options)
    found, config = follow_token(checkpoint, trace, 1), checkpoint.model.config
    told = (found.added is not None, found.angles is not None)
    added = config.positions in ("sinusoidal", "learned")
    assert told == (added, config.positions == "rope")
    if found.angles is not None:
        angles = position_terms.angles(config, found.count)
        np.testing.assert_array_equal(found.angles[:, 0], angles[:, 0])  # the fastest pair
        np.testing.assert_array_equal(found.angles[:, -1], angles[:, -1])


def test_the_decoders_row_is_the_one_that_looks_most_at_the_token() -> None:
    checkpoint, trace = traced("encoder-decoder", {})
    found = follow_token(checkpoint, trace, 3)
    cross = found.cross
    assert found.target == trace.tokens["decoder"]
    assert cross is not None
    assert cross.key == 3
    assert found.writing is not None
    rows = [i for i, c in enumerate(found.writing.choices) if not c.next.special and any(map(str.isalnum, c.next.text))]
    every = [
        float(trace[f"decoder.{layer}.cross"].pattern(head)[row, 3])
        for layer in range(2)
        for head in range(4)
        for row in rows
    ]
    assert cross.weights[cross.query, cross.key] == pytest.approx(max(every), abs=1e-6)
    assert found.position == cross.query
    following = [token.id for token in trace.tokens["decoder"][1:]]
    assert [choice.next.id for choice in found.writing.choices][:-1] == following
    probabilities = torch.softmax(trace.logits.double(), -1)
    expected = [float(probabilities[i, choice.next.id]) for i, choice in enumerate(found.writing.choices)]
    np.testing.assert_allclose(found.writing.probabilities, expected, rtol=1e-6)


@pytest.mark.parametrize(("architecture", "options"), [("decoder-only", tiny.LLAMA), ("encoder-only", tiny.BERT)])
def test_candidates_are_those_of_the_followed_row(architecture: str, options: dict[str, Any]) -> None:
    checkpoint, trace = traced(architecture, options)
    last = len(trace.tokens["decoder" if architecture == "decoder-only" else "encoder"]) - 1
    found = follow_token(checkpoint, trace, last)
    best = next_tokens(checkpoint, trace, last, 6)
    assert [one.token.id for one in found.candidates] == [one.token.id for one in best]
    np.testing.assert_allclose([p.probability for p in found.candidates], [p.probability for p in best], rtol=1e-9)
    assert follow_token(checkpoint, trace, last, predicts=False).candidates == ()


def test_what_follows_is_among_the_candidates_also_where_it_is_improbable() -> None:
    checkpoint, trace = traced("encoder-decoder", {})
    found = follow_token(checkpoint, trace, 1)
    assert found.writing is not None
    assert found.writing.choices[found.position].next.id in [one.token.id for one in found.candidates]
    assert [p.probability for p in found.candidates] == sorted((p.probability for p in found.candidates), reverse=True)


def test_the_padding_is_not_chosen_where_the_model_never_writes_it() -> None:
    checkpoint, trace = traced("encoder-decoder", tiny.MARIAN)
    with torch.inference_mode():
        trace.logits[:, checkpoint.model.config.pad_id] = 50.0
    found = follow_token(checkpoint, trace, 1)
    assert checkpoint.model.config.pad_id not in [one.token.id for one in found.candidates]
    assert sum(one.probability for one in found.candidates) <= 1.0


def test_of_a_long_text_the_first_tokens_are_shown_and_the_rest_is_told() -> None:
    checkpoint = tiny.checkpoint("decoder-only", max_positions=64, **tiny.LLAMA)
    trace = checkpoint.trace("cats and dogs " * 8)
    count = len(trace.tokens["decoder"])
    assert count > SHOWN
    found = follow_token(checkpoint, trace, SHOWN - 1)
    assert (len(found.tokens), found.count, found.look.weights.shape) == (SHOWN, count, (SHOWN, SHOWN))
    encoder = tiny.checkpoint("encoder-only", max_positions=64)
    trace = encoder.trace("cats and dogs " * 8)
    found = follow_token(encoder, trace, 3)
    assert found.look.weights.sum(1).max() < 0.99  # the rest goes to keys that are not shown


@pytest.mark.parametrize("followed", [-99, 99])
def test_a_token_that_is_not_shown_is_refused(followed: int) -> None:
    checkpoint, trace = traced("encoder-only", {})
    with pytest.raises(TraceError, match="no position"):
        follow_token(checkpoint, trace, followed)
