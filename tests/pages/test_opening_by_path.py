"""Models opened by their path on the page Model report: the box, the link, the list of recent ones, and for whom."""

import html
import json
import os
import re
import shutil
from pathlib import Path

import pytest
import torch

from tests.checkpoints import folders as made
from tests.checkpoints.test_state_dict import nano_gpt
from vizformer import checkpoints
from vizformer.checkpoints.files import hub as library
from vizformer.web.catalogue import local_paths, recents

ATTENTION, REPORT = "pages/explore/attention.py", "pages/checkpoint/report.py"
TEXT = "I have two dogs"
HERE = {"Host": "127.0.0.1:8501", "Origin": "http://127.0.0.1:8501"}
FAR = {**HERE, "X-Forwarded-For": "203.0.113.7"}
BOX = {"en-US": "Path on this computer", "zh-CN": "本机上的路径"}
OPEN = {"en-US": "Open this path", "zh-CN": "打开此路径"}
FORGET = {"en-US": "Forget these", "zh-CN": "清除记录"}


@pytest.fixture
def visit(monkeypatch, tmp_path):
    """`visit(headers)`: what the next runs' browser sends; it is on this computer."""

    def visit(headers):
        monkeypatch.setattr(local_paths, "_visitor", lambda: (None, headers))

    monkeypatch.setenv(local_paths.SWITCH, "on")
    monkeypatch.setenv(recents.VARIABLE, str(tmp_path / "state"))
    monkeypatch.setattr(library, "cached", lambda name: None)
    restart(monkeypatch)
    visit(HERE)
    return visit


def restart(monkeypatch):
    monkeypatch.setattr(local_paths, "_KNOWN", {})
    monkeypatch.setattr(recents, "_STORE", recents._Store())


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    return made.gpt2(tmp_path_factory.mktemp("secret-place") / "tiny-gpt2")


def said(app) -> str:
    """Everything on the page but what is in the box for paths."""
    shown = (*app.text, *app.caption, *app.markdown, *app.error, *app.info, *app.subheader, *app.get("html"))
    labels = [str(option) for box in app.selectbox for option in box.options] + [button.label for button in app.button]
    texts = [*(str(getattr(e, "value", None) or e.proto.body) for e in shown), *labels]
    return html.unescape("\n".join(texts)).replace("\\", "")


def press(app, label):
    next(button for button in app.button if button.label.replace("\\", "") == label).click().run()
    return app


def type_path(app, path, locale="en-US"):
    app.text_input(key="opening.path").set_value(str(path))
    return press(app, OPEN[locale])


def link(app) -> str:
    value = app.query_params["model"]
    return value[0] if isinstance(value, list) else value


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_a_folder_opens_by_its_path_on_every_page(open_app, visit, written, locale):
    app = open_app(REPORT, locale=locale)
    assert app.text_input(key="opening.path").label == BOX[locale]
    type_path(app, f'  "{written}/" ', locale)
    assert not app.exception
    assert not app.error
    assert "GPT2LMHeadModel" in said(app)
    assert app.text_input(key="opening.path").value == ""
    model = link(app)
    assert re.fullmatch("path/[0-9a-f]{12}", model)
    assert str(app.selectbox(key="view.model").value) == model
    assert (
        "tiny-gpt2: " + {"en-US": "continues a text", "zh-CN": "续写文本"}[locale]
        in app.selectbox(key="view.model").options
    )
    assert "secret-place" not in said(app)
    app.query_params["text"] = TEXT
    app.switch_page(ATTENTION).run()
    assert not app.error
    assert str(app.selectbox(key="view.model").value) == model
    other = open_app(ATTENTION, locale=locale, model=model, text=TEXT)  # another session of this computer
    assert not other.error
    assert any(one.startswith("tiny-gpt2: ") for one in other.selectbox(key="view.model").options)
    assert "secret-place" not in said(other)


@pytest.mark.parametrize(("page", "locale"), [(REPORT, "en-US"), (ATTENTION, "zh-CN")])
def test_a_link_opens_for_nobody_elsewhere(open_app, visit, written, page, locale):
    model = link(type_path(open_app(REPORT), written))
    visit(FAR)
    refused = []
    for name in (model, "path/0123456789ab"):
        app = open_app(page, locale=locale, model=name, text=TEXT)
        assert not app.exception
        refused.append(app.error[0].value)
        assert "GPT2LMHeadModel" not in said(app)
        assert "tiny-gpt2" not in said(app)
        assert "secret-place" not in said(app)
    assert refused[0] == refused[1]
    assert ("browser on the computer" if locale == "en-US" else "那台电脑的浏览器") in refused[0].replace("\\", "")


