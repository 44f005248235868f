"""A model that a reader opened: what the head that is shown does over texts, and the same head on the other pages."""

import shutil

import numpy as np
import pytest

from tests.bundled import load
from tests.pages.test_attention_heads import choose, heads, link
from vizformer.analysis import site_name
from vizformer.analysis.causes.ablation import Part, edit_without
from vizformer.analysis.corpus_heads import Corpus, bundled_corpus, habits, head_report
from vizformer.analysis.corpus_heads.habits import Habits, shares_of, short_texts
from vizformer.analysis.heads.measures import find_telling_head
from vizformer.assets import asset
from vizformer.web.catalogue import server_folder, sources
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.link.view import usual_query
from vizformer.web.pages.attention import one_head
from vizformer.web.pages.attention.one_head import LOOKING, cost, look
from vizformer.web.pages.head_report import head_reports
from vizformer.web.widgets.model_suggestions import language_of

PAGE = "pages/explore/attention.py"
TEXT = "The cat sat on the mat, and the dog"
LONG = 60
UNITS = {"stories": "the loss of the next token", "cloze": "the loss of a hidden token"}


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Bundled models as folders of the reader's; nobody waits before it begins."""
    for name in (*UNITS, "induction-by-hand"):
        shutil.copytree(asset("models", name), tmp_path / name)
    monkeypatch.setenv(server_folder.VARIABLE, str(tmp_path))
    monkeypatch.setattr(one_head, "BEGINS", 0.0)
    for one in (look, cost):
        one.clear()


def said(app) -> str:
    return " ".join(one.value for one in app.caption)


def settled(app):
    """The app when all is measured that it begins to measure."""
    for _ in range(5):  # it is seen, begun, followed by the cost, and drawn
        app.run()
        assert not app.exception
        for work in LOOKING.going():
            assert work.ended.wait(LONG)
    return app


@pytest.mark.parametrize(("model", "place"), [("stories", (0, 3)), ("cloze", (1, 5))])
def test_habit_and_cost_of_the_shown_head_come_after_the_picture(open_app, own, model, place):
    view = {"model": f"models/{model}", "text": TEXT, "layer": place[0], "head": place[1]}
    app = open_app(PAGE, **view)
    assert "Measuring over other texts" in said(app)
    assert heads(app)["strip"] == {"texts": 0, "resting": 0, "heads": [], "waits": True}
    settled(app)

    checkpoint = load(model)
    kind = "decoder" if model == "stories" else "encoder"
    read = short_texts(checkpoint, bundled_corpus(language_of(ModelRef("models", model))).passages)
    shares = [shares_of(checkpoint.trace(ids=[one.id for one in tokens]), kind, tokens) for tokens in read]
    found = Habits(np.stack(shares))
    one = found.of(*place)
    assert one.mean > habits.LEAST
    names = {"previous": "token before", "diagonal": "itself"}
    habit = f"{names[one.target]}, {one.mean:.2f} of its attention ({one.low:.2f} to {one.high:.2f})"
    assert f"Over 8 texts this head attends most to: {habit}." in said(app)
    way = habits.way_of(checkpoint)
    edit = edit_without([Part(site_name(kind, place[0]), place[1])])
    lost = np.mean([habits.answer(checkpoint, one, way, edit=edit).mean() for one in read]) - np.mean(
        [habits.answer(checkpoint, one, way).mean() for one in read]
    )
    assert f"Without it {UNITS[model]} changes by {lost:+.3f} nats".replace("-", "−") in said(app)

    strip = heads(app)["strip"]
    assert (strip["texts"], strip["resting"]) == (8, found.resting)
    strongest = [(each.target, each.layer, each.head) for each in found.strongest()]
    assert [(each["target"], each["layer"], each["head"]) for each in strip["heads"]] == strongest
    assert link(app).keys() - {"site"} == view.keys()  # nothing of it is in the link


def test_another_head_costs_only_its_own_runs(open_app, own, monkeypatch):
    app = settled(open_app(PAGE, model="models/stories", text=TEXT))
    model, begun = sources.stamped(ModelRef("models", "stories")), []
    monkeypatch.setattr(look, "_function", lambda *_: pytest.fail("the heads are known"))
    monkeypatch.setattr(LOOKING, "begin", lambda function, call, reader: begun.append(call))
    for head in (1, 2):
        choose(app, layer=3, head=head)
        assert len(begun) == head - 1  # nobody has looked at it for a while
        app.run()
    assert begun == [(model, "decoder", 3, 1), (model, "decoder", 3, 2)]
    assert "Measuring its effect" in said(app)


def test_another_model_ends_what_was_begun_for_the_one_before(open_app, own, monkeypatch):
    """Which would keep that one in memory until the reader counts as gone."""
    app, left = open_app(PAGE, model="models/stories", text=TEXT), []
    begun = app.session_state[one_head._BEGUN] = look, (sources.stamped(ModelRef("models", "stories")), "decoder")
    monkeypatch.setattr(LOOKING, "leave", lambda function, call, reader: left.append((function, call)))
    app.run()
    assert not left
    app.query_params["model"] = "stories"
    app.run()
    assert left[:1] == [begun]


