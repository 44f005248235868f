"""gpt-oss: a sink in every head, experts whose gates are cut off, every second layer with a window.

Source: OpenAI 2025, "gpt-oss-120b & gpt-oss-20b Model Card", section 2, and the weights published with it.
"""

from collections.abc import Collection

import torch
from torch import Tensor

from vizformer.checkpoints.hugging_face.experts_like import LAYER, experts
from vizformer.checkpoints.hugging_face.family import Family, Options, relative
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.llama_like import LIKE, attention_bias, decoder, tensors
from vizformer.checkpoints.tensors.tensor_map import Part, linear
from vizformer.config import ModelConfig


def _config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    if fields.raw.get("rope_parameters") is None and not fields.raw.get("rope_scaling"):
        usual = fields.defaults["rope_parameters"]  # a base that stands outside of it is followed
        fields.raw["rope_parameters"] = {name: value for name, value in usual.items() if name != "rope_theta"}
    if any(name.endswith("_blocks") for name in names):
        fields.refuse(
            "quantization_config",
            "the experts are stored in 4 bits (MXFP4): open the model in `transformers` with "
            "Mxfp4Config(dequantize=True), and save it again",
        )
    options, has_head = decoder(fields, names, windowed=lambda layer: layer % 2 == 0)
    fields.only("hidden_act", "silu")  # which the experts do not read
    fields.only("swiglu_alpha", 1.702)
    return {
        **options,
        **experts(fields, options, names, number="num_local_experts", renormalised=True),
        **attention_bias("all")(fields, options),
        "bias": True,
        "router_bias": True,
        "activation": "quick_gelu",
        "gate_limit": fields.number("swiglu_limit"),
        "sinks": True,
    }, has_head


def _weights(config: ModelConfig) -> list[Part]:
    """What becomes of every tensor: all experts of a layer are in one, their gates and inputs alternating."""
    parts, width = tensors(config, LAYER), config.expert_width
    for index in range(config.n_decoder_layers):
        theirs, ours = f"layers.{index}", f"decoder.layers.{index}"
        parts.append(Part(f"{theirs}.self_attn.sinks", (f"{ours}.self_attention.sinks",)))
        parts += linear(f"{theirs}.mlp.router", f"{ours}.feedforward.router")
        each = [f"{ours}.feedforward.experts.{e}" for e in range(config.n_experts or 0)]
        for kind, ending in (("weight", ""), ("bias", "_bias")):
            inner = tuple(f"{expert}.{name}.{kind}" for expert in each for name in ("W_gate", "W_in"))
            outer, turned = tuple(f"{expert}.W_out.{kind}" for expert in each), kind == "weight"
            place = f"{theirs}.mlp.experts"

            def order(n: int = len(each)) -> Tensor:
                return _gates_first(n, width)

            parts.append(Part(f"{place}.gate_up_proj{ending}", inner, turned, matrices=len(each), order=order))
            parts.append(Part(f"{place}.down_proj{ending}", outer, turned, matrices=len(each)))
    return parts


def _gates_first(n_experts: int, width: int) -> Tensor:
    """Of the rows gate 0, input 0, gate 1, input 1, ... of each expert, all gates and then all inputs."""
    one = torch.arange(2 * width).reshape(width, 2).T.flatten()  # [2 width]
    return (torch.arange(n_experts)[:, None] * 2 * width + one).flatten()  # [n_experts * 2 width]


FAMILIES: tuple[Family, ...] = (relative(LIKE, "gpt-oss", "gpt_oss", _config, weights=_weights),)
