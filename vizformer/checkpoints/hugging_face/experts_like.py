"""What LLaMA's relatives with experts have in common: the fields that describe these, and the names of their tensors.

Files have the matrices of each expert as tensors of their own (`experts.3.gate_proj.weight`) or, as `transformers` 5 holds
them in memory, those of all experts in one (`experts.gate_up_proj` [n_experts, 2 width, d_model]).
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from vizformer.checkpoints.hugging_face import llama_like
from vizformer.checkpoints.hugging_face.family import Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.llama_like import ATTENTION, NORMS, OUT, QK_NORMS, decoder, tensors
from vizformer.checkpoints.tensors.tensor_map import Part, linear
from vizformer.config import ModelConfig

MOST_EXPERTS = 50_000  # of all layers together; a file that says more is not believed
LAYER = {**NORMS, **ATTENTION, **OUT}
# The first names of Mixtral's tensors.
RENAMED = {
    r"\.block_sparse_moe\.e_score_correction_bias$": ".mlp.gate.e_score_correction_bias",
    r"\.block_sparse_moe\.": ".mlp.",
    r"\.experts\.(\d+)\.w1\.": r".experts.\1.gate_proj.",
    r"\.experts\.(\d+)\.w3\.": r".experts.\1.up_proj.",
    r"\.experts\.(\d+)\.w2\.": r".experts.\1.down_proj.",
}
_FUSED = re.compile(r"(?P<layer>.*)\.experts\.gate_up_proj")
_SINGLE = re.compile(r"(?P<layer>.*\.mlp)\.experts\.\d+\.\w+\.weight")


def experts(
    fields: Fields,
    options: Options,
    names: Collection[str],
    *,
    number: str = "num_experts",
    used: str = "num_experts_per_tok",
    width: str = "",
    renormalised: bool | None = None,
    none: bool = False,
    layers: Sequence[int] | None = None,
) -> Options:
    """The options of a mixture of experts, beside `options`.

    `number` is the field of how many there are, `used` that of how many a token goes through, `width` that of an expert's
    width (empty: they are as wide as d_ff).  `renormalised` says how the chosen ones are weighed (None: norm_topk_prob
    does), `none` whether the number may be 0, and `layers` which layers have experts (None: all).
    """
    k, weighs = fields.size(used), renormalised
    weighs = fields.flag("norm_topk_prob") if weighs is None else weighs
    d_expert = fields.size(width) if width else options["d_ff"]
    if none and fields.value(number) == 0 and type(fields.value(number)) is int:
        return {}
    n, depth = fields.size(number), options["n_decoder_layers"]
    sparse = range(depth) if layers is None else layers
    if k > n:
        fields.refuse(used, "it must not be above {field}", field=number)
    alone = bool(names) and not any(_FUSED.fullmatch(name) for name in names)
    # before a model of so many networks is thought of
    if n * len(sparse) > (min(len(names), MOST_EXPERTS) if alone else MOST_EXPERTS):
        fields.refuse(
            number, "the file of weights has fewer tensors than there would be experts, or these are too many"
        )
        return {}
    if not sparse:
        return {}
    return {
        "n_experts": n,
        "experts_per_token": k,
        "expert_weights": "renormalised" if weighs else "probabilities",
        "d_expert": None if d_expert == options["d_ff"] else d_expert,
        "expert_layers": None if len(sparse) == depth else tuple(sparse),
    }


def decoder_with_experts(
    fields: Fields, names: Collection[str], *, number: str = "num_experts", renormalised: bool | None = None
) -> tuple[Options, bool]:
    """What `decoder` reads, with experts in all layers."""
    options, has_head = decoder(fields, names)
    return {**options, **experts(fields, options, names, number=number, renormalised=renormalised)}, has_head


def qwen_experts(
    fields: Fields, options: Options, names: Collection[str], number: str, *, shared: bool = False
) -> Options:
    """Qwen's experts, in the layers that are listed; `shared`: and one that all tokens go through."""
    layers, width = sparse_layers(fields, options["n_decoder_layers"]), "moe_intermediate_size"
    wide = fields.size("shared_expert_intermediate_size") if shared else None
    found = experts(fields, options, names, number=number, width=width, none=True, layers=layers)
    return {**found, "d_shared_expert": wide} if found else {}


def sparse_layers(fields: Fields, n_layers: int) -> Sequence[int]:
    """The layers with experts: those whose number, counted from 1, decoder_sparse_step divides, but for mlp_only_layers.

    Source: `transformers`, Qwen2MoeDecoderLayer.
    """
    step, dense = fields.size("decoder_sparse_step"), fields.value("mlp_only_layers")
    if dense is not None and not (isinstance(dense, list) and all(type(layer) is int for layer in dense)):
        fields.refuse("mlp_only_layers", "it must be a list of numbers of layers")
        return ()
    if n_layers > MOST_EXPERTS:
        fields.refuse("num_hidden_layers", "supported are at most {limit} layers", limit=MOST_EXPERTS)
        return ()
    without = set(dense or ())
    return [layer for layer in range(n_layers) if (layer + 1) % step == 0 and layer not in without]


