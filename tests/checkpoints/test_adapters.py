"""Adapters (LoRA) beside the weights that they are added to: the model as its code computes it with them, or refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.testing import assert_close

pytest.importorskip("transformers")

from tests.checkpoints import folders
from tests.parity.against_transformers import theirs
from vizformer.checkpoints import RecordedCheckpoint, load
from vizformer.checkpoints.files import hub
from vizformer.errors import CheckpointError

IDS = [3, 7, 1, 22, 0, 9]
CONFIG: dict[str, Any] = dict(
    peft_type="LORA", r=2, lora_alpha=6, base_model_name_or_path="somebody/base", lora_dropout=0.1, inference_mode=True
)
LLAMA = [
    f"model.layers.{i}.{name}" for i in range(2) for name in ("self_attn.q_proj", "self_attn.o_proj", "mlp.up_proj")
]
GPT2 = [f"transformer.h.{i}.{name}" for i in range(2) for name in ("attn.c_attn", "attn.c_proj")]


def added(folder: Path, model: str, modules: list[str], scale: float = 3.0, **config: Any) -> nn.Module:
    """Writes an adapter into a folder; the model as `transformers` reads it, with hooks that add it."""
    module, generator = theirs(folder, model), torch.Generator().manual_seed(0)
    tensors: dict[str, Tensor] = {}
    for name in modules:
        own = module.get_submodule(name)
        out, width = own.weight.shape if isinstance(own, nn.Linear) else own.weight.shape[::-1]
        a, b = (torch.randn(shape, generator=generator) / 4 for shape in ((2, width), (out, 2)))
        own.register_forward_hook(lambda _, given, made, a=a, b=b: made + scale * (given[0] @ a.T) @ b.T)
        tensors |= {f"base_model.model.{name}.lora_A.weight": a, f"base_model.model.{name}.lora_B.weight": b}
    save_file(tensors, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text(json.dumps({**CONFIG, **config}))
    return module


def logits(module: nn.Module) -> Tensor:
    with torch.no_grad():
        found: Tensor = module(torch.tensor([IDS])).logits[0]
    return found


@pytest.mark.parametrize(
    ("write", "model", "modules", "fields", "config", "scale"),
    [
        (folders.llama, "LlamaForCausalLM", LLAMA, {}, {"target_modules": ["q_proj", "o_proj", "up_proj"]}, 3.0),
        (folders.llama, "LlamaForCausalLM", LLAMA[:1], {}, {"use_rslora": True}, 6 / 2**0.5),
        (folders.gpt2, "GPT2LMHeadModel", GPT2, {}, {"fan_in_fan_out": True}, 3.0),
        (folders.gpt2, "GPT2LMHeadModel", GPT2, {"scale_attn_by_inverse_layer_idx": True}, {}, 3.0),
    ],
    ids=["converted", "rank-stabilised", "turned", "recorded"],
)
def test_what_an_adapter_adds_is_added(
    tmp_path: Path,
    write: Callable[[Path], Path],
    model: str,
    modules: list[str],
    fields: dict[str, Any],
    config: dict[str, Any],
    scale: float,
) -> None:
    folder = folders.change(write(tmp_path), **fields)
    before = load(folder).trace(ids=IDS).logits
    module = added(folder, model, modules, scale, **config)
    opened = load(folder)
    assert isinstance(opened, RecordedCheckpoint) == bool(fields)
    found = opened.trace(ids=IDS).logits
    assert_close(found, logits(module), rtol=0, atol=1e-5)
    assert float((found - before).abs().max()) > 0.01
    said = " ".join(map(str, opened.report.assumptions))
    assert (
        f'by its own account for "somebody/base": VizFormer added its update to the weights (tensors: {len(modules)})'
        in said
    )


def test_a_tensor_that_was_trained_whole_takes_the_place_of_the_models(tmp_path: Path) -> None:
    folder = folders.llama(tmp_path)
    module = added(folder, "LlamaForCausalLM", LLAMA[:1], modules_to_save=["norm"])
    file, weight = folder / "adapter_model.safetensors", torch.linspace(0.5, 2.0, 16)
    save_file({**load_file(file), "base_model.model.model.norm.weight": weight}, file)
    module.model.norm.weight.data = weight
    assert_close(load(folder).trace(ids=IDS).logits, logits(module), rtol=0, atol=1e-5)


def changed(tensors: dict[str, Tensor], config: dict[str, Any], change: str) -> None:
    first = next(name for name in tensors if "lora_A" in name)
    if change == "a matrix alone":
        del tensors[first]
    elif change == "another model":
        tensors[first] = torch.zeros(2, 24)
    elif change == "another layer":
        tensors[first.replace("layers.0", "layers.77")] = tensors.pop(first)
    elif change == "no number":
        tensors[first][0, 0] = torch.nan
    elif change == "whole numbers":
        tensors[first] = torch.zeros(2, 16, dtype=torch.int8)
    elif change == "rank above the sides":
        tensors[first], other = torch.zeros(99, 16), first.replace("lora_A", "lora_B")
        tensors[other] = torch.zeros(16, 99)
        config["r"] = 99
    elif change == "empty":
        tensors.clear()
    elif change == "another tensor":
        tensors["base_model.model.model.norm.weight"] = torch.ones(16)
    else:
        config |= json.loads(change)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("a matrix alone", "lacks one of its two matrices"),
        ("another model", r"has shape \[16, 16\], but the adapter's matrices need \[16, 24\].*somebody/base"),
        ("another layer", "layers.77.* belongs to none of its tensors"),
        ("no number", "holds NaN or infinite"),
        ("whole numbers", "is stored as .i8"),
        ("rank above the sides", "the rank 99 of .* is above 16"),
        ("empty", "it is empty"),
        ("another tensor", "is not listed in modules_to_save"),
        ('{"r": 1000000000}', "has rank 2, adapter_config.json says 1000000000"),
        ('{"r": 1e12}', "r=1000000000000.0: it must be a number above 0"),
        ('{"lora_alpha": "6"}', 'lora_alpha="6": it must be a number'),
        ('{"lora_alpha": 1e8, "r": true}', "r=true: it must be a number"),
        ('{"peft_type": "IA3"}', 'peft_type="IA3": supported is "LORA"'),
        ('{"use_dora": true}', "use_dora.=true: this is not supported"),
        ('{"bias": "all"}', 'bias="all": this is not supported'),
        ('{"alpha_pattern": {"(a+)+$": 3}}', "alpha_pattern.=.*: this is not supported"),
        ('{"target_modules": ["q_proj", "k_proj"]}', "it has no matrices for .k_proj"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(tmp_path: Path, change: str, said: str) -> None:
    folder = folders.llama(tmp_path)
    added(folder, "LlamaForCausalLM", LLAMA[:1])
    file, config = folder / "adapter_model.safetensors", folder / "adapter_config.json"
    tensors, options = load_file(file), json.loads(config.read_text())
    changed(tensors, options, change)
    save_file(tensors, file)
    config.write_text(json.dumps(options))
    with pytest.raises(CheckpointError, match=said):
        load(folder)


def test_an_adapter_without_its_weights_and_one_without_its_model_are_refused(tmp_path: Path) -> None:
    folder = folders.llama(tmp_path / "both")
    added(folder, "LlamaForCausalLM", LLAMA[:1])
    alone = tmp_path / "alone"
    alone.mkdir()
    for name in ("adapter_config.json", "adapter_model.safetensors"):
        (alone / name).write_bytes((folder / name).read_bytes())
    with pytest.raises(
        CheckpointError, match=r'holds only what.*"somebody/base"\. Put adapter_config\.json and adapter_mo'
    ):
        load(alone)
    (folder / "adapter_model.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"lacks adapter_model\.safetensors, the adapter's own weights"):
        load(folder)
    files = ["config.json", "model.safetensors", "adapter_config.json", "adapter_model.safetensors"]
    assert {*files} <= {*hub.needed("a/b", files)}
