"""What the files beside an encoder of sentences say of how its rows become one vector."""

import json

import pytest

from vizformer.checkpoints.hugging_face.sentence_vectors import sentence_pooling
from vizformer.errors import CheckpointError


def pooled_folder(tmp_path, said, modules=None):
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps(said), encoding="utf-8")
    if modules is not None:
        (tmp_path / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    return tmp_path


def test_what_the_files_say_of_pooling(tmp_path):
    assert sentence_pooling(tmp_path) is None
    said = {"word_embedding_dimension": 8, "pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
    modules = [{"type": f"sentence_transformers.models.{name}"} for name in ("Transformer", "Pooling", "Normalize")]
    assert sentence_pooling(pooled_folder(tmp_path, said, modules)) == "cls"


@pytest.mark.parametrize(
    ("said", "modules", "words"),
    [
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True}, None, "supported here is one of"),
        ({"pooling_mode_lasttoken": True}, None, "pooling_mode_lasttoken; supported here is one of"),
        ({}, None, "supported here is one of"),
        (
            {"pooling_mode_mean_tokens": True},
            [{"type": "sentence_transformers.models.Dense"}],
            r"models\.Dense\" after",
        ),
        ([], None, "contains .* instead of a JSON object"),
    ],
)
def test_what_is_not_computed_is_said(said, modules, words, tmp_path):
    with pytest.raises(CheckpointError, match=words):
        sentence_pooling(pooled_folder(tmp_path, said, modules))


def test_what_lies_in_the_cache_of_a_hub_is_read_through_its_links(tmp_path):
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshots" / "abc"
    blobs.mkdir()
    (snapshot / "1_Pooling").mkdir(parents=True)
    (blobs / "one").write_text(json.dumps({"pooling_mode_cls_token": True}), encoding="utf-8")
    (snapshot / "1_Pooling" / "config.json").symlink_to(blobs / "one")
    assert sentence_pooling(snapshot) == "cls"
    (tmp_path / "secret").write_text(json.dumps({"pooling_mode_cls_token": True}), encoding="utf-8")
    (snapshot / "1_Pooling" / "config.json").unlink()
    (snapshot / "1_Pooling" / "config.json").symlink_to(tmp_path / "secret")
    with pytest.raises(CheckpointError, match="leads out of"):
        sentence_pooling(snapshot)


def test_a_link_that_leads_out_is_not_followed(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "model").mkdir()
    pooled_folder(outside, {"pooling_mode_mean_tokens": True})
    (tmp_path / "model" / "1_Pooling").symlink_to(outside / "1_Pooling")
    assert sentence_pooling(tmp_path / "model") is None
