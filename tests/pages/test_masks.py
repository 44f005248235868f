"""The lesson Masks: what is on the screen is what the library computes, in both languages."""

import itertools
import math
import re
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from tests.bundled import load
from tests.components.test_mask import sent
from tests.pages.conftest import Open
from tests.pages.reading import array, chart
from tests.refs import subject
from vizformer.analysis import Kind, masks
from vizformer.analysis.masks import leak, mask_edit, masked_after, rerun, zeroed
from vizformer.components import mask, matrix
from vizformer.explain import latex, masked_attention
from vizformer.model.masks import KINDS, MaskKind, MaskRecipe, bigbird_mask, prefix_mask, window_mask
from vizformer.web.frame.progress import QUESTIONS
from vizformer.web.lessons.masks import leakage, mask_painting, notations, six_masks
from vizformer.web.lessons.masks.masked_head import causal_head, tokens
from vizformer.web.widgets.slides import lesson_prose

PAGE = "pages/learn/masks.py"
TEXT = "我有一只猫。"
PARTS = ("kinds", "paint", "conventions", "mistakes", "leak")


def view(app: AppTest) -> dict[str, object]:
    """What the mask component was sent (the first component of a lesson is its memory)."""
    found = [sent(app, i) for i in range(len(app.get("bidi_component")))]
    return next(data for data in found if "panels" in data)


def tables(app: AppTest) -> str:
    return " ".join(element.proto.body for element in app.get("html"))


def words(app: AppTest) -> str:
    kinds = (app.text, app.caption, app.success, app.warning, app.error, app.info, app.markdown)
    return " ".join(str(element.value) for kind in kinds for element in kind)


def test_causal_is_the_models_own_and_the_numbers_are_the_traces(open_app: Open) -> None:
    app = open_app(PAGE, layer=1, head=2)
    assert not app.exception
    record = load("zh-en").trace(TEXT)["decoder.1.self"]
    expected, data = masked_attention(record, 2), view(app)
    assert data["panels"] == ["mask", "scores", "weights"]
    np.testing.assert_array_equal(data["reasons"], expected.reasons.ravel())
    np.testing.assert_allclose(data["scores"], expected.scores.ravel(), atol=1e-5)
    np.testing.assert_allclose(data["weights"], record.pattern(2).numpy().ravel(), atol=1e-6)
    assert "The model itself uses this mask" in words(app)


@pytest.mark.parametrize(
    ("dials", "of_length"),
    [
        ("masks.kind:prefix~masks.prefix:3", lambda n: prefix_mask(n, 3)),
        ("masks.kind:window~masks.reach:2~masks.causal:1", lambda n: window_mask(n, 2, causal=True)),
        ("masks.kind:bigbird~masks.random:2~masks.seed:5", lambda n: bigbird_mask(n, 1, 1, 2, 5, causal=True)),
    ],
)
def test_other_masks_are_laid_over_the_models_scores(open_app: Open, dials: str, of_length: object) -> None:
    app = open_app(PAGE, model="stories", dials=dials, layer=0, head=0)
    assert not app.exception
    record = load("stories").trace(TEXT)["decoder.0.self"]
    expected = masked_attention(record, 0, of_length(record.q.shape[1]))  # type: ignore[operator]
    np.testing.assert_array_equal(view(app)["reasons"], expected.reasons.ravel())
    np.testing.assert_allclose(view(app)["weights"], expected.weights.ravel(), atol=1e-6)
    assert "not trained with it" in words(app)


@pytest.mark.sample(1)
@pytest.mark.parametrize("model", ["zh-en", "stories", "cloze"])
def test_padding_hides_what_fills_the_batch(open_app: Open, model: str) -> None:
    app = open_app(PAGE, model=model, dials="masks.kind:padding")
    assert not app.exception
    data = view(app)
    reasons = np.reshape(data["reasons"], (len(data["queries"]), -1))
    pads = np.array([key in ("<pad>", "[PAD]") for key in data["keys"]])
    assert pads.any()
    assert (reasons[-1, pads] == 1).all()
    assert data["unused"] == np.flatnonzero(pads).tolist()
    other = next(box for box in app.text_input if box.key == "view.batch")
    app = other.set_value("猫").run()  # now the typed sentence is the longer one, and the second is padded
    assert not app.exception
    assert len(view(app)["keys"]) == len(tokens(subject(model, TEXT), _stack(model))[1])
    app = next(box for box in app.text_input if box.key == "view.batch").set_value("").run()
    assert not app.exception
    assert app.error


