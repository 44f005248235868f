"""The page What if: parts taken out, in the link and in Python, with the library's numbers."""

from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.bundled import load
from tests.pages.conftest import Open
from tests.pages.reading import array, chart, said, tables
from tests.pages.test_patches import press
from vizformer.analysis import kinds
from vizformer.analysis.causes.ablation import Part, by_head, parts_of, sweep, without
from vizformer.analysis.causes.part_outputs import unknown_share
from vizformer.analysis.corpus_heads import Corpus, Passage, bundled_corpus
from vizformer.components import matrix
from vizformer.figures.svg.map_marks import filled
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.pages.lens import token_choice
from vizformer.web.pages.lens.token_choice import Asked
from vizformer.web.pages.what_if import computations
from vizformer.web.pages.what_if.all_parts import snippet
from vizformer.web.words import part_names

PAGE = "pages/explore/what_if.py"
REPEATED = "a b c d a b c"
DIALS = "dials"


def code(app) -> str:
    return next(block.value for block in app.code if "without(" in block.value)


def test_the_table_is_the_library_s_sweep(open_app: Open) -> None:
    app = open_app(PAGE, model="induction-by-hand", text=REPEATED)
    assert not app.exception
    assert not app.error
    checkpoint = load("induction-by-hand")
    trace = checkpoint.trace(REPEATED)
    row = len(trace.tokens["decoder"]) - 1
    effects = sweep(checkpoint, trace, row, int(trace.logits[row].argmax()))
    first = max(effects, key=lambda one: one.divergence)
    listed = next(table for table in tables(app) if table[0][1] == f"{first.divergence:.4f}")
    assert listed[0][0] == part_names.name(first.part)
    assert listed[0][2] == f"{first.logit:+.3f}".replace("-", "−")


@pytest.mark.sweep
def test_it_opens_on_the_kind_of_heads_and_the_part_that_the_answer_needs_most(open_app: Open) -> None:
    checkpoint = load("zh-en")
    trace = checkpoint.trace("我有一只猫。")
    row = int(trace.logits.double().softmax(-1).amax(-1).argmin())  # where the model is least sure
    effects = sweep(checkpoint, trace, row, int(trace.logits[row].argmax()))
    largest = {kind: np.nanmax(by_head({one.part: one.divergence for one in effects}, kind)) for kind in kinds(trace)}
    app = open_app(PAGE, model="zh-en", text="我有一只猫。")
    assert array(chart(app, 0)["data"][0]["z"]).max() == pytest.approx(max(largest.values()), rel=1e-4)
    assert "site" not in app.query_params
    first = max(effects, key=lambda one: one.divergence)
    assert f"The answer needs **{part_names.name(first.part)}** most" in said(app)
    app = open_app(PAGE, model="zh-en", text="我有一只猫。", site="encoder")  # a link always wins
    assert array(chart(app, 0)["data"][0]["z"]).max() == pytest.approx(largest["encoder"], rel=1e-4)


def test_small_effects_are_not_zeros_and_a_difference_of_shares_is_in_points(open_app: Open) -> None:
    app = open_app(PAGE, model="zh-en", text="我有一只猫。")
    assert not app.exception
    (heads,) = chart(app, 0)["data"]
    said = np.ravel(heads["text"]) if "text" in heads else [""] * array(heads["z"]).size
    printed = [filled(heads["texttemplate"], *one) for one in zip(array(heads["z"]).ravel(), said, strict=True)]
    assert max(map(float, printed)) > 0
    assert len(set(printed)) > len(printed) / 2
    heads_of_tables = " ".join(html.proto.body for html in app.get("html"))
    assert "change of its probability, percentage points" in heads_of_tables
    listed = next(table for table in tables(app) if len(table[0]) == 5)
    assert not any("%" in row[3] for row in listed)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("model", "text", "off"),
    [
        ("induction-by-hand", REPEATED, "d1s2,d0f"),
        ("zh-en", "我有一只猫。", "d0c1,e2s,d1f"),
        ("cloze", "The cat sat on the [MASK].", "e0s3"),
    ],
)
def test_parts_of_a_link_are_switched_off_and_the_snippet_does_the_same(
    open_app: Open, model: str, text: str, off: str
) -> None:
    app = open_app(PAGE, model=model, text=text, **{DIALS: f"whatif.off:{off}"})
    assert not app.exception
    assert not app.error
    checkpoint = load(model)
    trace = checkpoint.trace(text)
    chosen = part_names.read(off, parts_of(trace))
    assert app.multiselect(key="what_if.off").value == list(chosen)
    space = {}
    exec(code(app), space)
    assert (space["other"].logits - without(checkpoint, trace, chosen).logits).abs().max() < 1e-5
    assert "nats (KL)" in said(app)


