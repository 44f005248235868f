"""Models by their name on a hub, against a stand-in for it on loopback: only what is read is fetched, once."""

import pytest
import torch

from tests.checkpoints import folders as made
from tests.checkpoints.hub_stand_in import SHA, serve
from vizformer.checkpoints import load
from vizformer.checkpoints.files import hub
from vizformer.errors import CheckpointError

NAME = "somebody/tiny-gpt2"
CLUTTER = {"README.md": b"x", "tf_model.h5": b"x" * 5000, "pytorch_model.bin": b"x" * 5000, "onnx/model.onnx": b"x"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return made.gpt2(tmp_path_factory.mktemp("hub") / "gpt2")


@pytest.fixture
def endpoint(folder, tmp_path, monkeypatch):
    """A hub that has one model, and an empty cache."""
    from huggingface_hub import constants

    with serve(folder, NAME, extra=CLUTTER) as running:
        template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, running.url)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "ENDPOINT", running.url)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        yield running


def test_a_model_is_fetched_once_and_is_the_one_of_the_folder(endpoint, folder):
    assert hub.cached(NAME) is None
    progress, accepted = hub.Progress(), []
    path = hub.fetch(NAME, progress, accepted.append)
    opened, direct = load(NAME), load(folder)
    assert opened.name == NAME
    assert opened.report.family == direct.report.family
    ids = torch.tensor([[5, 6, 7]])
    torch.testing.assert_close(opened.model(ids), direct.model(ids), rtol=0, atol=0)
    fetched = [request.rsplit("/", 1)[1] for request in endpoint.asked if request.startswith("GET /some")]
    read = sorted({file.name for file in folder.iterdir()} - {"sizes.json"})
    assert sorted(fetched) == read  # none of the clutter, nothing twice
    assert accepted == [progress.total] == [sum(file.stat().st_size for file in path.iterdir())]
    assert progress.done == progress.total
    assert hub.cached(NAME) == hub.cached(f"{NAME}@{SHA}") == path
    files = sum("resolve" in request and request.startswith("GET") for request in endpoint.asked)
    hub.fetch(f"{NAME}@main")
    assert sum("resolve" in request and request.startswith("GET") for request in endpoint.asked) == files


def test_what_was_fetched_opens_without_a_hub(endpoint, monkeypatch):
    from huggingface_hub import constants

    hub.fetch(NAME)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")  # nobody listens there
    assert load(NAME).model.config.n_decoder_layers == 3
    with pytest.raises(CheckpointError, match="does not answer"):
        load("somebody/else")
    endpoint.asked.clear()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert load(NAME).model.config.n_decoder_layers == 3
    with pytest.raises(CheckpointError, match="HF_HUB_OFFLINE"):
        load("somebody/else")
    assert endpoint.asked == []


def test_a_size_that_is_not_accepted_fetches_nothing(endpoint):
    def refuse(size: int) -> None:
        raise CheckpointError(f"{size} bytes are too many")

    with pytest.raises(CheckpointError, match="too many"):
        hub.fetch(NAME, accept=refuse)
    assert not any("resolve" in request for request in endpoint.asked)


def test_a_download_can_be_stopped_and_goes_on_later(endpoint):
    progress = hub.Progress()
    progress.stop.set()
    with pytest.raises(hub.StoppedError):
        hub.fetch(NAME, progress)
    assert hub.cached(NAME) is None
    hub.fetch(NAME)
    assert hub.cached(NAME) is not None


@pytest.mark.parametrize(
    ("name", "mode", "said"),
    [
        ("somebody/else", "open", "no model somebody/else"),
        (NAME, "gone", "or it is private"),
        (NAME, "gated", "HF_TOKEN"),
        (f"{NAME}@nowhere", "open", "no such revision"),
    ],
)
def test_what_the_hub_refuses_is_said_with_the_way_out(endpoint, name, mode, said):
    endpoint.mode = mode
    with pytest.raises(CheckpointError, match=said):
        load(name)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (["README.md"], "no config.json"),
        (["model.gguf"], "GGUF"),
        (["config.json", "model.onnx"], "is an ONNX file"),
        (["config.json", "model.bin.zip"], "no weights"),
    ],
)
def test_repositories_without_a_model_that_is_read(files, said):
    with pytest.raises(CheckpointError, match=said):
        hub.needed("a/b", files)


def test_one_form_of_the_weights_is_chosen():
    shards = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "model.safetensors.index.json"]
    assert hub.needed("a/b", ["config.json", "pytorch_model.bin", *shards]) == [
        "config.json",
        "model.safetensors.index.json",
        *shards[:2],
    ]
    assert hub.needed("a/b", ["pytorch_model.bin", "config.json", "vocab.txt"])[-1] == "pytorch_model.bin"


def test_an_index_that_is_too_large_is_left_to_whoever_opens_it(tmp_path, monkeypatch):
    monkeypatch.setattr(hub, "JSON_LIMIT", 100)
    index = tmp_path / "model.safetensors.index.json"
    for length, whole in ((10, False), (200, True)):
        index.write_text(f'{{"weight_map": {{"{"a" * length}": "model-00001-of-00001.safetensors"}}}}')
        assert hub._whole(tmp_path) == whole


@pytest.mark.parametrize(
    "name", ["a", "a/b/c", "../b", "a/..", "/a/b", "a/b@", "a/b@../x", "a b/c", "x" * 97 + "/y", ""]
)
def test_names_that_are_none(name):
    assert not hub.is_name(name)
    with pytest.raises(CheckpointError):
        hub.fetch(name)
