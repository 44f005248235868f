"""The lesson Training: what is on the screen is what the library computes, and the code on it runs."""

import json
import math

import numpy as np
import pytest

from tests.bundled import load
from tests.pages.conftest import Open
from tests.pages.reading import array, chart, number, run, tables
from vizformer.analysis import hide
from vizformer.analysis.costs.parameter_count import paper_sharing, sharing
from vizformer.analysis.training import gradient
from vizformer.analysis.training.gradient import step_gradient
from vizformer.analysis.training.small_trainings import by_smoothing, left_out_curves
from vizformer.assets import asset
from vizformer.checkpoints import Checkpoint
from vizformer.explain.loss_parts import Asked, adam, asked_rows, loss_numbers, losses
from vizformer.model import Trace
from vizformer.training.classifier import BODIES, Epoch
from vizformer.training.loss import inverse_square_root, peak
from vizformer.web.lessons.training import classifier
from vizformer.web.lessons.training import dropout as passes
from vizformer.web.lessons.training.adam import GRADIENTS
from vizformer.web.lessons.training.classifier import RunState
from vizformer.web.lessons.training.predictions import notes

PAGE = "pages/learn/training.py"
TEXTS = {"zh-en": "他喜欢喝水。", "stories": "The cat sat on the chair.", "cloze": "She opened the door."}
HIDDEN = 3  # a position of the sentence that cloze reads


def asked_of(model: str) -> tuple[Checkpoint, Trace, tuple[Asked, ...]]:
    """What the page asks of a bundled model."""
    checkpoint = load(model)
    trace = checkpoint.trace(TEXTS[model])
    tokens = trace.tokens["encoder"] if model == "cloze" else ()
    if tokens:
        trace = hide(checkpoint, tokens, [HIDDEN])  # the sentence is shorter than seven tokens
    return checkpoint, trace, asked_rows(checkpoint, trace, tokens)


def link(model: str, part: str, *dials: str) -> dict[str, str]:
    chosen = [*dials, f"training.hidden:{HIDDEN}"] if model == "cloze" else list(dials)
    return dict(part=part, model=model, text=TEXTS[model], dials="~".join(chosen))


@pytest.mark.parametrize("model", TEXTS)
def test_the_loss_of_a_row_and_of_the_text(open_app: Open, model: str) -> None:
    row = 0 if model == "cloze" else 2
    app = open_app(PAGE, **link(model, "loss", f"training.row:{row}"))
    assert not app.exception
    assert not app.error
    checkpoint, trace, asked = asked_of(model)
    found, all_rows = loss_numbers(checkpoint, trace, asked[row]), losses(trace, asked)
    one, every = tables(app)
    assert [cells[0] for cells in one[:-1]] == [token.text for token in found.tokens]
    assert [number(cells[1]) for cells in one[:-1]] == pytest.approx(found.logits, abs=1e-4)
    assert f"= {found.loss:.4f}" in app.latex[1].value
    assert any(f"{found.proof.difference:.1g}" in box.value for box in app.success)
    assert [number(cells[-1]) for cells in every] == pytest.approx([*all_rows.losses, all_rows.total], abs=1e-4)
    assert f"= {all_rows.perplexity:.4f}" in app.latex[3].value
    assert f"= {all_rows.padded_mean(4):.4f}" in app.latex[3].value
    assert float(run(app.code[0].value)["loss"]) == pytest.approx(found.loss, abs=1e-4)
    done = run(app.code[1].value)
    assert float(done["perplexity"]) == pytest.approx(all_rows.perplexity, rel=1e-3)
    assert float(done["wrong"]) == pytest.approx(all_rows.padded_mean(4), rel=1e-3)


def test_what_guessing_costs_is_asked_as_a_number(open_app: Open) -> None:
    app = open_app(PAGE, **link("zh-en", "loss"))
    app.number_input[0].set_value(round(math.log(load("zh-en").model.config.vocab_size), 2))
    app = next(b for b in app.button if b.key.startswith("ask.training.guess.button")).click().run()
    assert any("Right" in box.value for box in app.success)


