"""The heads on the attention page: what is sent, and what of it the link holds."""

import json
import threading

import pytest

from tests import tiny
from tests.bundled import load
from vizformer.analysis import kinds
from vizformer.analysis.heads.measures import find_telling_head, resting_head
from vizformer.analysis.heads.pronouns import reference_shift
from vizformer.checkpoints import save
from vizformer.web.catalogue import followed_work, head_pictures, server_folder, subject
from vizformer.web.catalogue.long_work import WORK
from vizformer.web.link.view import usual_query
from vizformer.web.widgets.map_words import PAIRS

PAGE = "pages/explore/attention.py"
EXPLORING = ("explore/attention", "explore/what_if", "explore/side_by_side")
KIND = {"zh-en": "encoder", "stories": "decoder"}


def heads(app) -> dict:
    """What the component on the page is told (without its numbers)."""
    (found,) = (
        part.proto for part in app.get("bidi_component") if part.proto.component_name.endswith("vizformer_attention")
    )
    return json.loads(found.json if found.WhichOneof("data") == "json" else found.mixed.json)


def link(app) -> dict[str, str]:
    return {name: value[-1] if isinstance(value, list) else value for name, value in app.query_params.items()}


def choose(app, **selection) -> None:
    data = heads(app)
    app.session_state["heads"] = {"selected": {**data["selected"], **selection, "version": data["version"], "seq": 1}}
    app.run()


@pytest.mark.parametrize(("model", "text"), [("zh-en", "我有一只猫。"), ("stories", "The cat sat on the")])
def test_it_opens_on_the_head_whose_row_says_most_of_another_word(open_app, model, text):
    app = open_app(PAGE, model=model, text=text)
    assert not app.exception
    checkpoint = load(model)
    trace = checkpoint.trace(text)
    kind = kinds(trace)[0]
    found = find_telling_head(trace, kind, usual_query(trace.tokens[kind]))
    chosen = heads(app)["selected"]
    assert (chosen["layer"], chosen["head"]) == (found.layer, found.head) != (0, 0)
    assert f"Shown: layer {found.layer}, head {found.head}" in " ".join(one.value for one in app.caption)
    assert "layer" not in link(app)
    chosen = heads(open_app(PAGE, model=model, text=text, head=0))["selected"]  # a link always wins
    assert (chosen["layer"], chosen["head"]) == (0, 0)


def test_the_heads_of_a_model_of_the_reader_are_grouped_by_what_they_do(open_app, tmp_path, monkeypatch):
    save(tiny.checkpoint("encoder-only"), tmp_path / "own")
    monkeypatch.setenv(server_folder.VARIABLE, str(tmp_path))
    app = open_app(PAGE, model="models/own")
    assert heads(app)["selected"]["order"] == "habit"
    assert "sort" not in link(app)
    choose(app, order="layer")
    assert link(app)["sort"] == "layer"


@pytest.mark.parametrize(("model", "choices"), [("stories", []), ("zh-en", ["view.kind"])])
def test_the_kind_of_attention_is_asked_for_where_there_are_several(open_app, model, choices):
    app = open_app(PAGE, model=model, text="hello")
    assert not app.exception
    assert [group.key for group in app.button_group] == [*choices, "view.picture"]


def test_the_order_of_the_heads_is_part_of_the_link(open_app):
    app = open_app(PAGE, sort="entropy")
    assert not app.exception
    assert heads(app)["selected"]["order"] == "entropy"
    choose(app, order="first")
    assert link(app) == {"sort": "first"}
    choose(app, order="layer")
    assert link(app) == {"sort": "layer"}
    wrong = open_app(PAGE, sort="colour")
    assert any("order of the heads” to “colour”" in info.value for info in wrong.info)


def data_of(app, key: str) -> dict:
    (found,) = (part.proto for part in app.get("bidi_component") if part.proto.component_name.endswith(key))
    return json.loads(found.json if found.WhichOneof("data") == "json" else found.mixed.json)


