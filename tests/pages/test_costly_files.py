"""Costly files on the pages: refused once, not on every run; a panic of a library leaves the page as any error does."""

import json
import shutil

import pytest

from tests import tiny
from tests.checkpoints import hostile
from tests.refs import ref
from vizformer.checkpoints import save
from vizformer.text import trial
from vizformer.web.catalogue import server_folder

ATTENTION, REPORT = "pages/explore/attention.py", "pages/checkpoint/report.py"


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """A server's folder with two models: a tokenizer that explodes, and one that panics at the letter q."""
    monkeypatch.setenv(server_folder.VARIABLE, str(tmp_path))
    save(tiny.checkpoint("decoder-only", n_decoder_layers=1), tmp_path / "panics")
    shutil.copytree(tmp_path / "panics", tmp_path / "explodes")
    file = tmp_path / "panics" / "tokenizer.json"
    table = {"type": "Precompiled", "precompiled_charsmap": hostile.damaged_charsmap("q")}
    file.write_text(json.dumps({**json.loads(file.read_text()), "normalizer": table}))
    explosive = hostile.tokenizer(hostile.TOKENIZERS["a decoder that multiplies"]())
    (tmp_path / "explodes" / "tokenizer.json").write_text(explosive)
    return tmp_path


def test_a_panic_leaves_the_page_with_a_sentence(open_app, shelf):
    app = open_app(ATTENTION, model="models/panics", text="abc")
    assert not app.exception
    assert not app.error
    app = open_app(ATTENTION, model="models/panics", text="quick")
    assert not app.exception
    assert any("cannot be split into tokens" in error.value for error in app.error)
    assert not any("our mistake" in error.value for error in app.error)
    app.selectbox(key="view.model").set_value(ref("zh-en")).run()
    assert not app.error


def test_a_refused_file_is_read_once(open_app, shelf, monkeypatch):
    looks = []
    look = trial.examine
    monkeypatch.setattr(trial, "examine", lambda *arguments: looks.append(arguments) or look(*arguments))
    for round in range(3):
        for page in (REPORT, ATTENTION):
            app = open_app(page, model="models/explodes", text="abc")
            assert not app.exception
            assert any("times as long in Replace" in error.value for error in app.error)
        if not round:
            looks.clear()  # a glance, the report and the model are each kept by themselves
    assert not looks
    (shelf / "explodes" / "tokenizer.json").write_text((shelf / "panics" / "tokenizer.json").read_text())
    app = open_app(ATTENTION, model="models/explodes", text="abc")
    assert not app.exception
    assert not app.error
