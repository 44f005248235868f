"""Opening models on the page Model report: by upload and by hub name, in the session they belong to."""

import html
import io
import threading
import zipfile
from types import SimpleNamespace

import pytest
import torch

from tests.checkpoints import folders as made
from tests.checkpoints.test_state_dict import nano_gpt
from tests.refs import ref
from vizformer.checkpoints.files import hub as library
from vizformer.errors import CheckpointError
from vizformer.messages import N_
from vizformer.web.catalogue import hub, uploads

ATTENTION, REPORT = "pages/explore/attention.py", "pages/checkpoint/report.py"
TEXT = "I have two dogs"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    return made.gpt2(tmp_path_factory.mktemp("made") / "tiny-gpt2")


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """Nothing is fetched in these tests but what they put there."""
    monkeypatch.setattr(hub, "_DESK", hub._Desk())
    monkeypatch.setattr(library, "cached", lambda name: None)
    monkeypatch.setattr(library, "fetch", lambda *_: pytest.fail("something was fetched"))


def said(app) -> str:
    shown = (*app.text, *app.caption, *app.markdown, *app.error, *app.info, *app.subheader, *app.get("html"))
    return html.unescape("\n".join(str(getattr(e, "value", None) or e.proto.body) for e in shown))


def press(app, label):
    next(button for button in app.button if button.label == label).click().run()
    return app


def upload(app, files):
    """Puts files where the widget would, for the session of `app`, and chooses the model."""
    kept = uploads.Kept()
    model = f"upload/{kept.add(files, uploads.limit())}"
    app.session_state["vizformer.uploads"] = kept
    app.query_params["model"] = model
    return model


@pytest.mark.parametrize(
    ("variables", "shown"),
    [
        ({}, ["Name on the hub", "Files of a model, or one zip: drop them here"]),
        ({"VIZFORMER_HUB": "off"}, ["Files of a model, or one zip: drop them here"]),
        ({"VIZFORMER_UPLOADS": "off"}, ["Name on the hub"]),
        ({"VIZFORMER_HUB": "off", "VIZFORMER_UPLOADS": "off"}, []),
    ],
)
def test_the_ways_that_this_server_has(open_app, monkeypatch, variables, shown):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    app = open_app(REPORT)
    assert not app.exception
    assert [box.label for box in (*app.text_input, *app.file_uploader)] == shown
    assert ("Open another model" in [box.label for box in app.expander]) == bool(shown)


def test_limits_are_stated(open_app, monkeypatch):
    monkeypatch.setenv(uploads.LIMIT, str(7 * 2**20))
    monkeypatch.setenv(hub.LIMIT, str(3 * 2**30))
    app = open_app(REPORT, locale="zh-CN")
    assert "7.0 MiB" in said(app)
    assert "3.0 GiB" in said(app)
    assert app.file_uploader[0].label == "模型的各个文件，或一个 zip：拖到这里"


@pytest.mark.parametrize("packed", [False, True])
def test_an_upload_opens_on_every_page_of_its_session_only(open_app, written, packed):
    if packed:
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            for path in written.iterdir():
                archive.write(path, f"tiny-gpt2/{path.name}")
        files = [("mine.zip", content)]
    else:
        files = [(path.name, io.BytesIO(path.read_bytes())) for path in written.iterdir()]
    app = open_app(REPORT)
    model = upload(app, files)
    app.run()
    assert not app.exception
    assert not app.error
    assert str(app.selectbox(key="view.model").value) == model
    assert "GPT2LMHeadModel" in said(app)
    title = f"{'tiny-gpt2' if packed else 'model'} · {model.removeprefix('upload/')[:4]}: continues a text"
    assert title in app.selectbox(key="view.model").options
    app.query_params["text"] = TEXT
    app.switch_page(ATTENTION).run()
    assert not app.error
    assert str(app.selectbox(key="view.model").value) == model
    assert "What comes next?" in said(app)
    app.selectbox(key="view.model").set_value(ref("stories")).run()
    assert title in app.selectbox(key="view.model").options

    other = open_app(REPORT, model=model)
    assert not other.exception
    assert "only in the session that made it" in other.error[0].value
    assert "GPT2LMHeadModel" not in said(other)
    name = title.partition(":")[0]
    assert not [one for one in other.selectbox(key="view.model").options if one.startswith(name)]
    other = open_app(ATTENTION, model=model, text=TEXT)
    assert "only in the session that made it" in other.error[0].value


def test_a_key_of_an_upload_opens_it_for_nobody_else(open_app, written):
    """The caches know it by its key; a link with the key must not reach them."""
    app = open_app(REPORT)
    model = upload(app, [(path.name, io.BytesIO(path.read_bytes())) for path in written.iterdir()])
    app.run()
    folder = app.session_state["vizformer.uploads"].uploads[model.removeprefix("upload/")].folder
    key = f"{model}@{uploads.stamp(folder)}"
    for page in (REPORT, ATTENTION):
        other = open_app(page, model=key, text=TEXT)
        assert not other.exception
        assert str(other.selectbox(key="view.model").value) == "zh-en"
        assert "GPT2LMHeadModel" not in said(other)


def test_bare_weights_that_are_uploaded_ask(open_app):
    content = io.BytesIO()
    torch.save(nano_gpt(), content)
    content.seek(0)
    app = open_app(REPORT)
    upload(app, [("nano.pt", content)])
    app.run()
    assert not app.exception
    assert "Questions about the weights" in said(app)