def _stack(model: str) -> Kind:
    return "decoder" if model == "stories" else "encoder"


def test_cross_attention_needs_two_stacks_and_says_so(open_app: Open) -> None:
    app = open_app(PAGE, model="stories", dials="masks.kind:cross")
    assert "one stack and so no cross-attention" in words(app)
    app = next(button for button in app.button if "zh-en" in button.label).click().run()
    assert not app.exception
    data = view(app)
    assert data["queries"][0] == "<s> → I"
    assert data["keys"][0] == load("zh-en").encode(TEXT)[0].text


def test_the_count_is_asked_and_answered(open_app: Open) -> None:
    app = open_app(PAGE)
    n = len(view(app)["queries"])
    right = n * (n - 1) // 2
    radio = next(radio for radio in app.radio if "count" in radio.key)
    app = radio.set_value(radio.options.index(str(right))).run()
    app = next(button for button in app.button if "ask.masks.count" in button.key).click().run()
    assert any("Right" in element.value for element in app.success)
    assert f"1 of {len(QUESTIONS['masks'])} questions answered" in words(app)


CODED = [*((kind, False) for kind in KINDS), ("padding", True), ("window", True), ("bigbird", True)]


@pytest.mark.parametrize(("kind", "causal"), CODED)
def test_the_code_beside_a_mask_builds_that_mask(kind: MaskKind, causal: bool) -> None:
    n, padding = 9, torch.tensor([False] * 6 + [True] * 3)
    recipe = MaskRecipe(kind, prefix=3, reach=2, n_global=1, n_random=2, seed=3, causal=causal)
    scope = {
        "torch": torch,
        "math": math,
        "n": n,
        "n_q": n,
        "n_k": n,
        "p": 3,
        "w": 2,
        "g": 1,
        "r": 2,
        "seed": 3,
        "n_real": 6,
        "scores": torch.randn(n, n, generator=torch.Generator().manual_seed(0)),
    }
    exec(six_masks.code(recipe, causal), scope)
    made = recipe.mask(n)
    blocked = padding[None, :].expand(n, n) if made is None else made.reason[0, 0] > 0
    if made is None and causal:
        blocked = blocked | torch.ones(n, n, dtype=torch.bool).triu(1)
    assert torch.equal(scope["M"] == -math.inf, blocked)
    assert torch.equal(scope["weights"] == 0, blocked)
    if made is None and causal:  # of a model with a window
        exec(six_masks.code(recipe, causal, 3), scope)
        distance = torch.arange(n)[:, None] - torch.arange(n)[None, :]
        assert torch.equal(scope["M"] == -math.inf, blocked | (distance >= 3))


@pytest.mark.parametrize("model", ["zh-en", "stories", "cloze"])
def test_a_painted_mask_is_run_by_the_model(open_app: Open, model: str) -> None:
    flips = ((2, 0), (2, 1), (2, 2), (1, 3))
    dials = f"masks.cells_a:{mask_painting.write(flips)}"
    app = open_app(PAGE, model=model, part="paint", dials=dials, layer=0, head=0)
    assert not app.exception
    checkpoint = load(model)
    trace = checkpoint.trace(TEXT)
    kind: Kind = "encoder" if model == "cloze" else "decoder"
    blocked = trace[f"{kind}.0.self"].reason(0).numpy() > 0
    for cell in flips:
        blocked[cell] = not blocked[cell]
    again = rerun(checkpoint, dict(trace.tokens), mask_edit(trace, kind, blocked))
    np.testing.assert_array_equal(np.asarray(view(app)["reasons"]) > 0, blocked.ravel())
    np.testing.assert_allclose(view(app)["weights"], again[f"{kind}.0.self"].pattern(0).numpy().ravel(), atol=1e-6)
    best = again.logits.softmax(-1).max(-1)
    token = checkpoint.tokenizer.tokens([int(best.indices[2])])[0]
    assert f"{token.text} {best.values[2]:.1%}".replace("<", "&lt;") in tables(app)
    # row 2 of a causal mask has three keys, all of them painted; of an encoder's there are more
    assert ("Some queries see no key" in words(app)) == (kind == "decoder")


