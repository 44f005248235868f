"""References to models: what a link says, and that a model goes only to whom it belongs."""

import pytest

from tests.refs import ref, stamped
from vizformer.checkpoints.files import hub as library
from vizformer.errors import CheckpointError
from vizformer.web.catalogue import hub, sources
from vizformer.web.link.model_ref import ModelRef


@pytest.mark.parametrize(
    ("link", "source", "name", "revision"),
    [
        ("zh-en", "bundled", "zh-en", ""),
        ("train-0123456789", "training", "train-0123456789", ""),
        ("train-0123456789-12", "training", "train-0123456789-12", ""),
        ("train-0123456789@0", "training", "train-0123456789", "0"),
        ("train-0123456789-12@2000", "training", "train-0123456789-12", "2000"),
        ("models/tiny llama-2", "models", "tiny llama-2", ""),
        ("hub/owner/name", "hub", "owner/name", ""),
        ("hub/owner/name.x@main", "hub", "owner/name.x", "main"),
        ("hub/owner/name@refs/pr/1", "hub", "owner/name", "refs/pr/1"),
        ("hub/owner/name@" + 40 * "a", "hub", "owner/name", 40 * "a"),
        ("upload/0123456789abcdef", "upload", "0123456789abcdef", ""),
        ("path/0123456789ab", "path", "0123456789ab", ""),
        ("code/my_model", "code", "my_model", ""),
        ("code/my_model.small", "code", "my_model.small", ""),
    ],
)
def test_a_link_says_where_a_model_comes_from(link, source, name, revision):
    found = ModelRef.parse(link)
    assert found == ModelRef(source, name, revision)
    assert str(found) == link
    assert found.is_from_elsewhere == (source not in ("bundled", "training"))


@pytest.mark.parametrize("base", ["models/nano.pt", "hub/owner/name@main", "upload/0123456789abcdef"])
def test_answers_and_precision_belong_to_the_reference(base):
    found = ModelRef.parse(f"{base};n_heads=4;norm_eps=1e-06;dtype=bfloat16")
    assert found.answers == (("n_heads", "4"), ("norm_eps", "1e-06"))
    assert found.dtype == "bfloat16"
    assert str(found) == f"{base};n_heads=4;norm_eps=1e-06;dtype=bfloat16"
    assert str(found.files) == f"{base};n_heads=4;norm_eps=1e-06"
    assert str(found.base) == base
    assert str(found.under({"n_heads": 2})) == f"{base};n_heads=2;dtype=bfloat16"
    assert str(found.within("float16")) == f"{base};n_heads=4;norm_eps=1e-06;dtype=float16"


@pytest.mark.parametrize("packed", ["x", "q1Yqy", "____", "A" * 4000])
def test_a_link_that_mapped_tensors_is_read_and_refused(packed):
    found = ModelRef.parse(f"models/nano.pt;n_heads=4;mapping={packed};dtype=float16")
    assert (found.name, found.answers, found.dtype) == ("nano.pt", (("n_heads", "4"),), "float16")
    assert ModelRef.parse(str(found)) == found
    with pytest.raises(CheckpointError, match=r"which tensor of nano\.pt plays which role"):
        _ = found.given
    assert found.under({"n_heads": 2}).given == {"n_heads": "2"}
    assert not found.base.mapped


@pytest.mark.parametrize(
    "link",
    [
        "hub/",
        "hub/name",
        "train-0123456789@",
        "train-0123456789@-1",
        "train-0123456789@1234567",
        "train-0123456789@main",
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
        "training/x",
        "bundled/zh-en",
        "",
        "models/tiny@0123456789abcdef",
        "path/0123456789ab@0123456789abcdef",
    ],
)
def test_what_reads_like_no_reference_is_no_model(link):
    found = ModelRef.parse(link)
    assert (found.source, str(found)) == ("bundled", link)
    assert not sources.is_there(found)
    assert sources.stamped(found) == found
    with pytest.raises(CheckpointError, match="There is no model called"):
        sources.folder(found)


@pytest.mark.parametrize(
    "name", ["a/b", "a/b.c-d_e", "a/b@main", "a/b@refs/pr/3", "a", "a/b/c", "a b/c", "a/b@", "../b"]
)
def test_hub_names_are_those_of_the_library(name):
    assert (ModelRef.parse(f"hub/{name}").source == "hub") == library.is_name(name)


def test_a_hub_that_is_off_has_no_models(monkeypatch, tmp_path):
    monkeypatch.setattr(library, "cached", lambda name: tmp_path)
    (tmp_path / "config.json").write_text("{}")
    assert sources.folder(ref("hub/owner/here")) == tmp_path
    assert stamped("hub/owner/here").stamp
    monkeypatch.setenv(hub.SWITCH, "off")
    with pytest.raises(CheckpointError, match="opens no models from a hub"):
        sources.folder(ref("hub/owner/here"))
    assert not stamped("hub/owner/here").stamp
    with pytest.raises(CheckpointError, match="opens no models from a hub"):
        hub.start("owner/other")


def test_what_was_not_fetched_is_said(monkeypatch):
    monkeypatch.setattr(library, "cached", lambda name: None)
    with pytest.raises(CheckpointError, match=r"owner/none has not been fetched.*Model report"):
        sources.folder(ref("hub/owner/none"))


def test_an_upload_of_nobody_is_said():
    with pytest.raises(CheckpointError, match="only in the session that made it"):
        sources.folder(ref("upload/0123456789abcdef"))
