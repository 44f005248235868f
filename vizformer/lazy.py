"""Names that a package imports on first use (PEP 562): what is not used is not imported."""

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path


def names(package: str, file: str) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package: what its file imports for type checkers, found at the first use.

    Args:
        package: its `__name__`.
        file: its `__file__`, which says below `if TYPE_CHECKING:` where each name comes from.
    """
    blocks = [node for node in ast.parse(Path(file).read_text(encoding="utf-8")).body if isinstance(node, ast.If)]
    imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
    where = {alias.asname or alias.name: (str(node.module), alias.name) for node in imports for alias in node.names}

    def find(name: str) -> object:
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, there = where[name]
        if module == package:
            return import_module(f"{package}.{name}")
        value = getattr(import_module(module), there)
        setattr(sys.modules[package], name, value)  # kept; else a module of the same name would stand here
        return value

    return find, lambda: sorted({*vars(sys.modules[package]), *where}), [*where]