def test_heads_together_are_one_map_a_layer(open_app):
    app = open_app(PAGE, over="mean", without="first", layer=1)
    assert not app.exception
    found = heads(app)
    assert found["shape"][:2] == [3, 1]
    assert found["selected"]["layer"] == 1
    assert found["words"]["head_name"] == "Layer {layer}, mean over its heads"
    said = " ".join(caption.value for caption in app.caption)
    assert "Mean over the heads" in said
    assert f"Keys left out: 0 “{load('zh-en').encode('我有一只猫。')[0].text}”" in said.replace("\\", "")
    app.radio(key="view.over").set_value("rollout").run()
    assert link(app) == {"over": "rollout", "without": "first", "layer": "1"}
    assert heads(app)["words"]["head_name"] == "Rollout up to layer {layer}"
    app.button_group(key="view.kind").set_value("cross").run()
    assert heads(app)["shape"][1] == 4  # there is no rollout of two texts
    assert "rollout" not in app.radio(key="view.over").options


@pytest.mark.parametrize(("lang", "button"), [("en-US", "Combine the heads"), ("zh-CN", "合并注意力头")])
def test_heads_of_a_long_text_are_put_together_in_a_thread_and_can_be_stopped(open_app, monkeypatch, lang, button):
    monkeypatch.setattr(head_pictures, "QUICK", 2)
    head_pictures.together.clear()
    go, real = threading.Event(), head_pictures.aggregates

    def held(*arguments):
        assert go.wait(60)
        yield from real(*arguments)

    monkeypatch.setattr(head_pictures, "aggregates", held)
    app = open_app(PAGE, locale=lang, text="他们正在看一本旧书。", over="rollout", layer=2)
    assert not app.exception
    assert not [part for part in app.get("bidi_component") if part.proto.component_name.endswith("vizformer_attention")]
    app.button(key="attention.together.stop").click().run()
    (begin,) = (one for one in app.button if one.label == button)
    going = [work for work in WORK.going() if work.function is head_pictures.together]
    go.set()
    assert all(work.ended.wait(60) for work in going)
    begin.click().run()
    for work in WORK.going():
        assert work.ended.wait(60)
    app.run()
    assert heads(app)["shape"][1] == 1
    assert heads(app)["selected"]["layer"] == 2


def test_keys_left_out_are_said_and_masked_in_maps_and_lines(open_app):
    app = open_app(PAGE, locale="zh-CN", without="marks")
    assert any("6 “。”" in caption.value or "5 “。”" in caption.value for caption in app.caption)
    assert heads(app)["words"]["reason_6"] == "未计入图中"
    app.button_group(key="view.picture").set_value("lines").run()
    assert not app.exception
    assert link(app) == {"without": "marks", "picture": "lines"}


def test_a_chosen_cell_opens_the_terms_of_its_score(open_app):
    app = open_app(PAGE)
    assert "attention.pair" not in app.session_state
    choose(app, query=2, key=1)
    assert any("score of query 2" in box.label for box in app.expander)
    app.session_state["attention.pair"] = True
    app.run()
    assert not app.exception
    assert any("They sum to" in caption.value for caption in app.caption)
    assert any("Checked: differs from the model" in success.value for success in app.success)


def test_the_text_is_a_picture_with_the_spaces_that_were_typed(open_app):
    app = open_app(PAGE, picture="text", model="stories", site="decoder", text="A cat sat.\nIt ran.", layer=1, head=2)
    assert not app.exception
    found = data_of(app, "vizformer_reading")
    assert "".join(found["query_tokens"]).removeprefix("<s>") == "A cat sat.⏎\nIt ran."
    assert (found["selected"]["layer"], found["selected"]["head"]) == (1, 2)
    app.session_state["text"] = {
        "selected": {
            "layer": 0,
            "head": 1,
            "pinned": {"side": "query", "index": 1},
            "version": found["version"],
            "seq": 1,
        }
    }
    app.run()
    assert {"picture": "text", "head": "1", "query": "1"}.items() <= link(app).items()
    app.radio(key="view.over").set_value("mean").run()
    assert not app.exception
    assert data_of(app, "vizformer_reading")["shape"][1] == 1
    assert link(app)["head"] == "1"


def test_a_text_that_the_model_wrote_has_its_spaces_too(open_app):
    app = open_app(PAGE, picture="text", site="cross", locale="zh-CN")
    found = data_of(app, "vizformer_reading")
    assert "".join(found["query_tokens"]) == "<s>I have a cat."
    assert found["words"]["looks_at"] == "它所关注的"


def test_words_go_to_the_map_with_their_tokens(open_app):
    app = open_app(PAGE, model="stories", site="decoder", text="Lily said hello.", level="words")
    found = heads(app)
    assert found["query_words"] == found["key_words"]
    assert found["query_words"][0] is None  # <s>
    assert len(set(found["query_words"])) < len(found["query_words"])
    assert "→" not in "".join(found["query_tokens"])


