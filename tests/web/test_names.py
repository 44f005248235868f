"""Names of models from elsewhere: what they say, and that a model goes only to whom it belongs."""

import pytest

from vizformer.checkpoints.files import hub as library
from vizformer.errors import CheckpointError
from vizformer.web.catalogue import hub, model_reference

STAMP = "@0123456789abcdef"


@pytest.mark.parametrize(
    ("model", "place", "name"),
    [
        ("models/tiny llama-2", "models", "tiny llama-2"),
        ("hub/owner/name", "hub", "owner/name"),
        ("hub/owner/name.x@main", "hub", "owner/name.x@main"),
        ("hub/owner/name@refs/pr/1", "hub", "owner/name@refs/pr/1"),
        ("hub/owner/name@" + 40 * "a", "hub", "owner/name@" + 40 * "a"),
        ("upload/0123456789abcdef", "upload", "0123456789abcdef"),
    ],
)
def test_a_name_its_answers_and_its_stamp_come_apart(model, place, name):
    for answers in ("", ";n_heads=4;norm_eps=1e-06"):
        found = model_reference.parse(model + answers)
        assert found == model_reference.Name(place, name, answers, "")
        assert model_reference.base(model + answers) == found.base == model
        key = model_reference.parse(model + answers + STAMP)
        assert key == model_reference.Name(place, name, answers, STAMP[1:])
        assert model_reference.base(model + answers + STAMP) is None
    assert model_reference.answers(f"{model};n_heads=4") == {"n_heads": "4"}
    assert model_reference.under(f"{model};n_heads=4", {"n_heads": 2}) == f"{model};n_heads=2"


@pytest.mark.parametrize(
    "model",
    [
        "zh-en",
        "train-0123456789",
        "hub/",
        "hub/name",
        "hub/../etc",
        "hub/a/..",
        "hub/a/b/c",
        "hub//b",
        "hub/a/b@",
        "hub/a/b@../x",
        "hub/-a/b",
        "hub/a/b c",
        "upload/",
        "upload/xyz",
        "upload/../0123456789abcdef",
        "upload/0123",
        "upload/0123456789ABCDEF",
        "other/x",
        "/models/x",
        "models/x/y",
        "hub/a/b;n=1;",
    ],
)
def test_what_is_no_name(model):
    assert model_reference.parse(model) is None
    assert model_reference.folder(model) is None
    assert model_reference.key(model) == model
    assert not model_reference.is_there(model)


@pytest.mark.parametrize(
    "name", ["a/b", "a/b.c-d_e", "a/b@main", "a/b@refs/pr/3", "a", "a/b/c", "a b/c", "a/b@", "../b"]
)
def test_hub_names_are_those_of_the_library(name):
    assert model_reference.is_name(f"hub/{name}") == library.is_name(name)


def test_a_hub_that_is_off_has_no_models(monkeypatch, tmp_path):
    monkeypatch.setattr(library, "cached", lambda name: tmp_path)
    (tmp_path / "config.json").write_text("{}")
    assert model_reference.folder("hub/owner/here") == tmp_path
    assert model_reference.key("hub/owner/here").startswith("hub/owner/here@")
    monkeypatch.setenv(hub.SWITCH, "off")
    with pytest.raises(CheckpointError, match="opens no models from a hub"):
        model_reference.folder("hub/owner/here")
    assert model_reference.key("hub/owner/here") == "hub/owner/here"
    with pytest.raises(CheckpointError, match="opens no models from a hub"):
        hub.start("owner/other")


def test_what_was_not_fetched_is_said(monkeypatch):
    monkeypatch.setattr(library, "cached", lambda name: None)
    with pytest.raises(CheckpointError, match=r"owner/none has not been fetched.*Model report"):
        model_reference.folder("hub/owner/none")


def test_an_upload_of_nobody_is_said():
    with pytest.raises(CheckpointError, match="only in the session that made it"):
        model_reference.folder("upload/0123456789abcdef")