@pytest.mark.parametrize("model", TEXTS)
def test_the_smoothed_target_and_the_gradient(open_app: Open, model: str) -> None:
    app = open_app(PAGE, **link(model, "smoothing", "training.eps:0.2", "training.row:0"))
    assert not app.exception
    assert not app.error
    checkpoint, trace, asked = asked_of(model)
    found = loss_numbers(checkpoint, trace, asked[0], 0.2)
    bars = array(chart(app, 0)["data"][0]["x"])
    np.testing.assert_allclose(bars, [*found.target, found.rest_target], rtol=1e-5)
    gradients = [number(cells[3]) for cells in tables(app)[0]]
    assert gradients == pytest.approx([*found.gradient, found.rest_gradient], abs=1e-4)
    assert sum(gradients) == pytest.approx(0, abs=1e-3)
    assert f"= {found.smoothed:.4f}" in app.latex[1].value
    done = run(app.code[0].value)
    assert done["same"]
    assert float(done["floor"]) == pytest.approx(found.floor, rel=1e-3)


def test_the_two_trainings_are_the_bundled_ones(open_app: Open) -> None:
    app = open_app(PAGE, **link("zh-en", "smoothing"))
    found = by_smoothing(notes("smoothing"))
    ours, paper = tables(app)[1:]
    assert [number(row[1]) for row in ours] == pytest.approx([one.perplexity for one in found.values()], abs=0.01)
    assert [row[1:] for row in paper] == [["4.67", "25.3"], ["4.92", "25.8"], ["5.47", "25.7"]]
    for curve, one in zip(chart(app, 1)["data"], found.values(), strict=True):
        np.testing.assert_allclose(array(curve["y"]), one.perplexities, rtol=1e-5)


def test_the_learning_rate_and_its_peak(open_app: Open) -> None:
    app = open_app(PAGE, part="rate", text=TEXTS["zh-en"], dials="training.step:1000")
    assert not app.exception
    rate = inverse_square_root(1000, d_model=512, warmup=4000)
    assert float(run(app.code[0].value)["rate"]) == pytest.approx(rate)
    drawn = chart(app, 0)["data"][0]
    assert array(drawn["y"]).max() == pytest.approx(1e4 * peak(512, 4000), rel=0.02)
    app.number_input[0].set_value(4.94)
    app = next(b for b in app.button if b.key.startswith("ask.training.peak.button")).click().run()
    assert any("Right" in box.value for box in app.success)


@pytest.mark.parametrize("gradients", ["same", "small", "turning", "spike"])
def test_adam_is_worked_out(open_app: Open, gradients: str) -> None:
    app = open_app(PAGE, part="adam", text=TEXTS["zh-en"], dials=f"training.gradients:{gradients}~training.update:3")
    assert not app.exception
    found = adam(0.5, GRADIENTS[gradients], [0.01] * 6)
    assert [number(row[-1]) for row in tables(app)[0]] == pytest.approx([one.weight for one in found], rel=1e-3)
    assert run(app.code[0].value)["weights"] == pytest.approx([one.weight for one in found], rel=1e-5)
    assert any("torch.optim.Adam" in box.value for box in app.success)


def test_without_the_correction_the_first_change_is_smaller(open_app: Open) -> None:
    app = open_app(PAGE, part="adam", text=TEXTS["zh-en"], dials="training.corrected:0")
    assert number(tables(app)[0][0][-2]) == pytest.approx(-0.01 * 0.1 / 0.02**0.5, rel=1e-3)


