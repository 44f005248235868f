"""The page Generation: what it sends to the screen is what the library computes, and bad input loses nothing."""

import json

import numpy as np
import pyarrow as pa
import pytest

from tests import tiny
from tests.bundled import load
from tests.refs import ref
from vizformer.analysis import head_maps
from vizformer.analysis.costs.generation_cost import cache_bytes, generation_costs
from vizformer.analysis.decoding.read_back import all_read_back
from vizformer.checkpoints import Checkpoint
from vizformer.generation import Sampling
from vizformer.web.catalogue import model_cache, model_list
from vizformer.web.words.terms import unmarked

PAGE = "pages/explore/generation.py"
TEXT = "他喜欢喝水。"


@pytest.fixture(scope="module")
def checkpoint() -> Checkpoint:
    return load("zh-en")


@pytest.fixture
def decoder_only(monkeypatch: pytest.MonkeyPatch) -> Checkpoint:
    """A tiny model on the shelf that continues texts."""
    made = tiny.checkpoint("decoder-only", max_positions=24, **tiny.LLAMA)
    known = {"tiny": made, "filler": tiny.checkpoint("encoder-only")}
    checkpoint, options = model_cache.checkpoint, model_cache.options
    monkeypatch.setattr(model_list, "models", lambda: tuple(map(ref, ("zh-en", *known))))
    monkeypatch.setattr(model_cache, "checkpoint", lambda model: known.get(model.name) or checkpoint(model))
    monkeypatch.setattr(
        model_cache,
        "options",
        lambda model: known[model.name].model.config if model.name in known else options(model),
    )
    return made


def player(app) -> dict:
    """What the player is told, its columns decoded."""
    (part,) = (p.proto for p in app.get("bidi_component") if p.proto.component_name.endswith("vizformer_player"))
    data = json.loads(part.mixed.json)
    for name, value in data.items():
        if isinstance(value, dict) and len(value) == 1:
            reference = next(iter(value.values()))
            if isinstance(reference, str) and (blob := part.mixed.arrow_blobs.get(reference)):
                data[name] = pa.ipc.open_stream(blob.data).read_all()[0].to_numpy()
    return data


def choose(app, **selection):
    data = player(app)
    app.session_state["player"] = {
        "selected": {**data["selected"], **selection, "version": data["version"], "seq": selection.get("seq", 1)}
    }
    return app.run()


def link(app) -> dict[str, str]:
    return {name: value[-1] if isinstance(value, list) else value for name, value in app.query_params.items()}


def least_sure(checkpoint, text: str) -> int:
    given = [float(step.probabilities[step.id]) for step in checkpoint.stream(text, max_new=60)]
    return given.index(min(given))


def text_of(app) -> list[str]:
    return [text.value for text in app.text]


def test_the_numbers_are_the_librarys(open_app, checkpoint):
    app = open_app(PAGE, text=TEXT, sampling="sampling,t1.1,k30,s4,n12")
    assert not app.exception
    assert not app.error
    data = player(app)
    sampling = Sampling(temperature=1.1, top_k=30, top_p=0.95, seed=4)
    steps = list(checkpoint.stream(TEXT, sampling=sampling, max_new=12))
    assert data["steps"]["ids"] == [step.id for step in steps]
    assert data["end"] == steps[-1].end
    ids = np.array(data["candidates"]["ids"]).reshape(len(steps), -1)
    before, after, cut = (data[name].reshape(ids.shape) for name in ("before", "after", "cut"))
    for row, step in enumerate(steps):
        assert step.id in ids[row]
        np.testing.assert_array_equal(before[row], step.probabilities.numpy()[ids[row]])
        np.testing.assert_array_equal(after[row], step.filtered.numpy()[ids[row]])
        np.testing.assert_array_equal(cut[row], step.cut.numpy()[ids[row]])
        assert data["steps"]["kept"][row] == int((step.cut == 0).sum())
        assert before[row][0] == step.probabilities.max()
    source = [token.id for token in checkpoint.encode(TEXT)]
    trace = checkpoint.trace(ids=source, target_ids=[1, *data["steps"]["ids"][:-1]])
    for kind in ("decoder", "cross"):
        maps = head_maps(trace, kind).weights
        assert data["kinds"][kind]["shape"] == list(maps.shape)
        np.testing.assert_array_equal(data[f"{kind}_weights"], maps.ravel())


def test_the_costs_are_those_up_to_the_step(open_app, checkpoint):
    app = open_app(PAGE, text=TEXT, new=3)
    config, memory = checkpoint.model.config, len(checkpoint.encode(TEXT))
    n = len(player(app)["steps"]["ids"])
    cached, uncached = (
        sum(cost.total for cost in generation_costs(config, 1, n, memory, cached=side)[:4]) for side in (True, False)
    )
    (told,) = (text for text in text_of(app) if "multiplications" in text)
    assert f"{cached:,} multiplications with the KV cache, {uncached:,} without it" in told
    assert f"{cache_bytes(config, 4, memory):,} bytes" in told
    curves = [json.loads(chart.proto.spec) for chart in app.get("plotly_chart")]
    assert len(curves) == 2


