"""The lesson Decoding: generating text: what is on the screen is what the library computes, and the code on it runs."""

import math
from dataclasses import replace

import pytest

from tests.bundled import load
from tests.pages.conftest import Open
from tests.pages.reading import array, chart, marked, run, tables
from vizformer.analysis.decoding.read_back import bleu
from vizformer.analysis.decoding.teacher_forcing import OneError, forced_rows, one_error, right_rows
from vizformer.analysis.decoding.ways import beams, first_token, written
from vizformer.checkpoints import Checkpoint
from vizformer.generation import Sampling
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.decoding import free_running

PAGE = "pages/learn/decoding.py"
TEXTS = {"zh-en": "今天天气", "stories": "Once upon a time"}


def test_the_rows_and_their_loss_are_the_models(open_app: Open) -> None:
    app = open_app(PAGE, model="zh-en", text=TEXTS["zh-en"], target="It is cold today.")
    assert not app.exception
    checkpoint = load("zh-en")
    rows = forced_rows(checkpoint, checkpoint.trace(TEXTS["zh-en"], target="It is cold today."))
    (shown,) = tables(app)
    assert [cells[1:3] for cells in shown] == [[row.read.text, row.wanted.text] for row in rows]
    total = math.fsum(row.loss for row in rows)
    assert any(f"L = {total:.4f}" in formula.value for formula in app.latex)
    names = run(app.code[0].value)
    assert float(names["loss"]) == pytest.approx(total, rel=1e-3)  # of the digits on the screen


