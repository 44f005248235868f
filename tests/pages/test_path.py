"""The path: its stations say what the model computes, in few words, in both languages, for every kind of model."""

import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests import tiny
from tests.benchmarks import path as time_of_path
from tests.bundled import load
from tests.checkpoints import folders as made
from tests.checkpoints.test_first_tokens import both_ways
from tests.components.test_mount import sent
from tests.test_words import leaves
from vizformer.assets import asset
from vizformer.checkpoints import save
from vizformer.components.stations import Ask, Bars, Chips, Grid, Show, Station, Turn
from vizformer.components.whole_model import Box
from vizformer.exercises.folder import NOTEBOOK, contents
from vizformer.exercises.path import TASKS, exercise
from vizformer.text.pieces import HAN, LATIN, script
from vizformer.web.catalogue import server_folder, sources
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import sitemap
from vizformer.web.link.languages import LANGUAGES, SOURCE
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.pages.path import stations
from vizformer.web.widgets import model_suggestions
from vizformer.web.widgets.whole_model import beside, picture, sentence
from vizformer.web.widgets.whole_model.beside import boxes
from vizformer.web.words import i18n, labels, lesson_words
from vizformer.web.words.terms import unmarked

PAGE = "pages/learn/path.py"
CHINESE, STORY = ("zh-en", "我有一只猫。"), ("stories", "The dog was tired, so it went to")
CASES = [CHINESE, STORY, ("cloze", "She put the [MASK] on the table.")]
MOST_WORDS, MOST_CHARACTERS = 60, 110  # that drive a station; the bound, and as much in Chinese


def subject(model: str, text: str) -> Subject:
    return Subject(ModelRef("bundled", model), text, "")


def walked(case: tuple[str, str]) -> tuple[Station, ...]:
    return stations.all_stations(sentence.Sentence(subject(*case)))


def drawing(case: tuple[str, str]) -> list[Box]:
    return boxes(subject(*case).config, {one.name for one in walked(case)})


def drawn(app) -> dict[str, Any]:
    [index] = [i for i, one in enumerate(app.get("bidi_component")) if "stations" in one.proto.component_name]
    data = sent(app, index)
    return {**json.loads(data["content"]), "at": data["at"]}