def test_a_model_of_the_hub_is_fetched_when_the_button_is_pressed(open_app, monkeypatch, written):
    go, begun, asked = threading.Event(), threading.Event(), []

    def fetch(name, progress, accept):
        accept(1000)
        progress.total, progress.done, progress.file = 1000, 500, "model.safetensors"
        asked.append(name)
        begun.set()
        assert go.wait(60)
        return written

    app = open_app(REPORT, model="hub/owner/tiny")
    assert "owner/tiny has not been fetched" in app.info[0].value.replace("\\", "")
    assert str(app.selectbox(key="view.model").value) == "hub/owner/tiny"
    assert asked == []
    monkeypatch.setattr(library, "fetch", fetch)
    press(app, r"Fetch owner\/tiny")
    assert begun.wait(60)
    app.run()
    assert "model.safetensors" in said(app)
    assert any(button.label == "Stop" for button in app.button)
    go.set()
    thread = next(t for t in threading.enumerate() if t.name == "fetch owner/tiny")
    thread.join(60)
    app.run()
    assert not app.exception
    assert not app.error
    assert "GPT2LMHeadModel" in said(app)
    assert app.query_params["model"] in ("hub/owner/tiny", ["hub/owner/tiny"])
    assert asked == ["owner/tiny"]
    other = open_app(ATTENTION, model="hub/owner/tiny", text=TEXT)  # it is there for all of this server
    assert not other.error
    assert "What comes next?" in said(other)


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_what_goes_wrong_is_said(open_app, monkeypatch, locale):
    def fetch(name, progress, accept):
        if name == "owner/large":
            accept(hub.limit() + 1)
        raise CheckpointError(
            N_(
                "There is no model {name} on the hub, or it is private. Check the spelling; for a "
                "private one set HF_TOKEN.",
                name=name,
            )
        )

    monkeypatch.setattr(library, "fetch", fetch)
    app = open_app(REPORT, locale=locale)
    button = "Fetch and open" if locale == "en-US" else "获取并打开"
    for name, words in (("owner/large", "4,096"), ("owner/none", "HF_TOKEN"), ("nonsense", "owner/name")):
        app.text_input(key="opening.hub").set_value(name)
        press(app, button)
        for thread in threading.enumerate():
            if thread.name == f"fetch {name}":
                thread.join(60)
        if not app.error:
            app.run()
        assert not app.exception
        assert words in app.error[0].value.replace("\\", "")
        app.run()
        assert not app.error


def test_one_who_leaves_does_not_stop_the_others(monkeypatch):
    who = ["a"]

    def fetch(name, progress, accept):
        assert progress.stop.wait(60)
        raise library.StoppedError(N_("The download was stopped. The part that has arrived is kept."))

    monkeypatch.setattr(library, "fetch", fetch)
    monkeypatch.setattr(hub.session_folders, "current", lambda: who[0])
    hub.start("owner/shared")
    download = hub.look("owner/shared")
    who[0] = "b"
    hub.start("owner/shared")
    assert hub.look("owner/shared") is download
    hub.leave("owner/shared")
    assert not download.progress.stop.is_set()
    hub.start("owner/second")
    with pytest.raises(CheckpointError, match="fetching 2 models already"):
        hub.start("owner/third")
    hub.leave("owner/second")
    who[0] = "a"
    hub.leave("owner/shared")
    assert download.progress.stop.is_set()
    for thread in threading.enumerate():
        if thread.name.startswith("fetch "):
            thread.join(60)
    assert download.done
    assert download.stopped


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_the_widget_hands_its_files_over_and_the_server_forgets_them(open_app, monkeypatch, written, locale):
    removed = []
    monkeypatch.setattr(uploads, "forget", removed.extend)
    button = "Upload and open" if locale == "en-US" else "上传并打开"
    app = open_app(REPORT, locale=locale)
    app.file_uploader[0].set_value([("config.json", b"{}", ""), ("run.py", b"x", "")])
    press(app, button)
    assert not app.exception
    assert "run.py" in app.error[0].value.replace("\\", "")
    assert str(app.selectbox(key="view.model").value) == "zh-en"
    assert len(removed) == 2
    assert not app.file_uploader[0].value
    app.file_uploader[0].set_value([(path.name, path.read_bytes(), "") for path in written.iterdir()])
    press(app, button)
    assert not app.exception
    assert not app.error
    assert "GPT2LMHeadModel" in said(app)
    assert len(removed) == 2 + len(list(written.iterdir()))
    assert str(app.selectbox(key="view.model").value).startswith("upload/")


def test_forgetting_takes_files_out_of_memory(monkeypatch):
    from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
    from streamlit.runtime.uploaded_file_manager import UploadedFileRec

    manager = MemoryUploadedFileManager("/upload")
    manager.add_file("me", UploadedFileRec("a", "x.bin", "", b"12345"))
    manager.add_file("other", UploadedFileRec("b", "x.bin", "", b"12345"))
    context = SimpleNamespace(uploaded_file_mgr=manager, session_id="me")
    monkeypatch.setattr(uploads, "get_script_run_ctx", lambda **_: context)
    uploads.forget(["a", "b"])
    assert manager.get_files("me", ["a"]) == []
    assert len(manager.get_files("other", ["b"])) == 1
