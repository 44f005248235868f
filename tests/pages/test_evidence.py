"""What weights leave open: said beside every picture of the model, and decided by a text on the page Model report."""

import html
from io import BytesIO

import pytest
import torch

from tests.refs import ref, stamped, subject
from tests.trained_models import TEXT, weights
from vizformer.web.catalogue import model_cache, server_folder, uploads
from vizformer.web.widgets import downloads

ATTENTION, REPORT, SIDE = "pages/explore/attention.py", "pages/checkpoint/report.py", "pages/explore/side_by_side.py"
HEADS = "pages/checkpoint/head_report.py"
GIVEN = ";norm_order=pre;causal=true;scaled_embedding=false;norm_eps=1e-05"
MODEL = f"models/open.pt{GIVEN};score_scale=root_of_d_head"
DECIDED = f"models/open.pt{GIVEN};score_scale=root_of_d_model;settled=causal.scaled_embedding.score_scale"


@pytest.fixture(autouse=True)
def shelf(tmp_path, monkeypatch):
    torch.save(weights("attention_only"), tmp_path / "open.pt")
    monkeypatch.setenv(server_folder.VARIABLE, str(tmp_path))


def said(app) -> str:
    shown = (*app.text, *app.caption, *app.markdown, *app.error, *app.warning, *app.get("html"))
    return html.unescape("\n".join(str(getattr(e, "value", None) or e.proto.body) for e in shown))


@pytest.mark.parametrize(
    ("page", "locale", "words"),
    [
        (ATTENTION, "en-US", "open.pt is computed under these assumptions: "),
        (ATTENTION, "zh-CN", "open.pt 是在这些假定下计算的："),
        (HEADS, "en-US", "open.pt is computed under these assumptions: "),
        ("pages/explore/what_if.py", "en-US", "open.pt is computed under these assumptions: "),
        ("pages/learn/qkv.py", "en-US", "open.pt is computed under these assumptions: "),
    ],
)
def test_beside_every_picture(open_app, page, locale, words):
    app = open_app(page, locale=locale, model=MODEL, text="3 14 7 9")
    assert not app.exception
    assert words in said(app).replace("\\", "").replace("\u2060", "")


def test_nothing_is_said_where_nothing_is_assumed(open_app):
    app = open_app(ATTENTION, model="stories", text="Once upon a time")
    assert "assumptions" not in said(app)


def test_only_what_is_still_open_is_said(open_app):
    app = open_app(ATTENTION, model=DECIDED, text="3 14 7 9")
    assert not app.error
    line = next(c.value for c in app.caption if "assumptions" in c.value).replace("\\", "").replace("\u2060", "")
    assert "norm_eps = 1e-05" in line
    assert "causal" not in line
    assert "score_scale" not in line


def test_the_model_beside_says_it_too(open_app):
    app = open_app(SIDE, model=DECIDED, text="3 14 7 9", other=MODEL)
    lines = [c.value for c in app.caption if "computed under these assumptions" in c.value]
    assert len(lines) == 2


def test_captions_of_files_say_it(open_app, monkeypatch):
    found = []
    monkeypatch.setattr(downloads, "take_away", lambda *pictures, **_: None)
    monkeypatch.setattr(
        "vizformer.web.widgets.head_downloads.caption", lambda *a, **k: found.append(downloads.caption(*a, **k)) or ""
    )
    open_app(ATTENTION, model=MODEL, text="3 14 7 9")
    assert found
    assert all("computed under these assumptions: " in one and "causal = True" in one for one in found)


@pytest.mark.sweep
def test_a_text_decides_and_the_link_says_what(open_app, monkeypatch):
    monkeypatch.setattr(
        "vizformer.checkpoints.weighing.text_evidence.MOST_COMBINATIONS", 80
    )  # as many as one at a time needs
    app = open_app(REPORT, model=MODEL)
    app.text_area(key="evidence.text").set_value(TEXT).run()
    app.button(key="evidence.begin").click().run()
    for __ in range(600):
        if any(button.key == "evidence.take" for button in app.button):
            break
        app.run()
    assert not app.exception
    assert not app.error
    assert "combinations of answers, 1,650 tokens." in said(app)
    first = next(table.value for table in app.dataframe if "Nearest other answer" in table.value).iloc[0].tolist()
    assert first[0].startswith("Does the model predict this text better than counting")
    assert first[1:4] == ["Yes", "decided", "only counting the tokens"]
    app.button(key="evidence.take").click().run()
    assert not app.exception
    link = app.query_params["model"]
    link = link if isinstance(link, str) else link[0]
    assert ";score_scale=root_of_d_model;" in link
    assert "score_scale" in dict(ref(link).answers)["settled"].split(".")
    assert "score_scale" not in model_cache.report(stamped(link)).assumed
    assert "norm_eps" in model_cache.report(stamped(link)).assumed
    assert "decided by a text of the model's kind" in said(app)
    assert subject(link, "3 14 7").trace.logits.shape == (3, 23)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("3 14 7 9", "This text has 3 tokens"),
        ("3 " * 20_000 + "3", "40,001 characters; at most 20,000"),
        ("3 99", "99"),
    ],
)
def test_what_cannot_decide_gets_words(open_app, text, words):
    app = open_app(REPORT, model=MODEL)
    assert app.text_area(key="evidence.text").proto.max_chars == 0  # else a browser ignores, silently, what is longer
    app.text_area(key="evidence.text").set_value(text).run()
    app.button(key="evidence.begin").click().run()
    for __ in range(600):
        if app.error:
            break
        app.run()
    assert not app.exception
    assert words in said(app).replace("\\", "").replace("\u2060", "")
    assert app.metric[0].value  # the rest of the page stays


def test_a_text_is_weighed_for_an_upload_too(open_app, tmp_path):
    kept = uploads.Kept()
    name = kept.add([("open.pt", BytesIO((tmp_path / "open.pt").read_bytes()))], uploads.limit())
    app = open_app(REPORT)
    app.session_state["vizformer.uploads"] = kept
    app.query_params["model"] = f"upload/{name}{GIVEN};score_scale=root_of_d_head"
    app.run()
    app.text_area(key="evidence.text").set_value("3 14 7 9").run()
    app.button(key="evidence.begin").click().run()
    for __ in range(600):
        if app.error:
            break
        app.run()
    assert "This text has 3 tokens" in said(app)


def test_links_hold_the_names_of_all_that_is_decided():
    settled = ".".join(f"question_{letter * 8}" for letter in "abcdefghijklm")
    link = f"models/open.pt;n_heads=4;settled={settled}"
    assert str(ref(link)) == link
    assert dict(ref(link).answers)["settled"] == settled