def test_every_kind_of_model_has_its_stations() -> None:
    names = [[one.name for one in walked(case)] for case in CASES]
    assert names[0] == [
        *(
            "machine",
            "tokens",
            "rows",
            "places",
            "query",
            "softmax",
            "heads",
            "mask",
            "layer",
            "cross",
            "writing",
            "loss",
        )
    ]
    assert sorted(names[1]) == sorted(name for name in names[0] if name != "cross")
    assert names[1].index("places") == names[1].index("mask") + 1  # RoPE turns queries and keys
    assert names[2] == ["machine", "tokens", "rows", "query", "softmax", "heads", "layer", "writing"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_a_station_asks_before_it_answers_and_turns_one_thing(case) -> None:
    for station in walked(case):
        kinds = [type(step) for step in station.steps]
        assert kinds[0] is Show
        assert kinds.count(Ask) == kinds.count(Turn) == 1, station.name
        assert kinds.index(Ask) < kinds.index(Turn)


@pytest.mark.parametrize("code", ["en", "zh_CN"])
def test_few_words_drive_a_station(monkeypatch, code) -> None:
    for module in (lesson_words, stations, i18n):
        monkeypatch.setattr(module, "language", lambda: code)
    for case in CASES:
        for station in walked(case):
            said = unmarked(" ".join(step.words for step in station.steps if not isinstance(step, Ask)))
            if code == "en":
                assert len(said.split()) <= MOST_WORDS, station.name
            else:
                assert len(re.sub(r"\s", "", said)) <= MOST_CHARACTERS, station.name


@pytest.mark.parametrize("code", ["en", "zh_CN"])
def test_the_path_takes_sixty_to_ninety_minutes_as_the_app_says(monkeypatch, code) -> None:
    for module in (lesson_words, stations, i18n):
        monkeypatch.setattr(module, "language", lambda: code)
    *each, whole = time_of_path.rows(subject(*CHINESE), code)
    assert [row[0] for row in each[:12]] == [one.name for one in walked(CHINESE)]
    assert time_of_path.LEAST <= whole[-1] <= time_of_path.MOST
    data = json.loads(stations.packed(subject(*CHINESE), code).content)
    halves = [one["minutes"] + one["deeper"]["minutes"] for one in data["stations"]]
    assert sum(halves) == pytest.approx(whole[-1])  # rounded once, in the browser


def test_a_text_is_read_at_the_rates_that_are_said() -> None:
    assert lesson_words.reading("one two " * 90) == pytest.approx(60)
    assert lesson_words.reading("字" * 300) == pytest.approx(60)
    assert lesson_words.counted(["W_Q 是一个矩阵 — 3 × 4.", "= a"]) == (4, 5)


def test_every_text_is_said(monkeypatch) -> None:
    asked: set[str] = set()
    say = lesson_words.say

    def heard(lesson: str, part: str, name: str, /, **values: object) -> str:
        if lesson == "path":
            own = lesson_words._found(lesson, f"{part}.{name}", SOURCE)[0]
            form = f".{values['form']}" if isinstance(own, dict) else ""
            asked.add(f"{part}.{name}{form}" if own else name)
        return say(lesson, part, name, **values)

    monkeypatch.setattr(sentence.lesson_words, "say", heard)
    for about in (sentence.Sentence(subject(*case)) for case in CASES):
        for make in stations.MADE:
            make(about)
    for case in CASES:
        drawing(case)
    asked |= {f"{part}.title" for part in lesson_words.parts("path", SOURCE)}
    assert {path for path, _ in leaves(lesson_words.tables("path", SOURCE))} == asked


def answered(name: str, case: tuple[str, str] = CHINESE) -> tuple[Ask, str]:
    station = next(one for one in walked(case) if one.name == name)
    ask = next(step for step in station.steps if isinstance(step, Ask))
    return ask, ask.options[ask.right].text


def test_what_is_right_is_the_models_own() -> None:
    checkpoint = load("zh-en")
    trace = checkpoint.trace(CHINESE[1])
    tokens = [token.text for token in trace.tokens["encoder"]]
    about = sentence.Sentence(subject(*CHINESE))
    weights = trace[f"encoder.{about.look.layer}.self"].pattern(about.look.head)[about.look.query]
    assert answered("query")[1] == tokens[int(weights.argmax())]
    crossed = about.found.cross
    weights = trace[f"decoder.{crossed.layer}.cross"].pattern(crossed.head)[crossed.query]
    assert answered("cross")[1] == f"{tokens[int(weights.argmax())]} (cat)"  # glossed, who reads English
    assert answered("tokens")[1] == str(len(tokens))
    place = len(trace.tokens["decoder"]) // 2
    assert answered("machine")[1] == checkpoint.tokenizer.tokens([int(trace.logits[place].argmax())])[0].text
    shares = [
        np.diagonal(trace[f"encoder.{about.look.layer}.self"].pattern(head).numpy(), -1).mean() for head in range(4)
    ]
    assert answered("heads")[1].endswith(str(int(np.argmax(shares))))
    table = checkpoint.model.embedding.weight
    ask, right = answered("rows")
    row = table[next(token.id for token in trace.tokens["encoder"] if f"“{token.text}”" in ask.words)]
    cosines = {
        option.text: max(
            float(np.dot(row, table[id]) / (row.norm() * table[id].norm()))
            for id in range(len(table))
            if checkpoint.tokenizer.tokens([id])[0].text == option.text
        )
        for option in ask.options
    }
    assert max(cosines, key=cosines.get) == right


OWN = [
    *(
        ("en", text)
        for text in ("I have a cat.", "The cat sat on the mat.", "The dog was tired, so it went to", "Cat!")
    ),
    ("en", "The animal didn't cross the street because it was too tired."),
    *(
        ("zh_CN", text)
        for text in ("我有一只猫。", "我爱北京的春天。", "小明把苹果放在桌上，然后吃掉了它。", "今天天气")
    ),
]


def speak(monkeypatch, code: str) -> None:
    for module in (lesson_words, stations, i18n, model_suggestions):
        monkeypatch.setattr(module, "language", lambda: code)


@pytest.mark.parametrize(("code", "text"), OWN)
def test_a_reader_is_asked_for_words_of_their_own_language(monkeypatch, code: str, text: str) -> None:
    speak(monkeypatch, code)
    own, other = (LATIN, HAN) if code == "en" else (HAN, LATIN)
    found = {one.name: one for one in walked(("zh-en", text))}
    assert list(found) == [one.name for one in walked(CHINESE)]
    for name in ("machine", "mask", "writing", "loss", "rows"):
        for step in found[name].steps:
            if not isinstance(step, Ask):
                continue
            chips = [word for part in step.frame if isinstance(part, Chips) for word in part.names]
            words = [option.text for option in step.options] if name in ("machine", "rows") else []
            asked_for = re.findall("“(.+?)”", step.words)
            assert not [
                word for word in (*words, *chips, *asked_for) if script(word) == other and word[0] not in "<⟨"
            ], name
            assert name != "machine" or any(script(word) == own for word in (*words, *asked_for))
        assert name == "rows" or text in found[name].about
    [asked_for] = [step for step in found["cross"].steps if isinstance(step, Ask)]
    assert script(re.findall("“(.+?)”", asked_for.words)[0] if code == "en" else asked_for.words) == own
    assert {"en": "“I have a cat.”", "zh_CN": "“我有一只猫。”"}[code] in found["cross"].about
    pronoun = {"heads"} if re.search(r"\bit\b|它", text) else set()  # of which it is said that no head finds its noun
    about = {name for name, one in found.items() if one.about}
    assert about == {"machine", "mask", "cross", "writing", "loss"} | pronoun


@pytest.mark.parametrize(("code", "text"), OWN)
def test_what_is_right_of_a_readers_own_language_is_what_that_model_computes(monkeypatch, code: str, text: str) -> None:
    speak(monkeypatch, code)
    model, translator = load("stories"), load("zh-en")
    trace = model.trace(text)
    tokens = trace.tokens["decoder"]
    words = [i for i, token in enumerate(tokens) if not token.special and any(map(str.isalnum, token.text))]
    at = len(tokens) - 1
    if words[-1] < at:
        at = next(i for i in words if tokens[i].word == tokens[words[-1]].word) - 1
    case = ("zh-en", text)
    probability = trace.logits[at].double().softmax(-1)
    best = model.tokenizer.tokens([int(probability.argmax())])[0].text
    ask, right = answered("machine", case)
    assert right == best
    assert [token.text for token in tokens[: at + 1]] == [*ask.frame[-1].names]
    assert f"“{best}”" in answered("writing", case)[0].words
    assert labels.percent(float(probability.max())) in answered("writing", case)[0].words
    losses = [-float(trace.logits[i].double().log_softmax(-1)[token.id]) for i, token in enumerate(tokens[1:16])]
    [said] = [one for one in walked(case) if one.name == "loss"]
    np.testing.assert_allclose(said.steps[0].frame[0].values[: len(losses)], losses, atol=1e-5)
    source, target = ("我有一只猫。", "I have a cat.") if code == "en" else ("I have a cat.", "我有一只猫。")
    crossed = translator.trace(source, target=target)
    about = sentence.Sentence(Subject(ModelRef("bundled", "zh-en"), source, target)).found.cross
    weights = crossed[f"decoder.{about.layer}.cross"].pattern(about.head)[about.query]
    assert answered("cross", case)[1].startswith(crossed.tokens["encoder"][int(weights.argmax())].text)


@pytest.mark.parametrize(("code", "model", "text"), [
    ("en", "zh-en", "我有一只猫。"), ("zh_CN", "zh-en", "I have a cat."), ("en", "stories", "I have a cat."),
    ("en", "cloze", "I have a cat."), ("en", "zh-en", "У меня есть кошка."),
])  # fmt: skip
def test_what_a_reader_chose_otherwise_is_what_every_station_is_about(monkeypatch, code, model, text) -> None:
    speak(monkeypatch, code)
    assert {one.about for one in walked((model, text))} == {""}


def test_the_temperature_and_the_loss_are_those_of_the_pictures() -> None:
    found = {one.name: one for one in walked(CHINESE)}
    trace = load("zh-en").trace(CHINESE[1])
    turn = next(step for step in found["writing"].steps if isinstance(step, Turn))
    bars = [part for frame in turn.frames for part in frame if isinstance(part, Bars)]
    assert [max(bar.values) for bar in bars] == sorted((max(bar.values) for bar in bars), reverse=True)
    losses = next(part for part in found["loss"].steps[0].frame if isinstance(part, Bars)).values
    ids = [*(token.id for token in trace.tokens["decoder"][1:]), 2]
    expected = [-float(trace.logits[row].double().log_softmax(-1)[id]) for row, id in enumerate(ids)]
    np.testing.assert_allclose(losses, expected, atol=1e-6)
    masked = next(step for step in found["mask"].steps if isinstance(step, Turn)).frames[0][0]
    assert isinstance(masked, Grid)
    assert np.isnan(masked.cells[0, 1:]).all()


def test_the_drawing_leads_only_to_stations_that_there_are() -> None:
    for case in CASES:
        names = {one.name for one in walked(case)}
        boxes = drawing(case)
        assert {box.station for box in boxes} <= names
        assert names - {"machine", "query", "softmax", "heads", "loss", "writing"} <= {box.station for box in boxes}
        assert {name for box in boxes for name in box.lit_at} >= names


def test_the_second_half_of_positions_is_about_the_scheme_of_the_model() -> None:
    halves = {"sinusoidal": "Waves", "rope": "Six schemes", "learned": "Six schemes", "alibi": "Six schemes"}
    for positions, title in halves.items():
        config = replace(subject(*CHINESE).config, positions=positions)
        assert lesson_words.say("positions", picture.positions_part(config), "title") == title
    for case in CASES:
        entry, changes = beside.leads_to("places", sentence.Sentence(subject(*case)))
        assert lesson_words.say(entry.url, changes["part"], "title") == halves[subject(*case).config.positions]


def test_the_whole_model_stands_beside_each_part_and_its_place_is_lit() -> None:
    for case in CASES:
        about = subject(*case)
        names = beside._line(about.model, "en").stations
        entries = [beside.leads_to(name, sentence.Sentence(about))[0] for name in names]
        assert all(entry in sitemap.COURSE for entry in entries)
        parts = {entry.url: lesson_words.parts(entry.url, "en") for entry in sitemap.COURSE}
        for name in names:
            entry, changes = beside.leads_to(name, sentence.Sentence(about))
            assert changes["part"] in {"", *parts[entry.url]}, name
    assert {entry.url for entry in sitemap.COURSE} <= set(beside.PLACES)
    known = {f"{entry.url}/{part}" for entry in sitemap.COURSE for part in ("", *lesson_words.parts(entry.url, "en"))}
    assert {place if "/" in place else f"{place}/" for place in beside.PLACES} <= known


def test_the_drawing_lights_what_a_part_is_about_and_nothing_where_that_is_no_box() -> None:
    about = subject(*CHINESE)
    for place, lit in (("positions", ["places"]), ("masks", ["mask"]), ("costs/results", [])):
        here = beside.PLACES.get(place, beside.PLACES[place.partition("/")[0]])
        data = json.loads(beside._line(about.model, "en").content)["model"]
        assert [box["station"] for box in data if here in box["lit_at"]] == lit


@pytest.mark.parametrize(("station", "kind"), [("query", "encoder"), ("mask", "decoder"), ("cross", "cross")])
def test_a_lit_box_opens_into_the_picture_of_the_whole_model_and_another_one_leads_to_its_station(
    open_app, station: str, kind: str
) -> None:
    app = open_app(PAGE, model="zh-en", text="I have a cat.", part=station)

    def shown() -> list[str]:
        return [one.proto.component_name for one in app.get("bidi_component")]

    assert "vizformer_whole_model" in shown()
    assert "vizformer_whole_model_picture" not in shown()
    app.session_state["path-model"] = {"selected": {"station": "", "seq": 1.0}}
    app.run()
    data = sent(app, shown().index("vizformer_whole_model_picture"))
    assert [one["kind"] for lane in data["lanes"] for one in lane["maps"]][data["look"][0]] == kind
    for seq, nonsense in enumerate(("nowhere", ["mask"], None), 2):
        app.session_state["path-model"] = {"selected": {"station": nonsense, "seq": float(seq)}}
        app.run()
        assert not app.exception
        assert drawn(app)["at"] == station
    app.session_state["path-model"] = {"selected": {"station": "layer", "seq": 9.0}}
    app.run()
    assert drawn(app)["at"] == "layer"
    assert "vizformer_whole_model_picture" not in shown()


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_the_page_opens_at_the_station_of_its_link(open_app, locale) -> None:
    app = open_app(PAGE, locale=locale, model="zh-en", text="他喜欢喝水。", part="softmax")
    assert not app.exception
    assert not app.error
    data = drawn(app)
    assert data["at"] == "softmax"
    assert len(data["stations"]) == 12
    assert len(str(data)) < 300_000


def test_a_station_is_in_the_address_and_leads_deeper_and_back(open_app) -> None:
    app = open_app(PAGE, model="zh-en", text="他喜欢喝水。")
    app.session_state["path"] = {"selected": {"station": "cross", "deeper": False, "seq": 1.0}}
    app.run()
    assert app.query_params["part"] in ("cross", ["cross"])
    assert drawn(app)["at"] == "cross"
    app.session_state["path"] = {"selected": {"station": "cross", "deeper": True, "seq": 2.0}}
    app.run()
    assert not app.exception
    view = app.session_state["vizformer.view"].view
    assert (view.part, view.kind) == ("memory", "cross")
    assert sitemap.PATH in sitemap.beside(sitemap.CROSS)
    app = app.switch_page(PAGE).run()
    assert drawn(app)["at"] == "cross"


@pytest.mark.parametrize(("locale", "first", "then"), [
    ("en-US", "Learn it step by step →", "Go on: Softmax: from scores to attention weights →"),
    ("zh-CN", "一步一步学 →", "继续：softmax：分数到注意力权重 →"),
])  # fmt: skip
def test_the_first_page_offers_to_go_on_where_the_reader_was(open_app, locale, first, then) -> None:
    def offered(app) -> str:
        [row] = [one for one in app.get("flex_container") if one.proto.id.endswith("page-views")]
        [link] = row.get("page_link")
        assert link.proto.page == "path"
        return link.proto.label

    app = open_app(locale=locale)
    assert offered(app) == first
    app = app.switch_page(PAGE).run()
    assert drawn(app)["at"] == ""
    app.session_state["path"] = {"selected": {"station": "softmax", "deeper": False, "seq": 1.0}}
    app = app.run().switch_page(sitemap.MAP.file).run()
    assert not app.exception
    assert not app.info  # the station is no part of the lesson, and nothing is said of it
    app = app.switch_page(sitemap.HOME.file).run()
    assert offered(app) == then
    assert drawn(app.switch_page(PAGE).run())["at"] == "softmax"


def test_a_link_to_a_station_is_where_the_reader_was(open_app) -> None:
    app = open_app(PAGE, part="softmax").switch_page(sitemap.HOME.file).run()
    app.session_state["vizformer.view"].view = replace(app.session_state["vizformer.view"].view, part="")
    assert drawn(app.switch_page(PAGE).run())["at"] == "softmax"


def test_below_the_path_stand_the_lessons_but_not_where_it_is_presented(open_app) -> None:
    def keys(app) -> set[str]:
        return {one.proto.id.rpartition("-")[2] for one in app.get("flex_container")}

    assert "tiles" in keys(open_app(PAGE))
    assert "tiles" in keys(open_app(PAGE, text=""))  # also where a sentence cannot be read
    assert "tiles" not in keys(open_app(PAGE, slide="words"))


@pytest.mark.parametrize("text", ["猫", "。", "🐱🐱", "a " * 100, "</script>", "a\n\nb"])
def test_odd_texts_have_a_path_too(open_app, text) -> None:
    for model in ("zh-en", "stories", "cloze"):
        app = open_app(PAGE, model=model, text=text, part="nowhere")
        assert not app.exception
        assert not app.error, (model, [one.value for one in app.error])


def test_models_of_others(open_app, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv(server_folder.VARIABLE, str(tmp_path))
    save(tiny.checkpoint("decoder-only"), tmp_path / "plain")
    made.bert(tmp_path / "bert")
    for name in ("plain", "bert"):
        app = open_app(PAGE, model=f"models/{name}", text="a cat")
        assert not app.exception
        assert not app.error, [one.value for one in app.error]


def test_a_long_text_says_how_much_is_not_drawn() -> None:
    text = "我爱北京" * 40
    (chips,) = walked(("zh-en", text))[0].steps[0].frame
    assert chips.names[-1] == f"… + {len(load('zh-en').encode(text)) - 16}"
    assert len(chips.names) == 17


@pytest.mark.parametrize("text", ["我有猫", "a cat"])
def test_what_the_token_before_a_text_is_for_is_said(open_app, monkeypatch, tmp_path, text: str) -> None:
    monkeypatch.setenv(server_folder.VARIABLE, str(tmp_path))
    checkpoint = both_ways()
    save(checkpoint, tmp_path / "both-ways")
    expected = f"puts “{checkpoint.encode(text)[0].text}” before it"
    app = open_app(PAGE, model="models/both-ways", text=text)
    assert not app.exception
    assert expected in json.dumps(drawn(app), ensure_ascii=False)
    assert "before it: the language" not in json.dumps(
        drawn(open_app(PAGE, model="stories", text="猫")), ensure_ascii=False
    )


@pytest.mark.parametrize("code", LANGUAGES)
def test_the_path_names_every_exercise_at_its_station(code: str) -> None:
    """In the order of the exercises, but for a head, which needs values, and what is put together of earlier ones."""
    stops = [one.name for one in walked(CHINESE)]
    named = [name for stop in stops for name in stations.EXERCISES.get(stop, ())]
    assert sorted(named) == sorted(TASKS)
    for stop in stations.EXERCISES:
        for name, one in zip(stations.EXERCISES[stop], stations.of_station(stop, code, 'a "b"'), strict=True):
            asked = exercise(name, code)
            assert one.title == f"{asked.number} · {asked.title}"
            assert f"{one.text}\n\n{one.symbols}" == asked.statement
            assert asked.stub in one.code
            assert one.code.endswith(f'.check({", ".join(asked.names)}, text="a \\"b\\"")')


def test_a_long_text_stays_out_of_the_code_of_an_exercise() -> None:
    """It would travel twelve times, and nobody reads such a line."""
    usual = stations.of_station("heads", SOURCE, CHINESE[1])
    assert stations.of_station("heads", SOURCE, "word " * 4000) == usual
    assert stations.of_station("heads", "eo", CHINESE[1]) == usual  # a language without a notebook of its own


@pytest.mark.parametrize("code", LANGUAGES)
def test_the_notebook_that_the_app_hands_out_is_that_of_the_exercises(code: str) -> None:
    """Else: make reference."""
    assert asset("exercises", code, NOTEBOOK).read_text(encoding="utf-8") == contents(code)[NOTEBOOK]


@pytest.mark.parametrize(
    "text", ["The old lamp was broken because it fell.", "奶奶把旧灯放在桌子下面，因为它坏了。", "老。"]
)
def test_what_is_said_of_a_count_of_tokens_is_so(text: str) -> None:
    [station] = [one for one in walked(("zh-en", text)) if one.name == "tokens"]
    [question] = [step for step in station.steps if isinstance(step, Ask)]
    [ways] = [step for step in station.steps if isinstance(step, Turn)]
    counts = dict(re.fullmatch(r"(.+): (\d+) tokens?", tick).groups() for tick in ways.ticks)
    for i, option in enumerate(question.options):
        named = re.search("“(.+)”", option.because)
        assert (i == question.right) == (option.text == counts["this model"])
        assert option.text == counts[named[1]] if named else i == question.right or option.text not in counts.values()


@pytest.mark.parametrize(
    ("case", "word", "nearest"),
    [
        (("zh-en", "The old lamp was broken because it fell."), "lamp", "lamps"),
        (("zh-en", "The animal was tired."), "was", "were"),  # not “anim”, whose 40 nearest are 0.01 apart
        (("zh-en", "Tom's grandmother lives in Liverpool with her cat."), "cat", "cats"),  # not “ool”
        (("zh-en", "他喜欢喝水。"), "他", "她"),
        (("cloze", "She put the [MASK] on the table."), "she", "he"),
    ],
)
def test_a_whole_word_is_asked_for_whose_nearest_row_is_clearly_first(case, word: str, nearest: str) -> None:
    [station] = [one for one in walked(case) if one.name == "rows"]
    [question] = [step for step in station.steps if isinstance(step, Ask)]
    assert f"“{word}”" in question.words
    right = question.options[question.right]
    assert right.text == nearest
    first, second = (float(one) for one in re.findall(r"\d\.\d\d", right.because))
    assert first - second >= 0.04  # 0.05 before both were written with two decimals
    others = [float(re.findall(r"\d\.\d\d", one.because)[0]) for one in question.options if one is not right]
    assert max(others) <= second
    assert all(one.text.isalpha() for one in question.options)
    [grid] = question.frame
    assert isinstance(grid, Grid)
    assert grid.rows[grid.lit] == word


def test_no_row_is_asked_for_where_none_is_clearly_first() -> None:
    [station] = [one for one in walked(("zh-en", "猫")) if one.name == "rows"]
    assert [type(step) for step in station.steps] == [Show, Show, Turn]


@pytest.mark.parametrize("code", LANGUAGES)
def test_what_a_norm_does_and_why_scores_are_divided_is_said_as_the_model_has_it(monkeypatch, tmp_path, code) -> None:
    for module in (lesson_words, stations, i18n):
        monkeypatch.setattr(module, "language", lambda: code)
    monkeypatch.setenv(server_folder.VARIABLE, str(tmp_path))
    save(tiny.checkpoint("decoder-only", norm_order="none", attention_scale=1.0), tmp_path / "bare")
    bare = Subject(sources.stamped(ModelRef("models", "bare")), "a cat", "")

    def said(subject: Subject, name: str) -> str:
        [station] = [one for one in stations.all_stations(sentence.Sentence(subject)) if one.name == name]
        return " ".join(step.words for step in station.steps if not isinstance(step, Ask))

    mean, square = {"en": ("mean 0, variance 1", "mean square 1"), "zh_CN": ("均值 0、方差 1", "均方 1")}[code]
    assert mean in said(subject(*CHINESE), "layer")  # LayerNorm
    assert square in said(subject(*STORY), "layer")  # RMSNorm subtracts no mean
    assert "Norm" not in said(bare, "layer")
    assert "√64" in said(subject(*CHINESE), "softmax")
    assert "d_k" in said(subject(*CHINESE), "softmax")  # the spread is what is held, not the size
    assert "√" not in said(bare, "softmax")  # whose scores are not divided
