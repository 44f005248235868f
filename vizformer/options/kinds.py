"""The kinds of values that options have: a type, and the bound of a number."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from vizformer.messages import N_, Message


@dataclass(frozen=True, eq=False)  # hashed by identity: a kind is a member of unions of types
class Bound:
    """The bound of a number, and the message about a number outside of it."""

    holds: Callable[[float], bool]
    rule: Message


_INFINITE = float("inf")
Count = Annotated[int, Bound(lambda n: n >= 1, N_("{name}={value}: must be at least 1"))]
CountOrZero = Annotated[int, Bound(lambda n: n >= 0, N_("{name}={value}: must not be negative"))]
Positive = Annotated[float, Bound(lambda x: 0 < x < _INFINITE, N_("{name}={value}: must be above 0"))]
AboveOne = Annotated[float, Bound(lambda x: 1 < x < _INFINITE, N_("{name}={value}: must be above 1"))]
Fraction = Annotated[float, Bound(lambda x: 0 < x < 1, N_("{name}={value}: must be above 0 and below 1"))]
Probability = Annotated[float, Bound(lambda x: 0 <= x < 1, N_("{name}={value}: must be at least 0 and below 1"))]
Layers = tuple[int, ...]  # numbers of layers, counted from 0, in order
Numbers = tuple[float, ...]


def are_layers(layers: Layers, n: int) -> bool:
    """Whether `layers` are numbers of layers from 0 to n - 1, ascending, at least one."""
    return bool(layers) and list(layers) == sorted(set(layers)) and 0 <= layers[0] <= layers[-1] < n


class Kind(NamedTuple):
    """The values that an option may have: a type or a set of choices, and the bound of a number."""

    types: tuple[Any, ...] = ()
    choices: tuple[Any, ...] = ()
    bound: Bound | None = None
    items: tuple[Any, ...] = (int,)  # the types of what a list holds

    def wrong_type(self, name: str, value: object) -> Message | None:
        """The message about a value of another type, or of none of the choices; None if it has the right type."""
        if self.choices:
            if value in self.choices:
                return None
            options = ", ".join(map(repr, self.choices))
            return N_("{name}={value!r}: choose one of {options}", name=name, value=value, options=options)
        if tuple in self.types:
            if value is None or (isinstance(value, tuple) and all(type(item) in self.items for item in value)):
                return None
            kind = self.items[-1].__name__
            return N_("{name}={value!r}: must be a list of {kind} or nothing", name=name, value=value, kind=kind)
        if type(value) in self.types or (float in self.types and type(value) is int):
            return None
        names = " or ".join("nothing" if one is type(None) else one.__name__ for one in self.types)
        return N_("{name}={value!r}: must be {names}", name=name, value=value, names=names)

    def out_of_bounds(self, name: str, value: Any) -> Message | None:
        if self.bound is None or value is None or self.bound.holds(value):
            return None
        return replace(self.bound.rule, values={"name": name, "value": value})


def read_kinds(table: type) -> dict[str, Kind]:
    """The kind of each option of a dataclass, from its annotations."""
    found: dict[str, Kind] = {}
    for name, hint in get_type_hints(table, include_extras=True).items():
        if get_origin(hint) is Literal:
            found[name] = Kind(choices=get_args(hint))
            continue
        parts = [hint] if get_origin(hint) is Annotated else get_args(hint) or [hint]  # of int | None both
        bound = next((part.__metadata__[0] for part in parts if get_origin(part) is Annotated), None)
        plain = [part.__origin__ if get_origin(part) is Annotated else get_origin(part) or part for part in parts]
        items = (int, float) if Numbers in parts else (int,)
        found[name] = Kind(types=tuple(plain), bound=bound, items=items)
    return found
