"""The questions of lessons: what counts as right is what the library says, for several models and sentences."""

import math
import re
import sys

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.bundled import load
from tests.pages.conftest import Open
from vizformer.analysis import answer_cell, cell_question, habit_question, head_maps, ratio_question
from vizformer.analysis.costs.model_boxes import architecture
from vizformer.analysis.decoding.ways import first_token
from vizformer.analysis.head_outputs import contributions
from vizformer.analysis.heads.measures import head_statistics
from vizformer.analysis.masks import left_over, mixed_up
from vizformer.analysis.training.depth_gradients import gru_gradients
from vizformer.analysis.vectors.embeddings import norms
from vizformer.assets import asset
from vizformer.explain import masked_attention
from vizformer.model.masks import MaskRecipe
from vizformer.text import schemes
from vizformer.training.repeater import load_gru
from vizformer.web.widgets.slides import lesson_prose

SUBJECTS = [
    ("zh-en", "我有一只猫。", "decoder"),
    ("stories", "The cat sat on the chair.", "decoder"),
    ("cloze", "She opened the door.", "encoder"),
]
WRITERS = SUBJECTS[:2]
MOST = 24  # rows and columns of a picture that can be asked about


def read(model: str, text: str):
    checkpoint = load(model)
    return checkpoint, checkpoint.trace(text)


def widget(found, lesson: str, name: str, part: str):
    return next(one for one in found if (one.key or "").startswith(f"ask.{lesson}.{name}.{part}"))


def answered(app: AppTest, lesson: str, name: str) -> list[str]:
    """What is said once the answer is asked for: of this question alone."""
    before = [box.value for box in (*app.success, *app.error)]
    app = widget(app.button, lesson, name, "button").click().run()
    assert not app.exception
    now = [box.value for box in (*app.success, *app.error)]
    for box in before:
        now.remove(box)
    return [text.replace("\\", "") for text in now]


def choose(app: AppTest, lesson: str, name: str, choice: str) -> str:
    radio = widget(app.radio, lesson, name, "choice")
    plain = [option.replace("\\", "") for option in radio.options]
    assert choice in plain, plain
    app = radio.set_value(plain.index(choice)).run()
    (said,) = answered(app, lesson, name)
    return said


def enter(app: AppTest, lesson: str, name: str, number: float) -> str:
    widget(app.number_input, lesson, name, "number").set_value(number)
    (said,) = answered(app, lesson, name)
    return said


def click(app: AppTest, lesson: str, name: str, row: int, column: int) -> str:
    key = widget(app.selectbox, lesson, name, "row").key
    app.selectbox(key=key).set_value(row)
    app = app.selectbox(key=key.replace(".row.", ".column.")).set_value(column).run()
    (said,) = answered(app, lesson, name)
    return said


def right(said: str) -> bool:
    return said.startswith("**Right.**")


def question(app: AppTest, word: str) -> str:
    return next(m.value.replace("\\", "") for m in app.markdown if "Predict first" in m.value and word in m.value)


# --- the map ----------------------------------------------------------------------------------------------------------


@pytest.mark.sample(1)
@pytest.mark.parametrize(("model", "text", "stack"), SUBJECTS)
def test_most_parameters_are_where_the_boxes_say(open_app: Open, model: str, text: str, stack: str) -> None:
    checkpoint, trace = read(model, text)
    boxes = architecture(checkpoint.model, len(trace.tokens[stack]), 3)
    sums = {
        "the tables of tokens and positions": ("tokens", "embedding", "positions", "segments", "unembedding"),
        "the attentions of all layers": ("attention", "cross"),
        "the feed-forward networks of all layers": ("feedforward",),
        "the norms": ("norm", "add_norm"),
    }
    counts = {name: sum(box.parameters for box in boxes if box.kind in kinds) for name, kinds in sums.items()}
    said = choose(open_app("pages/learn/map.py", model=model, text=text), "map", "share", max(counts, key=counts.get))
    assert right(said)
    for count in counts.values():
        assert f"{count:,}" in said


