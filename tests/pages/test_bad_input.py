"""Whatever is typed or linked: one sentence says what is wrong, the rest of the page stays, no traceback is shown."""

import pytest

from vizformer.web.frame import sitemap

PAGES = [
    "pages/explore/attention.py",
    "pages/learn/qkv.py",
    "pages/learn/layer.py",
    "pages/learn/paper.py",
    "pages/learn/compare.py",
    *(
        f"pages/learn/{lesson}.py"
        for lesson in (
            "map",
            "tokens",
            "positions",
            "heads",
            "masks",
            "block",
            "cross",
            "decoding",
            "training",
            "costs",
            "start",
        )
    ),
    "pages/explore/lens.py",
]
GOOD = "我有一只猫。"
TOO_LONG = "猫狗" * 1000  # 2002 tokens, with first and last, for a model of 512 positions
READABLE = {
    "one token": "猫",
    "emoji": "👩‍👩‍👧‍👦😀",
    "right to left": "مرحبا بالعالم",
    "control characters": "我\x00有\x07一\u200b只\ufeff猫",
    "html": "<script>alert(1)</script><b>猫</b>",
    "latex and markdown": r"$\frac{1}{0}$ **bold** :red[x] [link](http://example.com)",
    "special tokens": "</s><s><pad>",
}


def errors(app):
    return [error.value for error in app.error]


@pytest.mark.sample(3)
@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("text", READABLE.values(), ids=READABLE)
def test_any_text_can_be_looked_at(open_app, page, text):
    app = open_app(page, text=text)
    assert not app.exception
    assert not errors(app)
    assert app.text_input(key="view.text").value == text


@pytest.mark.sample(2)
@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["no text yet"]),
        ("   \t ", ["no text yet"]),
        (TOO_LONG, ["2002 tokens", "512", "Shorten it by 1490"]),
        ("猫" * 100_000, ["100,000 characters", "20,000"]),
    ],
    ids=["empty", "spaces", "2,000 tokens", "100,000 characters"],
)
def test_what_cannot_be_read_is_said_in_one_sentence_and_the_last_sentence_stays(open_app, page, text, words):
    app = open_app(page, text=GOOD)
    assert not errors(app)
    widgets = len(app.selectbox) + len(app.button)
    app.text_input(key="view.text").set_value(text).run()
    assert not app.exception
    assert len(errors(app)) == 1
    plain = errors(app)[0].replace("\\", "")
    for word in words:
        assert word in plain
    assert any("last readable sentence" in caption.value for caption in app.caption)
    assert len(app.selectbox) + len(app.button) == widgets
    app.text_input(key="view.text").set_value(GOOD).run()
    assert not errors(app)


def test_the_first_text_of_a_session_may_be_the_bad_one(open_app):
    app = open_app(PAGES[0], text=TOO_LONG)
    # The link holds 400 characters of it: few enough tokens to be read.
    assert not app.exception
    app = open_app(PAGES[1], text=" ")
    assert len(errors(app)) == 1
    assert not app.exception


def test_errors_are_in_the_readers_language(open_app):
    app = open_app(PAGES[0], locale="zh-CN", text=" ")
    assert "请输入" in errors(app)[0] or "还没有" in errors(app)[0]


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("edits", "words"),
    [
        ("encoder.9.self.q@0,0,0=1", "nothing called"),
        ("encoder.0.self.q@0,900,0=1", "no cell"),
        ("encoder.0.self!t=0", "temperature"),
        ("nobody!unscaled", "nothing called"),
        ("encoder.0.self.q@0,0,0=1e39", "the largest number of float32 is 3.40282e+38"),
        ("encoder.0.pre@0,0=-1e39", "the largest number of float32"),
        ("encoder.0.self.mask@0,0=1e39", "the largest number of float32"),
        ("encoder.0.self.v@0,0,0=inf", "choose a finite number"),
    ],
)
def test_edits_of_what_is_not_there(open_app, edits, words):
    app = open_app(PAGES[1], text=GOOD, edits=edits)
    assert not app.exception
    assert len(errors(app)) == 1
    assert words in errors(app)[0].replace("\\", "")
    assert len(app.success) == 1  # the step is shown all the same, without the edit
    app.button(key="edits.reset").click().run()
    assert not errors(app)


