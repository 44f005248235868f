"""The values that options of a model may have: their choices, the kinds of numbers, and how a value is checked."""

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from vizformer.messages import N_, Message

Architecture = Literal["encoder-decoder", "decoder-only", "encoder-only"]
AttentionBias = Literal["same", "all", "qkv", "none"]
Activation = Literal["relu", "gelu", "gelu_tanh", "quick_gelu", "silu", "relu_squared"]
FeedForwardKind = Literal["plain", "gated"]
NormOrder = Literal["post", "pre", "none"]
Norm = Literal["layer_norm", "rms_norm"]
Residual = Literal["sequential", "none"]
StackInputs = Literal["shared", "own"]
Positions = Literal["sinusoidal", "learned", "rope", "alibi", "relative", "none"]
Sinusoids = Literal["interleaved", "halves"]
RopeScaling = Literal["none", "linear", "llama3"]
Head = Literal["linear", "transform"]

ACTIVATION_NAMES = {
    "relu": "ReLU",
    "relu_squared": "ReLU²",
    "gelu": "GELU",
    "gelu_tanh": "GELU",
    "quick_gelu": "QuickGELU",
    "silu": "SiLU",
}
"""The names of the activations in formulas; both ways of computing GELU have the same name."""

NORM_PLACES: dict[str, Message] = {
    "post": N_("after the sum"),
    "pre": N_("before the sublayer"),
    "none": N_("none in the layers"),
}

Count = Annotated[int, "count"]
CountOrZero = Annotated[int, "count or 0"]
Positive = Annotated[float, "positive"]
AboveOne = Annotated[float, "above 1"]
Fraction = Annotated[float, "fraction"]
Probability = Annotated[float, "probability"]
Layers = tuple[int, ...]  # numbers of layers, counted from 0, in order

_INFINITE = float("inf")
_BOUNDS: dict[str, tuple[Callable[[float], bool], Message]] = {
    "count": (lambda n: n >= 1, N_("{name}={value}: must be at least 1")),
    "count or 0": (lambda n: n >= 0, N_("{name}={value}: must not be negative")),
    "positive": (lambda x: 0 < x < _INFINITE, N_("{name}={value}: must be above 0")),
    "above 1": (lambda x: 1 < x < _INFINITE, N_("{name}={value}: must be above 1")),
    "fraction": (lambda x: 0 < x < 1, N_("{name}={value}: must be above 0 and below 1")),
    "probability": (lambda x: 0 <= x < 1, N_("{name}={value}: must be at least 0 and below 1")),
}


class Kind(NamedTuple):
    """The values that an option may have: a type or a set of choices, and the bound of a number."""

    types: tuple[Any, ...] = ()
    choices: tuple[Any, ...] = ()
    bound: str | None = None

    def wrong_type(self, name: str, value: object) -> Message | None:
        """The message about a value of another type, or of none of the choices; None if it has the right type."""
        if self.choices:
            if value in self.choices:
                return None
            options = ", ".join(map(repr, self.choices))
            return N_("{name}={value!r}: choose one of {options}", name=name, value=value, options=options)
        if tuple in self.types:
            if value is None or (isinstance(value, tuple) and all(type(item) is int for item in value)):
                return None
            return N_("{name}={value!r}: must be a list of int or nothing", name=name, value=value)
        if type(value) in self.types or (float in self.types and type(value) is int):
            return None
        names = " or ".join("nothing" if one is type(None) else one.__name__ for one in self.types)
        return N_("{name}={value!r}: must be {names}", name=name, value=value, names=names)

    def out_of_bounds(self, name: str, value: Any) -> Message | None:
        if self.bound is None or value is None:
            return None
        holds, rule = _BOUNDS[self.bound]
        return None if holds(value) else replace(rule, values={"name": name, "value": value})


def read_kinds(table: type) -> dict[str, Kind]:
    """The kind of each option of a dataclass, from its annotations."""
    kinds: dict[str, Kind] = {}
    for name, hint in get_type_hints(table, include_extras=True).items():
        if get_origin(hint) is Literal:
            kinds[name] = Kind(choices=get_args(hint))
            continue
        parts = [hint] if get_origin(hint) is Annotated else get_args(hint) or [hint]  # of int | None both
        bound = next((part.__metadata__[0] for part in parts if get_origin(part) is Annotated), None)
        plain = (part.__origin__ if get_origin(part) is Annotated else get_origin(part) or part for part in parts)
        kinds[name] = Kind(types=tuple(plain), bound=bound)
    return kinds