@pytest.mark.sample(1)
@pytest.mark.parametrize(("model", "text", "stack"), SUBJECTS)
def test_the_first_word_is_felt_as_the_gradient_says(open_app: Open, model: str, text: str, stack: str) -> None:
    gru, tokenizer = load_gru(asset("lessons", "map"))
    tokens = tokenizer.encode(text)
    first = next(i for i, token in enumerate(tokens) if not token.special)
    sizes = gru_gradients(gru, [token.id for token in tokens])
    share = 100 * float(sizes[first] / sizes[-1])
    app = open_app("pages/learn/map.py", part="gru", model=model, text=text)
    assert f"token {first}, “{tokens[first].text}”" in question(app, "GRU")
    assert right(enter(app, "map", "felt", round(share, 1)))


# --- tokens -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "text"), [("zh-en", "他们昨天在学校里学中文。"), ("stories", "They sat on the chair.")]
)
def test_the_first_merge_is_that_of_the_table(open_app: Open, model: str, text: str) -> None:
    step = schemes.apply(schemes.words_of(text), *schemes.bundled_table())[0]
    app = open_app("pages/learn/tokens.py", part="merges", model=model, text=text)
    said = choose(app, "tokens", "merge", " + ".join(step.pair).replace("▁", "␣"))
    assert right(said)
    assert f"merge {step.rank + 1:,}" in said


def test_the_first_pair_that_is_learned_is_the_most_frequent_one(open_app: Open) -> None:
    for dials, pair in (("tokens.merge:paper", "e + s"), ("tokens.merge:learn", "他 + 说")):
        app = open_app("pages/learn/tokens.py", part="merges", model="zh-en", text="他说他说过他说的话。", dials=dials)
        radio = widget(app.radio, "tokens", "merge", "choice")
        assert right(choose(app, "tokens", "merge", pair)), radio.options


@pytest.mark.parametrize(("model", "text", "stack"), SUBJECTS)
def test_a_one_hot_row_takes_every_number_of_the_table(open_app: Open, model: str, text: str, stack: str) -> None:
    rows, columns = load(model).model.token_table("encoder").weight.shape
    app = open_app("pages/learn/tokens.py", part="lookup", model=model, text=text)
    assert right(enter(app, "tokens", "products", rows * columns))


@pytest.mark.sample(1)
@pytest.mark.parametrize(("model", "text", "stack"), SUBJECTS)
def test_the_nearest_row_has_the_largest_cosine_of_all(open_app: Open, model: str, text: str, stack: str) -> None:
    checkpoint = load(model)
    app = open_app("pages/learn/tokens.py", part="neighbours", model=model, text=text)
    asked = re.search("with the row of “(.*)”\\?", question(app, "cosine")).group(1)
    token = next(token for token in checkpoint.encode(text) if token.text == asked)
    table = checkpoint.model.token_table("encoder").weight.detach()
    cosines = (table @ table[token.id]) / (table.norm(dim=1) * table[token.id].norm())
    best = int(cosines.topk(2).indices[1])  # the first one is the row itself
    name = checkpoint.tokenizer_of("encoder").tokens([best])[0].text
    options = [option.replace("\\", "") for option in widget(app.radio, "tokens", "nearest", "choice").options]
    (choice,) = [option for option in options if option in (name, f"{name} #{best}")]
    said = choose(app, "tokens", "nearest", choice)
    assert right(said)
    assert f"{cosines[best]:.2f}" in said


@pytest.mark.parametrize(("model", "text", "stack"), SUBJECTS)
def test_the_lengths_are_those_of_the_table(open_app: Open, model: str, text: str, stack: str) -> None:
    checkpoint = load(model)
    tokens = checkpoint.encode(text)
    found = norms(checkpoint, np.array([token.id for token in tokens]))
    app = open_app("pages/learn/tokens.py", part="norms", model=model, text=text)
    if found.positions is None:
        longest = int(found.tokens.argmax())
        assert right(choose(app, "tokens", "lengths", f"{longest} · {tokens[longest].text}"))
        return
    share = found.compared(not found.scaled)[2]
    borders = {0.1: "less than a tenth", 0.5: "between a tenth and a half", 0.9: "between a half and nine tenths"}
    choice = next((name for border, name in borders.items() if share < border), "more than nine tenths")
    assert right(choose(app, "tokens", "lengths", choice))