@pytest.mark.sweep
def test_the_snippet_puts_the_same_means_in_the_place_of_parts(open_app: Open) -> None:
    subject = Subject(ModelRef("bundled", "stories"), "The cat sat on", "")
    off = (Part("decoder.0.self", 1), Part("decoder.2.feedforward"))
    app = open_app(PAGE, model="stories", text=subject.text, **{DIALS: "whatif.instead:mean~whatif.off:d0s1,d2f"})
    exec(code(app), space := {})
    expected = without(subject.checkpoint, subject.trace, off, computations.means(subject)).logits
    assert (space["other"].logits - expected).abs().max() < 1e-5
    assert (without(subject.checkpoint, subject.trace, off).logits - expected).abs().max() > 0.1


@pytest.mark.parametrize(
    ("model", "opened"),
    [
        ("stories", "vf.load('stories')"),
        ("hub/openai-community/gpt2@main", "vf.load('openai-community/gpt2@main')"),
        ("upload/4f0c6ad2e9b10d37;dtype=bfloat16", "vf.load('path/to/the/model', dtype='bfloat16')"),
        ("models/nano.pt;n_heads=4", "vf.load('path/to/the/model', n_heads='4')"),
    ],
)
def test_code_opens_a_model_by_a_name_that_it_has_outside_of_this_server(model: str, opened: str) -> None:
    subject = Subject(ModelRef.parse(model), "a", "", edited="decoder.0.self!unscaled")
    for written in (
        "\n".join(snippet(subject, (Part("decoder.0.self"),), "zero")),
        token_choice.code(subject, Asked(0, 1, "a", None)),
    ):
        assert f"checkpoint = {opened}\n" in written
        assert "edit=Edit(" in written


def test_a_part_that_is_chosen_goes_into_the_link(open_app: Open) -> None:
    app = open_app(PAGE, model="induction-by-hand", text=REPEATED)
    app.multiselect(key="what_if.off").set_value([Part("decoder.0.self", 1)]).run()
    assert not app.exception
    assert "whatif.off:d0s1" in app.query_params[DIALS]


@pytest.mark.parametrize("written", ["d9s0,x,d0s99", "e0s0", "d0s1" * 9, "....", "d0s,,d0s"])
def test_parts_that_the_model_does_not_have_do_not_count(open_app: Open, written: str) -> None:
    app = open_app(PAGE, model="induction-by-hand", text=REPEATED, **{DIALS: f"whatif.off:{written}"})
    assert not app.exception
    assert not app.error
    expected = [Part("decoder.0.self")] if written.startswith("d0s,") else []
    assert app.multiselect(key="what_if.off").value == expected


def test_every_part_is_written_and_read_back() -> None:
    for name, text in (("zh-en", "我有一只猫。"), ("stories", "A cat."), ("cloze", "A [MASK].")):
        parts = parts_of(load(name).trace(text))
        assert part_names.read(part_names.write(parts), parts) == parts
        assert len({part_names.name(part) for part in parts}) == len(parts)


