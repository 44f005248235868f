"""Models of the server's own code for tests: what `vizformer --model` would have named."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from vizformer.checkpoints import own_code

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = (ROOT / "docs" / "own_model.md").read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]


@contextmanager
def named(monkeypatch: pytest.MonkeyPatch, *files: Path, function: str = own_code.USUAL) -> Iterator[None]:
    """This process serves the models of some files; afterwards modules are those of before."""
    monkeypatch.setenv(own_code.VARIABLE, "\n".join(f"{file}:{function}" for file in files))
    monkeypatch.setattr(own_code, "_OPEN", {})
    monkeypatch.setattr(sys, "path", list(sys.path))
    modules, places = set(sys.modules), set(sys.path)
    yield
    new = {Path(place) for place in set(sys.path) - places}
    for name in set(sys.modules) - modules:
        if Path(getattr(sys.modules[name], "__file__", None) or "/").parent in new:
            del sys.modules[name]