# --- positions --------------------------------------------------------------------------------------------------------


@pytest.mark.sample(1)
@pytest.mark.parametrize(("model", "text", "stack"), SUBJECTS)
def test_what_is_said_of_the_waves_holds_for_every_model(open_app: Open, model: str, text: str, stack: str) -> None:
    page = "pages/learn/positions.py"
    assert right(enter(open_app(page, model=model, text=text), "positions", "turn", round(2 * math.pi, 2)))
    app = open_app(page, part="clock", model=model, text=text)
    assert right(choose(app, "positions", "rotation", "the same R"))
    app = open_app(page, part="distance", model=model, text=text)
    said = choose(app, "positions", "product", "PE(102) · PE(105)")
    assert right(said)
    equal = {float(value) for value in re.findall(r"PE\((?:2|102)\) · PE\((?:5|105)\) = (-?[\d.]+\d)", said)}
    others = {float(value) for value in re.findall(r"PE\([34]\) · PE\(\d+\) = (-?[\d.]+\d)", said)}
    assert len(equal) == 1
    assert not equal & others
    words = [token for token in load(model).encode(text) if not token.special]
    app = open_app(page, part="options", model=model, text=text)
    assert right(click(app, "positions", "penalty", len(words) - 1, 0))


# --- query, key, value ------------------------------------------------------------------------------------------------


@pytest.mark.sample(1)
@pytest.mark.parametrize(("model", "text", "stack"), SUBJECTS)
def test_the_ratio_is_that_of_the_models_weights(open_app: Open, model: str, text: str, stack: str) -> None:
    _, trace = read(model, text)
    kind = "encoder" if model == "zh-en" else stack  # what the page begins with
    asked = ratio_question(trace, kind)
    pattern = trace[f"{kind}.{asked.layer}.self"].pattern(asked.head)[asked.query]
    app = open_app("pages/learn/qkv.py", part="arithmetic", model=model, text=text)
    assert f"Layer {asked.layer}, head {asked.head}" in question(app, "before the softmax")
    assert right(enter(app, "qkv", "ratio", round(float(pattern[asked.first] / pattern[asked.second]), 2)))


@pytest.mark.sample(1)
@pytest.mark.parametrize(("model", "text", "stack"), SUBJECTS)
def test_who_asks_is_the_row(open_app: Open, model: str, text: str, stack: str) -> None:
    _, trace = read(model, text)
    kind = "encoder" if model == "zh-en" else stack
    asked = cell_question(trace, kind, MOST)
    pattern = trace[f"{kind}.{asked.layer}.self"].pattern(asked.head)
    for row, column in ((asked.query, asked.key), (asked.key, asked.query)):
        app = open_app("pages/learn/qkv.py", part="three", model=model, text=text)
        said = click(app, "qkv", "side", row, column)
        assert right(said) == (row == asked.query)
        assert f"{pattern[asked.query, asked.key]:.3f}" in said
        assert f"{pattern[asked.key, asked.query]:.3f}" in said


# --- heads ------------------------------------------------------------------------------------------------------------


@pytest.mark.sample(1)
@pytest.mark.parametrize(("model", "text", "stack"), SUBJECTS)
def test_a_head_less_is_its_part_less(open_app: Open, model: str, text: str, stack: str) -> None:
    checkpoint, trace = read(model, text)
    kind = "encoder" if model == "zh-en" else stack
    found = contributions(checkpoint, trace, f"{kind}.1.self", 2)
    others = sum(part[0] for head, part in enumerate(found.parts) if head != 3)
    others += 0 if found.bias is None else found.bias[0]
    app = open_app("pages/learn/heads.py", model=model, text=text, layer=1, head=3, query=2)
    assert right(enter(app, "heads", "without", round(float(others), 3)))