def test_who_comes_from_elsewhere_sees_no_box_and_no_list(open_app, visit, written, monkeypatch):
    type_path(open_app(REPORT), written)
    assert "tiny-gpt2" in said(open_app(REPORT))  # as a recent one, to a new session here
    visit(FAR)
    monkeypatch.setattr(recents, "_file", lambda: pytest.fail("the person's list was looked for"))
    app = open_app(REPORT)
    assert not app.exception
    assert not [box for box in app.text_input if box.key == "opening.path"]
    assert "tiny-gpt2" not in said(app)
    assert "Forget these" not in said(app)


def test_a_session_that_moves_away_loses_it(open_app, visit, written):
    """The same session, whose browser is connected in another way from now on."""
    app = type_path(open_app(REPORT), written)
    visit(FAR)
    app.run()
    assert not app.exception
    assert "GPT2LMHeadModel" not in said(app)
    assert not [box for box in app.text_input if box.key == "opening.path"]
    assert "browser on the computer" in app.error[0].value


def test_a_server_without_paths_has_no_box_and_no_file(open_app, visit, written, monkeypatch):
    type_path(open_app(REPORT), written)
    monkeypatch.delenv(local_paths.SWITCH)  # as `streamlit run app.py` starts it
    monkeypatch.setattr(recents, "_file", lambda: pytest.fail("the person's list was looked for"))
    app = open_app(REPORT)
    assert not app.exception
    assert [box.label for box in app.text_input] == ["Name on the hub"]
    assert "tiny-gpt2" not in said(app)


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_the_recent_ones_survive_and_are_forgotten(open_app, visit, written, monkeypatch, tmp_path, locale):
    model = link(type_path(open_app(REPORT), written))
    file = tmp_path / "state" / "opened.json"
    assert json.loads(file.read_text())["opened"][0]["name"] == str(written)
    restart(monkeypatch)
    app = open_app(REPORT, locale=locale, model=model)
    assert not app.error
    assert "GPT2LMHeadModel" in said(app)
    restart(monkeypatch)
    app = press(open_app(REPORT, locale=locale), "tiny-gpt2")
    assert not app.error
    assert link(app) == model
    assert "GPT2LMHeadModel" in said(app)
    app = press(open_app(REPORT, locale=locale), FORGET[locale])
    assert not file.exists()
    assert "tiny-gpt2" not in said(app)
    restart(monkeypatch)
    app = open_app(REPORT, locale=locale, model=model)
    assert ("Open the model by its path" if locale == "en-US" else "按路径打开该模型") in app.error[0].value
    assert app.text_input(key="opening.path").value == ""  # the way out is on the page


def test_a_recent_one_that_went_away_is_not_offered(open_app, visit, tmp_path, monkeypatch):
    folder = made.gpt2(tmp_path / "short-lived")
    model = link(type_path(open_app(REPORT), folder))
    shutil.move(folder, tmp_path / "elsewhere")
    assert "short-lived" not in said(open_app(REPORT))
    app = open_app(REPORT, model=model)
    assert "short-lived cannot be opened any more" in said(app)
    assert str(tmp_path) not in said(app)
    shutil.move(tmp_path / "elsewhere", folder)
    assert "short-lived" in said(open_app(REPORT))


def test_a_model_that_vanishes_while_it_is_read_is_said_without_its_path(open_app, visit, tmp_path, monkeypatch):
    folder = made.gpt2(tmp_path / "concealed_place" / "vanishing")
    inspect = checkpoints.inspect

    def too_late(source, **options):
        if tmp_path in Path(source).parents:  # the list of models looks at those that are bundled, too
            shutil.rmtree(source, ignore_errors=True)
        return inspect(source, **options)

    monkeypatch.setattr(checkpoints, "inspect", too_late)
    app = type_path(open_app(REPORT), folder)
    assert not app.exception
    assert "vanishing cannot be opened any more" in said(app)
    assert "concealed_place" not in said(app)


def test_two_of_one_name_are_told_apart(open_app, visit, tmp_path):
    app = open_app(REPORT)
    for place in ("a", "b"):
        type_path(app, made.gpt2(tmp_path / place / "twin"))
    first, second = (option for option in app.selectbox(key="view.model").options if option.startswith("twin"))
    assert first != second
    labels = {button.label.replace("\\", "") for button in open_app(REPORT).button}
    assert {"a/twin", "b/twin"} <= labels


