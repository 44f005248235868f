"""What `transformers` takes where config.json is silent, of the fields that are read here, and its second names of fields.

    python -m recipes.config_defaults

writes it into the package, of every model type that opens; a test holds the file against the installed `transformers`.
"""

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from vizformer.checkpoints import hugging_face
from vizformer.checkpoints.hugging_face.families import BY_TYPE
from vizformer.checkpoints.hugging_face.fields import NEUTRAL, Fields

FILE = Path(hugging_face.__file__).with_name("config_defaults.json")
# Lists that a config class sets when it is made, because its fields must not have lists as defaults.
LISTS = ("attention_types", "eos_token_id")
# What no config class lists: fields that are read when a config is made, and forgotten.  AutoConfig takes a Mistral with
# layer_types for a Ministral.
FORGOTTEN: Mapping[str, Mapping[str, Any]] = {
    "mistral": {"layer_types": None},
}
# Some fields are read only beside others.
RAW: tuple[Mapping[str, Any], ...] = (
    {},
    {"use_sliding_window": True},
    {"rope_scaling": {"rope_type": "linear", "factor": 2.0}},
)


class Reading(Fields):
    """Notes the fields whose absence means something: not those of which null is as good as the one value supported."""

    def __init__(self, raw: Mapping[str, Any], defaults: Mapping[str, Any], aliases: Mapping[str, str]) -> None:
        super().__init__(raw, defaults, aliases)
        self.noted: set[str] = set()

    def value(self, name: str) -> Any:
        self.noted.add(name)
        return super().value(name)

    def only(self, name: str, *supported: Any) -> None:
        noted = set(self.noted)
        super().only(name, *supported)
        if None in supported:
            self.noted = noted


def of_type(kind: str) -> dict[str, dict[str, Any]]:
    """The defaults and second names of one model_type."""
    from transformers import AutoConfig

    made = AutoConfig.for_model(kind)
    theirs, aliases = _everything(kind, made), type(made).attribute_map
    noted: set[str] = set()
    for raw in RAW:
        reading = Reading({"model_type": kind, **raw}, theirs, aliases)
        BY_TYPE[kind].config(reading, ())
        noted |= reading.noted
    defaults = {
        name: value
        for name, value in theirs.items()
        if name in noted and not (name in NEUTRAL and value in NEUTRAL[name])
    }
    return {"defaults": defaults, "aliases": aliases}


def _everything(kind: str, made: Any) -> dict[str, Any]:
    """All defaults of a config class: what it has for the fields themselves, not what it makes of other fields."""
    found: dict[str, Any] = {}
    for field in fields(made):
        default = field.default if field.default_factory is MISSING else field.default_factory()
        found[made.attribute_map.get(field.name, field.name)] = list(default) if isinstance(default, tuple) else default
    for name in ("tie_word_embeddings", *LISTS):
        if found.get(name) is None and hasattr(made, name):
            found[name] = getattr(made, name)
    found.pop("rope_parameters", None)
    return {**found, **_turning(getattr(made, "rope_parameters", None) or {}), **FORGOTTEN.get(kind, {})}


def _turning(table: Mapping[str, Any]) -> dict[str, Any]:
    """Base and part of rotary positions, by their names outside of the table; the table itself where it slows them."""
    found = {name: table[name] for name in ("rope_theta", "partial_rotary_factor") if name in table}
    return found if table.get("rope_type", "default") == "default" else {**found, "rope_parameters": dict(table)}


def main() -> None:
    known = {kind: of_type(kind) for kind in sorted(BY_TYPE)}
    FILE.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
