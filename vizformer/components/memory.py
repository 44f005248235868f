"""What a reader's own browser remembers of the course, without an account: names of what has been done.

    done = mount({"masks/leak"}, forgotten=0, key="progress")     # joined with what the browser kept from before

The names lie in the browser's localStorage: they outlive the session, the server and its restarts.  Nothing is drawn.
"""

from collections.abc import Collection, Mapping
from typing import Any

from vizformer.components import _mount

__all__ = ["mount"]

_COMPONENT = _mount.Component("memory", drawn=False)
_LONGEST, _MOST = 80, 500


def mount(done: Collection[str], *, forgotten: int, key: str) -> frozenset[str]:
    """Tells the browser what was done, and returns that together with what the browser remembers.

    Args:
        done: names, as this session knows them.
        forgotten: grows when the reader asks to forget; what the browser kept from before then is dropped.
    """
    import streamlit as st

    state = st.session_state.get(key)
    known = frozenset(done) | _kept(state, forgotten)
    data = {"done": sorted(known), "forgotten": forgotten}
    _mount.renderer(_COMPONENT)(key=key, data=data, on_kept_change=_mount.nothing)
    return known


def _kept(state: object, forgotten: int) -> frozenset[str]:
    """The browser's report, as long as it speaks of the time since the last forgetting."""
    report = state.get("kept") if isinstance(state, Mapping) else None
    if not isinstance(report, Mapping) or report.get("forgotten") != forgotten:
        return frozenset()
    names: Any = report.get("done")
    if not isinstance(names, list):
        return frozenset()
    return frozenset(name for name in names[:_MOST] if isinstance(name, str) and len(name) <= _LONGEST)
