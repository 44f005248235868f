"""What heads do to the logits of what they look at: heads built by hand, and the terms of the logit."""

import numpy as np
import pytest
import torch

from tests import planted_circuits as planted
from tests.bundled import load
from vizformer.analysis import logit_attribution, signed_role
from vizformer.analysis.head_outputs import EXPECTED, MOST_ROWS
from vizformer.errors import TraceError


@pytest.mark.parametrize(
    ("name", "place", "role"),
    [
        ("copy_suppression", (0, 0), "copying"),
        ("copy_suppression", (1, 3), "suppressing"),
        ("negative_induction", (1, 2), "copying"),
        ("negative_induction", (1, 0), "suppressing"),
        ("induction", (0, 1), None),  # it writes for another head
    ],
)
def test_a_head_built_by_hand_has_the_role_it_was_built_for(
    name: str, place: tuple[int, int], role: str | None
) -> None:
    model = planted.PLANTED[name]()
    asked = [row.clean for row in model.prompts.rows]
    traces = [model.checkpoint.trace(text) for text in asked]
    found = signed_role(model.checkpoint, traces, f"decoder.{place[0]}.self", place[1])
    assert found.role == role


def test_a_head_that_lowers_what_nobody_expects_is_anti_copying() -> None:
    plan = planted._Plan(1, ())
    plan.previous((0, 1), "token", "said")
    plan.moves((0, 1), "token", "said", -torch.eye(plan.n))
    checkpoint = planted._made("against", plan.model, plan.tokenizer)
    found = signed_role(checkpoint, [checkpoint.trace("a b c d e f g h")], "decoder.0.self", 1)
    assert found.role == "anti-copying"
    assert (found.weights > 0.9).all()
    assert found.rows.tolist() == list(range(2, 9))
    letters = [checkpoint.tokenizer.tokens([id])[0].text.strip() for id in found.tokens]
    assert letters == list("abcdefg")
    plan.moves((0, 1), "token", "said")
    checkpoint = planted._made("copier", plan.model, plan.tokenizer)
    assert signed_role(checkpoint, [checkpoint.trace("a b c d e f g h")], "decoder.0.self", 1).role == "copying"


def test_each_effect_is_a_term_of_the_logit_of_what_is_looked_at() -> None:
    checkpoint = load("stories")
    traces = [checkpoint.trace(text) for text in ("The boy lost his hat and the girl", "The dog saw the cat " * 8)]
    found = signed_role(checkpoint, traces, "decoder.3.self", 3)
    assert 10 < len(found.effects) <= MOST_ROWS
    assert set(found.texts) == {0, 1}
    columns = (found.texts, found.rows, found.tokens, found.weights, found.effects, found.expected)
    for text, row, token, weight, effect, expected in zip(*(one.tolist() for one in columns), strict=True):
        trace = traces[text]
        pattern = trace["decoder.3.self"].pattern(3)[row]
        ids = np.array([one.id for one in trace.tokens["decoder"]])
        assert float(pattern[ids == token].max()) == pytest.approx(weight, abs=1e-6)
        assert logit_attribution(checkpoint, trace, row, token).heads()[3, 3] == pytest.approx(effect, abs=1e-9)
        logits = trace.logits[row].double().clone()
        logits[token] -= effect
        assert (token in logits.topk(EXPECTED).indices.tolist()) == expected
    frame = found.to_frame()
    assert list(frame.columns) == ["text", "row", "token", "weight", "effect", "expected"]
    assert frame.effect.mean() == pytest.approx(found.mean)


def test_other_attention_and_texts_without_a_row_are_refused() -> None:
    translator, stories = load("zh-en"), load("stories")
    trace = translator.trace("我有一只猫。")
    for site in ("decoder.0.cross", "encoder.0.self"):
        with pytest.raises(TraceError, match="does not look at tokens whose logits"):
            signed_role(translator, [trace], site, 0)
    assert len(signed_role(translator, [trace], "decoder.2.self", 0).effects)
    with pytest.raises(TraceError, match="There is no head 99"):
        signed_role(stories, [stories.trace("The boy")], "decoder.0.self", 99)
    with pytest.raises(TraceError, match="No row of these texts"):
        signed_role(stories, [], "decoder.0.self", 0)