@pytest.mark.sample(1)
@pytest.mark.parametrize(("model", "text", "stack"), SUBJECTS)
def test_the_cell_of_a_habit_is_the_darkest_one_of_its_row(open_app: Open, model: str, text: str, stack: str) -> None:
    _, trace = read(model, text)
    kind = "encoder" if model == "zh-en" else stack
    asked = habit_question(trace, kind, MOST, head_statistics(head_maps(trace, kind)))
    row = trace[f"{kind}.{asked.layer}.self"].pattern(asked.head)[asked.query]
    app = open_app("pages/learn/heads.py", part="all", model=model, text=text)
    said = click(app, "heads", "habit", asked.query, int(row.argmax()))
    assert right(said)
    assert f"{row.max():.3f}" in said


# --- masks ------------------------------------------------------------------------------------------------------------


@pytest.mark.sample(1)
@pytest.mark.parametrize(("model", "text", "stack"), SUBJECTS)
def test_the_cell_to_be_blocked_is_that_of_the_query_and_the_key(
    open_app: Open, model: str, text: str, stack: str
) -> None:
    _, trace = read(model, text)
    asked = cell_question(trace, stack, MOST)
    app = open_app("pages/learn/masks.py", part="paint", model=model, text=text)
    names = [token.text for token in trace.tokens[stack]]
    said = question(app, "no longer see")
    assert f"“{asked.query} · {names[asked.query]}”" in said
    assert f"“{asked.key} · {names[asked.key]}”" in said
    assert right(click(app, "masks", "block", asked.query, asked.key))


@pytest.mark.sample(1)
@pytest.mark.parametrize(("model", "text", "stack"), SUBJECTS)
def test_what_a_row_adds_up_to_is_what_is_left_over(open_app: Open, model: str, text: str, stack: str) -> None:
    _, trace = read(model, text)
    record = trace[f"{stack}.0.self"]
    found = masked_attention(record, 0, MaskRecipe("causal").mask(len(trace.tokens[stack])))
    left = left_over(found.scores, found.blocked)
    app = open_app("pages/learn/masks.py", part="mistakes", model=model, text=text, layer=0, head=0)
    kept = left[left >= 0.01].min()  # the row that loses most, of those that keep something
    assert right(enter(app, "masks", "sum", round(float(kept), 3)))
    app = open_app("pages/learn/masks.py", part="conventions", model=model, text=text)
    weights = mixed_up(found.scores, found.blocked)
    assert np.isnan(weights[-1]).all()
    assert right(choose(app, "masks", "notation", "no key at all: its weights are not numbers (NaN)"))


# --- encoder meets decoder --------------------------------------------------------------------------------------------


@pytest.mark.sample(1)
@pytest.mark.parametrize("text", ["我有一只猫。", "他十分钟前离开了。"])
def test_keys_of_cross_attention_are_computed_once(open_app: Open, text: str) -> None:
    _, trace = read("zh-en", text)
    n_keys = trace["decoder.0.cross"].k.shape[1]
    app = open_app("pages/learn/cross.py", part="memory", model="zh-en", text=text)
    assert right(enter(app, "cross", "keys", n_keys))
    app = open_app("pages/learn/cross.py", part="memory", model="zh-en", text=text)
    assert not right(enter(app, "cross", "keys", n_keys * len(trace.tokens["decoder"])))


# --- writing a text ---------------------------------------------------------------------------------------------------


@pytest.mark.sample(1)
@pytest.mark.parametrize(("model", "text", "stack"), WRITERS)
def test_the_answer_of_a_row_is_one_column_further_on(open_app: Open, model: str, text: str, stack: str) -> None:
    _, trace = read(model, text)
    asked = answer_cell(trace, MOST)
    tokens = trace.tokens["decoder"]
    app = open_app("pages/learn/decoding.py", model=model, text=text)
    said = question(app, "read its target")
    assert f"of row {asked.query}, “{tokens[asked.query].text}”, is “{tokens[asked.query + 1].text}”" in said
    assert right(click(app, "decoding", "answer", asked.query, asked.query + 1))


