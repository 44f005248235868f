"""The lesson Tokens and embeddings: what is on the screen is what the library computes."""

import json
import re
from typing import Any

import numpy as np
import pytest
import torch

from tests.bundled import load
from tests.checkpoints import folders as made
from tests.pages.conftest import Open
from tests.pages.reading import run, tables
from tests.pages.test_patches import press
from vizformer.analysis.vectors.contextual import contexts, sense_gap
from vizformer.analysis.vectors.embeddings import directions, neighbours, norms, read_word_vectors
from vizformer.assets import asset
from vizformer.text.schemes import PAPER, SCHEMES, apply, bundled_table, cut, learn, words_of
from vizformer.web.catalogue import server_folder
from vizformer.web.frame.progress import QUESTIONS
from vizformer.web.lessons.tokens.contexts import FRAMES, OCCASIONS, sense_gaps
from vizformer.web.widgets import watched_work
from vizformer.web.widgets.slides import lesson_prose

PAGE = "pages/learn/tokens.py"
CAT, DOG = "我有一只猫。", "我有一只狗。"
PARTS = ("pieces", "merges", "lookup", "neighbours", "context", "norms")


def html(app: Any) -> str:
    return "\n".join(element.proto.body for element in app.get("html"))


def text(app: Any) -> str:
    return "\n".join(element.value for element in app.text)


