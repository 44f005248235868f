"""The page What if, patches between two prompts: the library's numbers, in the link and in Python."""

import numpy as np
import pytest

from tests.bundled import load
from tests.components.test_mount import sent
from tests.pages.conftest import Open
from tests.pages.reading import said, tables
from vizformer.analysis import attribution_patches, patch_of, patch_runs, prompt_pair
from vizformer.analysis.causes.prompt_pairs import EXAMPLES
from vizformer.model import Edit
from vizformer.web.catalogue.long_work import WORK, hearing
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.pages.what_if import prompts as patched_cells
from vizformer.web.pages.what_if import share_map
from vizformer.web.pages.what_if.prompts import Asked, Prompts
from vizformer.web.widgets import watched_work

PAGE = "pages/explore/what_if.py"
BOY = dict(model="stories", text="The boy said that")
HAND = dict(model="induction-by-hand", text="c d f e c")
CAT = dict(model="zh-en", text="我有一只猫。", target="I have a")


def dials(**settings: str) -> str:
    return "~".join(f"whatif.{name}:{value}" for name, value in {"way": "between", **settings}.items())


def maps(app) -> list[dict]:
    """What the browser is sent of the measured map and of the estimated one."""
    every = [sent(app, index) for index in range(len(app.get("bidi_component")))]
    return [data for data in every if data.get("signed")]


def code(app) -> str:
    return next(block.value for block in app.code if "patch_runs(" in block.value)


def press(app, button: str) -> None:
    """Presses a button that begins long work, and waits for the work."""
    app.button(key=button).click().run()
    for work in WORK.going():
        assert work.ended.wait(120)
    app.run()


def cell_rows(app) -> list[list[str]]:
    """The table of the corrupted, the patched and the clean run."""
    return next(table for table in tables(app) if len(table) == 3 and len(table[0]) == 5)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("link", "what", "kind"),
    [
        (HAND, "heads", "decoder"),
        (HAND, "patterns", "decoder"),
        (BOY, "stream", "decoder"),
        (CAT, "stream", "encoder"),
        (CAT, "heads", "cross"),
    ],
)
@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_both_maps_are_those_of_the_library(open_app: Open, locale: str, link: dict, what: str, kind: str) -> None:
    app = open_app(PAGE, locale=locale, **link, site=kind, dials=dials(what=what))
    assert not app.exception
    assert not app.error
    example = next(one for one in EXAMPLES if one.clean == link["text"])
    checkpoint = load(example.model)
    pair = prompt_pair(checkpoint, example.clean, example.corrupted, target=example.target)
    found = patch_runs(checkpoint, pair, what, kind)  # type: ignore[arg-type]
    measured, estimated = maps(app)
    np.testing.assert_allclose(measured["values"], found.recovered, atol=2e-4)
    np.testing.assert_allclose(estimated["values"], found.estimate, atol=2e-4)
    strongest = np.unravel_index(np.abs(found.recovered).argmax(), found.recovered.shape)
    assert measured["selected"] == estimated["selected"] == dict(row=int(strongest[0]), column=int(strongest[1]))
    assert f"{found.mean_error:.3f}" in said(app)
    assert f"{found.error:.3f}" in said(app)
    moved = float(pair.difference(pair.clean.logits)), float(pair.difference(pair.corrupted.logits))
    assert all(f"{value:+.3f}".replace("-", "−") in said(app) for value in moved)


def test_the_heads_of_the_circuit_built_by_hand_light_up(open_app: Open) -> None:
    measured = np.array(maps(open_app(PAGE, **HAND, dials=dials(what="heads")))[0]["values"])
    assert np.argwhere(measured > 0.9).tolist() == [[0, 1], [1, 2]]


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("link", "settings"),
    [
        (HAND, dict(what="heads", cell="1.2")),
        (BOY, dict(what="heads_by_position", cell="2.4")),
        (CAT, dict(what="stream", cell="1.4")),
    ],
)
def test_the_code_gives_the_numbers_of_the_maps_and_of_the_chosen_cell(
    open_app: Open, link: dict, settings: dict
) -> None:
    app = open_app(PAGE, **link, layer=1, dials=dials(**settings))
    assert not app.error
    exec(code(app), space := {})
    values = space["found"].recovered
    shown = maps(app)
    np.testing.assert_allclose(shown[0]["values"], values[0] if values.ndim == 3 else values, atol=2e-4)
    row, column = map(int, settings["cell"].split("."))
    assert shown[0]["selected"] == shown[1]["selected"] == dict(row=row, column=column)
    pair = space["pair"]
    runs = (pair.corrupted, space["patched"], pair.clean)
    expected = [float(pair.difference(run.logits)) for run in runs]
    assert [float(one[3].replace("−", "-")) for one in cell_rows(app)] == pytest.approx(expected, abs=1e-3)
    share = (expected[1] - expected[0]) / (expected[2] - expected[0])
    assert share == pytest.approx(shown[0]["values"][row][column], abs=1e-3)


