"""The fields that say how rotary positions turn: their base, how many numbers, and what slows them for longer texts."""

from typing import Any

from vizformer.checkpoints.family import Options
from vizformer.checkpoints.fields import Fields
from vizformer.messages import N_

KINDS = {
    "default": set(),
    "linear": {"factor"},
    "llama3": {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"},
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
        fields.refuse(name, N_("rotary positions are supported as they are, or with rope_type linear or llama3 and "
                               "what belongs to it"))  # fmt: skip
        return {"rope_theta": 10_000.0}
    inner = Fields(said, {})
    theta = inner.number("rope_theta") if "rope_theta" in said else fields.number(old_theta)
    options: Options = {"rope_theta": theta}
    if kind != "default":
        options |= {"rope_scaling": kind, "rope_factor": inner.number("factor")}
    if kind == "llama3":
        options |= {
            "rope_low_turns": inner.number("low_freq_factor"), "rope_high_turns": inner.number("high_freq_factor"),
            "rope_trained_positions": inner.size("original_max_position_embeddings")
            if "original_max_position_embeddings" in said else fields.size("max_position_embeddings"),
        }  # fmt: skip
    fields.problems += [N_("{field}: {problem}", field=name, problem=problem) for problem in inner.problems]
    return options


def all_are_turned(fields: Fields) -> None:
    """Refuses a partial rotation: the families that have none do not read the field."""
    name, said = _said(fields)
    fields.only(PART, None, 1, 1.0)
    if said.get(PART, 1) not in (None, 1, 1.0):
        fields.refuse(name, N_("partial_rotary_factor is supported in GPT-NeoX, Phi and StableLM only"))


def turned(fields: Fields, d_head: int, old_part: str) -> int | None:
    """How many of a head's d_head numbers are turned; None: all.  `old_part`: the field outside of rope_parameters."""
    name, said = _said(fields)
    inner = Fields(said, {})
    part = inner.number(PART) if PART in said else fields.number(old_part if old_part in fields.raw else PART)
    fields.problems += [N_("{field}: {problem}", field=name, problem=problem) for problem in inner.problems]
    fields.value(old_part)
    if part > 1:
        fields.refuse(name if PART in said else old_part, N_("it must be a number above 0, at most 1"))
    dims = int(d_head * part)
    return None if dims >= d_head else dims


def _said(fields: Fields) -> tuple[str, dict[str, Any]]:
    """rope_parameters, or where that is absent rope_scaling; an empty table where there is nothing or no table."""
    nested, scaling = fields.value("rope_parameters"), fields.value("rope_scaling")
    name, said = ("rope_scaling", scaling) if nested is None else ("rope_parameters", nested)
    if said is None:
        return name, {}
    return name, said if isinstance(said, dict) else {"rope_type": None}
