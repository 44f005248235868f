"""The fields that say how rotary positions turn: their base, how many numbers, and what slows them for longer texts."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from vizformer.checkpoints.files.untrusted_folder import shown
from vizformer.checkpoints.hugging_face.family import Options
from vizformer.checkpoints.hugging_face.fields import LARGEST, Fields
from vizformer.checkpoints.hugging_face.sliding_window import FULL, SLIDING
from vizformer.checkpoints.tensors.tensor_map import Part, neighbours_apart
from vizformer.config import ModelConfig
from vizformer.messages import N_

TRAINED = "original_max_position_embeddings"
KINDS = {
    "default": set(),
    "linear": {"factor"},
    "llama3": {"factor", "low_freq_factor", "high_freq_factor", TRAINED},
    "yarn": {"factor", "beta_fast", "beta_slow", "attention_factor", "mscale", "mscale_all_dim", "truncate", TRAINED},
    "dynamic": {"factor"},
    "longrope": {"factor", "attention_factor", "short_factor", "long_factor", TRAINED},
}
# No options: what queries and keys are multiplied by beside being turned, whether a long text has a base of its own, and
# the longest text that turns as is written; see `gained`.
GAIN, DYNAMIC, REACH = "rope_gain", "rope_dynamic", "rope_reach"
PART = "partial_rotary_factor"


def rope(fields: Fields, old_theta: str = "rope_theta") -> Options:
    """Base and scaling.  `transformers` 5 writes both into rope_parameters; before, they stood beside rope_scaling.

    `old_theta` is what the base is called outside of rope_parameters.
    """
    name, said = table_of(fields)
    return _scaled(fields, name, said, old_theta, lambda inner: _trained(fields, inner))


def rope_of_layer_types(
    fields: Fields,
    sliding: Sequence[int],
    *,
    old_local: str | None = None,
    local: float = 0.0,
    old_theta: str = "rope_theta",
) -> Options:
    """Base and scaling of layers with full attention, and the base of those with a sliding window, `sliding`.

    rope_parameters has a table for each of the two.  Before version 5 of `transformers` they were `old_theta` with
    rope_scaling, and `old_local` (None: there was no such field, and the base is `local`).

    Source: `transformers`, Gemma3TextConfig.convert_rope_params_to_dict.
    """
    nested, scaling = fields.value("rope_parameters"), fields.value("rope_scaling")
    tables = {} if nested is None else nested
    known = isinstance(tables, dict) and not set(tables) - {FULL, SLIDING}
    if not known or not all(isinstance(one, dict | None) for one in (*tables.values(), scaling)):
        fields.refuse("rope_parameters", "it must have a table for full_attention and one for sliding_attention")
        return {"rope_theta": 10_000.0}
    if scaling is not None and nested is not None and not tables.get(FULL):
        fields.refuse("rope_scaling", "rope_parameters has no table for full_attention that it would go into")
    full, near = {**(tables.get(FULL) or {}), **(scaling or {})}, tables.get(SLIDING) or {}
    longest = fields.size("max_position_embeddings")
    name = "rope_parameters" if scaling is None else "rope_scaling"
    options = _scaled(
        fields, name, full, old_theta, lambda inner: inner.size(TRAINED) if TRAINED in inner.raw else longest
    )
    if (
        set(near) - {"rope_theta", "rope_type", "type"}
        or near.get("rope_type", near.get("type", "default")) != "default"
    ):
        fields.refuse("rope_parameters", "sliding_attention: supported are rotary positions as they are (default)")
    if REACH in options:
        fields.refuse(name, "longrope is not supported where layers of two kinds turn")
    if "truncate" in full:
        fields.refuse(name, "truncate is not read where layers of two kinds turn: leave it out")
    if PART in full:
        fields.refuse(name, "this family turns all numbers of a head: partial_rotary_factor must be 1")
    inner = Fields(near, {})
    if "rope_theta" in near:
        local = inner.number("rope_theta")
    elif old_local is not None:
        local = fields.number(old_local)
    fields.problems += [N_("{field}: {problem}", field="rope_parameters", problem=said) for said in inner.problems]
    if not sliding or ("rope_scaling" not in options and options["rope_theta"] == local):
        return options
    return {**options, "rope_local_theta": local, "rope_local_layers": tuple(sliding)}


def _scaled(
    fields: Fields, name: str, said: Mapping[str, Any], old_theta: str, trained: Callable[[Fields], int]
) -> Options:
    """Base and scaling of one table; `trained` finds the length of the first training."""
    kind = said.get("rope_type", said.get("type", "default"))
    extra = set(said) - {"rope_theta", "rope_type", "type", PART} - KINDS.get(str(kind), set())
    if not isinstance(kind, str) or kind not in KINDS or extra:
        fields.refuse(
            name,
            "rotary positions are supported as they are, or with rope_type linear, llama3, yarn, dynamic or longrope and "
            "what belongs to it",
        )
        return {"rope_theta": 10_000.0}
    inner = Fields(said, {})
    options: Options = {"rope_theta": _number(fields, inner, "rope_theta", old_theta)}
    if kind == "dynamic":
        options[DYNAMIC] = inner.number("factor")
        fields.assume(
            "rotary positions of type dynamic turn by a base of their own in texts longer than "
            "max_position_embeddings={n:,}, which are not accepted here: up to there they are as without",
            n=fields.size("max_position_embeddings"),
        )
    elif kind == "longrope":
        options |= _longrope(fields, inner, trained(inner))
    elif kind != "default":
        options |= {"rope_scaling": kind, "rope_factor": inner.number("factor")}
    if kind == "yarn":
        options |= _yarn(inner, trained(inner))
    if kind == "llama3":
        options |= {
            "rope_low_turns": inner.number("low_freq_factor"),
            "rope_high_turns": inner.number("high_freq_factor"),
            "rope_trained_positions": trained(inner),
        }
    fields.problems += [N_("{field}: {problem}", field=name, problem=problem) for problem in inner.problems]
    return options


def _longrope(fields: Fields, inner: Fields, trained: int) -> Options:
    """The divisors of texts up to `trained` tokens: longer ones have others, and are not accepted.

    Source: `transformers`, _compute_longrope_parameters.
    """
    longest = fields.size("max_position_embeddings")
    for name in ("short_factor", "long_factor"):
        said = inner.value(name)
        if not isinstance(said, list) or not all(type(x) in (int, float) and 1e-30 < x < 1e30 for x in said):
            inner.refuse(name, "it must list a number above 0 for each pair that turns")
            return {}
    if inner.value("attention_factor") is not None:
        multiplied = _said_gain(inner)
    else:
        factor = longest / trained if inner.value("factor") is None else inner.number("factor")
        if factor > 1 and trained == 1:
            inner.refuse(TRAINED, "it must be above 1")
            return {}
        multiplied = math.sqrt(1 + math.log(factor) / math.log(trained)) if factor > 1 else 1.0
    if trained < longest:
        fields.assume(
            "texts up to {limit:,} tokens are accepted: in longer ones rotary positions turn by other angles "
            "(long_factor); config.json allows {longest:,}",
            limit=trained,
            longest=longest,
        )
    divisors = {name: tuple(map(float, inner.value(name))) for name in ("short_factor", "long_factor")}
    if len(divisors["long_factor"]) != len(divisors["short_factor"]):
        inner.refuse("long_factor", "it must be as long as short_factor")
    return {"rope_scaling": "longrope", "rope_divisors": divisors["short_factor"], GAIN: multiplied, REACH: trained}


def _said_gain(inner: Fields) -> float:
    """What queries and keys are multiplied by, as a file says it: within what the squares of it can be computed with."""
    gain = inner.number("attention_factor")
    if not 1e-3 <= gain <= 1e3:
        inner.refuse("attention_factor", "it must be from 0.001 to 1000")
    return gain


def _yarn(inner: Fields, trained: int) -> Options:
    """Between which numbers of turns pairs are mixed, and what queries and keys are multiplied by.

    Source: `transformers`, _compute_yarn_parameters.
    """

    def said(name: str, otherwise: float) -> float:
        return inner.number(name) if inner.value(name) else otherwise

    def gain(weight: float) -> float:
        factor = inner.number("factor")
        return 0.1 * weight * math.log(factor) + 1 if factor > 1 else 1.0

    if inner.value("attention_factor") is not None:
        multiplied = _said_gain(inner)
    elif inner.value("mscale") and inner.value("mscale_all_dim"):
        multiplied = gain(inner.number("mscale")) / gain(inner.number("mscale_all_dim"))
    else:
        multiplied = gain(1.0)
    return {
        "rope_low_turns": said("beta_slow", 1.0),
        "rope_high_turns": said("beta_fast", 32.0),
        "rope_trained_positions": trained,
        "rope_whole_pairs": "truncate" not in inner.raw or inner.flag("truncate"),
        GAIN: multiplied,
    }


def gained(fields: Fields, options: Options) -> Options:
    """`options` with what YaRN or LongRoPE multiply queries and keys by, m, as a part of the scale of their dot products.

    (m q) (m k)^T / sqrt(d) = q k^T m^2 / sqrt(d),  where all numbers of a head are turned, in all layers.

    Source: Peng et al. 2023, "YaRN", section 3.4; Ding et al. 2024, "LongRoPE", section 3.3.
    """
    gain, dynamic, reach = options.pop(GAIN, 1.0), DYNAMIC in options, options.pop(REACH, LARGEST)
    options.pop(DYNAMIC, None)
    if fields.problems:
        return options
    d_head: int = options.get("head_dim") or options["d_model"] // options["n_heads"]
    options["max_positions"] = min(options["max_positions"], reach)
    pairs = (options.get("rope_dims") or d_head) // 2
    if len(options.get("rope_divisors") or range(pairs)) != pairs:
        fields.refuse(table_of(fields)[0], "short_factor: it must list a number for each of the {n} pairs", n=pairs)
    if dynamic and (options.get("rope_dims") or d_head) == 2:
        fields.refuse(
            table_of(fields)[0], "dynamic raises the base to d / (d - 2), and here one pair of numbers is turned, d = 2"
        )
    if gain == 1:
        return options
    if any(options.get(name) is not None for name in ("rope_dims", "rope_layers", "rope_local_layers")):
        return {**options, "rope_gain": gain}  # of a part of the scores
    scale = options.get("attention_scale") or d_head**-0.5
    return {**options, "attention_scale": scale * gain**2}


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
        fields.refuse(name, "this family turns all numbers of a head: partial_rotary_factor must be 1")


def turned(fields: Fields, d_head: int, old_part: str) -> int | None:
    """How many of a head's d_head numbers are turned; None: all.  `old_part`: the field outside of rope_parameters."""
    name, said = table_of(fields)
    inner = Fields(said, {})
    part = _number(fields, inner, PART, old_part)
    fields.problems += [N_("{field}: {problem}", field=name, problem=problem) for problem in inner.problems]
    if part > 1:
        fields.refuse(name if PART in said else old_part, "it must be a number above 0, at most 1")
    dims = int(d_head * part)
    return None if dims >= d_head else dims