@pytest.mark.sweep
def test_every_choice_is_in_the_link(open_app: Open) -> None:
    app = open_app(PAGE, **BOY)
    app.segmented_control(key="setting.whatif.way").set_value("between").run()
    app.segmented_control(key="setting.whatif.what").set_value("heads").run()
    app.text_input(key="view.second").set_value("The mother said that").run()
    assert not app.error
    other = app.selectbox(key="setting.whatif.other")
    token = next(id for id in other.options if "“he”" in id)
    app.selectbox(key="setting.whatif.other").select_index(other.options.index(token)).run()
    link = app.query_params
    assert link["second"] == "The mother said that"
    he = load("stories").trace(BOY["text"]).logits[-1].argmax().item()
    assert set(link["dials"].split("~")) == {"whatif.way:between", "whatif.what:heads", f"whatif.other:{he}"}
    assert "The answer is the same" in app.error[0].value  # of the clean prompt too: nothing moves


def test_an_example_is_opened_with_its_model_and_its_target(open_app: Open) -> None:
    app = open_app(PAGE, **HAND, dials=dials())
    number = next(i for i, one in enumerate(EXAMPLES) if one.clean == "他是医生。")
    app.selectbox(key="what_if.example").select_index(number).run()
    assert not app.exception
    assert not app.error
    assert "model" not in app.query_params  # the first model of all
    assert (app.query_params["text"], app.query_params["target"]) == ("他是医生。", "He is a")
    assert app.text_input(key="view.second").value == "他是老师。"
    assert len(maps(app)) == 2


@pytest.mark.parametrize(("locale", "words"), [("en-US", "equally many tokens"), ("zh-CN", "词元数必须相同")])
def test_prompts_of_unequal_lengths_are_shown_in_their_tokens(open_app: Open, locale: str, words: str) -> None:
    app = open_app(
        PAGE,
        locale=locale,
        model="stories",
        text="Tom was sad because",
        second="Lily was sad because",
        dials=dials(),
    )
    assert not app.exception
    assert words in app.warning[0].value
    assert "L | ily | was" in said(app)
    assert not maps(app)


def test_a_second_prompt_that_is_missing_or_the_same_is_said(open_app: Open) -> None:
    app = open_app(PAGE, model="stories", text="A cat sat on", dials=dials())
    assert "Write a second prompt" in app.info[0].value
    app = open_app(PAGE, model="stories", text="A cat sat on", second="A cat sat on", dials=dials())
    assert "are the same" in app.warning[0].value


def test_without_a_target_both_are_compared_along_the_model_s_own_translation(open_app: Open) -> None:
    app = open_app(PAGE, model="zh-en", text="他是医生。", second="他是老师。", dials=dials())
    assert not app.exception
    assert not app.error
    assert "logit of “doctor” minus that of “teacher”" in said(app)
    exec(code(app), space := {})
    assert space["pair"].clean.tokens["decoder"] == space["pair"].corrupted.tokens["decoder"]


def test_a_masked_word_is_where_an_encoder_is_asked(open_app: Open) -> None:
    app = open_app(PAGE, model="cloze", text="The girl lost [MASK] hat.", dials=dials())
    assert not app.exception
    assert not app.error
    assert "logit of “her” minus that of “his”" in said(app)
    assert "row=4, " in code(app)


@pytest.mark.parametrize("cell", ["9.9", "x", "1", "1.2.3", "-1.0", "1.99999999", "", "."])
def test_a_cell_that_is_not_there_does_not_count(open_app: Open, cell: str) -> None:
    assert share_map.read_cell(cell, np.array([[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, np.nan]])) is None
    app = open_app(PAGE, **HAND, dials=dials(what="heads", cell=cell))
    assert not app.exception
    assert not app.error
    assert maps(app)[0]["selected"] == dict(row=0, column=1)


