"""OPT folders against `transformers`, every parameter randomised."""

import json
from pathlib import Path

import pytest

pytest.importorskip("transformers")

from tests import tiny
from tests.checkpoints import folders
from tests.parity.against_transformers import opened_and_same
from vizformer.checkpoints import load

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
    ],
    ids=str,
)
def test_options(changes: dict[str, object], tmp_path: Path) -> None:
    opened_and_same(folders.opt(tmp_path, **changes), LM)


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