def test_a_wrong_token_is_no_markdown(open_app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    def marked(subject: Subject, step: int, rank: int) -> OneError:
        found = one_error(subject.checkpoint, subject.text, free_running.right_rows(subject), step, rank)
        return replace(found, wrong=replace(found.wrong, text="$a$ **b**"))

    monkeypatch.setattr(free_running, "one_error", marked)
    app = open_app(PAGE, part="free", model="zh-en", text=TEXTS["zh-en"])
    assert not app.exception
    assert any(r"\$a\$ \*\*b\*\*" in caption.value for caption in app.caption)


def test_the_text_after_an_error_is_the_models(open_app: Open) -> None:
    app = open_app(PAGE, part="free", model="zh-en", text=TEXTS["zh-en"], dials="decoding.step:2")
    assert not app.exception
    checkpoint = load("zh-en")
    rows = right_rows(checkpoint, TEXTS["zh-en"], checkpoint.trace(TEXTS["zh-en"]))
    found = one_error(checkpoint, TEXTS["zh-en"], rows, 2, 0)
    assert any(found.whole in text.value for text in app.text)
    (shown,) = tables(app)
    assert [cells[-1] for cells in shown][: len(found.free)] == [token.text for token in found.free]
    names = run(app.code[0].value)
    assert names["inputs"].tolist()[1:] == names["targets"].tolist()[:-1]


@pytest.mark.sweep
def test_the_ways_of_choosing_write_what_the_library_writes(open_app: Open) -> None:
    text = "我有一只猫。"  # of which both write the same
    app = open_app(PAGE, part="ways", model="zh-en", text=text, dials="decoding.temperature:1.5~decoding.seed:7")
    assert not app.exception
    checkpoint = load("zh-en")
    (shown,), (own, warmed) = tables(app), [chart(app, index) for index in range(2)]
    first = first_token(checkpoint, text, 1.5)
    names = own["layout"]["yaxis"]["ticktext"]
    assert names == warmed["layout"]["yaxis"]["ticktext"]
    assert len(set(names)) == len(names)  # “I” and “I” with a space before it are two tokens, and told apart
    assert [name.lstrip("␣").partition(" #")[0] for name in names] == [token.text for token, *_ in first]
    assert array(own["data"][0]["x"]) == pytest.approx([p for _, p, _ in first], abs=1e-6)
    assert array(warmed["data"][0]["x"]) == pytest.approx([p for *_, p in first], abs=1e-6)
    greedy, best = written(checkpoint, text, 12), beams(checkpoint, text, 12, 2, 0.6)[0]
    drawn = written(checkpoint, text, 12, Sampling(temperature=1.5, seed=7))
    assert shown[0][1] == greedy.text == best.text
    assert shown[0][3:] == shown[1][3:]  # one text: one log P, one score
    assert shown[1][1] == best.text
    assert shown[-1][1].removesuffix(" …") == drawn.text
    run(app.code[0].value)


def test_the_cache_is_checked_on_the_typed_text(open_app: Open) -> None:
    app = open_app(PAGE, part="cache", model="stories", text=TEXTS["stories"])
    assert not app.exception
    assert any("differ by" in box.value for box in app.success)
    names = run(app.code[0].value)
    assert int(names["without"]) == sum(t * t for t in range(1, 65))


@pytest.mark.parametrize("part", ["", "free", "ways", "cache"])
def test_a_model_that_does_not_write_offers_one_that_does(open_app: Open, part: str) -> None:
    app = open_app(PAGE, part=part, model="cloze", text="The cat sat.")
    assert not app.exception
    assert any("does not write" in box.value for box in app.info)
    assert any("zh-en" in button.label for button in app.button)


@pytest.mark.sample(1)
@pytest.mark.parametrize("part", [""])
def test_a_translation_is_written_once_for_the_page_and_its_steps(open_app: Open, monkeypatch, part: str) -> None:
    written = []
    stream = Checkpoint.stream
    monkeypatch.setattr(Checkpoint, "stream", lambda *args, **rest: written.append(args) or stream(*args, **rest))
    text = f"我昨天看见一只猫，{part}。"  # that nobody has asked for
    app = open_app(PAGE, part=part, model="zh-en", text=text)
    assert not app.exception
    assert len(written) == 1
    checkpoint = load("zh-en")
    ids = checkpoint.generate(text).ids
    (shown,) = tables(app)
    said = [cells[-1] for cells in shown]
    assert said[: len(ids)] == [token.text for token in checkpoint.tokenizer.tokens(list(ids))][: len(said)]


def test_the_page_shows_the_trace_that_the_library_makes(open_app: Open) -> None:
    app = open_app(PAGE, model="zh-en", text=TEXTS["zh-en"])
    checkpoint = load("zh-en")
    (shown,) = tables(app)
    rows = forced_rows(checkpoint, checkpoint.trace(TEXTS["zh-en"]))
    assert [cells[2] for cells in shown] == [row.wanted.text for row in rows]
    total = math.fsum(row.loss for row in rows)
    assert any(f"L = {total:.4f}" in formula.value for formula in app.latex)


def test_the_score_of_a_translation_is_worked_out_from_its_counts(open_app: Open) -> None:
    app = open_app(PAGE, part="bleu", model="zh-en", text="我有一只猫。")
    own = app.text_input(key="view.third").value
    found = bleu(own, app.text_input(key="view.second").value)
    assert 0 < found.score < 0.6
    runs = found.runs[1]
    least = {run: min(n, runs.in_reference[run]) for run, n in runs.in_text.items()}
    shown = [(" ".join(run), str(n), str(runs.in_reference[run]), str(least[run])) for run, n in runs.in_text.items()]
    assert [tuple(row) for row in tables(app)[0]] == shown
    assert marked(app, 0) == [i for i, (__, n, ___, counts) in enumerate(shown) if n != counts]
    assert float(run(app.code[-1].value)["bleu"]) == pytest.approx(found.score, abs=1e-6)  # in float32
    assert any(f"{found.score:.4f}" in one.value for one in app.latex)
    app = app.text_input(key="view.third").set_value("the the the the the").run()
    assert any("One of the shares is 0" in one.value for one in app.caption)
    app = app.text_input(key="view.third").set_value(" ").run()
    assert any("A text is missing" in one.value for one in app.info)
    assert "the cat is on the mat" in app.info[0].value
    assert tables(app)  # of that pair


def test_a_sentence_that_nobody_has_translated_asks_for_a_reference(open_app: Open) -> None:
    app = open_app(PAGE, part="bleu", model="zh-en", text="我们明天去。", target="We go tomorrow.")
    assert app.text_input(key="view.third").value == "We go tomorrow."
    assert any("A text is missing" in one.value for one in app.info)
    assert tables(app)
    app = app.text_input(key="view.second").set_value("We will go tomorrow.").run()
    assert "".join(app.query_params["second"]) == "We will go tomorrow."
    assert tables(app)
