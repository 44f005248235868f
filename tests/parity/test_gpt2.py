"""GPT-2 folders against the GPT-2 of `transformers`, every parameter randomised."""

from pathlib import Path

import pytest

pytest.importorskip("transformers")

from tests.checkpoints import folders
from tests.parity.against_transformers import opened_and_same, same_numbers, theirs
from vizformer.checkpoints import load

LM = "GPT2LMHeadModel"


def test_gpt2(tmp_path: Path) -> None:
    checkpoint = opened_and_same(folders.gpt2(tmp_path), LM)
    assert checkpoint.model.config.architecture == "decoder-only"


@pytest.mark.parametrize(
    "changes",
    [
        dict(tie_word_embeddings=False),
        dict(n_inner=None),
        dict(activation_function="relu", layer_norm_epsilon=1e-2),
        dict(activation_function="quick_gelu"),
        dict(n_head=1, n_layer=1),
    ],
    ids=str,
)
@pytest.mark.sample(2)
def test_options(changes: dict[str, object], tmp_path: Path) -> None:
    opened_and_same(folders.gpt2(tmp_path, **changes), LM)


def test_a_file_without_prefix_and_with_old_buffers(tmp_path: Path) -> None:
    """As the first GPT-2 files: the body alone, with the causal mask among the weights."""
    import torch

    folder = folders.gpt2(tmp_path)
    weights = {name.removeprefix("transformer."): tensor for name, tensor in folders.tensors(folder).items()}
    for layer in range(3):
        weights[f"h.{layer}.attn.bias"] = torch.ones(64, 64, dtype=torch.uint8).tril()[None, None]
        weights[f"h.{layer}.attn.masked_bias"] = torch.tensor(-1e4)
    folders.save_tensors(folder, weights)
    checkpoint = load(folder)
    same_numbers(checkpoint, theirs(folder, LM))
    report = checkpoint.report
    assert [tensor.name for tensor in report.with_fate("unused")] == [
        f"h.{layer}.attn.{name}" for layer in range(3) for name in ("bias", "masked_bias")
    ]
    assert all(tensor.note is not None for tensor in report.with_fate("unused"))


def test_an_unembedding_that_repeats_the_embedding(tmp_path: Path) -> None:
    folder = folders.gpt2(tmp_path)
    weights = folders.tensors(folder)
    folders.save_tensors(folder, {**weights, "lm_head.weight": weights["transformer.wte.weight"].clone()})
    (tied,) = load(folder).report.with_fate("tied")
    assert tied.name == "lm_head.weight"
