"""LLaMA and what is built like it: RoPE, RMSNorm, a gated network.  A row for each model type that differs.

Source: Touvron et al. 2023, "LLaMA: Open and Efficient Foundation Language Models", and what stands above each row, with the
weights published with it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from vizformer.checkpoints.files.untrusted_folder import shown
from vizformer.checkpoints.hugging_face.family import (
    Export,
    Family,
    Options,
    flags,
    head,
    reading,
    relative,
    said,
    says_head,
    tied_to,
)
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.tensors.tensor_map import ACTIVATIONS, Part, attention, layers, linear
from vizformer.checkpoints.tokenizers.sentencepiece_files import sentencepiece_or_refuse
from vizformer.checkpoints.tokenizers.vocabularies import qwen
from vizformer.config import ModelConfig
from vizformer.messages import N_

# The fields that say how rotary positions turn: their base, and what slows them for longer texts.

TRAINED = "original_max_position_embeddings"
KINDS = {
    "default": set(),
    "linear": {"factor"},
    "llama3": {"factor", "low_freq_factor", "high_freq_factor", TRAINED},
}
PART = "partial_rotary_factor"

FULL, SLIDING = "full_attention", "sliding_attention"
MOST_LAYERS = 10_000  # that are listed one by one; no file is believed more
_NAMES = ("sliding_window", "use_sliding_window", "max_window_layers", "layer_types")


def rope(fields: Fields) -> Options:
    """Base and scaling.  `transformers` 5 writes both into rope_parameters; before, they stood beside rope_scaling."""
    name, said = table_of(fields)
    kind = said.get("rope_type", said.get("type", "default"))
    extra = set(said) - {"rope_theta", "rope_type", "type", PART} - KINDS.get(str(kind), set())
    if not isinstance(kind, str) or kind not in KINDS or extra:
        fields.refuse(
            name,
            "rotary positions with rope_type {kind}: VizFormer supports default, linear and llama3 with "
            "their own fields",
            kind=shown(kind),
        )
        return {"rope_theta": 10_000.0}
    inner = Fields(said, {})
    options: Options = {"rope_theta": _theta(fields, inner)}
    if kind != "default":
        options |= {"rope_scaling": kind, "rope_factor": inner.number("factor")}
    if kind == "llama3":
        options |= {
            "rope_low_turns": inner.number("low_freq_factor"),
            "rope_high_turns": inner.number("high_freq_factor"),
            "rope_trained_positions": _trained(fields, inner),
        }
    fields.problems += [N_("{field}: {problem}", field=name, problem=problem) for problem in inner.problems]
    return options


def _trained(fields: Fields, inner: Fields) -> int:
    """The length of the first training: the field outside of the table comes first, as in `transformers`.

    Source: `transformers`, RotaryEmbeddingConfigMixin.standardize_rope_params.
    """
    if TRAINED in fields.raw or TRAINED in fields.defaults:
        return fields.size(TRAINED)
    return inner.size(TRAINED) if TRAINED in inner.raw else fields.size("max_position_embeddings")


def all_are_turned(fields: Fields) -> None:
    """Refuses a partial rotation: the families that have none do not read the field."""
    name, said = table_of(fields)
    fields.only(PART, None, 1, 1.0)
    if said.get(PART, 1) not in (None, 1, 1.0):
        fields.refuse(name, "this family rotates all numbers of a head: partial_rotary_factor must be 1")


def of_texts(fields: Fields) -> None:
    """Takes from the table what counts places in pictures: the tokens of a text have one place, which turns all pairs."""
    name, said = table_of(fields)
    kept = {key: value for key, value in said.items() if key not in ("mrope_section", "mrope_interleaved")}
    if kept.get("rope_type", kept.get("type")) == "mrope":
        kept = {**kept, "rope_type": "default"}
    if kept != said:
        fields.raw[name] = kept


def _theta(fields: Fields, inner: Fields) -> float:
    """The base that the table `inner` says, or else the field that stood for it before there was one."""
    name = "rope_theta"
    if name not in inner.raw:
        return fields.number(name)
    if name in fields.raw and fields.value(name) != inner.raw[name]:
        fields.assume(
            "{field}={value} stands beside a table that says {field}={other}: the table is followed, as `transformers` does",
            field=name,
            value=shown(fields.raw[name]),
            other=shown(inner.raw[name]),
        )
    return inner.number(name)


def table_of(fields: Fields) -> tuple[str, dict[str, Any]]:
    """rope_scaling, the old name, or where that is empty rope_parameters; an empty table where there is no table.

    Source: `transformers`, RotaryEmbeddingConfigMixin.convert_rope_params_to_dict, which takes them in this order.
    """
    nested, scaling = fields.value("rope_parameters"), fields.value("rope_scaling")
    name, said = ("rope_scaling", scaling) if scaling or nested is None else ("rope_parameters", nested)
    if scaling and nested:
        fields.follow("rope_scaling", "rope_parameters")
    if said is None:
        return name, {}
    return name, said if isinstance(said, dict) else {"rope_type": None}


# The fields that say which layers of a decoder see only the latest keys.
def window(fields: Fields, n_layers: int, longest: int) -> Options:
    """The window and the layers that have it; neither where no text up to `longest` is longer than it.

    Query i sees the keys above i - sliding_window.  layer_types lists the layers that have it; where it is not given
    they are those from max_window_layers on (counted from 0), or all.
    use_sliding_window=false: none.  Of the four fields those count that the family has in `transformers`.

    Source: `transformers`, masking_utils.sliding_window_overlay and Qwen2Config; Jiang et al. 2023, "Mistral 7B",
    section 2.
    """
    for name in _NAMES:
        if name in fields.raw:
            _note_if_unread(fields, name)
    used = _said(fields, "use_sliding_window")
    if used not in (None, True, False) or type(used) is int:
        fields.refuse("use_sliding_window", "it must be true or false")
    none = used is False or (used is None and _said(fields, "sliding_window") is None)
    if none:
        if _listed(fields, n_layers):
            fields.refuse(
                "layer_types",
                "it names layers with a sliding window, which sliding_window or use_sliding_window switches off",
            )
        return {}
    size, layers = fields.size("sliding_window"), _windowed_layers(fields, n_layers)
    if not layers or size >= longest:
        return {}
    if n_layers > MOST_LAYERS:
        fields.refuse("num_hidden_layers", "supported are at most {limit} layers", limit=MOST_LAYERS)
        return {}
    return {"sliding_window": size, "sliding_layers": None if len(layers) == n_layers else tuple(layers)}


def _windowed_layers(fields: Fields, n_layers: int) -> Sequence[int]:
    """The layers that layer_types, or what stands for it, gives the window: see `window`."""
    listed = _listed(fields, n_layers)
    return _from(fields, n_layers) if listed is None else listed


def window_fields(config: ModelConfig) -> dict[str, Any]:
    """The fields sliding_window and layer_types of config.json, for families that read both."""
    kinds = [SLIDING if layer in config.windowed_layers else FULL for layer in range(config.n_decoder_layers)]
    return {"sliding_window": config.sliding_window, "layer_types": kinds}


def _listed(fields: Fields, n_layers: int) -> list[int] | None:
    """The layers that layer_types gives the window; None where there is no such list."""
    kinds = _said(fields, "layer_types")
    if kinds is None:
        return None
    if not isinstance(kinds, list) or any(kind not in (FULL, SLIDING) for kind in kinds):
        fields.refuse("layer_types", "supported are full_attention and sliding_attention")
        return []
    if len(kinds) != n_layers:
        fields.refuse("layer_types", "it must have an entry for each of the {n} layers", n=n_layers)
        return []
    return [layer for layer, kind in enumerate(kinds) if kind == SLIDING]


def _from(fields: Fields, n_layers: int) -> Sequence[int]:
    first = _said(fields, "max_window_layers")
    if first is None:
        return range(n_layers)
    if type(first) is not int or first < 0:
        fields.refuse("max_window_layers", "it must be a whole number, 0 or above")
        return ()
    return range(first, n_layers)


def _said(fields: Fields, name: str) -> Any:
    """The field, where `transformers` reads it for the family."""
    return fields.value(name) if name in fields.defaults else None


def _note_if_unread(fields: Fields, name: str) -> None:
    """A family reads its own fields of the four; its layers do without the others, whatever a cache makes of them."""
    if fields.value(name) is not None and name not in fields.defaults:
        fields.assume(
            "{field}={value} is ignored: the layers of this family have no such option in `transformers`",
            field=name,
            value=shown(fields.raw[name]),
        )


# What LLaMA and its relatives have in common: the names of fields and tensors, and the way back to config.json.
ATTENTION = attention("self_attn.{}_proj", "q k v")
OUT = {"self_attn.o_proj": ["self_attention.W_O"]}
FEEDFORWARD = {
    "mlp.gate_proj": ["feedforward.W_gate"],
    "mlp.up_proj": ["feedforward.W_in"],
    "mlp.down_proj": ["feedforward.W_out"],
}
NORMS = {"input_layernorm": ["self_norm"], "post_attention_layernorm": ["feedforward_norm"]}
QK_NORMS = {"self_attn.q_norm": ["self_attention.q_norm"], "self_attn.k_norm": ["self_attention.k_norm"]}
UNUSED = {
    r"(layers\.\d+\.self_attn\.)?rotary_emb\.inv_freq": N_(
        "the angles of the rotary positions: they follow from rope_theta"
    ),
    r"(score|classifier|qa_outputs)\..*": N_("the head of another task"),
}


def decoder(
    fields: Fields,
    names: Collection[str],
    *,
    eps: str = "rms_norm_eps",
) -> tuple[Options, bool]:
    """The options that all of them have, and whether there is a head for tokens; a family adds what is its own.

    `eps` is the field of the norms' epsilon.
    """
    vocab_size, width, heads = (fields.size(n) for n in ("vocab_size", "hidden_size", "num_attention_heads"))
    head_dim = _head_dim(fields, width, heads)
    all_are_turned(fields)
    tied = fields.flag("tie_word_embeddings")
    n_layers, longest = fields.size("num_hidden_layers"), fields.size("max_position_embeddings")
    has_head = tied or "lm_head.weight" in names or says_head(fields.architecture)
    return dict(
        vocab_size=vocab_size,
        d_model=width,
        n_heads=heads,
        head_dim=head_dim,
        n_kv_heads=None if (n := fields.size("num_key_value_heads", otherwise=heads)) == heads else n,
        d_ff=fields.size("intermediate_size"),
        n_decoder_layers=n_layers,
        max_positions=longest,
        positions="rope",
        **rope(fields),
        **window(fields, n_layers, longest),
        norm_order="pre",
        norm="rms_norm",
        final_norm=True,
        norm_eps=fields.number(eps),
        feedforward="gated",
        activation=fields.choice("hidden_act", ACTIVATIONS),
        tied_unembedding=tied or not has_head,
        dropout=0.0,
        **fields.marks(vocab_size),
    ), has_head


def biases(fields: Fields, options: Options) -> Options:
    """What attention_bias and mlp_bias say, of families that have both."""
    attention, bias = fields.flag("attention_bias"), fields.flag("mlp_bias")
    return {"bias": bias, "attention_bias": "same" if attention is bias else "all" if attention else "none"}


def attention_bias(fields: Fields, options: Options) -> Options:
    """What attention_bias says, of families whose feed-forward networks have no biases."""
    return {"bias": False, "attention_bias": "all" if fields.flag("attention_bias") else "none"}


def _head_dim(fields: Fields, width: int, heads: int) -> int | None:
    if fields.value("head_dim") is None:
        return None
    head_dim = fields.size("head_dim")
    return None if head_dim * heads == width else head_dim


def tensors(
    config: ModelConfig,
    template: Mapping[str, Sequence[str]] | None = None,
) -> list[Part]:
    """What becomes of every tensor; which biases and norms there are, the options say.

    `template` stands for the modules of a layer where they are others: their names -> ours.
    """
    if template is None:
        template = {**NORMS, **ATTENTION, **OUT, **FEEDFORWARD, **(QK_NORMS if config.qk_norm else {})}
    return [
        Part("embed_tokens.weight", ("embedding.weight",)),
        *layers(
            template,
            "layers.{}",
            "decoder.layers.{}",
            config.n_decoder_layers,
            no_bias=[theirs for theirs, ours in template.items() if not _has_bias(config, ours[0])],
        ),
        *linear("norm", "decoder.final_norm", bias=config.norm == "layer_norm"),
        *head(config),
    ]


def _has_bias(config: ModelConfig, ours: str) -> bool:
    if ours.endswith("norm"):
        return config.norm == "layer_norm"
    if ours.startswith("feedforward."):
        return config.bias
    if not ours.startswith("self_attention."):
        return False
    return config.out_bias if ours.endswith("W_O") else config.qkv_bias


LIKE = Family(
    name="",
    types=(),
    prefix="model.",
    head="lm_head.",
    config=decoder,
    weights=tensors,
    ties=tied_to("embed_tokens.weight"),
    unused=UNUSED,
)  # what the relatives replace

FITS: dict[str, Collection[Any]] = dict(
    architecture=["decoder-only"],
    positions=["rope"],
    rope_scaling=["none", "linear", "llama3"],
    norm_order=["pre"],
    norm=["rms_norm"],
    final_norm=[True],
    feedforward=["gated"],
)
FIELDS = {
    "vocab_size": "vocab_size",
    "hidden_size": "d_model",
    "intermediate_size": "d_ff",
    "num_hidden_layers": "n_decoder_layers",
    "num_attention_heads": "n_heads",
    "num_key_value_heads": "kv_heads",
    "head_dim": "d_head",
    "hidden_act": "activation",
    "max_position_embeddings": "max_positions",
    "rms_norm_eps": "norm_eps",
    "rope_theta": "rope_theta",
    "attention_bias": "qkv_bias",
    "mlp_bias": "bias",
    "tie_word_embeddings": "tied_unembedding",
    "bos_token_id": "bos_id",
    "eos_token_id": "eos_id",
    "pad_token_id": "pad_id",
}
_SCALING = ("rope_scaling", "rope_factor", "rope_low_turns", "rope_high_turns", "rope_trained_positions")
WRITTEN = (*FIELDS.values(), "n_kv_heads", "head_dim", *_SCALING)


def export(config: ModelConfig, has_head: bool) -> dict[str, Any]:
    """config.json, as both `transformers` 4 and 5 read it."""
    return {
        "architectures": ["LlamaForCausalLM" if has_head else "LlamaModel"],
        **said(FIELDS, config),
        "tie_word_embeddings": config.tied_unembedding and has_head,
        "rope_scaling": _scaling(config),
    }


def _scaling(config: ModelConfig) -> dict[str, Any] | None:
    if config.rope_scaling == "none":
        return None
    said: dict[str, Any] = {"rope_type": config.rope_scaling, "factor": config.rope_factor}
    if config.rope_scaling == "llama3":
        said |= {
            "low_freq_factor": config.rope_low_turns,
            "high_freq_factor": config.rope_high_turns,
            "original_max_position_embeddings": config.rope_trained_positions,
        }
    return said


WINDOWED = {**FITS, "bias": [False], "attention_bias": ["same", "none"]}  # what Mistral and Ministral are written from
STARCODER_2 = {**NORMS, **ATTENTION, **OUT, "mlp.c_fc": ["feedforward.W_in"], "mlp.c_proj": ["feedforward.W_out"]}


def export_windowed(config: ModelConfig, has_head: bool) -> dict[str, Any]:
    """Writes the config of Mistral (all layers have the window) or of Ministral (it lists the layers that have it)."""
    said = export(config, has_head)
    in_all = config.sliding_layers is None
    kind = f"{'Mistral' if in_all else 'Ministral'}{'ForCausalLM' if has_head else 'Model'}"
    fields = {name: value for name, value in said.items() if name not in ("attention_bias", "mlp_bias")}
    windows = window_fields(config)
    return {**fields, "architectures": [kind], **({"sliding_window": config.sliding_window} if in_all else windows)}


def _of_texts(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    fields.raw.setdefault("tie_word_embeddings", False)  # which the model around it says
    name, said = table_of(fields)
    of_texts(fields)
    options, has_head = decoder(fields, names)
    pairs = (options["head_dim"] or options["d_model"] // options["n_heads"]) // 2
    sections = said.get("mrope_section", [16, 24, 24])
    if fields.kind != "qwen3_vl_text" and not (
        isinstance(sections, list) and all(type(n) is int for n in sections) and sum(sections) == pairs
    ):
        fields.refuse(name, "mrope_section: it must list whole numbers that sum to the pairs of a head, {n}", n=pairs)
    return options, has_head


LLAMA = relative(
    LIKE,
    "LLaMA",
    "llama iquestcoder",
    decoder,
    biases,
    tokenizer=sentencepiece_or_refuse,
    exports=(Export("llama", {**FITS, "attention_bias": ["same", "all", "none"]}, WRITTEN, export),),
)
FAMILIES: tuple[Family, ...] = (
    LLAMA,
    # A window in all layers, or in those that are listed.  Jiang et al. 2023, "Mistral 7B".
    replace(
        LLAMA,
        types=("mistral", "ministral"),
        config=reading(decoder, {"bias": False, "attention_bias": "same"}),
        exports=(
            Export("mistral", WINDOWED, (*WRITTEN, "sliding_window"), export_windowed),
            Export("ministral", WINDOWED, (*WRITTEN, "sliding_window", "sliding_layers"), export_windowed),
        ),
    ),
    # Biases for queries, keys and values alone (also of 2.5).  Yang et al. 2024, "Qwen2 Technical Report", section 2.2.
    relative(LIKE, "Qwen2", "qwen2", decoder, {"bias": False, "attention_bias": "qkv"}, tokenizer=qwen),
    # Norms of queries and keys, heads of a width of their own.  Yang et al. 2025, "Qwen3 Technical Report", section 2.
    relative(LIKE, "Qwen3", "qwen3", decoder, attention_bias, {"qk_norm": True}, tokenizer=qwen),
    # Their language models inside those for pictures and texts.  Wang et al. 2024, "Qwen2-VL"; Bai et al. 2025, "Qwen2.5-VL
    # Technical Report"; Qwen Team 2025, "Qwen3-VL Technical Report".
    relative(
        LIKE,
        "Qwen2",
        "qwen2_vl_text qwen2_5_vl_text",
        _of_texts,
        {"bias": False, "attention_bias": "qkv"},
        tokenizer=qwen,
    ),
    relative(LIKE, "Qwen3", "qwen3_vl_text", _of_texts, attention_bias, {"qk_norm": True}, tokenizer=qwen),
    # LayerNorm, biases, no gate.  Lozhkov et al. 2024, "StarCoder 2 and The Stack v2", section 6.
    relative(
        LIKE,
        "StarCoder2",
        "starcoder2",
        partial(decoder, eps="norm_epsilon"),
        {"norm": "layer_norm", "feedforward": "plain"},
        flags(bias="use_bias"),
        weights=partial(tensors, template=STARCODER_2),
    ),
)
