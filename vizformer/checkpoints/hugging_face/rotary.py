"""The fields that say how rotary positions turn: their base, and what slows them for longer texts."""

from typing import Any

from vizformer.checkpoints.files.untrusted_folder import shown
from vizformer.checkpoints.hugging_face.family import Options
from vizformer.checkpoints.hugging_face.fields import Fields
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
