"""Decoders of many families against `transformers`: the same layers, stored and named in as many ways."""

from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("transformers")

from tests.checkpoints import folders
from tests.parity.against_transformers import opened_and_same
from vizformer.checkpoints import Opened, load
from vizformer.checkpoints.tensors.report import describe
from vizformer.checkpoints.tensors.tensor_map import Part, neighbours_apart

LLAMA = dict(folders.DECODER, hidden_size=32)
GPT = dict(n_embd=32, n_head=4, n_layer=3, n_positions=64)
# model_type -> the name of its classes, that of its model with a head, the sizes of a small one.
KINDS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "starcoder2": ("Starcoder2", "ForCausalLM", LLAMA),
    "openai-gpt": ("OpenAIGPT", "LMHeadModel", GPT),
    "iquestcoder": ("Llama", "ForCausalLM", dict(LLAMA, head_dim=6)),
}
CONFIGS = {"iquestcoder": "IQuestCoder"}  # where it is called otherwise than the model
MARKS = dict(bos_token_id=1, eos_token_id=2, pad_token_id=0)


def written(kind: str, folder: Path, **changes: Any) -> Path:
    """A tiny folder of a family."""
    name, model, options = KINDS[kind]
    folders.write_metaspace(folder)
    rows = folders.vocabulary(folder)
    options = {**options, **MARKS, "vocab_size": rows}
    return folders.written(folder, f"{CONFIGS.get(kind, name)}Config", f"{name}{model}", options, changes)


def same(kind: str, folder: Path, **changes: Any) -> Opened:
    """Tokens, stream, maps, logits and 20 greedy tokens with cache; every tensor has its place."""
    opened = opened_and_same(written(kind, folder, **changes), "".join(KINDS[kind][:2]))
    assert isinstance(opened, Opened)
    assert {tensor.fate for tensor in opened.report.tensors} == {"used"}
    return opened


@pytest.mark.parametrize("kind", KINDS)
def test_decoders(kind: str, tmp_path: Path) -> None:
    opened = same(kind, tmp_path)
    assert opened.model.config.architecture == "decoder-only"
    assert describe(opened.report)


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", KINDS)
def test_decoders_whose_head_is_tied_otherwise(kind: str, tmp_path: Path) -> None:
    tied = load(written(kind, tmp_path / "usual")).model.config.tied_unembedding
    assert same(kind, tmp_path / "other", tie_word_embeddings=not tied).model.config.tied_unembedding is not tied


LINEAR = {"rope_type": "linear", "factor": 2.0, "rope_theta": 77.0}
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("starcoder2", dict(use_bias=False, sliding_window=4, hidden_act="gelu", norm_epsilon=1e-2)),
    ("openai-gpt", dict(afn="relu", layer_norm_epsilon=1e-2)),
    ("openai-gpt", dict(afn="silu")),
]


@pytest.mark.sample(2)
@pytest.mark.parametrize(("kind", "changes"), VARIANTS, ids=str)
def test_variants(kind: str, changes: dict[str, Any], tmp_path: Path) -> None:
    same(kind, tmp_path, **changes)


def test_neighbouring_numbers_go_apart_and_back() -> None:
    """Two heads of four numbers, which are turned in pairs (0, 1) and (2, 3)."""
    part = Part("q", ("q",), order=lambda: neighbours_apart(2, 4))
    stored = torch.arange(8.0)[:, None]
    found = part.split(stored, {"q": (8, 1)})
    assert found["q"][:, 0].tolist() == [0, 2, 1, 3, 4, 6, 5, 7]
    assert torch.equal(part.join(found), stored)