def test_models_of_a_hub_are_on_the_list(open_app, visit, written, monkeypatch):
    monkeypatch.setattr(library, "cached", lambda name: written if name == "owner/tiny" else None)
    assert not open_app(REPORT, model="hub/owner/tiny").error
    app = press(open_app(REPORT), "owner/tiny")
    assert link(app) == "hub/owner/tiny"
    assert "GPT2LMHeadModel" in said(app)
    monkeypatch.setenv("VIZFORMER_HUB", "off")
    assert "owner/tiny" not in said(open_app(REPORT))


def test_bare_weights_keep_their_assumptions_on_the_list(open_app, visit, tmp_path):
    torch.save(nano_gpt(), tmp_path / "nano.pt")
    app = type_path(open_app(REPORT), tmp_path / "nano.pt")
    assert not app.exception
    assert "Questions about the weights" in said(app)
    app.selectbox(key=f"assume.{link(app)}.n_heads").set_value(4)
    app.selectbox(key=f"assume.{link(app)}.activation").set_value("gelu")
    press(app, "Open under these assumptions")
    assert not app.exception
    answered = link(app)
    assert re.fullmatch("path/[0-9a-f]{12};n_heads=4;activation=gelu", answered)
    assert "Parameters by part" in said(app)
    app = press(open_app(REPORT), "nano.pt")
    assert link(app) == answered
    assert "Parameters by part" in said(app)


def lay(folder, name, content=b""):
    shutil.copytree(folder, (copy := name.parent), dirs_exist_ok=True)
    name.unlink(missing_ok=True)
    if content is None:
        os.mkfifo(name)
    else:
        name.write_bytes(content)
    return copy


DAMAGED = [
    ("config.json", None, "is not a file"),
    ("config.json", b"{", "is not JSON"),
    ("config.json", b"[" * 100_000, "is not JSON"),
    ("config.json", b"<html>", "is a web page"),
    ("model.safetensors", None, "is not a file"),
    ("model.safetensors", b"", "cannot be read"),
    ("model.safetensors", b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"),
    ("vocab.json", b"{}", "vocab"),
]


def test_a_damaged_model_is_said_without_its_path(open_app, visit, written, tmp_path):
    app = open_app(REPORT)
    for number, (file, content, words) in enumerate(DAMAGED):
        if content is None and not hasattr(os, "mkfifo"):
            continue
        type_path(app, lay(written, tmp_path / "concealed_place" / f"broken{number}" / file, content))
        assert not app.exception
        assert words in said(app)
        assert "GPT2LMHeadModel" not in said(app)
        assert "concealed_place" not in said(app)


def test_a_file_that_may_not_be_read_is_said_without_its_path(open_app, visit, written, tmp_path, monkeypatch):
    folder = lay(written, tmp_path / "concealed_place" / "locked" / "notes.json")
    original = type(folder).open

    def locked(path, *arguments, **options):
        if path.name == "model.safetensors" and path.parent.name == "locked":
            raise PermissionError(13, "Permission denied", str(path))
        return original(path, *arguments, **options)

    monkeypatch.setattr(type(folder), "open", locked)
    app = type_path(open_app(REPORT), folder)
    assert not app.exception
    assert "may not read model.safetensors" in said(app)
    assert "concealed_place" not in said(app)


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_what_is_no_model_is_refused_and_stays_in_the_box(open_app, visit, tmp_path, locale):
    (tmp_path / "empty").mkdir()
    words = {
        "": "Type the path of",
        "models/x": "whole path",
        "/a\0b": "no path",
        "x" * 100_000: "no path",
        str(tmp_path / "empty"): "no model in this folder",
        str(tmp_path / "none"): "nothing at this path",
        "/": "no model in this folder",
        "/dev/zero": "neither a folder nor a file",
    }
    app = open_app(REPORT, locale=locale)
    for typed, expected in words.items():
        type_path(app, typed, locale)
        assert not app.exception
        assert len(app.error) == 1
        message = app.error[0].value.replace("\\", "")
        assert expected in message if locale == "en-US" else re.search("[一-鿿]", message)
        assert str(tmp_path) not in said(app)
        assert app.text_input(key="opening.path").value == typed[: local_paths.LONGEST + 1]
        assert str(app.selectbox(key="view.model").value) == "zh-en"
    app.run()
    assert not app.error


def test_a_link_says_no_path(open_app, visit):
    for model in ("path/", "path/../etc", "path//etc/passwd", "path/0123456789AB"):
        app = open_app(model=model)
        assert not app.exception
        app = app.switch_page(REPORT).run()
        assert str(app.selectbox(key="view.model").value) == "zh-en"
