"""What somebody else's config.json may say to the code of `transformers`: bounded, and without what would fetch or run.

All of it is looked at before `transformers` is imported.  A number may be as large as the file of weights makes it: no table
is wider than the longest side of a tensor, and no stack has more layers than there are tensors.
"""

import ast
import inspect
import math
import re
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vizformer.checkpoints.files.untrusted_folder import shown
from vizformer.checkpoints.files.weights import Weights
from vizformer.messages import N_, Message

MOST_LAYERS = 192  # of one stack, whatever the number of tensors; the deepest in use have some 130
MOST_VALUES, DEEPEST, LONGEST_TEXT = 20_000, 8, 20_000
_LEAST_TENSORS = 4  # of a layer, where more than these are asked for
_LEAST_LAYERS, _LEAST_SIDE = 64, 2**17  # so many are let through whatever the tensors are
_LARGEST = 2**31 - 1

# Lengths of texts, ids, bases of angles, seeds: no tensor has them as a side.
_NO_SIDE = re.compile(
    r"position|length|seq_?len|ctx|theta|base|token|_ids?$|window|seed|period|distance|scale|scaling|max_len"
)
_COUNT = re.compile(r"(?:^|_)(?:layers?|blocks?|stages?|depths?|cycles?|hidden_groups|repeats?)(?:_|$)")
_NO_COUNT = re.compile(r"size|window|offset|freq|period|norm|dim|width|chunk|type|id$|scale|length")
# As `transformers` writes numbers that JSON has no word for: {"__float__": "Infinity"}.
_FLOATS = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}
# What a text is filled up to, or how often it is read: as much is computed for the shortest one.
_FILLED = {
    re.compile(r"^(\w+_)?chunk_(size|length)$"): 1024,
    re.compile(r"attention_window|block_(size|length)$"): 4096,
    re.compile(r"radius|num_chunks|num_hashes|iters?$|iterations"): 256,
}
_LONG = ("attention_chunk_size",)  # a mask alone
_FACTOR = re.compile(r"factor|ratio|pct|percent|mult|expan")  # what a side is multiplied by
_MOST_TIMES = 1024
_MOST_WAVES = 4096  # positions of a table of waves, which XLM makes number by number
_MAY_BE_INFINITE = ("time_step_limit", "time_step_max")  # of Mamba's steps, as `transformers` writes them

# What no forward that is recorded depends on: names, labels, training; and the precision, which is chosen here.
_NOTHING = """
architectures _name_or_path name_or_path _commit_hash transformers_version tokenizer_class dtype torch_dtype
id2label label2id num_labels _num_labels problem_type task_specific_params finetuning_task output_attentions
output_hidden_states return_dict torchscript use_bfloat16 gradient_checkpointing chunk_size_feed_forward
base_model_tp_plan base_model_pp_plan base_model_ep_plan base_model_fsdp_plan distributed_config
"""
_STRUCK = frozenset(_NOTHING.split())
# What names code, or a way of computing: it is struck out as well, and said.
_OF_CODE = """
auto_map attn_implementation _attn_implementation _attn_implementation_internal _attn_implementation_autoset
attention_implementation experts_implementation _experts_implementation _experts_implementation_internal use_kernels
kernel_config use_flash_attn use_flash_attention use_flash_attention_2 _flash_attn_2_enabled
"""
_CODE = frozenset(_OF_CODE.split())
# What may have these values alone.
_NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "quantization_config": (None,),
    "compression_config": (None,),
    "pruned_heads": (None, {}),
    "adapters": (None,),
    "peft_config": (None,),
    "fusion_config": (None, {}),
    "transformers_weights": (None,),
    "configuration_files": (None, [], ["config.json"]),
    "backbone": (None,),
    "backbone_config": (None,),
    "backbone_kwargs": (None, {}),
    "use_timm_backbone": (None, False),
    "use_pretrained_backbone": (None, False),
}

_ROTARY = "transformers.modeling_rope_utils"

_TABLES = ("rope_parameters", "rope_scaling")  # of which any key is looked at: two names of one table
_BY_ALL = {*_TABLES, "rope_type", "type", "rope_theta"}  # what every config class reads for its models


@dataclass(frozen=True)
class Said:
    """What is handed on, what is said about it, and what is wrong with it."""

    fields: dict[str, Any]
    notes: tuple[Message, ...]
    problems: tuple[Message, ...]