@pytest.mark.sample(1)
@pytest.mark.parametrize("model", TEXTS)
def test_the_gradient_of_the_readers_sentence(open_app: Open, model: str) -> None:
    app = open_app(PAGE, **link(model, "gradient"))
    assert not app.exception
    assert not app.error
    checkpoint, trace, asked = asked_of(model)
    found = step_gradient(checkpoint.model, trace, asked)
    shown = chart(app, 0)
    assert shown["layout"]["yaxis"]["ticktext"] == list(found.layers)
    np.testing.assert_allclose(array(shown["data"][0]["z"]), found.norms, rtol=1e-5)
    assert any(f"length {found.total:.4f}" in text.value for text in app.text)
    done = run(app.code[0].value)
    assert float(done["total"]) > max(done["lengths"].values())
    boxes = [box for box in app.selectbox if box.key.startswith("ask.training.largest")]
    for box, index in zip(boxes, found.largest, strict=True):
        box.set_value(index)
    app.run()
    app = next(b for b in app.button if b.key.startswith("ask.training.largest.button")).click().run()
    assert any("Right" in box.value for box in app.success)


def test_what_was_left_out_is_the_bundled_measurement(open_app: Open) -> None:
    app = open_app(PAGE, part="without", text=TEXTS["zh-en"], dials="training.of:1")
    assert not app.exception
    found = left_out_curves(notes("left_out"))
    for curve, one in zip(chart(app, 0)["data"], found.values(), strict=True):
        np.testing.assert_allclose(array(curve["y"]), one.curves[1], rtol=1e-5)
    for row, one in zip(tables(app)[0], found.values(), strict=True):
        assert [number(cell) for cell in row[1:-1]] == pytest.approx(one.last, abs=1e-3)
        assert row[-1] == f"{one.learned} of {len(one.last)}"
    assert run(app.code[0].value)["times"] == pytest.approx(notes("left_out")["recipe"]["warmup"])
    radio = next(r for r in app.radio if r.key.startswith("ask.training.without"))
    app = radio.set_value(1).run()
    app = next(b for b in app.button if b.key.startswith("ask.training.without.button")).click().run()
    assert any("Right" in box.value for box in app.success)


@pytest.mark.parametrize("model", TEXTS)
def test_the_loss_of_several_passes_with_dropout(open_app: Open, model: str) -> None:
    app = open_app(PAGE, **link(model, "dropout", "training.p:0.3"))
    assert not app.exception
    assert not app.error
    checkpoint, trace, asked = asked_of(model)
    rows, right = [one.row for one in asked], [one.right.id for one in asked]
    found = gradient.training_losses(checkpoint.model, trace, rows, right, 0.3, 0, passes.PASSES)
    shown = [number(row[1]) for row in tables(app)[0]]
    assert shown == pytest.approx([losses(trace, asked).mean, *found, found.mean()], abs=1e-3)
    done = run(app.code[0].value)
    assert set(done["added"].tolist()) <= {0.0, *(done["f"] / (1 - 0.3)).tolist()}


def test_the_curves_of_overfitting_are_the_bundled_ones(open_app: Open) -> None:
    bundled = json.loads(asset("lessons", "training", "overfitting.json").read_text(encoding="utf-8"))
    for made in bundled["runs"]:
        app = open_app(PAGE, **link("stories", "dropout", f"training.p:{made['p']:g}"))
        assert not app.exception
        read, held_out = (array(trace["y"]) for trace in chart(app, 0)["data"])
        np.testing.assert_allclose(read, made["read"], rtol=1e-6)
        np.testing.assert_allclose(held_out, made["held_out"], rtol=1e-6)


@pytest.mark.parametrize("model", TEXTS)
def test_shared_tables_are_counted(open_app: Open, model: str) -> None:
    app = open_app(PAGE, **link(model, "sharing"))
    assert not app.exception
    for shown, found in zip(tables(app), (sharing(load(model).model), paper_sharing()), strict=True):
        assert shown[-1][2:] == [f"{found.stored + found.others:,}", f"{found.apart + found.others:,}"]
    own = sharing(load(model).model)
    assert run(app.code[0].value)["parameters"] == own.stored