def dense_first(fields: Fields, n_layers: int) -> Sequence[int]:
    """The layers with experts: all but the first first_k_dense_replace."""
    first = fields.value("first_k_dense_replace")
    if type(first) is not int or first < 0:
        fields.refuse("first_k_dense_replace", "it must be a whole number, 0 or above")
        return ()
    return range(min(first, n_layers), n_layers)


def routed_experts(
    fields: Fields,
    options: Options,
    names: Collection[str],
    layers: Sequence[int],
    *,
    grouped: bool = True,
    renormalised: bool | None = None,
) -> Options:
    """DeepSeek-V3's: a sigmoid, groups, a correction, a factor; a shared expert that is added as it is.

    `grouped` says whether n_group is read, `renormalised` is that of `experts`.
    """
    width = "moe_intermediate_size"
    found = experts(
        fields, options, names, number="n_routed_experts", width=width, layers=layers, renormalised=renormalised
    )
    router: Options = {
        "router_scores": "sigmoid",
        "router_correction": True,
        "router_groups": fields.size("n_group") if grouped else 1,
        "router_groups_used": fields.size("topk_group") if grouped else 1,
        "expert_scale": fields.number("routed_scaling_factor"),
        "d_shared_expert": fields.size("n_shared_experts") * fields.size(width),
        "shared_expert_gate": False,
    }
    if not grouped:
        fields.ignore("n_group", "topk_group")
    if not found:
        return {}
    if found["experts_per_token"] * router["router_groups"] > router["router_groups_used"] * found["n_experts"]:
        fields.refuse("num_experts_per_tok", "the groups of topk_group have fewer experts together")
    return {**found, **router}


def weights(config: ModelConfig, layer: Mapping[str, Sequence[str]] = LAYER) -> list[Part]:
    """What becomes of every tensor, experts stored one by one; `layer` has the modules beside the feed-forward."""
    parts = tensors(config, {**layer, **(QK_NORMS if config.qk_norm else {})})
    for index in range(config.n_decoder_layers):
        theirs, ours = f"layers.{index}.mlp", f"decoder.layers.{index}.feedforward"
        if config.has_experts(index):
            parts += _mixture(config, theirs, ours)
        else:
            parts += network(theirs, ours)
    return parts


def _mixture(config: ModelConfig, theirs: str, ours: str) -> list[Part]:
    """The parts of one layer's router, experts and shared expert."""
    parts = linear(f"{theirs}.gate", f"{ours}.router", bias=False)
    if config.router_correction:
        parts.append(Part(f"{theirs}.gate.e_score_correction_bias", (f"{ours}.correction",)))
    for e in range(config.n_experts or 0):
        parts += network(f"{theirs}.experts.{e}", f"{ours}.experts.{e}")
    if config.d_shared_expert is not None:
        parts += network(f"{theirs}.shared_expert", f"{ours}.shared")
        if config.shared_expert_gate:
            parts += linear(f"{theirs}.shared_expert_gate", f"{ours}.shared_gate", bias=False)
    return parts


def network(theirs: str, ours: str) -> list[Part]:
    """The three matrices of a gated network."""
    names = {"gate_proj": "W_gate", "up_proj": "W_in", "down_proj": "W_out"}
    return [part for name, own in names.items() for part in linear(f"{theirs}.{name}", f"{ours}.{own}", bias=False)]


def as_stored(parts: list[Part], names: Collection[str]) -> list[Part]:
    """`parts` with the experts of a layer in two tensors, where the file has them so."""
    fused = {found["layer"] for name in names if (found := _FUSED.fullmatch(name))}
    if not fused:
        return parts
    kept: list[Part] = []
    inner: dict[str, list[str]] = {layer: [] for layer in fused}
    outer: dict[str, list[str]] = {layer: [] for layer in fused}
    for part in parts:
        found = _SINGLE.fullmatch(part.source)
        if found is None or found["layer"] not in fused:
            kept.append(part)
            continue
        (outer if part.source.endswith(".down_proj.weight") else inner)[found["layer"]] += part.targets
    for layer in sorted(fused):
        for name, targets, each in (("gate_up_proj", inner[layer], 2), ("down_proj", outer[layer], 1)):
            if targets:
                kept.append(Part(f"{layer}.experts.{name}", tuple(targets), matrices=len(targets) // each))
    return kept


LIKE = replace(llama_like.LIKE, config=decoder_with_experts, weights=weights, by_names=as_stored)