def test_painting_in_the_browser_goes_into_the_link_and_back(open_app: Open) -> None:
    app = open_app(PAGE, part="paint")
    app.session_state["masks.paint.decoder"] = {"selected": {"flips": [[3, 1]]}}
    app.run()
    assert not app.exception
    assert mask_painting.write([(3, 1)]) in str(app.query_params["dials"])
    n = len(view(app)["keys"])
    assert np.asarray(view(app)["reasons"])[3 * n + 1] == 4
    app = next(button for button in app.button if button.key == "masks.open").click().run()
    assert not np.any(view(app)["reasons"])
    app = next(button for button in app.button if button.key == "masks.reset").click().run()
    assert "masks.cells" not in str(app.query_params.get("dials", ""))


def pasted(code: str) -> dict[str, Any]:
    """What a program of these lines alone has made."""
    names: dict[str, Any] = {}
    exec(code, names)
    return names


LONG = "The cat sat on the chair and looked at the two dogs. " * 5  # more than 64 tokens


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", [TEXT, LONG])
def test_the_code_beside_a_mask_runs_when_it_is_pasted(open_app: Open, kind: MaskKind, text: str) -> None:
    app = open_app(PAGE, text=text, dials=f"masks.kind:{kind}")
    assert not app.exception
    (code,) = app.code
    drawn = (len(view(app)["queries"]), len(view(app)["keys"]))
    made = pasted(code.value)
    assert tuple(min(n, mask.LARGEST) for n in made["weights"].shape) == drawn
    blocked = (made["M"] < 0)[: drawn[0], : drawn[1]].numpy()
    np.testing.assert_array_equal(blocked, np.reshape(view(app)["reasons"], drawn) > 0)


SENTENCES = {
    "zh-en": TEXT,
    "stories": "I have a cat.",
    "cloze": "我有一只猫",
}  # up to 8 tokens: all numbers written out