@pytest.mark.parametrize(("lang", "over"), [("en-US", "Shorten it by 1"), ("zh-CN", "1")])
def test_exactly_as_many_tokens_as_the_model_reads_and_one_more(open_app, lang, over):
    fits = " ".join(["cat"] * 254)
    app = open_app(PAGE, locale=lang, model="cloze", site="encoder", text=fits)
    assert not app.exception
    assert not app.error
    assert heads(app)["shape"][2:] == [256, 256]  # with [CLS] and [SEP]
    app.text_input(key="view.text").set_value(fits + " cat").run()
    assert not app.exception
    (said,) = (error.value for error in app.error)
    assert "257" in said
    assert "256" in said
    assert over in said
    assert heads(app)["shape"][2:] == [256, 256]  # still the last one that could be read


def test_a_long_text_is_followed_and_then_shown(open_app, monkeypatch):
    monkeypatch.setattr(subject, "LONG", 5)
    monkeypatch.setattr(followed_work, "LOOK", 0.001)
    app = open_app(PAGE, model="stories", site="decoder", text="The forward of this text is followed.")
    assert not app.exception
    assert heads(app)["shape"][0] == 5
    assert not [button for button in app.button if button.key == "bar.cancel"]


@pytest.mark.parametrize(("layer", "head", "rests"), [(2, 2, True), (1, 0, False)])
def test_a_head_that_rests_on_a_token_is_said_to_rest(open_app, layer, head, rests):
    app = open_app(PAGE, model="zh-en", text="我有一只猫。", kind="encoder", layer=layer, head=head)
    found = resting_head(load("zh-en").trace("我有一只猫。"), f"encoder.{layer}.self", head)
    said = [one.value for one in app.caption if "This head rests" in one.value]
    assert (found is not None, len(said)) == (rests, int(rests))
    if found is not None:
        assert f"{found.share:.1%}" in said[0]
    lesson = open_app(
        "pages/learn/qkv.py",
        model="zh-en",
        text="我有一只猫。",
        part="arithmetic",
        kind="encoder",
        layer=layer,
        head=head,
    )
    assert rests == any("This head rests" in one.value for one in [*lesson.caption, *lesson.markdown])


def of_its_noun(app) -> list[str]:
    return [one.value.replace("\\", "") for one in app.caption if "to the noun that it means" in one.value]


def test_of_a_pronoun_beside_a_gap_it_is_said_that_no_head_finds_its_noun(open_app):
    text = "The animal didn't cross the street because it was too tired."
    said = of_its_noun(open_app("pages/explore/blanks.py", model="cloze", text=text, hidden=4))
    assert len(said) == 1
    assert "“it”" in said[0]
    assert of_its_noun(open_app("pages/explore/blanks.py", model="cloze", text="The cat sat.", hidden=2)) == []


@pytest.mark.parametrize(
    ("model", "text", "word", "set_of"),
    [
        ("zh-en", "The animal didn't cross the street because it was too tired.", "it", "it"),
        ("stories", "The animal didn't cross the street because it was too tired", "it", "it"),
        ("zh-en", "小明把苹果放在桌上，然后吃掉了它。", "它", "ta_meaning"),
        ("zh-en", "那个我在北京上大学时认识的朋友，现在在那个城市工作。", "", ""),
    ],
)
@pytest.mark.parametrize(
    "page",
    [f"learn/{one}" for one in ("heads", "start", "masks", "cross")]
    + [*EXPLORING, "explore/generation", "explore/lens", "checkpoint/head_report"],
)
def test_of_a_pronoun_it_is_said_that_no_head_finds_its_noun(open_app, page, model, text, word, set_of):
    more = {
        "learn/heads": {"part": "all"},
        "learn/masks": {"dials": "masks.kind:padding"},
        "learn/cross": {"part": "three"},
        "explore/side_by_side": {"second": "I like dogs."},
    }.get(page, {})
    app = open_app(f"pages/{page}.py", model=model, text=text, kind=KIND[model], **more)
    assert not app.exception
    said = of_its_noun(app)
    assert len(said) == bool(word)
    if word:
        found = reference_shift(load(model).trace, PAIRS[set_of])
        assert f"“{word}”" in said[0]
        assert f"in {found.found} of {2 * len(found.sentences)}; half" in said[0]
        assert found.chance > 0.05
