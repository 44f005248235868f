"""Weights of llama2.c, under the names of Meta's code, against `transformers` on what they were converted from."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("transformers")


from tests.checkpoints import folders
from tests.parity.against_transformers import same_numbers, theirs
from vizformer.checkpoints import load
from vizformer.errors import CheckpointError

NAMES = {"model.embed_tokens": "tok_embeddings", "model.norm": "norm", "lm_head": "output"}
INNER = {
    "input_layernorm": "attention_norm",
    "self_attn.q_proj": "attention.wq",
    "self_attn.k_proj": "attention.wk",
    "self_attn.v_proj": "attention.wv",
    "self_attn.o_proj": "attention.wo",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "feed_forward.w1",
    "mlp.down_proj": "feed_forward.w2",
    "mlp.up_proj": "feed_forward.w3",
}
SIZES = dict(hidden_size=48, intermediate_size=128, num_attention_heads=4, head_dim=12)
SAID = dict(dim=48, n_layers=3, n_heads=4, n_kv_heads=2, vocab_size=340, multiple_of=32, max_seq_len=64, dropout=0.0)


def neighbours(weights: torch.Tensor, heads: int) -> torch.Tensor:
    """The other way round than convert_llama_weights_to_hf.py: numbers m and m + d/2 of a head become neighbours."""
    return weights.view(heads, 2, -1, weights.shape[1]).transpose(1, 2).reshape(weights.shape)


def trained(folder: Path, said: dict[str, Any], **changes: Any) -> tuple[Path, Path]:
    """The folder in Hugging Face layout, and the same weights as llama2.c saves them in a training."""
    source, made = folders.llama(folder / "hf", **{**SIZES, **changes}), folder / "llama2.c"
    config = json.loads((source / "config.json").read_text())
    weights = {}
    for name, tensor in folders.tensors(source).items():
        module = name.removesuffix(".weight")
        number, __, inner = module.removeprefix("model.layers.").partition(".")
        new = NAMES.get(module) or f"layers.{number}.{INNER[inner]}"
        if new.endswith(".wq"):
            tensor = neighbours(tensor, config["num_attention_heads"])
        if new.endswith(".wk"):
            tensor = neighbours(tensor, config["num_key_value_heads"])
        weights[f"{new}.weight"] = tensor.contiguous()
    made.mkdir()
    told = {"learning_rate": 5e-4, **said}  # of the training: what is not the code's alone does not count
    torch.save({"model": weights, "config": told, "model_args": said, "iter_num": 3}, made / "ckpt.pt")
    shutil.copy(source / "tokenizer.json", made)
    return source, made


@pytest.mark.parametrize(
    ("changes", "more"),
    [
        ({}, {}),
        ({}, dict(vocab_size=None, hidden_dim=128, norm_eps=1e-6)),
        (dict(num_key_value_heads=4, tie_word_embeddings=True), dict(n_kv_heads=4)),
        (dict(num_key_value_heads=4), dict(n_kv_heads=None)),
        (dict(intermediate_size=160), dict(multiple_of=40)),
    ],
)
def test_the_numbers_are_those_of_the_converted_model(changes, more, tmp_path: Path) -> None:
    source, made = trained(tmp_path, {**SAID, **more}, **changes)
    ours = load(made, norm_eps=None if "norm_eps" in more else 1e-6)
    assert ours.model.config.max_positions == 64
    assert ours.report.family == "llama2.c"
    same_numbers(ours, theirs(source, "LlamaForCausalLM"))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (dict(dim=96), "dim is 96, and 48 in the tensors"),
        (dict(n_layers=2), "n_layers is 2, and 3 in the tensors"),
        (dict(n_kv_heads=4), r"n_kv_heads \* head_dim is 48, and 24 in the tensors"),
        (dict(vocab_size=7), "vocab_size is 7, and 340 in the tensors"),
        (dict(multiple_of=256), "ffn_dim is 256, and 128 in the tensors"),
        (dict(n_heads=96), r"n_heads \* head_dim is 0, and 48 in the tensors"),
        (dict(hidden_dim=96), "ffn_dim is 96, and 128 in the tensors"),
    ],
)
def test_fields_that_do_not_go_with_the_tensors(wrong, said, tmp_path: Path) -> None:
    __, made = trained(tmp_path, {**SAID, **wrong})
    with pytest.raises(CheckpointError, match=rf'"model_args" does not fit "ckpt\.pt": .*{said}'):
        load(made)


@pytest.mark.parametrize(
    "wrong",
    [
        *(dict(n_heads="four"), dict(n_heads=2**40), dict(multiple_of=0), dict(multiple_of=None), dict(rope_theta=5e5)),
        *(dict(moe={"num_experts": 8}), dict(use_scaled_rope=True), dict(dim=True), dict(dropout="0")),
    ],
    ids=str,
)
def test_fields_of_another_model_open_nothing(wrong: dict[str, Any], tmp_path: Path) -> None:
    __, made = trained(tmp_path, {**SAID, **wrong})
    with pytest.raises(CheckpointError, match="contains only weights"):
        load(made)


def test_what_meta_publishes_is_sent_to_its_converted_form(tmp_path: Path) -> None:
    """Fields in a file beside the weights, which may be slices of a model."""
    __, made = trained(tmp_path, SAID)
    weights = torch.load(made / "ckpt.pt", weights_only=True)["model"]
    torch.save(weights, made / "consolidated.00.pth")
    (made / "ckpt.pt").unlink()
    (made / "params.json").write_text(json.dumps(SAID))
    with pytest.raises(CheckpointError, match=r"contains only weights, .*save_pretrained"):
        load(made)
    torch.save(weights, made / "consolidated.01.pth")
    with pytest.raises(CheckpointError, match="holds several files of weights"):
        load(made)
