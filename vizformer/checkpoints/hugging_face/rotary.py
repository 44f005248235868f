"""The fields that say how rotary positions turn: their base, and what slows them for longer texts."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from vizformer.checkpoints.files.untrusted_folder import shown
from vizformer.checkpoints.hugging_face.family import Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.sliding_window import FULL, SLIDING
from vizformer.messages import N_

TRAINED = "original_max_position_embeddings"
KINDS = {
    "default": set(),
    "linear": {"factor"},
    "llama3": {"factor", "low_freq_factor", "high_freq_factor", TRAINED},
}
PART = "partial_rotary_factor"


def rope(fields: Fields) -> Options:
    """Base and scaling.  `transformers` 5 writes both into rope_parameters; before, they stood beside rope_scaling."""
    name, said = table_of(fields)
    return _scaled(fields, name, said, "rope_theta", lambda inner: _trained(fields, inner))


def rope_of_layer_types(
    fields: Fields,
    sliding: Sequence[int],
    *,
    old_local: str,
    old_theta: str = "rope_theta",
) -> Options:
    """Base and scaling of layers with full attention, and the base of those with a sliding window, `sliding`.

    rope_parameters has a table for each of the two.  Before version 5 of `transformers` they were `old_theta` with
    rope_scaling, and `old_local`.

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
    if PART in full:
        fields.refuse(name, "this family turns all numbers of a head: partial_rotary_factor must be 1")
    inner = Fields(near, {})
    local = inner.number("rope_theta") if "rope_theta" in near else fields.number(old_local)
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
            "rotary positions with rope_type {kind}: supported are default, linear and llama3, with what belongs to them",
            kind=shown(kind),
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
            "rope_trained_positions": trained(inner),
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
        fields.refuse(name, "this family turns all numbers of a head: partial_rotary_factor must be 1")


def of_texts(fields: Fields) -> None:
    """Takes from the table what counts places in pictures: the tokens of a text have one place, which turns all pairs."""
    name, said = table_of(fields)
    kept = {key: value for key, value in said.items() if key not in ("mrope_section", "mrope_interleaved")}
    if kept.get("rope_type", kept.get("type")) == "mrope":
        kept = {**kept, "rope_type": "default"}
    if kept != said:
        fields.raw[name] = kept


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