@pytest.mark.parametrize("model", SENTENCES)
def test_the_code_under_the_notations_gives_the_heads_weights_when_it_is_pasted(open_app: Open, model: str) -> None:
    app = open_app(PAGE, part="conventions", model=model, text=SENTENCES[model], layer=1, head=1)
    assert not app.exception
    masked = causal_head(subject(model, SENTENCES[model]), 1, 1)
    (calls,) = app.code
    for index, written in enumerate(masks.notations(masked.blocked).values()):
        np.testing.assert_array_equal(array(chart(app, index)["data"][0]["z"]), np.maximum(written.astype(float), -1))
    made = pasted(calls.value)
    for name in ("weights", "by_module", "by_fused", "by_additive"):
        np.testing.assert_allclose(made[name].numpy(), masked.weights, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("model", SENTENCES)
@pytest.mark.parametrize("mistake", ["after", "zero", "half", "blind"])
def test_the_code_under_each_mistake_gives_the_pages_numbers_when_it_is_pasted(
    open_app: Open, model: str, mistake: str
) -> None:
    dials = f"masks.mistake:{mistake}~masks.query:2"
    app = open_app(PAGE, part="mistakes", model=model, text=SENTENCES[model], layer=1, head=1, dials=dials)
    assert not app.exception
    (code,) = app.code
    masked = causal_head(subject(model, SENTENCES[model]), 1, 1)
    blind = masked.weights.copy()
    blind[2] = 0
    expected = {
        "after": masked_after(masked.scores, masked.blocked),
        "zero": zeroed(masked.scores, masked.blocked),
        "half": masked.weights[2],
        "blind": blind,
    }[mistake]
    np.testing.assert_allclose(pasted(code.value)["weights"].numpy(), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("part", "dials"),
    [("conventions", ""), *(("mistakes", f"masks.mistake:{m}") for m in ("after", "zero", "half", "blind"))],
)
def test_the_code_of_a_long_text_stands_in_for_the_scores_alone(open_app: Open, part: str, dials: str) -> None:
    app = open_app(PAGE, part=part, model="stories", text=LONG, dials=dials)
    n = len(load("stories").encode(LONG))
    assert not app.exception
    for code in app.code:
        made = pasted(code.value)
        name = "mask" if "mask" in made else "blocked"
        assert len(made[name]) == n  # no mask is a stand-in
        if "weights" in made:
            assert made["weights"].shape[-1] == n
            assert ("torch.randn replaces" in code.value) == ("randn" in code.value)
        else:
            assert "randn" not in code.value


@pytest.mark.parametrize(
    ("kind", "model"), [("padding", "zh-en"), ("cross", "zh-en"), ("padding", "stories"), ("padding", "cloze")]
)
@pytest.mark.parametrize("head", [0, 1])
def test_the_live_formula_works_out_no_row_of_padding(open_app: Open, kind: str, model: str, head: int) -> None:
    app = open_app(PAGE, model=model, text="猫", head=head, dials=f"masks.kind:{kind}~masks.sentence:typed")
    assert not app.exception
    unused, queries = view(app)["unused"], view(app)["queries"]
    assert unused  # the typed sentence is the short one of the batch
    lines = [re.match(r"A_\{(\d+),\d+\}", line.value.strip("$\n ")) for line in app.latex]
    (row,) = [int(found[1]) for found in lines if found]
    assert row not in unused
    assert queries[row] not in ("<pad>", "[PAD]")


def test_the_notations_agree_and_the_mixed_up_one_is_shown(open_app: Open) -> None:
    app = open_app(PAGE, part="conventions", dials="masks.mixed:1")
    assert not app.exception
    drawn = "".join(one.proto.spec for one in app.get("plotly_chart"))
    assert all(text in drawn for text in ("True = blocked", "True = visible", "0 = blocked", "\\u2212\\u221e"))
    assert "1 of 6" in app.error[0].value
    assert all(difference < 1e-5 for difference in notations.agreement(subject("zh-en", TEXT), 0, 0).values())


def test_row_sums_of_a_mask_after_the_softmax(open_app: Open) -> None:
    app = open_app(PAGE, part="mistakes", layer=1, head=1)
    record = load("zh-en").trace(TEXT)["decoder.1.self"]
    masked = masked_attention(record, 1)
    sums = masked_after(masked.scores, masked.reasons > 0).sum(axis=1)
    assert all(matrix.number(value, 4) in tables(app) for value in sums.tolist())
    assert matrix.number(float(1 - sums.min()), 4) in tables(app)  # and the query with the greatest loss is shown
    assert next(box for box in app.selectbox if box.key == "setting.masks.query").value == int(sums.argmin())


def test_a_row_that_loses_nearly_all_reads_the_same_in_table_and_formula(open_app: Open) -> None:
    found, texts = {}, ("我有一只猫。", "他喜欢喝水。", "今天天气很好，我们去公园。")
    for place in itertools.product(texts, range(3), range(4)):
        masked = causal_head(subject("zh-en", place[0]), *place[1:])
        found[place] = masked_after(masked.scores, masked.blocked).sum(axis=1)
    (text, layer, head), sums = min(found.items(), key=lambda one: one[1].min())
    row = int(sums.argmin())
    app = open_app(PAGE, part="mistakes", text=text, layer=layer, head=head, dials=f"masks.query:{row}")
    assert matrix.number(sums[row], 4) in tables(app)
    assert "e−" in matrix.number(sums[row], 4)
    assert latex.number(sums[row]) in app.latex[0].value
    asked = next(m.value for m in app.markdown if "Predict first" in m.value)
    assert "1.000" not in asked  # the question is about a row of which something is left


@pytest.mark.parametrize("mistake", ["zero", "half", "blind"])
@pytest.mark.parametrize("model", ["zh-en", "stories", "cloze"])
def test_every_mistake_is_drawn_for_every_model(open_app: Open, mistake: str, model: str) -> None:
    app = open_app(PAGE, part="mistakes", model=model, dials=f"masks.mistake:{mistake}")
    assert not app.exception
    assert not app.error
    assert {"zero": "weight of the blocked cells", "half": "refused", "blind": "NaN"}[mistake] in tables(app)


@pytest.mark.sample(1)
@pytest.mark.parametrize(("model", "run"), [("zh-en", "own"), ("stories", "open"), ("cloze", "causal")])
def test_what_moves_is_what_the_library_measures(open_app: Open, model: str, run: str) -> None:
    app = open_app(PAGE, part="leak", model=model, dials=f"masks.run:{run}~masks.at:3")
    assert not app.exception
    checkpoint = load(model)
    trace = checkpoint.trace(TEXT)
    stack: Kind = "encoder" if model == "cloze" else "decoder"
    n = len(trace.tokens[stack])
    blocked = {
        "own": trace[f"{stack}.0.self"].reason(0).numpy() > 0,
        "open": np.zeros((n, n), bool),
        "causal": ~np.tri(n, dtype=bool),
    }[run]
    edit = mask_edit(trace, stack, blocked)
    token = leakage.replacements(subject(model, TEXT), stack, 3)[0]
    row = list(trace.tokens[stack])
    row[3] = token
    changed = {**trace.tokens, stack: tuple(row)}
    found = leak(rerun(checkpoint, dict(trace.tokens), edit), rerun(checkpoint, changed, edit), stack)
    before = sum(i < 3 for i in found.moved)
    assert f"{len(found.moved)} of {n} outputs changed. Before the replaced token: {before};" in words(app)
    assert before == (3 if run == "open" else 0)


@pytest.mark.parametrize("model", ["stories", "cloze"])
def test_leakage_is_asked_with_the_measured_answer(open_app: Open, model: str) -> None:
    app = open_app(PAGE, part="leak", model=model)
    n = len(load(model).encode(TEXT))
    moved = 1 if model == "stories" else n
    radio = next(radio for radio in app.radio if "leak" in radio.key)
    app = radio.set_value(radio.options.index(str(moved))).run()
    app = next(button for button in app.button if "ask.masks.leak" in button.key).click().run()
    assert any("Right" in element.value for element in app.success)


@pytest.mark.parametrize("part", PARTS)
def test_every_part_has_words_in_both_languages_and_opens_in_chinese(open_app: Open, part: str) -> None:
    for code in ("en", "zh_CN"):
        assert len(lesson_prose("masks", code)[part].text) > 100
    assert lesson_prose("masks", "zh_CN")[part].text != lesson_prose("masks", "en")[part].text
    app = open_app(PAGE, locale="zh-CN", part=part)
    assert not app.exception
    words, said = lesson_prose("masks", "zh_CN")[part], [element.value for element in app.markdown]
    assert {words.lead, words.rest} <= {*said}


@pytest.mark.sample(3)
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize(("model", "text"), [("stories", "a"), ("cloze", "<b>$x$</b> a_b"), ("zh-en", "我" * 40)])
def test_short_odd_and_long_texts(open_app: Open, part: str, model: str, text: str) -> None:
    app = open_app(PAGE, part=part, model=model, text=text)
    assert not app.exception
    assert not [error.value for error in app.error]


@pytest.mark.parametrize(
    ("address", "told"),
    [({"dials": "masks.kind:window"}, "Sliding window"), ({"part": "paint"}, "Painted by hand")],
)
def test_pictures_say_of_which_head_and_under_which_mask(open_app: Open, monkeypatch, address, told: str) -> None:
    said = []
    monkeypatch.setattr(
        "vizformer.web.widgets.head_downloads.caption", lambda *parts: said.append(parts[0]) or " · ".join(parts)
    )
    assert not open_app(PAGE, layer="1", head="2", **address).exception
    assert said
    assert all(one.endswith(f"coder self-attention, layer 1, head 2 · {told}") for one in said), said
