"""Our plain figures against Plotly's own objects, which know the schema."""

import base64
import hashlib
import pickle
from typing import Any

import numpy as np
import plotly.graph_objects as go

from vizformer.figures.figure import Figure

_HELD: set[bytes] = set()  # of figures that have passed, which pages show again and again


def as_json(value: Any) -> Any:
    """A figure's dict with all arrays as lists, whatever they are sent as."""
    if isinstance(value, dict) and "bdata" in value:
        array = np.frombuffer(base64.b64decode(value["bdata"]), dtype=f"<{value['dtype']}")
        shape = [int(n) for n in value["shape"].split(",")] if "shape" in value else [-1]
        return as_json(array.reshape(shape))
    if isinstance(value, dict):
        return {name: as_json(inner) for name, inner in value.items()}
    if isinstance(value, np.ndarray):
        return as_json(value.tolist())
    if isinstance(value, list | tuple):
        return [as_json(inner) for inner in value]
    if isinstance(value, np.generic):
        return as_json(value.item())
    return "nan" if isinstance(value, float) and value != value else value


def plotly_has(figure: go.Figure) -> Any:
    """What Plotly makes of a figure, without its template."""
    found = figure.to_dict()
    found["layout"].pop("template", None)
    return as_json(found)


def held_against_plotly(figure: Figure) -> dict[str, Any]:
    """`figure.to_dict()`, after Plotly has checked every property and sent the same.

    Raises:
        ValueError: something in it is not in Plotly's schema.
        AssertionError: Plotly would send something else.
    """
    found = figure.to_dict()
    digest = hashlib.blake2b(pickle.dumps(found), digest_size=16).digest()
    if digest not in _HELD:
        assert as_json(found) == plotly_has(figure.plotly)
        _HELD.add(digest)
    return found