def test_the_lesson_speaks_chinese(open_app: Open) -> None:
    for part, word in (
        ("loss", "困惑度"),
        ("smoothing", "标签平滑"),
        ("rate", "预热"),
        ("adam", "滑动平均"),
        ("gradient", "梯度"),
        ("without", "去掉"),
    ):
        app = open_app(PAGE, locale="zh-CN", part=part)
        assert not app.exception
        assert any(word in element.value for element in (*app.text, *app.markdown, *app.caption)), part


def test_one_token_has_nothing_to_predict(open_app: Open) -> None:
    for part in ("loss", "smoothing", "gradient", "dropout"):
        app = open_app(PAGE, part=part, model="stories", text=" ")
        assert not app.exception, part


def test_a_classifier_is_trained_and_sorts_the_readers_sentence(
    open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Run:
        """A training that is there as soon as it is begun."""

        def __init__(self) -> None:
            self.running, self.ending = False, ""

        def look(self, language: str) -> RunState[Epoch]:
            found = (Epoch("words", 0, 1.4, 1.4, 10),) if self.running else ()
            return RunState(found, self.running, self.ending)

        def start(self, language: str) -> None:
            self.running = True

        def stop(self, language: str) -> None:
            self.running, self.ending = False, "stopped"

    fake = Run()
    monkeypatch.setattr(classifier, "classifier_run", lambda: fake)
    app = open_app(PAGE, **link("stories", "classifier"))
    assert not app.exception
    known = classifier.recorded("en")
    for trace, body in zip(chart(app, 0)["data"], BODIES, strict=True):
        np.testing.assert_allclose(array(trace["y"]), [100 * one.right / 40 for one in known if one.body == body])
    (ways,) = tables(app)
    cloze = load("cloze").model
    assert [number(row[1]) for row in ways] == [
        4 * 8001,
        4 * 257,
        4 * 257 + sum(one.numel() for one in cloze.parameters()),
    ]
    assert [row[2] for row in ways] == [f"{one.right} / 40" for one in known if one.epoch == 8]
    low = run(app.code[0].value)["low"]
    assert ways[2][4].startswith(f"{low:.0%} –")
    app = app.button(key="training.classifier.start").click().run()
    assert fake.running
    assert [row[2] for row in tables(app)[0]] == ["10 / 40"]
    app = app.button(key="training.classifier.stop").click().run()
    app.run()
    assert any("Stopped" in info.value for info in app.info)
    fake.ending = "done"
    monkeypatch.setattr(classifier, "tuned", lambda language: load("cloze"))
    monkeypatch.setattr(classifier, "answers", lambda language, text: {body: [0.7, 0.1, 0.1, 0.1] for body in BODIES})
    classifier.before_and_after.clear()
    app = open_app(PAGE, **link("stories", "classifier"))
    assert not app.exception
    assert [row[1:] for row in tables(app)[1]] == [["70%", "10%", "10%", "10%"]] * 3
    before, after = (array(chart(app, index)["data"][0]["z"]) for index in (1, 2))
    np.testing.assert_allclose(before, after)  # the same encoder stands for both here
    pattern = load("cloze").trace(TEXTS["stories"])["encoder.0.self"].pattern(0)
    np.testing.assert_allclose(before, pattern, atol=1e-6)
    classifier.before_and_after.clear()


@pytest.mark.parametrize("model", TEXTS)
def test_the_rows_that_are_read_stand_beside_those_that_are_predicted_with(open_app: Open, model: str) -> None:
    app = open_app(PAGE, **link(model, "sharing"))
    assert not app.exception
    assert not app.error
    loaded = load(model).model
    read, predicted = (array(chart(app, index)["data"][0]["z"]) for index in (0, 1))
    tied = loaded.unembedding is None and loaded.token_table("decoder") is loaded.embedding
    assert (np.asarray(read).tolist() == np.asarray(predicted).tolist()) == tied
    assert any("One table" in one.value for one in (*app.markdown, *app.caption, *app.text)) == tied