def of_texts(fields: Fields) -> None:
    """Takes from the table what counts places in pictures: the tokens of a text have one place, which turns all pairs."""
    name, said = table_of(fields)
    kept = {key: value for key, value in said.items() if key not in ("mrope_section", "mrope_interleaved")}
    if kept.get("rope_type", kept.get("type")) == "mrope":
        kept = {**kept, "rope_type": "default"}
    if kept != said:
        fields.raw[name] = kept


def turning_neighbours(parts: Sequence[Part], config: ModelConfig, names: Mapping[str, int]) -> list[Part]:
    """`parts` of a family whose queries and keys turn neighbouring numbers; `names`: of their modules -> heads."""
    return [
        replace(part, order=partial(neighbours_apart, heads, config.d_head, config.turned_dims))
        if (heads := names.get(part.source.split(".")[-2] if "." in part.source else "", 0))
        else part
        for part in parts
    ]


def _number(fields: Fields, inner: Fields, name: str, outside: str) -> float:
    """A number of the table `inner`, or else the field that stood for it before there was one."""
    if name not in inner.raw:
        return fields.number(outside)
    if outside in fields.raw and fields.value(outside) != inner.raw[name]:
        fields.assume(
            "{outside}={value} stands beside a table that says {name}={other}: the table is followed, as "
            "`transformers` does",
            outside=outside,
            value=shown(fields.raw[outside]),
            name=name,
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
