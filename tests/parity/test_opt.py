"""OPT folders against `transformers`, every parameter randomised."""

import json
from pathlib import Path

import pytest
import torch

pytest.importorskip("transformers")

from tests import tiny
from tests.checkpoints import folders
from tests.parity.against_transformers import opened_and_same
from vizformer.checkpoints import load, save
from vizformer.errors import CheckpointError

LM = "OPTForCausalLM"


def test_opt(tmp_path: Path) -> None:
    """Its position table has two rows that belong to no position; a text begins with </s>."""
    checkpoint = opened_and_same(folders.opt(tmp_path), LM)
    assert checkpoint.model.config.max_positions == 64
    stored = folders.tensors(tmp_path)["model.decoder.embed_positions.weight"]
    assert stored.shape[0] == 66
    tiny.assert_close(checkpoint.model.position_embedding.weight, stored[2:], 0.0)
    assert checkpoint.encode("x")[0].piece == "</s>"


@pytest.mark.parametrize(
    "changes",
    [
        dict(enable_bias=False, tie_word_embeddings=False),
        dict(do_layer_norm_before=False),
        dict(activation_function="gelu", _remove_final_layer_norm=True),
        dict(word_embed_proj_dim=6, do_layer_norm_before=False),
        dict(word_embed_proj_dim=6, tie_word_embeddings=False),
        dict(word_embed_proj_dim=24, _remove_final_layer_norm=True),
    ],
    ids=str,
)
@pytest.mark.sample(2)
def test_options(changes: dict[str, object], tmp_path: Path) -> None:
    opened_and_same(folders.opt(tmp_path, **changes), LM)


def test_a_projected_table_is_kept_in_our_own_format(tmp_path: Path) -> None:
    opened = load(folders.opt(tmp_path / "theirs", word_embed_proj_dim=6, do_layer_norm_before=False))
    save(opened, tmp_path / "ours", torch.float32)
    again = load(tmp_path / "ours")
    config = again.model.config
    assert (config.embedding_dim, config.embedding_projection, config.head) == (6, "tokens", "projection")
    assert again.key == opened.key
    assert again.report.parameters == opened.report.parameters
    tiny.assert_close(again.trace("The cats").logits, opened.trace("The cats").logits, 0.0)
    with pytest.raises(CheckpointError, match="embedding_projection='tokens'"):
        save(opened, tmp_path / "exported", layout="hugging-face")


@pytest.mark.parametrize("width", [7, 2**40])
def test_a_width_that_the_tables_do_not_have_is_refused(width: int, tmp_path: Path) -> None:
    opened = load(folders.opt(tmp_path / "theirs", word_embed_proj_dim=6))
    save(opened, tmp_path / "ours", torch.float32)
    for name, change in (
        ("theirs", lambda said: said.update(word_embed_proj_dim=width)),
        ("ours", lambda said: said["model"].update(embedding_dim=width)),
    ):
        path = tmp_path / name / "config.json"
        said = json.loads(path.read_text())
        change(said)
        path.write_text(json.dumps(said))
        with pytest.raises(CheckpointError):
            load(tmp_path / name)


def test_names_of_the_first_files(tmp_path: Path) -> None:
    """They begin with "decoder.", without "model."."""
    folder = folders.opt(tmp_path)
    new, weights = load(folder), folders.tensors(folder)
    folders.save_tensors(folder, {name.removeprefix("model."): tensor for name, tensor in weights.items()})
    assert load(folder).key == new.key


def test_a_tokenizer_without_a_start_mark(tmp_path: Path) -> None:
    folder = folders.opt(tmp_path)
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps({**settings, "add_bos_token": False}))
    assert opened_and_same(folder, LM).encode("x")[0].piece == "x"
