"""OPT folders against `transformers`, every parameter randomised."""

import json
from pathlib import Path

import pytest
import torch

pytest.importorskip("transformers")

from tests import tiny
from tests.checkpoints import folders
from tests.parity.against_transformers import opened_and_same, theirs
from vizformer.checkpoints import RecordedCheckpoint, load
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
    ],
    ids=str,
)
@pytest.mark.sample(2)
def test_options(changes: dict[str, object], tmp_path: Path) -> None:
    opened_and_same(folders.opt(tmp_path, **changes), LM)


def test_a_table_narrower_than_the_layers_is_recorded(tmp_path: Path) -> None:
    """As of the model of 350 million parameters."""
    folder = folders.opt(tmp_path, word_embed_proj_dim=6, do_layer_norm_before=False)
    opened, whole = load(folder), theirs(folder, LM)
    assert isinstance(opened, RecordedCheckpoint)
    assert "word_embed_proj_dim=6: supported is null / 16" in str(opened.report.assumptions[0])
    trace = opened.trace("The cats")
    ids = torch.tensor([[token.id for token in trace.tokens["decoder"]]])
    with torch.no_grad():
        out = whole(ids, output_attentions=True)
    tiny.assert_close(trace.logits, out.logits[0])
    for site, maps in zip(trace.sites, out.attentions, strict=True):
        tiny.assert_close(torch.stack([torch.as_tensor(trace[site].pattern(head)) for head in range(4)]), maps[0])


@pytest.mark.parametrize("width", [7, 2**40])
def test_a_width_that_the_tables_do_not_have_is_refused(width: int, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError):
        load(folders.change(folders.opt(tmp_path, word_embed_proj_dim=6), word_embed_proj_dim=width))


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