def chart(app: Any, index: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(app.get("plotly_chart")[index].proto.spec)
    return found


def numbers(array: Any) -> list[float]:
    """A Plotly array, which travels as base64."""
    if isinstance(array, dict):
        import base64

        return [float(x) for x in np.frombuffer(base64.b64decode(array["bdata"]), array["dtype"])]
    return [float(x) for x in array]


@pytest.mark.sample(1)
@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
@pytest.mark.parametrize("model", ["zh-en", "cloze", "stories"])
def test_every_part_opens_with_every_model_in_both_languages(open_app: Open, model: str, locale: str) -> None:
    words = lesson_prose("tokens", {"en-US": "en", "zh-CN": "zh_CN"}[locale])
    assert tuple(words) == PARTS
    app = open_app(PAGE, locale=locale, model=model)
    for part in PARTS:
        app.query_params["part"] = part
        app.run()
        assert not app.exception
        assert not app.error, (part, app.error[0].value)
        said = "\n".join(element.value for element in app.markdown)
        assert words[part].rest in said
        assert all(wrong in said for wrong in words[part].wrongs)


def test_six_rows_and_the_models_own_with_their_counts(open_app: Open) -> None:
    app = open_app(PAGE, part="pieces", text=CAT)
    shown = html(app)
    rows = re.findall(r'vf-cuts-name"><b>(.*?)</b> (.*?)</div>', shown)
    counts = [len(cut(scheme, CAT)) for scheme in SCHEMES]
    own = len(load("zh-en").tokenizer.encode(CAT, special=False))
    assert [int(note.split()[0]) for __, note in rows] == [*counts, own]
    assert rows[0][1] == "2 tokens, 1 of them unknown"
    cells = re.findall(r"<tr><td>.*?</td><td class=\"vf-n\">([\d,]+)</td><td class=\"vf-n\">([\d,]+)</td>", shown)
    assert [(int(n), int(square.replace(",", ""))) for n, square in cells] == [(n, n * n) for n in [*counts, own]]


@pytest.mark.parametrize(
    ("lang", "meanings"),
    [
        (
            "en",
            ["Ġcat (Ġ is a space)", "▁cat (▁ is a space)", "##y (## continues a word)", "çĮ« (a letter for each byte)"],
        ),
        (
            "zh_CN",
            ["Ġcat（Ġ 表示空格）", "▁cat（▁ 表示空格）", "##y（## 表示接着前面的词）", "çĮ«（每个字节写成一个字母）"],
        ),
    ],
)
def test_the_marks_of_vocabulary_entries_are_explained_where_they_are_shown(open_app: Open, lang, meanings) -> None:
    shown = html(open_app(PAGE, part="pieces", model="stories", text="a cat 猫 catxy", lang=lang))
    for meaning in meanings:
        assert meaning in shown
    assert not re.search(r'entry (?:Ġ|▁|##)\w*"', shown)


def test_the_code_of_merges_says_what_a_mark_in_it_is(open_app: Open) -> None:
    app = open_app(PAGE, part="merges", text="The cat")
    assert "▁" in app.code[0].value
    assert "The same in Python; ▁ is a space" in [caption.value for caption in app.caption]


@pytest.mark.sweep
def test_the_question_of_the_pieces_is_about_this_sentence(open_app: Open) -> None:
    for sentence, ratio in ((CAT, "9 times as many"), ("I have a cat.", "just as many"), ("猫a", "4 times as many")):
        app = open_app(PAGE, part="pieces", text=sentence)
        choice = next(radio for radio in app.radio if radio.key.startswith("ask.tokens.pieces"))
        right = choice.options.index(ratio)
        choice.set_value(right).run()
        app = next(button for button in app.button if button.key.startswith("ask.tokens.pieces")).click().run()
        assert app.success
        assert f"1 of {len(QUESTIONS['tokens'])} " in next(
            c.value for c in app.caption if "questions answered" in c.value
        )


def test_a_long_text_is_shown_in_part_and_counted_whole(open_app: Open) -> None:
    long = "I have a cat. " * 30
    app = open_app(PAGE, part="pieces", text=long)
    assert f"repeat({240}," in html(app)
    assert any("first 240 of" in caption.value for caption in app.caption)
    assert f"{len(cut('byte', long.strip()))}" in html(app) or f"{len(cut('byte', long))}" in html(app)


def test_merges_step_by_step(open_app: Open) -> None:
    steps = apply(words_of(CAT), *bundled_table())
    for step in (0, len(steps)):
        app = open_app(PAGE, part="merges", text=CAT, dials=f"tokens.step:{step}" if step else "")
        symbols = re.findall(r"<b(?: class=vf-new)?>(.*?)</b>", html(app))
        assert symbols == ([*CAT] if not step else [s for word in steps[-1].words for s in word])
        assert f"after {step} of {len(steps)} merges" in text(app)
        for merge in steps:
            assert f"{merge.rank:,}" in html(app)
            assert f"{merge.count:,}" in html(app)


def test_learning_from_the_paper_and_from_the_sentence(open_app: Open) -> None:
    app = open_app(PAGE, part="merges", dials="tokens.merge:paper~tokens.step:3")
    assert "<b class=vf-new>est&lt;/w&gt;</b>" in html(app)
    assert "Next: “l” and “o” become one symbol." in text(app)
    app = open_app(PAGE, part="merges", text=CAT, dials="tokens.merge:learn")
    assert "so BPE stops" in app.info[-1].value


def test_the_row_is_the_models(open_app: Open) -> None:
    app = open_app(PAGE, part="lookup", text=CAT, dials="tokens.at:0")
    model = load("zh-en")
    id = model.encode(CAT)[0].id
    assert f"row {id} of the table" in app.success[0].value
    row = model.model.embedding.weight[id]
    for value in (row[0], row[3], row[255]):
        assert f">{float(value):.4f}".replace("-", "−") in html(app)
    assert any(f"{float(row[0]):.4f}" in latex.value for latex in app.latex)
    assert f"{row.numel() * model.model.config.vocab_size:,}" in text(app)


@pytest.mark.parametrize("centred", [False, True])
def test_the_neighbours_are_the_models(open_app: Open, centred: bool) -> None:
    app = open_app(PAGE, part="neighbours", text=DOG, dials="tokens.at:4" + ("~tokens.centred:1" if centred else ""))
    model = load("zh-en")
    found = neighbours(directions(model, centred=centred), model.encode(DOG)[4].id)
    spec = chart(app)
    names = [token.text for token in model.tokenizer.tokens(list(found.ids))]
    assert spec["layout"]["yaxis"]["ticktext"][0] == names[0]
    assert numbers(spec["data"][0]["x"]) == pytest.approx(found.cosines.tolist(), abs=1e-5)
    # Where points are close, a name has no place: all are said by the hover.
    said = [name for trace in chart(app, 1)["data"] for name in trace.get("customdata", [])]
    assert {*DOG, *names} - {"<s>"} <= {name.replace("&lt;", "<").replace("&gt;", ">") for name in said}


def test_the_curve_is_the_models_and_the_control_is_drawn(open_app: Open) -> None:
    first, second = "我在花园里。", "我花了十元。"
    app = open_app(PAGE, part="context", model="cloze", text=first)
    model = load("cloze")
    found = contexts(model, model.trace(first), model.trace(second), 3, 2)
    curves = chart(app, 1)["data"]
    assert numbers(curves[3]["y"]) == pytest.approx(found.curve.tolist(), abs=1e-5)
    assert len(curves) == 5
    assert f"{found.same[-1]:.4f}" in text(app)


def test_any_sentence_gets_a_second_one_and_another_can_be_typed(open_app: Open) -> None:
    app = open_app(PAGE, part="context", model="zh-en", text=CAT)
    boxes = [box for box in app.text_input if box.key == "view.second"]
    assert "猫" in boxes[0].value
    boxes[0].set_value("猫吃鱼。").run()
    assert not app.exception
    assert "猫" in chart(app, 1)["layout"]["title"]["text"]
    box = next(box for box in app.text_input if box.key == "view.second")
    box.set_value("xyz").run()
    assert "no token in common" in app.info[-1].value


def test_the_second_sentence_shares_more_than_the_words_with_which_both_begin(open_app: Open) -> None:
    # "The old man ..." begins alike, and what a decoder makes of a beginning is the same in both: nothing to be seen.
    app = open_app(PAGE, part="context", model="stories", text="The dog was tired, so it went to")
    second = next(box for box in app.text_input if box.key == "view.second").value
    assert not second.startswith("The")
    assert chart(app, 1)["layout"]["title"]["text"] == "“to” in two sentences"
    assert numbers(chart(app, 1)["data"][-1]["y"])[-1] < 0.999


def test_a_causal_model_says_what_it_cannot_see_and_its_answer_is_exact(open_app: Open) -> None:
    app = open_app(PAGE, part="context", model="stories", text="苹果是一种好吃的水果。")
    assert any("from left to right" in info.value for info in app.info)
    radio = next(radio for radio in app.radio if radio.key.startswith("ask.tokens.context"))
    radio.set_value(0).run()
    app = next(button for button in app.button if button.key.startswith("ask.tokens.context")).click().run()
    assert "Everything up to this token" in app.success[0].value
    use = next(button for button in app.button if button.key == "tokens.use.cloze")
    app = use.click().run()
    assert app.query_params["model"] in ("cloze", ["cloze"])


def test_examples_change_the_sentence(open_app: Open) -> None:
    app = open_app(PAGE, part="context", model="cloze")
    app = next(button for button in app.button if button.key == "tokens.take.can").click().run()
    assert app.query_params["text"] in ("I can swim.", ["I can swim."])
    assert next(box for box in app.text_input if box.key == "view.second").value.startswith("He opened")


@pytest.mark.parametrize("scaled", [True, False])
def test_lengths_with_and_without_the_factor(open_app: Open, scaled: bool) -> None:
    app = open_app(PAGE, part="norms", text=CAT, dials="" if scaled else "tokens.scale:0")
    model = load("zh-en")
    found = norms(model, np.array([token.id for token in model.encode(CAT)]))
    data = chart(app)["data"]
    assert numbers(data[0]["y"]) == pytest.approx((found.tokens * (16 if scaled else 1)).tolist(), rel=1e-5)
    assert numbers(data[1]["y"]) == pytest.approx([128**0.5] * len(found.tokens), rel=1e-5)
    assert ("I have a cat." in text(app)) == (not scaled)  # what the factor does is shown where it was switched


def test_a_model_without_added_positions_says_so(open_app: Open) -> None:
    app = open_app(PAGE, part="norms", model="stories", text=CAT)
    assert any("adds no position vectors." in info.value for info in app.info)
    assert len(chart(app)["data"]) == 1


def test_a_link_that_names_too_many_merges_starts_at_the_beginning(open_app: Open) -> None:
    app = open_app(PAGE, part="merges", text=CAT, dials="tokens.step:900")
    assert not app.exception
    assert "after 0 of" in text(app)


def test_very_many_words_are_shown_in_part(open_app: Open) -> None:
    app = open_app(PAGE, part="merges", text="a cat and " * 40)
    assert any("The first 80 of" in caption.value for caption in app.caption)


@pytest.mark.sweep
def test_what_is_typed_is_never_markup(open_app: Open) -> None:
    for part in PARTS:
        app = open_app(PAGE, part=part, text="<img src=x> $x$ **b** 猫")
        assert not app.exception
        assert "<img src=x" not in html(app)


# --- the code that is shown: pasted, it runs, and it gives what is on the page ----------------------------------------


def code(app: Any) -> str:
    (shown,) = app.code
    return str(shown.value)


@pytest.mark.parametrize("step", [0, 1, 3])
def test_the_pasted_code_of_a_merge_finds_the_pair_of_the_table(open_app: Open, step: int) -> None:
    app = open_app(PAGE, part="merges", text="tokenizers", dials=f"tokens.step:{step}" if step else "")
    assert run(code(app))["pair"] == apply(words_of("tokenizers"), bundled_table()[0])[max(step, 1) - 1].pair


@pytest.mark.parametrize("step", [0, 4])
def test_the_pasted_code_of_learning_finds_the_most_frequent_pair(open_app: Open, step: int) -> None:
    app = open_app(PAGE, part="merges", dials="tokens.merge:paper" + (f"~tokens.step:{step}" if step else ""))
    assert run(code(app))["pair"] == learn(PAPER, step + 1)[step].pair


def test_the_code_of_a_long_text_finds_the_same_pair_among_fewer_words(open_app: Open) -> None:
    long = "a dog and " * 60 + "tokenizers"
    steps = apply(words_of(long), bundled_table()[0])
    for step in (1, len(steps)):
        app = open_app(PAGE, part="merges", text=long, dials=f"tokens.step:{step}")
        assert code(app).startswith(f"# 80 of the {len(words_of(long))} words")
        assert run(code(app))["pair"] == steps[step - 1].pair


def test_no_code_is_shown_where_there_is_nothing_to_merge(open_app: Open) -> None:
    assert not open_app(PAGE, part="merges", text="a").code


def test_the_pasted_code_of_a_row_takes_it_from_the_table(open_app: Open) -> None:
    app = open_app(PAGE, part="lookup", text=CAT, dials="tokens.at:0")
    weight = load("zh-en").model.embedding.weight.detach()
    left = run(code(app), E=weight)
    assert torch.equal(left["product"], left["row"])
    assert torch.equal(left["row"], weight[load("zh-en").encode(CAT)[0].id])


def test_the_pasted_code_of_the_neighbours_gives_their_cosines(open_app: Open) -> None:
    app = open_app(PAGE, part="neighbours", text=CAT, dials="tokens.at:4")
    model = load("zh-en")
    id = model.encode(CAT)[4].id
    best = run(code(app), E=model.model.embedding.weight.detach())["cosines"].topk(9)
    found = neighbours(directions(model), id)
    assert best.indices.tolist() == [id, *found.ids]
    assert best.values[1:].numpy() == pytest.approx(found.cosines, abs=1e-5)


def test_the_pasted_code_of_a_token_in_two_sentences_gives_the_curve(open_app: Open) -> None:
    first, second = "我在花园里。", "我花了十元。"
    app = open_app(PAGE, part="context", model="cloze", text=first)
    model = load("cloze")
    found = contexts(model, model.trace(first), model.trace(second), 3, 2)
    left = run(code(app), x_A=torch.tensor(found.first), x_B=torch.tensor(found.second))
    assert left["same"].numpy() == pytest.approx(found.same, abs=1e-5)
    assert f"= {float(left['same'][-1]):.4f}" in "".join(latex.value for latex in app.latex)


@pytest.mark.sample(1)
@pytest.mark.parametrize("model", ["zh-en", "stories", "cloze"])
def test_the_pasted_code_of_the_input_gives_the_residual_stream(open_app: Open, model: str) -> None:
    app = open_app(PAGE, part="norms", text=CAT, model=model)
    loaded = load(model)
    trace = loaded.trace(CAT)
    stack = "decoder" if model == "stories" else "encoder"
    n = len(trace.tokens[stack])
    table = loaded.model.token_table().weight.detach()
    left = run(code(app), E=table, **({} if model == "stories" else {"P": loaded.model.positions(n).detach()}))
    if model != "cloze":  # which adds a segment vector and a norm, as the page says
        assert torch.allclose(left["x_0"], trace.residual(f"{stack}.0.pre"), atol=1e-5)
    assert left["x_0"].shape == (n, loaded.model.config.d_model)


@pytest.mark.parametrize(
    ("make", "segments"), [(made.bert, True), (made.distilbert, False)], ids=["segments and a norm", "a norm alone"]
)
def test_only_what_the_model_adds_and_applies_is_told(open_app, tmp_path, monkeypatch, make, segments):
    make(tmp_path / "tiny")
    monkeypatch.setenv(server_folder.VARIABLE, str(tmp_path))
    app = open_app(PAGE, part="norms", text="a cat", model="models/tiny")
    notes = " ".join(element.value for element in app.caption)
    assert not app.exception
    assert ("segment vector" in notes) == segments
    assert "applies a norm" in notes


@pytest.mark.sweep
def test_the_switch_measures_words_of_two_senses(open_app: Open) -> None:
    app = open_app(PAGE, model="cloze", text="She went to the bank.", part="context", dials="tokens.senses:1")
    assert not app.exception
    checkpoint = load("cloze")
    rows = next(rows for rows in tables(app) if len(rows) == len(FRAMES))
    assert [row[0] for row in rows] == list(FRAMES)
    for row in rows:
        gap = sense_gap(checkpoint.trace, FRAMES[row[0]])
        assert [float(cell) for cell in row[1:3]] == pytest.approx([gap.same[-1], gap.different[-1]], abs=0.00051)
        assert (row[5] == "yes") == (gap.share[-1] >= 0.1 and gap.chance[-1] <= 0.05)
    assert {row[5] for row in rows} == {"yes", "no"}
    off = open_app(PAGE, model="cloze", text="She went to the bank.", part="context")
    assert not any(len(rows) == len(FRAMES) for rows in tables(off))


def test_senses_that_take_long_are_measured_in_the_queue_of_long_work(open_app: Open, monkeypatch) -> None:
    monkeypatch.setattr(watched_work, "AT_ONCE", 0)
    sense_gaps.clear()
    app = open_app(PAGE, model="cloze", text="She went to the bank.", part="context", dials="tokens.senses:1")
    assert not app.exception
    assert not any(len(rows) == len(FRAMES) for rows in tables(app))
    press(app, "tokens.senses.measure")
    assert not app.exception
    [rows] = [rows for rows in tables(app) if len(rows) == len(FRAMES)]
    assert [row[0] for row in rows] == list(FRAMES)


@pytest.mark.sweep
def test_a_translator_shows_both_translations_beside_the_vectors_that_part(open_app: Open) -> None:
    app = open_app(PAGE, model="zh-en", text="他打了她。", part="context", dials="tokens.senses:1")
    assert not app.exception
    (hit,) = [row for rows in tables(app) for row in rows if row[0] == "打" and len(row) == 7]
    assert hit[5] == "yes"
    call, blow = hit[6].split(" / ")
    assert "call" in call
    assert "hit" in blow
    assert call == load("zh-en").generate("他打了电话。").text.strip()


@pytest.mark.parametrize("word", ["can", "花"])
def test_the_static_vector_stands_beside_the_contextual_ones(open_app: Open, word: str) -> None:
    text = next(one.first for one in OCCASIONS if one.token == word)
    table = read_word_vectors(asset("lessons", "tokens", "word_vectors.safetensors"))
    app = open_app(PAGE, part="context", model="cloze", text=text)
    assert not app.exception
    (bars,) = [trace for trace in chart(app, 0)["data"] if trace["type"] == "bar"]
    nearest = table.nearest(word, 8)
    assert sorted(numbers(bars["x"])) == pytest.approx(sorted(cosine for __, cosine in nearest), abs=1e-6)
    assert word in chart(app, 0)["layout"]["title"]["text"]
