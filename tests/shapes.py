"""The shapes in the signatures of vizformer are checked whenever a test calls them.

As jaxtyping's own import hook does; but that checks every argument twice, and binds every call to its signature anew:
a third of the processor time of what tests compute.  Here a call is not checked again where one with the same shapes,
dtypes and types has passed: a check looks at nothing else, so that it would pass as well.
"""

import ast
import inspect
import sys
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import is_dataclass
from functools import cache, wraps
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, ForwardRef, Literal, TypeVar, get_args, get_origin

import numpy as np
import torch
from beartype import beartype
from jaxtyping import AbstractArray, jaxtyped

C = TypeVar("C", bound=type)
SHORT = 40  # characters of a text, entries of a list: shorter ones are part of what a call looks like
_ARRAYS = {torch.Tensor, torch.nn.Parameter, np.ndarray}
_VALUES = {str, bool, type(None)}  # what a hint like Literal or None tells apart
_PLAIN: set[type] = set()  # types of which nothing else is seen
_UNSEEN = object()
_MADE = threading.local()


class _UnseenError(Exception):
    """A value whose inside may not be what its type says."""


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """A letter in a shape stands for one size throughout a call: in all arguments and in what is returned."""
    if not any(_has_shape(hint) for hint in function.__annotations__.values()):
        bearing: Callable[..., Any] = beartype(function)
        return bearing
    # Made when they are called first: most functions are called in few processes of the tests.
    inner: Callable[[], Callable[..., Any]] = cache(lambda: beartype(function))
    after: Callable[[], Callable[..., Any]] = cache(lambda: beartype(_returns_what_was_made(function)))
    passed: dict[object, set[object]] = {}  # what was given, and what was returned for it

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            given = tuple(map(_look, args))
            if kwargs:
                given += tuple((name, _look(value)) for name, value in kwargs.items())
        except _UnseenError:
            given = None
        returned = passed.get(given)
        if returned is None:
            with jaxtyped("context"):
                result = inner()(*args, **kwargs)
            if given is not None:
                passed[given] = set()
            return result
        result = function(*args, **kwargs)
        try:
            found = _look(result)
            if found in returned:
                return result
        except _UnseenError:
            found = _UNSEEN
        _MADE.result = result
        with jaxtyped("context"):
            after()(*args, **kwargs)
        if found is not _UNSEEN:
            returned.add(found)
        return result

    return call


def _look(value: Any) -> object:
    """All that a check can see of a value.

    Raises:
        _UnseenError: it looks into this one, as into a long list.
    """
    kind = type(value)
    if kind in _PLAIN:
        return kind
    if kind in _ARRAYS:
        return kind, value.shape, value.dtype
    if kind in _VALUES:
        return value if kind is not str or len(value) <= SHORT else kind
    if not isinstance(value, Collection):
        _PLAIN.add(kind)
        return kind
    if isinstance(value, list | tuple) and len(value) <= SHORT:
        return kind, *map(_look, value)
    raise _UnseenError


def _returns_what_was_made(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function with the same signature that returns `_MADE.result`: to check what another one has returned."""
    given, parts, barred = inspect.signature(function).parameters.values(), [], False
    for one in given:
        if one.kind is one.KEYWORD_ONLY and not barred:
            parts.append("*")
        barred = barred or one.kind in (one.KEYWORD_ONLY, one.VAR_POSITIONAL)
        mark = "*" if one.kind is one.VAR_POSITIONAL else "**" if one.kind is one.VAR_KEYWORD else ""
        parts.append(f"{mark}{one.name}" + ("" if one.default is one.empty else "=None"))
    names: dict[str, Any] = {}
    exec(f"def made({', '.join(parts)}): return _MADE.result", {**function.__globals__, "_MADE": _MADE}, names)
    made: Callable[..., Any] = names["made"]
    made.__annotations__ = function.__annotations__
    made.__module__, made.__name__, made.__qualname__ = function.__module__, function.__name__, function.__qualname__
    return made


def checked_class(decorated: C) -> C:
    """The fields of a dataclass, whenever one is made."""
    if is_dataclass(decorated) and "__init__" in vars(decorated):
        make = vars(decorated)["__init__"]
        hints = make.__annotations__.items()
        make.__annotations__ = {name: hint for name, hint in hints if not _is_for_later(hint)}
        type.__setattr__(decorated, "__init__", checked(make))
    return decorated


def _is_for_later(hint: Any) -> bool:
    """A part of it stands in quotes: a name that may be there for mypy alone."""
    parts = get_args(hint) if get_origin(hint) is not Literal else ()
    return any(isinstance(part, str | ForwardRef) or _is_for_later(part) for part in parts)


def _has_shape(hint: Any) -> bool:
    """A hint in quotes may have one."""
    if isinstance(hint, str) or (isinstance(hint, type) and issubclass(hint, AbstractArray)):
        return True
    return any(_has_shape(part) for part in get_args(hint))


class _Decorate(ast.NodeTransformer):
    """Puts a decorator below all others of every function, and above all others of every class."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.decorator_list.append(_named("checked", node))
        self.generic_visit(node)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        node.decorator_list.insert(0, _named("checked_class", node))
        self.generic_visit(node)
        return node


def _named(name: str, node: ast.stmt) -> ast.expr:
    """What `name` is in this file, for a file that does not import it."""
    found = ast.parse(f"__import__('sys').modules[{__name__!r}].{name}", mode="eval").body
    for part in ast.walk(found):
        ast.copy_location(part, node)
    return found


class _Loader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        """Compiled in each process: the compiled code that lies beside the file is the users'."""
        code: CodeType = self.source_to_code(_Decorate().visit(ast.parse(self.get_data(self.path))), self.path)
        return code


class _Finder(MetaPathFinder):
    def __init__(self, names: set[str]) -> None:
        self.names = names

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self.names:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.origin is not None:
            spec.loader = _Loader(fullname, spec.origin)
        return spec


def check_when_imported(package: Path, *stations: str) -> None:
    """Checks every module of these folders that has shapes, from its import on.

    Others are left alone: checking costs more than what a short function does, and half of the calls are of formulas'
    text.
    """
    names = {
        ".".join((package.name, *path.relative_to(package).with_suffix("").parts))
        for station in stations
        for path in (package / station).rglob("*.py")
        if "from jaxtyping import" in path.read_text(encoding="utf-8")
    }
    assert f"{package.name}.model.attention" in names
    assert not names & sys.modules.keys(), "imported before its shapes could be checked"
    sys.meta_path.insert(0, _Finder(names))