def test_a_continuation(open_app, decoder_only):
    app = open_app(PAGE, model="tiny", text="我有", sampling="n7")
    assert not app.exception
    assert not app.error
    data = player(app)
    assert data["steps"]["ids"] == [step.id for step in decoder_only.stream("我有", max_new=7)]
    assert list(data["kinds"]) == ["decoder"]
    assert data["tokens"][0]["text"] == "我"  # the end mark of the tokenizer is no part of a prompt
    assert data["source"] == []


def test_steps_and_settings_go_into_the_link_and_come_from_it(open_app):
    app = open_app(PAGE, text=TEXT, sampling="sampling,t1.5,s2", new=2, site="decoder", layer=1, head=3)
    assert player(app)["selected"] == {"step": 2, "kind": "decoder", "layer": 1, "head": 3, "branch": ""}
    assert app.slider(key="generation.temperature").value == 1.5
    app = choose(app, step=1, kind="cross", layer=2)
    assert link(app) == {
        "text": TEXT,
        "sampling": "sampling,t1.5,s2",
        "new": "1",
        "site": "cross",
        "layer": "2",
        "head": "3",
    }
    app.number_input(key="generation.seed").set_value(9).run()
    assert link(app)["sampling"] == "sampling,t1.5,s9"
    assert "new" not in link(app)  # another text opens at its own place
    app.button_group(key="generation.strategy").set_value("greedy").run()
    assert link(app)["sampling"] == "t1.5,s9"
    again = open_app(PAGE, **link(app))
    assert player(again)["steps"] == player(app)["steps"]


def test_opening_the_page_does_not_move_the_other_pages(open_app):
    assert link(open_app(PAGE, text=TEXT)) == {"text": TEXT}


def test_taking_another_token_and_undoing_it(open_app, checkpoint):
    app = open_app(PAGE, text=TEXT)
    plain = player(app)
    other = plain["candidates"]["ids"][2 * plain["candidates"]["count"] + 1]
    app = choose(app, step=2, branch=f"2:{other}")
    assert not app.exception
    data = player(app)
    assert data["branch"] == f"2:{other}" == link(app)["branch"]
    assert data["steps"]["ids"][:3] == [*plain["steps"]["ids"][:2], other]
    assert data["steps"]["ids"] == [step.id for step in checkpoint.stream(TEXT, max_new=60, instead={2: other})]
    assert data["taken"] == [{"step": 2, "id": other}]
    assert player(open_app(PAGE, **link(app)))["steps"] == data["steps"]
    app = choose(app, step=2, branch="", seq=2)
    assert player(app)["steps"] == plain["steps"]
    assert "branch" not in link(app)
    app = choose(app, step=2, branch=f"2:{other}", seq=3)
    app.text_input[0].set_value("我有一只猫。").run()
    assert "branch" not in link(app)  # it belonged to the other sentence
    assert player(app)["taken"] == []


def test_a_target_is_the_beginning(open_app, checkpoint):
    app = open_app(PAGE, text=TEXT, target="She")
    assert [token["text"] for token in player(app)["tokens"]][:2] == ["<s>", "She"]
    assert player(app)["start"] == 2
    assert any("begins with the target" in caption.value for caption in app.caption)


def test_beam_search(open_app, checkpoint):
    app = open_app(PAGE, text=TEXT, sampling="beam,w2")
    assert not app.exception
    assert not app.error
    (part,) = (p.proto for p in app.get("bidi_component") if p.proto.component_name.endswith("vizformer_tree"))
    nodes = json.loads(part.json or part.mixed.json)["nodes"]
    found = checkpoint.beam(TEXT, width=2, max_new=24)
    assert list(app.dataframe[0].value["text"]) == [text for text, _ in found]
    best = [node for node in nodes if node["best"]]
    assert [node["step"] for node in best] == list(range(len(found[0][1].ids)))
    assert best[-1]["total"] == pytest.approx(found[0][1].log_probability)
    assert {node["fate"] for node in nodes} == {"kept", "dropped", "finished"}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("sampling,t0", "Temperature 0: only the most probable"),
        ("sampling,p0", "The cut leaves only the most probable"),
        ("sampling,k1", "The cut leaves only the most probable"),
        ("", "Greedy: always the most probable"),
    ],
)
def test_settings_that_leave_nothing_to_draw(open_app, settings, said):
    greedy = player(open_app(PAGE, text=TEXT))["steps"]["ids"]
    app = open_app(PAGE, text=TEXT, sampling=settings)
    assert not app.error
    assert any(said in unmarked(caption.value) for caption in app.caption)
    assert player(app)["steps"]["ids"] == greedy


