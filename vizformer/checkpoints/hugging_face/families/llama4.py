"""Llama 4's language model: experts whose inputs are weighed, one more that all tokens go through, layers without positions.

Its layers with rotary positions see chunks of the text, and in the others queries are multiplied by a number for their place
from some place on: up to the end of the first chunk, and to that place, both change nothing.  Longer texts are not accepted.

Source: Meta 2025, "The Llama 4 herd", and the weights published with it, as `transformers` has them.
"""

from collections.abc import Collection, Sequence
from functools import partial

import torch

from vizformer.checkpoints.hugging_face.experts_like import LAYER, MOST_EXPERTS, experts, network
from vizformer.checkpoints.hugging_face.family import Family, Options, relative
from vizformer.checkpoints.hugging_face.fields import LARGEST, Fields
from vizformer.checkpoints.hugging_face.llama_like import LIKE, attention_bias, decoder, tensors
from vizformer.checkpoints.hugging_face.missing_parameters import Made
from vizformer.checkpoints.hugging_face.rotary import GAIN, table_of
from vizformer.checkpoints.hugging_face.sliding_window import FULL, listed_layers, turning_in
from vizformer.checkpoints.tensors.tensor_map import Part, linear
from vizformer.config import ModelConfig

CHUNKED = "chunked_attention"


def _config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    n_layers, kinds = fields.size("num_hidden_layers"), fields.value("layer_types")
    turned = listed_layers(fields, n_layers)
    fields.raw.pop("layer_types", None)  # (it is read here: there are no windows)
    options, has_head = decoder(fields, names)
    reach = _reach(fields, kinds, n_layers, turned)
    if reach < options["max_positions"]:
        fields.assume(
            "texts up to {limit:,} tokens are accepted: from there on layers see chunks of the text, or multiply queries by "
            "a number for their place, which the model here does not do; config.json allows {longest:,}",
            limit=reach,
            longest=options["max_positions"],
        )
        options["max_positions"] = reach
    normed = fields.flag("use_qk_norm") and bool(turned)
    if normed and options.get(GAIN, 1.0) != 1:
        fields.refuse(
            table_of(fields)[0], "queries and keys are normalised after they are turned: yarn multiplies nothing there"
        )
    width, options = options["d_ff"], {**options, "d_ff": fields.size("intermediate_size_mlp")}
    found = experts(
        fields, options, names, number="num_local_experts", width="intermediate_size", renormalised=False,
        layers=_sparse(fields, n_layers),
    )  # fmt: skip
    mixture: Options = {
        "router_scores": "sigmoid",
        "expert_inputs_weighed": True,
        "d_shared_expert": width,
        "shared_expert_gate": False,
    }
    return {
        **options,
        **attention_bias("all")(fields, options),
        **turning_in(turned, options),
        "qk_norm": normed,
        "qk_norm_layers": None if not normed or len(turned) == n_layers else tuple(turned),
        **({**found, **mixture} if found else {}),
    }, has_head


def _reach(fields: Fields, kinds: object, n_layers: int, turned: Collection[int]) -> int:
    """Up to how many tokens all layers see the whole text, and no query is multiplied."""
    reach = LARGEST
    if kinds is not None and not (
        isinstance(kinds, list) and len(kinds) == n_layers and all(kind in (FULL, CHUNKED) for kind in kinds)
    ):
        fields.refuse("layer_types", "it must list full_attention or chunked_attention for each of the layers")
    elif CHUNKED in kinds if isinstance(kinds, list) else turned:
        reach = fields.size("attention_chunk_size")
    else:
        fields.ignore("attention_chunk_size")
    tuned, floor = fields.flag("attn_temperature_tuning"), fields.size("floor_scale")
    fields.ignore("attn_scale")
    if tuned and len(turned) < n_layers:
        if floor < 2:
            fields.refuse("floor_scale", "it must be above 1")
        reach = min(reach, max(floor - 1, 1))
    return reach


def _sparse(fields: Fields, n_layers: int) -> Sequence[int]:
    """The layers with experts: those of moe_layers, or every n-th one."""
    said, every = fields.value("moe_layers"), fields.size("interleave_moe_layer_step")
    if said is None:
        return range(every - 1, min(n_layers, MOST_EXPERTS), every)
    if not isinstance(said, list) or any(type(layer) is not int for layer in said):
        fields.refuse("moe_layers", "it must be a list of numbers of layers")
        return ()
    return sorted(set(range(min(n_layers, MOST_EXPERTS))).intersection(said))


def _weights(config: ModelConfig) -> list[Part]:
    parts = tensors(config, LAYER, neighbours=True)
    for index in range(config.n_decoder_layers):
        theirs, ours = f"layers.{index}.mlp", f"decoder.layers.{index}.feedforward"
        if not config.has_experts(index):
            parts += network(theirs, ours)
            continue
        each = [f"{ours}.experts.{e}" for e in range(config.n_experts or 0)]
        inner = tuple(f"{expert}.{name}.weight" for expert in each for name in ("W_gate", "W_in"))
        outer = tuple(f"{expert}.W_out.weight" for expert in each)
        parts += [
            *linear(f"{theirs}.router", f"{ours}.router", bias=False),
            Part(f"{theirs}.experts.gate_up_proj", inner, transposed=True, matrices=len(each)),
            Part(f"{theirs}.experts.down_proj", outer, transposed=True, matrices=len(each)),
            *network(f"{theirs}.shared_expert", f"{ours}.shared"),
        ]
    return parts


def _made(config: ModelConfig) -> Made:
    """The norms of queries and keys learn nothing; that of a turned query is the turned norm of it."""
    layers = [layer for layer in range(config.n_decoder_layers) if config.has_qk_norm(layer)]
    names = [f"decoder.layers.{layer}.self_attention.{x}_norm.weight" for layer in layers for x in "qk"]
    return dict.fromkeys(names, partial(torch.ones, config.d_head))


FAMILIES: tuple[Family, ...] = (
    relative(
        LIKE, "Llama 4", "llama4_text", _config, weights=_weights, made=_made, renamed={r"\.feed_forward\.": ".mlp."}
    ),
)
