"""Which fields of a config.json the code of `transformers` asks for: it passes over the others without a word."""

import ast
import inspect
import sys
from collections.abc import Collection, Iterator, Mapping
from typing import Any

_ROTARY = "transformers.modeling_rope_utils"


_TABLES = ("rope_parameters", "rope_scaling")  # of which any key is looked at: two names of one table
_BY_ALL = {*_TABLES, "rope_type", "type", "rope_theta"}  # what every config class reads for its models


def never_read(cls: type, fields: Mapping[str, Any], raw: Mapping[str, Any]) -> list[str]:
    """The fields, with the keys of nested tables, that occur nowhere in the code of a model's class.

    With such a field the model would be computed as if it were not there.

    Args:
        cls: of `transformers`, whose file and whose config's file are looked at.
        fields: with their values.
        raw: all that config.json says.
    """
    config: Any = getattr(cls, "config_class", None)
    owners = [one for owner in (cls, config) if owner is not None for one in owner.__mro__]
    modules = {one.__module__ for one in owners if one.__module__.startswith("transformers.models.")}
    tables = {name: raw[name] for name in _TABLES if isinstance(raw.get(name), dict)}
    if any(one.get("rope_type", one.get("type", "default")) != "default" for one in tables.values()):
        modules.add(_ROTARY)
    names = {*_names(fields), *_names(tables)} - _BY_ALL
    return sorted(names - {name for module in modules for name in _asked_for(module)})


def _names(value: Any) -> Iterator[str]:
    for one in value.items() if isinstance(value, dict) else ():
        yield one[0]
        yield from _names(one[1])


def _asked_for(module: str) -> Collection[str]:
    """What a file reads as `config.name`, or writes down as "name"; a field that is only declared is not among it."""
    found = set()
    for node in ast.walk(ast.parse(inspect.getsource(sys.modules[module]))):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            found.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
    return found