def test_edits_for_a_longer_text_are_left_out(open_app):
    app = open_app(PAGES[1], text=GOOD, edits="encoder.0.self.q@0,5,0=3")
    assert not errors(app)
    app.text_input(key="view.text").set_value("好").run()
    assert len(errors(app)) == 1
    assert any("do not fit here and are ignored" in caption.value for caption in app.caption)
    assert app.code  # the arithmetic of the new text


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "toy",
    [
        "bogus@1=3",
        "x@9,0,0=1",
        "encoder.0.self!t=0",
        "decoder.0.self.q@0,7,0=1",
        "x@0,0,0=1e39",
        "encoder.0.self.q@0,0,0=1e39",
        "encoder.0.self.q@0,0,0=inf",
    ],
)
def test_a_wrong_link_to_the_toy_leaves_a_way_back(open_app, toy):
    app = open_app("pages/learn/layer.py", material="toy", toy=toy)
    assert len(errors(app)) == 1
    assert app.success
    app.button(key="toy.reset").click().run()
    assert not errors(app)


def test_an_unreadable_list_of_edits_is_left_out(open_app):
    app = open_app(PAGES[1], text=GOOD, edits="); import os", toy="x@@")
    assert not app.exception
    assert sum("is left out" in info.value for info in app.info) == 2


@pytest.mark.sample(2)
@pytest.mark.parametrize("page", PAGES)
def test_places_that_do_not_exist(open_app, page):
    app = open_app(page, text=GOOD, site="cross", layer=77, head=77, query=400, step=999, position=555)
    assert not app.exception
    assert not errors(app)


@pytest.mark.sweep
def test_a_translation_without_an_end_says_that_it_was_cut(open_app):
    app = open_app(PAGES[0], text="他" * 120)
    assert any("Cut off" in caption.value for caption in app.caption)
    app.text_input(key="view.text").set_value(GOOD).run()
    assert not any("Cut off" in caption.value for caption in app.caption)


def test_an_edit_in_a_link_to_a_site_that_the_model_lacks(open_app):
    app = open_app(PAGES[0], text=GOOD, model="cloze", edits="encoder.0.self.v@0,1,0=3", site="cross")
    assert not app.exception
    assert not errors(app)
    assert any(caption.value == "After" for caption in app.caption)


HOSTILE = {
    "digits": dict(
        layer="0" * 9 + "9" * 5000,
        head="9" * 5000,
        query="9" * 5000,
        position="9" * 5000,
        step="9" * 5000,
        edits="encoder.0.self.q@" + "9" * 5000 + ",0,0=1",
        toy="x@0,0," + "9" * 5000 + "=1",
        hidden="9" * 5000,
        sampling="sampling,t" + "9" * 5000,
        branch="0:" + "9" * 5000,
        new="9" * 5000,
        dials="positions.pairs:1,1,1~qkv.seed:" + "9" * 40 + "~tokens.step:" + "9" * 40,
        run="train-" + "9" * 5000,
    ),
    "other scripts": dict(
        layer="٣",
        head="²",
        query="３",
        position="①",
        step="१",
        edits="encoder.0.self.q@٣,0,0=٣",
        toy="x@٣,0,0=1",
        hidden="٣",
        sampling="sampling,t٣",
        branch="٣:٣",
        new="²",
        dials="positions.pairs:٣",
        run="train-٣",
        lang="٣",
    ),
    "no numbers": dict(
        layer="nan",
        head="inf",
        query="None",
        position="",
        step="-1",
        edits="encoder.0.self.q@0,0,0=nan",
        toy="x@0,0,0=nan",
        hidden="-1",
        sampling="sampling,tnan",
        branch="nan:nan",
        new="1e3",
        part="None",
        lang="None",
        dials="positions.pairs:nan~qkv.seed:1_0~positions.pos:-1~masks.window:1e9~tokens.at:999999999",
    ),
    "as large as can be": dict(
        layer=99999,
        head=99999,
        query=99999,
        position=99999,
        step=99999,
        new=99999,
        hidden="9999,9998",
        edits="encoder.0.self!t=1e-38;encoder.0.self.k@0,0,0=3e38",
        toy="x@0,0,0=3e38",
        branch="9999999999:9999999",
        sampling="sampling,t2,k99999,p1,m1,r2,s2147483647",
        dials="positions.pairs:1,1,1~positions.pos:999999999~qkv.seed:999999999~tokens.step:999999999",
    ),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("links", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("page", [entry.file for entry in sitemap.PAGES.values()])
def test_no_link_is_our_mistake(open_app, page, links):
    app = open_app(page, text=GOOD, **links)
    assert not app.exception
    assert not any("our mistake" in error for error in errors(app))
    assert app.title


def test_pairs_that_come_twice_are_drawn_once(open_app):
    app = open_app("pages/learn/positions.py", text=GOOD, part="waves", dials="positions.pairs:1,1,1,5")
    assert not app.exception
    assert not errors(app)
    [chosen] = [box.value for box in app.multiselect if box.label == "Pairs of dimensions"]
    assert chosen == [1, 5]
