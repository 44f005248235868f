"""The shapes in the signatures of vizformer are checked whenever a test calls them.

As jaxtyping's own import hook does; but that checks every argument twice, and binds every call to its signature anew:
a third of the processor time of what tests compute.
"""

import ast
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, get_args

from beartype import beartype
from jaxtyping import AbstractArray, jaxtyped


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """A letter in a shape stands for one size throughout a call: in all arguments and in what is returned."""
    inner: Callable[..., Any] = beartype(function)
    if not any(_has_shape(hint) for hint in function.__annotations__.values()):
        return inner

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with jaxtyped("context"):
            return inner(*args, **kwargs)

    return call


def _has_shape(hint: Any) -> bool:
    """A hint in quotes may have one."""
    if isinstance(hint, str) or (isinstance(hint, type) and issubclass(hint, AbstractArray)):
        return True
    return any(_has_shape(part) for part in get_args(hint))


checked_class = jaxtyped(typechecker=beartype)  # the fields of a dataclass, whenever one is made


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
