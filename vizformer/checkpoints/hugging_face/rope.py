"""The fields that say how rotary positions turn: their base, how many numbers, and what slows them for longer texts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from vizformer.checkpoints.files.untrusted_folder import shown
from vizformer.checkpoints.hugging_face.family import Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.tensors.tensor_map import Part, neighbours_apart
from vizformer.config import ModelConfig
from vizformer.messages import N_

TRAINED = "original_max_position_embeddings"
KINDS = {
    "default": set(),
    "linear": {"factor"},
    "llama3": {"factor", "low_freq_factor", "high_freq_factor", TRAINED},
}
PART = "partial_rotary_factor"


def rope(fields: Fields, old_theta: str = "rope_theta") -> Options:
    """Base and scaling.  `transformers` 5 writes both into rope_parameters; before, they stood beside rope_scaling.

    `old_theta` is what the base is called outside of rope_parameters.
    """
    name, said = _said(fields)
    kind = said.get("rope_type", said.get("type", "default"))
    extra = set(said) - {"rope_theta", "rope_type", "type", PART} - KINDS.get(str(kind), set())
    if not isinstance(kind, str) or kind not in KINDS or extra:
        fields.refuse(
            name,
            N_("rotary positions are supported as they are, or with rope_type linear or llama3 and what belongs to it"),
        )
        return {"rope_theta": 10_000.0}
    inner = Fields(said, {})
    options: Options = {"rope_theta": _number(fields, inner, "rope_theta", old_theta)}
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
    if TRAINED in fields.raw:
        return fields.size(TRAINED)
    return inner.size(TRAINED) if TRAINED in inner.raw else fields.size("max_position_embeddings")


def all_are_turned(fields: Fields) -> None:
    """Refuses a partial rotation: the families that have none do not read the field."""
    name, said = _said(fields)
    fields.only(PART, None, 1, 1.0)
    if said.get(PART, 1) not in (None, 1, 1.0):
        fields.refuse(name, N_("this family turns all numbers of a head: partial_rotary_factor must be 1"))


def turned(fields: Fields, d_head: int, old_part: str) -> int | None:
    """How many of a head's d_head numbers are turned; None: all.  `old_part`: the field outside of rope_parameters."""
    name, said = _said(fields)
    inner = Fields(said, {})
    part = _number(fields, inner, PART, old_part)
    fields.problems += [N_("{field}: {problem}", field=name, problem=problem) for problem in inner.problems]
    if part > 1:
        fields.refuse(name if PART in said else old_part, N_("it must be a number above 0, at most 1"))
    dims = int(d_head * part)
    return None if dims >= d_head else dims


def not_scaled(fields: Fields, options: Options) -> Options:
    """Refuses slowed rotations, of `options`, where `transformers` has none of those that open here."""
    if options.get("rope_scaling", "none") != "none":
        fields.refuse(_said(fields)[0], N_("supported here are rotary positions that are not scaled (default)"))
    return options


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
            N_(
                "{outside}={value} stands beside a table that says {name}={other}: the table is followed, as "
                "`transformers` does",
                outside=outside,
                value=shown(fields.raw[outside]),
                name=name,
                other=shown(inner.raw[name]),
            )
        )
    return inner.number(name)


def _said(fields: Fields) -> tuple[str, dict[str, Any]]:
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