def said_by(raw: Mapping[str, Any], weights: Weights) -> Said:
    """The fields that `transformers` is handed, for a model with these tensors."""
    if (problem := _too_much(raw)) is not None:
        return Said({}, (), (problem,))
    problems: list[Message] = []
    struck: dict[str, Any] = {}
    if empty := next((name for name, stored in weights.tensors.items() if 0 in stored.shape), None):
        problems.append(N_("{name} holds no numbers", name=shown(empty)))
    layers = min(len(weights.tensors) // _LEAST_TENSORS, MOST_LAYERS)
    limits = _Limits(max(_LEAST_LAYERS, layers), max(_LEAST_SIDE, weights.longest_side))
    fields = _kept(raw, struck)
    sinusoidal = any(name.startswith("sinusoidal") and value for name, value in _fields(fields))
    for name, value in _values(fields):
        if sinusoidal and "position" in name and isinstance(value, int | float) and value > _MOST_WAVES:
            problems.append(N_("{field}={value}: {rule}", field=name, value=shown(value), rule=_from_to(_MOST_WAVES)))
        if (rule := limits.rule(name, value)) is not None:
            problems.append(N_("{field}={value}: {rule}", field=_named(name), value=shown(value), rule=rule))
    for name, value in _fields(fields):
        if name in _NEUTRAL and value not in _NEUTRAL[name]:
            problems.append(N_("{field}={value}: this is not supported", field=name, value=shown(value)))
        elif name.startswith("__"):
            problems.append(N_("{field} is no name of a field", field=_named(name)))
    notes = [
        N_(
            "config.json names code or a way of computing ({field}={value}): VizFormer ignores it, and "
            "never fetches or runs it",
            field=name,
            value=shown(value),
        )
        for name, value in struck.items()
    ]
    return Said(fields, tuple(notes), tuple(problems))


def _named(field: str) -> str:
    return field if field.isidentifier() and field.isascii() and len(field) < 80 else shown(field)


def _kept(raw: Mapping[str, Any], struck: dict[str, Any]) -> dict[str, Any]:
    """Without what is struck out, in tables inside as well."""
    kept: dict[str, Any] = {}
    for name, value in raw.items():
        if name in _CODE:
            if value not in (None, False, {}, "eager"):
                struck.setdefault(name, value)
        elif name not in _STRUCK:
            kept[name] = _without(value, struck)
    return kept


def _without(value: Any, struck: dict[str, Any]) -> Any:
    if isinstance(value, dict) and (number := _FLOATS.get(str(value.get("__float__")))) is not None:
        return number
    if isinstance(value, dict):
        return _kept(value, struck)
    return [_without(one, struck) for one in value] if isinstance(value, list) else value


@dataclass(frozen=True)
class _Limits:
    layers: int
    side: int

    def rule(self, name: str, value: object) -> Message | None:
        """The rule that a value breaks; None where it breaks none."""
        if isinstance(value, float) and not math.isfinite(value):
            return None if value > 0 and name in _MAY_BE_INFINITE else N_("it must be a finite number")
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        counts, no_side = _COUNT.search(name) is not None, _NO_SIDE.search(name) is not None
        counts &= not no_side and _NO_COUNT.search(name) is None
        limit = self.layers if counts else _LARGEST if no_side else self.side
        filled = [most for words, most in _FILLED.items() if words.search(name) and name not in _LONG]
        if filled:
            return None if abs(value) <= filled[0] else _from_to(filled[0])
        if _FACTOR.search(name) is not None:
            return None if abs(value) <= _MOST_TIMES else _from_to(_MOST_TIMES)
        if isinstance(value, float) and not counts:  # a mask's number, a base: no side of a tensor
            return None
        return None if -_LARGEST <= value <= limit else _from_to(limit)


def _from_to(limit: int) -> Message:
    return N_("for these weights it may be {limit:,} at most", limit=limit)


def _too_much(raw: Mapping[str, Any]) -> Message | None:
    """Whether there is more in the file than any config says; tables of labels aside."""
    left, waiting = MOST_VALUES, [(value, 1) for name, value in raw.items() if name not in _STRUCK]
    while waiting:
        value, depth = waiting.pop()
        left -= 1
        inner = [*value.values()] if isinstance(value, dict) else value if isinstance(value, list) else []
        if left < len(inner):
            return N_("it holds more than {n:,} values", n=MOST_VALUES)
        if depth > DEEPEST:
            return N_("its values lie more than {n} deep inside each other", n=DEEPEST)
        if isinstance(value, str) and len(value) > LONGEST_TEXT:
            return N_("it holds a text of {n:,} characters", n=len(value))
        waiting += [(one, depth + 1) for one in inner]
    return None


def _values(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every number and text with the name of the field that it stands in."""
    if isinstance(value, dict):
        for inner, one in value.items():
            yield from _values(one, inner)
    elif isinstance(value, list):
        for one in value:
            yield from _values(one, name)
    else:
        yield name, value


def _fields(raw: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every field, those of tables inside too."""
    for name, value in raw.items():
        yield name, value
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, dict):
                yield from _fields(one)


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
