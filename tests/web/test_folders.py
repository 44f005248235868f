"""The server's folder of models: what is listed, what a link cannot reach, and keys that follow the files."""

import os

import pytest

from tests.refs import ref, stamped
from vizformer.errors import CheckpointError
from vizformer.web.catalogue import server_folder, sources


@pytest.fixture
def root(tmp_path, monkeypatch):
    root = tmp_path / "shelf"
    root.mkdir()
    monkeypatch.setenv(server_folder.VARIABLE, str(root))
    return root


def model(folder):
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    return folder


def test_every_subfolder_with_a_config_is_listed_under_a_name_without_a_path(root):
    for name in ("tiny", "Qwen2.5-0.5B", "两只猫"):
        model(root / name)
    (root / "empty").mkdir()
    model(root / "nested" / "below")
    assert tuple(map(str, server_folder.listed())) == ("models/Qwen2.5-0.5B", "models/tiny", "models/两只猫")
    assert sources.title(ref("models/tiny")) == sources.title(ref(stamped("models/tiny"))) == "tiny"
    assert sources.folder(ref("models/tiny")) == root / "tiny"


@pytest.mark.parametrize("name", [".hidden", "a;b", "a\nb", "a@b", "a`b", "<b>", "-rf", " a", "a ", "x" * 81])
def test_odd_names_are_not_listed(root, name):
    model(root / name)
    assert tuple(map(str, server_folder.listed())) == ()
    assert not sources.is_there(ref(f"models/{name}"))


def test_links_that_lead_out_are_not_listed(root, tmp_path):
    outside = model(tmp_path / "outside")
    try:
        (root / "out").symlink_to(outside)
        (root / "self").symlink_to(root)
        (root / "loop").symlink_to(root / "loop")
        (root / "config.json").write_text("{}")
        (root / "inside").symlink_to(model(root / "tiny"))
    except OSError:
        pytest.skip("no symbolic links here")
    assert tuple(map(str, server_folder.listed())) == ("models/inside", "models/tiny")


@pytest.mark.parametrize("name", ["models/..", "models/../outside", "models/tiny/..", "models//etc", "models/", "/etc"])
def test_a_link_reaches_nothing_else(root, tmp_path, name):
    model(root / "tiny")
    model(tmp_path / "outside")
    assert ref(name).source == "bundled"
    assert not sources.is_there(ref(name))
    assert stamped(name) == ref(name)


def test_a_key_follows_the_files(root):
    path = model(root / "tiny")
    first = stamped("models/tiny")
    assert (str(first), bool(first.stamp)) == ("models/tiny", True)
    assert stamped(first) == first == stamped("models/tiny")
    assert sources.folder(ref(first)) == path
    about = (path / "config.json").stat()
    os.utime(path / "config.json", ns=(about.st_atime_ns, about.st_mtime_ns + 1))
    assert (second := stamped("models/tiny")) != first
    (path / "model.safetensors").write_bytes(b"x")
    assert stamped("models/tiny") not in (first, second)
    with pytest.raises(CheckpointError, match="have changed"):
        sources.folder(ref(first))


def test_a_model_that_is_gone_is_said_without_its_path(root):
    with pytest.raises(CheckpointError, match="no longer on this server") as caught:
        sources.folder(ref("models/gone"))
    assert str(root) not in str(caught.value)


def test_no_folder_no_models(monkeypatch, tmp_path):
    monkeypatch.delenv(server_folder.VARIABLE, raising=False)
    assert server_folder.root() is None
    assert tuple(map(str, server_folder.listed())) == ()
    monkeypatch.setenv(server_folder.VARIABLE, str(tmp_path / "nothing"))
    assert tuple(map(str, server_folder.listed())) == ()