def test_a_large_sweep_waits_for_its_button(open_app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    def listed(app: AppTest) -> bool:
        return any("The parts without which" in html.proto.body for html in app.get("html"))

    monkeypatch.setattr("vizformer.web.widgets.watched_work.AT_ONCE", 1.0)
    app = open_app(PAGE, model="induction-by-hand", text="c d a b c d a")
    assert not app.exception
    assert not listed(app)
    press(app, "what_if.sweep")
    assert not app.exception
    assert listed(app)


@pytest.mark.sweep
def test_the_mean_over_texts_takes_the_place_of_heads(open_app: Open) -> None:
    zero = open_app(PAGE, model="stories", text="The cat sat on")
    mean = open_app(PAGE, model="stories", text="The cat sat on", **{DIALS: "whatif.instead:mean"})
    assert not mean.exception
    assert not mean.error
    assert tables(zero)[0] != tables(mean)[0]


OWN = "\n".join(["a b c a b c", "d e f g d e", "c c a"])


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("locale", "unknown"), [("en-US", "are unknown to the model's vocabulary"), ("zh-CN", "不在模型的词表里")]
)
def test_texts_that_do_not_fit_are_said_and_the_readers_own_take_their_place(
    open_app: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, locale: str, unknown: str
) -> None:
    """The bundled texts have commas and quotation marks, which a model of letters does not know: 4 % of them."""
    monkeypatch.setattr(computations, "TOO_MANY_UNKNOWN", 0.03)
    settings = "whatif.instead:mean~whatif.texts:own"
    app = open_app(PAGE, locale=locale, model="induction-by-hand", text=REPEATED, **{DIALS: settings})
    assert not app.exception
    checkpoint = load("induction-by-hand")
    share = unknown_share(checkpoint, bundled_corpus("en").passages[: computations.MEAN_TEXTS])
    (warning,) = (box.value for box in app.warning)  # there are no own ones yet
    assert unknown in warning
    assert f"{share:.1%}" in warning
    count_read = {"en-US": "Only the first 12 texts are read", "zh-CN": "只读前 12 条文本"}
    before = tables(app)
    app.text_area(key="what_if.texts").set_value(OWN * 500).run()  # so many that none are taken, which is said
    assert tables(app) == before
    assert f"{len(OWN) * 500:,}" in app.error[0].value
    app.text_area(key="what_if.texts").set_value("a" * 4001 + "\n" + OWN).run()
    assert {"en-US": "more than 4,000 characters are cut there (1 of", "zh-CN": "4,000"}[locale] in app.warning[0].value
    app.text_area(key="what_if.texts").set_value(OWN).run()
    assert not app.exception
    assert not app.warning
    assert count_read[locale] in said(app)
    assert tables(app) != before
    corpus = Corpus.of(OWN.splitlines())
    place = computations.Mean(corpus)
    subject = Subject(ModelRef("bundled", "induction-by-hand"), REPEATED, "")
    effects = computations.sweep(subject, 7, int(subject.trace.logits[7].argmax()), place)
    strongest = f"{max(one.divergence for one in effects):.4f}"
    assert any(table[0][1].startswith(strongest) for table in tables(app))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "your_texts.txt").write_text(OWN, encoding="utf-8")
    exec("\n".join(snippet(subject, (Part("decoder.1.self", 2),), place)), space := {})
    assert [len(text.tokens["decoder"]) for text in space["texts"]] == [7, 7, 4]


def test_the_share_of_unknown_tokens_counts_no_other_marks() -> None:
    checkpoint = load("induction-by-hand")
    assert unknown_share(checkpoint, [Passage("a b c"), Passage("A 猫 a")]) == pytest.approx(1 / 6)
    assert unknown_share(checkpoint, []) == 0
    assert unknown_share(checkpoint, bundled_corpus("zh").passages[:12]) > 0.5
    assert unknown_share(load("zh-en"), bundled_corpus("zh").passages[:12]) == 0


@pytest.mark.parametrize(
    ("model", "text", "more"),
    [
        ("induction-by-hand", "c d f e c", dict(way="unknown", stack="decoder")),
        ("cloze", "The girl lost [MASK] hat.", dict(way="mask", stack="encoder")),
        ("zh-en", "我有一只猫。", dict(way="unseen", stack="decoder")),
    ],
)
def test_every_token_is_taken_out(open_app: Open, model: str, text: str, more: dict) -> None:
    settings = f"whatif.taken:tokens~whatif.stack:{more['stack']}~whatif.tokenway:{more['way']}"
    app = open_app(PAGE, model=model, text=text, **{DIALS: settings})
    assert not app.exception
    assert not app.error
    exec(next(block.value for block in app.code if "token_sweep(" in block.value), space := {})
    (table,) = tables(app)
    assert [row[2] for row in table] == [matrix.number(one.divergence) for one in space["effects"]]
    assert [row[5] for row in table] == [one.best.text for one in space["effects"]]
    assert f"way='{more['way']}'" in "".join(block.value for block in app.code)


@pytest.mark.parametrize(
    ("value", "said"), [(-2.3e-8, "−2.3e−08"), (0.0, "0"), (0.0895, "+0.0895"), (-0.00006, "−0.0001")]
)
def test_a_small_change_is_not_said_to_be_zero(value: float, said: str) -> None:
    assert part_names.signed(value, 4) == said


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("whatif.taken:gates", "learned gates"),
        ("whatif.taken:neurons", "neurons"),
        ("whatif.way:set~whatif.over:gates", "learned gates"),
        ("whatif.way:between~whatif.what:paths", "paths from head to head"),
        ("whatif.way:set~whatif.over:paths", "paths from head to head"),
        ("lens.scan:1", "a scan in words"),
    ],
)
@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_a_link_to_what_went_says_so_and_shows_the_usual_choice(
    open_app: Open, locale: str, setting: str, said: str
) -> None:
    app = open_app(PAGE, locale=locale, model="induction-by-hand", text=REPEATED, **{DIALS: setting})
    assert not app.exception
    assert not app.error
    notices = [info.value for info in app.info if "no longer" in info.value or "已不再" in info.value]
    assert len(notices) == 1
    assert (said in notices[0]) == (locale == "en-US")
    left = setting.rpartition("~")[0]
    assert app.query_params.get(DIALS, "") in (left, [left])