@pytest.mark.sweep
def test_a_long_prompt_is_shown_through_a_window(open_app: Open) -> None:
    long = (
        "Once upon a time there was a big house near the old forest. One day a little {0} came to the house and looked at "
        "the door for a long time. The {0} said that"
    )
    app = open_app(PAGE, model="stories", text=long.format("boy"), second=long.format("girl"), dials=dials(across="4"))
    assert not app.exception
    assert not app.error
    assert len(maps(app)) == 1  # the runs wait for their button
    press(app, "what_if.patch")
    measured = maps(app)[0]
    assert len(measured["columns"]) == 24
    assert measured["columns"][0].startswith("4 ")
    exec(code(app), space := {})
    np.testing.assert_allclose(measured["values"], space["found"].recovered[:, 4:28], atol=2e-4)


def test_a_large_map_waits_for_its_button_with_the_estimate_beside_it(open_app: Open, monkeypatch) -> None:
    monkeypatch.setattr(watched_work, "cost", lambda subject, runs: 1e10 * runs / 3.1)
    app = open_app(PAGE, model="induction-by-hand", text="a b c d a b", second="a c b d a b", dials=dials(what="heads"))
    assert len(maps(app)) == 1  # the estimate
    press(app, "what_if.patch")
    assert not app.exception
    assert len(maps(app)) == 2


def test_what_takes_too_long_is_refused_in_words(open_app: Open, monkeypatch) -> None:
    monkeypatch.setattr(watched_work, "MOST", 1.0)
    app = open_app(PAGE, model="induction-by-hand", text="a b c d a c", second="a c b d a c", dials=dials(what="heads"))
    assert not app.exception
    assert any("takes too long here" in info.value for info in app.info)
    assert len(maps(app)) == 1


def test_work_that_is_stopped_leaves_nothing_and_can_be_done_again() -> None:
    clean = Subject(ModelRef("bundled", "induction-by-hand"), "c d f e c", "")
    checkpoint = load("induction-by-hand")
    pair = prompt_pair(checkpoint, "c d f e c", "f d c e c")
    prompts = Prompts(clean, Subject(clean.model, "f d c e c", ""), pair.row, pair.answer, pair.other)
    asked = Asked("heads_by_position", "decoder", 1)

    def stop(done: int, of: int) -> None:
        raise InterruptedError

    patched_cells.measured.clear()
    with pytest.raises(InterruptedError), hearing(stop):
        patched_cells.measured(prompts, asked)
    assert not patched_cells.measured.holds(prompts, asked)
    found = patched_cells.measured(prompts, asked)
    assert found.recovered.size == patched_cells.runs(clean, asked)
    patch = patch_of(pair, "heads_by_position", "decoder", (1, 2, 5))
    run = checkpoint.trace("f d c e c", edit=Edit(patches=(patch,)))
    assert pair.recovered(run.logits[None])[0] == pytest.approx(found.recovered[0, 2, 5], abs=1e-4)


@pytest.mark.sample(3)
@pytest.mark.parametrize("what", ["stream", "heads", "patterns"])
@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_the_runs_are_counted_before_they_are_done(what, kind) -> None:
    if (what, kind) == ("stream", "cross"):
        return
    checkpoint = load("zh-en")
    pair = prompt_pair(checkpoint, CAT["text"], "我有一只狗。", target=CAT["target"])
    subject = Subject(ModelRef("bundled", "zh-en"), CAT["text"], CAT["target"])
    assert patched_cells.runs(subject, Asked(what, kind)) == patch_runs(checkpoint, pair, what, kind).recovered.size


@pytest.mark.parametrize("link", [BOY, HAND])
@pytest.mark.sample(1)
def test_the_layer_whose_cell_brings_back_most_is_shown_where_nobody_chose(open_app: Open, link: dict) -> None:
    app = open_app(PAGE, **link, dials=dials(what="heads_by_position"))
    assert not app.exception
    exec(code(app), space := {})
    kind = "decoder"
    estimate = attribution_patches(space["checkpoint"], space["pair"], "heads_by_position", kind)
    layer = int(estimate.max(axis=(1, 2)).argmax())
    assert app.selectbox(key="view.layer").value == layer
    assert f"Shown: layer {layer}. By the estimate" in " ".join(box.value for box in app.caption)
    app = open_app(PAGE, **link, layer=0, dials=dials(what="heads_by_position"))
    assert app.selectbox(key="view.layer").value == 0
    assert not any("Shown: layer" in box.value for box in app.caption)
