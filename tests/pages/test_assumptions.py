"""What weights leave open is said beside every picture of the model."""

import html

import pytest
import torch

from tests.checkpoints.test_state_dict import nano_gpt
from tests.refs import ref
from vizformer.web.catalogue import server_folder
from vizformer.web.widgets import chart

ATTENTION, SIDE = "pages/explore/attention.py", "pages/explore/side_by_side.py"
HEADS = "pages/checkpoint/head_report.py"
MODEL = "models/open.pt;n_heads=4;activation=gelu"
SAID = "models/said.pt;activation=gelu"


@pytest.fixture(autouse=True)
def shelf(tmp_path, monkeypatch):
    torch.save(nano_gpt(), tmp_path / "open.pt")
    torch.save({"model": nano_gpt(), "model_args": {"n_head": 4}}, tmp_path / "said.pt")
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
    app = open_app(ATTENTION, model=SAID, text="3 14 7 9")
    assert not app.error
    line = next(c.value for c in app.caption if "assumptions" in c.value).replace("\\", "").replace("\u2060", "")
    assert "norm_eps = 1e-05" in line
    assert "activation = gelu" in line
    assert "n_heads" not in line


def test_the_model_beside_says_it_too(open_app):
    app = open_app(SIDE, model=SAID, text="3 14 7 9", other=MODEL)
    lines = [c.value for c in app.caption if "computed under these assumptions" in c.value]
    assert len(lines) == 2


def test_captions_of_files_say_it(open_app, monkeypatch):
    found = []
    monkeypatch.setattr(chart, "take_away", lambda *pictures, **_: None)
    monkeypatch.setattr(
        "vizformer.web.widgets.head_downloads.caption", lambda *a, **k: found.append(chart.caption(*a, **k)) or ""
    )
    open_app(ATTENTION, model=MODEL, text="3 14 7 9")
    assert found
    assert all("computed under these assumptions: " in one and "n_heads = 4" in one for one in found)


def test_links_of_before_say_what_a_text_had_decided():
    link = "models/open.pt;n_heads=4;activation=gelu"
    assert str(ref(f"{link};settled=n_heads.activation")) == link