def test_prompts_at_and_over_the_context(open_app, decoder_only, monkeypatch):
    app = open_app(PAGE, model="tiny", text="我有")
    good = player(app)["steps"]
    app.text_input[0].set_value("猫" * 30).run()
    assert not app.exception
    assert len(app.error) == 1
    assert "Shorten it by 7" in app.error[0].value
    assert player(app)["steps"] == good  # the last text stays
    app.text_input[0].set_value("猫" * 23).run()  # read with an end mark; without it one position is left
    assert not app.error
    assert player(app)["end"] == "context"
    assert len(player(app)["steps"]["ids"]) == 1
    app.text_input[0].set_value("").run()
    assert "no text yet" in app.error[0].value


def test_a_target_that_fills_the_context(open_app, monkeypatch):
    short = tiny.checkpoint(max_positions=8)
    monkeypatch.setattr(model_list, "models", lambda: (ref("short"),))
    monkeypatch.setattr(model_cache, "checkpoint", lambda name: short)
    monkeypatch.setattr(model_cache, "options", lambda name: short.model.config)
    app = open_app(PAGE, model="short", text="猫", target="猫" * 7)
    assert not app.exception
    assert len(app.error) == 1
    assert "no room for a new token" in app.error[0].value
    app.text_input[1].set_value("猫" * 6).run()
    assert not app.error
    assert player(app)["end"] in ("context", "eos")


@pytest.mark.parametrize(
    ("nonsense", "said"),
    [
        (dict(sampling="t9"), "sampling,t0.8,k40,s7"),
        (dict(branch="x"), "3:17,8:254"),
        (dict(new=400), "no new token “400”"),
    ],
)
def test_nonsense_in_the_link_is_told(open_app, checkpoint, nonsense, said):
    app = open_app(PAGE, text=TEXT, **nonsense)
    assert not app.exception
    assert any(said in info.value.replace("\\", "") for info in app.info)
    assert player(app)["selected"]["step"] == (0 if "new" in nonsense else least_sure(checkpoint, TEXT))


def test_it_opens_where_the_model_was_least_sure_and_a_link_to_the_first_token_wins(open_app, checkpoint):
    app = open_app(PAGE, text=TEXT)
    step = least_sure(checkpoint, TEXT)
    assert player(app)["selected"]["step"] == step > 0
    assert f"Shown: new token {step}" in " ".join(caption.value for caption in app.caption)
    assert "new" not in link(app)
    app = choose(app, step=0)
    assert link(app)["new"] == "0"
    assert player(open_app(PAGE, **link(app)))["selected"]["step"] == 0


def test_a_branch_of_another_model_is_left_out(open_app):
    app = open_app(PAGE, text=TEXT, branch="1:999999")
    assert not app.exception
    assert any("does not exist in this model" in caption.value for caption in app.caption)
    assert player(app)["taken"] == []


def test_a_model_without_decoder_is_told_what_to_do(open_app, decoder_only):
    app = open_app(PAGE, model="filler", text="我有")
    assert not app.exception
    assert not app.error
    assert any("has no decoder" in info.value for info in app.info)
    app.button(key="generation.use.tiny").click().run()
    assert player(app)["steps"]["ids"]


def test_numbers_set_by_hand_hold_in_every_step(open_app, checkpoint):
    app = open_app(PAGE, text=TEXT, edits="encoder.0.self.v@0,1,0=20")
    assert not app.exception
    assert any("every step is a full forward" in caption.value for caption in app.caption)
    from vizformer.web.link import edits

    expected = checkpoint.stream(TEXT, max_new=60, edit=edits.edit("encoder.0.self.v@0,1,0=20"))
    assert player(app)["steps"]["ids"] == [step.id for step in expected]


def test_in_chinese(open_app):
    app = open_app(PAGE, locale="zh-CN", text=TEXT, sampling="sampling")
    assert not app.exception
    assert player(app)["words"]["play"] == "播放"
    assert any("KV 缓存" in text for text in text_of(app))
    assert not app.error


def test_a_translator_of_both_directions_reads_what_it_found_back(open_app):
    text = "西瓜又大又甜。"
    app = open_app(PAGE, model="zh-en", text=text, sampling="beam,w6")
    assert not app.exception
    judged = all_read_back(load("zh-en"), text, load("zh-en").beam(text, width=6, max_new=24))
    shown = app.dataframe[0].value
    by_text = {one.text: one for one in judged}
    assert list(shown["log p back"]) == pytest.approx([by_text[one].back for one in shown["text"]])
    assert list(shown["sum of both"]) == pytest.approx([by_text[one].score for one in shown["text"]])
    assert any(f"The best by both directions: {judged[0].text}" in one.value for one in app.text)
    greedy = load("zh-en").generate(text).text
    leads = [one for one in app.button if one.label == "Look at the attention of this translation"]
    assert len(leads) == (judged[0].text != greedy)


def test_what_is_found_behind_a_given_beginning_is_not_read_back(open_app):
    app = open_app(PAGE, model="zh-en", text="西瓜又大又甜。", target="The", sampling="beam,w2")
    assert not app.exception
    assert "both ways" not in app.dataframe[0].value