@pytest.mark.sample(1)
@pytest.mark.parametrize(("model", "text", "stack"), WRITERS)
def test_the_ratio_at_a_temperature_is_the_one_that_is_drawn_from(
    open_app: Open, model: str, text: str, stack: str
) -> None:
    app = open_app("pages/learn/decoding.py", part="ways", model=model, text=text)
    temperature = float(re.search(r"T = ([\d.]+)\?", question(app, "times as probable")).group(1))
    (_, _, first), (_, _, second), *_ = first_token(load(model), text, temperature)
    assert right(enter(app, "decoding", "ratio", round(first / second, 2)))


# --- a question is never beside, or below, its own answer -------------------------------------------------------------


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("page", "part", "asked", "picture"),
    [
        ("map", "drawing", "holds most", "subheader"),
        ("block", "stream", "length of its vector", "plotly_chart"),
        ("decoding", "shift", "trained to predict", "html:<td"),
        ("cross", "alignment", "attends most to", "html:<td"),
        ("costs", "results", "better than every earlier ensemble", "plotly_chart"),
    ],
)
def test_a_question_stands_above_what_shows_its_answer(
    open_app: Open, page: str, part: str, asked: str, picture: str
) -> None:
    app = open_app(f"pages/learn/{page}.py", part=part)
    assert not app.exception
    kind, __, holds = picture.partition(":")
    found = [(one.type, one.proto.body if one.type == "html" else getattr(one, "value", "")) for one in app.main]
    question_at = next(i for i, (__, text) in enumerate(found) if "Predict first." in str(text) and asked in str(text))
    shown_at = next(i for i, (type_, text) in enumerate(found) if type_ == kind and holds in str(text))
    assert question_at < shown_at


def test_the_words_beside_a_question_do_not_tell_its_answer() -> None:
    for language in ("en", "zh_CN"):
        shift, alignment = lesson_prose("decoding", language)["shift"], lesson_prose("cross", language)["alignment"]
        stream = lesson_prose("block", language)["stream"]
        assert not re.search("shifted|右移", shift.text)
        assert not re.search("→|(chooses|predicts) the next|下一个", alignment.text + " ".join(alignment.wrongs))
        assert not re.search("row grows|length is set back|一层比一层长|长度被调回来", stream.text)


def test_no_question_of_the_part_shifted_by_one_tells_the_answer_of_another(open_app: Open) -> None:
    app = open_app("pages/learn/decoding.py", part="shift", model="zh-en", text="我有一只猫。")
    first, second = (m.value for m in app.markdown if "Predict first." in m.value)
    row = re.search(r"Row (\d)", first)
    assert row is not None
    assert f"row {row[1]}," not in second


def test_a_question_comes_again_whose_lesson_was_not_opened_before(open_app: Open, monkeypatch) -> None:
    for name in [name for name in sys.modules if name.startswith("vizformer.web.lessons.tokens")]:
        monkeypatch.delitem(sys.modules, name)
    app = open_app("pages/learn/masks.py", model="zh-en", text="我有一只猫。", part="kinds")
    assert not any("Once more" in caption.value for caption in app.caption)
    assert "vizformer.web.lessons.tokens" not in sys.modules
    kept = {"tokens/pieces": [1, 1]}  # as the browser tells the new session of a reader
    app.session_state["vizformer.memory"] = {"kept": {"done": [], "missed": kept, "forgotten": 0}}
    app = app.run()
    assert not app.exception
    (said,) = [caption.value for caption in app.caption if "Once more" in caption.value]
    assert said == "Once more, from the lesson “Tokens and embeddings”:"
    assert "vizformer.web.lessons.tokens" in sys.modules


def test_a_question_that_this_text_has_not_keeps_no_other_one_waiting(open_app: Open) -> None:
    app = open_app("pages/learn/masks.py", model="stories", text="The cat sat on the chair.", part="kinds")
    kept = {"cross/shape": [1, 1], "tokens/pieces": [2, 1]}  # the first is about two stacks
    app.session_state["vizformer.memory"] = {"kept": {"done": [], "missed": kept, "forgotten": 0}}
    app = app.run()
    (said,) = [caption.value for caption in app.caption if "Once more" in caption.value]
    assert said == "Once more, from the lesson “Tokens and embeddings”:"