def test_what_goes_wrong_is_said_once_and_not_tried_again(open_app, own, monkeypatch):
    tried = []

    def broken(*_):
        tried.append(1)
        raise ArithmeticError

    monkeypatch.setattr(look, "_function", broken)
    app = open_app(PAGE, model="models/stories", text=TEXT)
    for _ in range(6):
        app.run()
        for work in LOOKING.going():
            assert work.ended.wait(LONG)
    assert len(tried) == 1
    assert heads(app)["selected"]["order"] == "habit"  # the picture stays


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        ({"model": "models/induction-by-hand", "text": "abcdabcd"}, "this model cannot read the bundled ones"),
        ({"model": "stories", "text": TEXT}, ""),
        ({"model": "models/stories", "text": TEXT, "over": "mean"}, ""),
    ],
)
def test_what_is_not_measured_says_so_and_of_a_bundled_model_nothing_is_begun(open_app, own, view, expected):
    app = settled(open_app(PAGE, **view))
    assert expected in said(app)
    assert ("other texts" in said(app)) == bool(expected)
    assert not (heads(app).get("strip") or {}).get("waits")  # no room is kept
    assert not look.holds(sources.stamped(ModelRef("models", "stories")), "decoder")
    assert LOOKING.going() == []


def test_a_text_of_one_token_has_a_strip_too(open_app, own):
    app = settled(open_app(PAGE, model="models/stories", text="a"))
    assert heads(app)["strip"]["texts"] == 8
    assert "Over 8 texts this head" in said(app)


# --- the same head on the other pages ---------------------------------------------------------------------------------


@pytest.fixture
def telling(own):
    trace = load("stories").trace(TEXT)
    found = find_telling_head(trace, "decoder", usual_query(trace.tokens["decoder"]))
    assert (found.layer, found.head) != (0, 0)
    return found.layer, found.head


def test_where_the_answer_comes_from_begins_with_the_head_of_the_page_attention(open_app, telling):
    layer, head = telling
    box = "Head or feed-forward network"
    app = open_app("pages/explore/lens.py", model="models/stories", text=TEXT)
    (found,) = (one for one in app.selectbox if one.label == box)
    assert found.options[0].startswith(f"the head of the page Attention: layer {layer}, head {head} ")
    (link_there,) = (one for one in app.button if one.key == "lens.head")
    assert f"Layer {layer}, head {head}" in link_there.label
    app = open_app("pages/explore/lens.py", model="models/stories", text=TEXT, layer=1, head=2)  # whom the link names
    (link_there,) = (one for one in app.button if one.key == "lens.head")
    assert "Layer 1, head 2" in link_there.label
    bundled = open_app("pages/explore/lens.py", model="stories", text=TEXT)
    (found,) = (one for one in bundled.selectbox if one.label == box)
    assert found.options[0].startswith("the head with the largest contribution")


def test_what_if_begins_without_that_head_until_it_is_put_back(open_app, telling):
    layer, head = telling
    app = open_app("pages/explore/what_if.py", model="models/stories", text=TEXT)
    assert not app.exception
    (box,) = app.multiselect
    assert [(one.sublayer, one.head) for one in box.value] == [(f"decoder.{layer}.self", head)]
    assert "settings" not in link(app)
    box.set_value([]).run()
    assert app.multiselect[0].value == []
    assert app.run().multiselect[0].value == []
    assert open_app("pages/explore/what_if.py", model="stories", text=TEXT).multiselect[0].value == []


def test_side_by_side_begins_with_that_head(open_app, telling):
    layer, head = telling
    view = {"text": TEXT, "second": "The dog sat on the mat, and the cat"}
    app = open_app("pages/explore/side_by_side.py", model="models/stories", **view)
    assert not app.exception
    assert f"Layer {layer}, head {head} in both runs" in [one.value for one in app.subheader]


def test_what_each_head_does_begins_with_that_head(open_app, telling, monkeypatch):
    layer, head = telling
    corpus = Corpus.of(["I have a cat.", "The cats are here, and the cats are there."])
    report = head_report(load("stories"), corpus)
    monkeypatch.setattr(head_reports, "bundled", lambda model, corpus: report)
    page = "pages/checkpoint/head_report.py"
    app = open_app(page, model="models/stories", text=TEXT)
    assert not app.exception
    assert f"Layer {layer}, head {head}" in [one.value for one in app.subheader]
    assert f"Shown: layer {layer}, head {head}. Of the heads that do not rest on one token its row" in said(app)
    bundled = open_app(page, model="stories", text=TEXT)
    assert "Of all heads its measure" in said(bundled)
    unread = open_app(page, model="models/induction-by-hand", text="你好")
    assert not unread.exception
