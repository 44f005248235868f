"""What a reader's own browser remembers of the course, without an account: names of what has been done.

    done, missed = mount({"masks/leak"}, {}, forgotten=0, key="progress")  # joined with what the browser kept from before

The names lie in the browser's localStorage: they outlive the session, the server and its restarts.  Nothing is drawn.
"""

from collections.abc import Collection, Mapping
from typing import Any

from vizformer.components import _mount

_COMPONENT = _mount.Component("memory", drawn=False)
_LONGEST, _MOST = 80, 500
NEXT_DAY = 20 * 3600 * 1000
"""The milliseconds after which a question of a lesson or of the path is asked again the next day."""
Missed = Mapping[str, tuple[int, int]]  # name -> when it was judged last (ms since 1970), and how: a small number


def mount(
    done: Collection[str], missed: Missed, *, forgotten: int, key: str
) -> tuple[frozenset[str], dict[str, tuple[int, int]]]:
    """Tells the browser what was done and missed, and returns that together with what the browser remembers.

    `missed`: what is to be asked again; of two judgements of a name the later one counts.
    `forgotten`: grows when the reader asks to forget; what the browser kept from before then is dropped.
    """
    import streamlit as st

    kept_done, kept_missed = _kept(st.session_state.get(key), forgotten)
    known, judged = frozenset(done) | kept_done, dict(missed)
    for name, one in kept_missed.items():
        judged[name] = max(one, judged.get(name, one))
    data = {"done": sorted(known), "missed": {name: list(one) for name, one in judged.items()}, "forgotten": forgotten}
    _mount.renderer(_COMPONENT)(key=key, data=data, on_kept_change=_mount.nothing)
    return known, judged


def _kept(state: object, forgotten: int) -> tuple[frozenset[str], Missed]:
    """The browser's report, as long as it speaks of the time since the last forgetting."""
    report = state.get("kept") if isinstance(state, Mapping) else None
    if not isinstance(report, Mapping) or report.get("forgotten") != forgotten:
        return frozenset(), {}
    names, missed = report.get("done"), report.get("missed")
    listed = names[:_MOST] if isinstance(names, list) else []
    judged = list(missed.items())[:_MOST] if isinstance(missed, Mapping) else []
    return (
        frozenset(name for name in listed if _is_name(name)),
        {name: (int(one[0]), int(one[1])) for name, one in judged if _is_name(name) and _is_judgement(one)},
    )


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and len(name) <= _LONGEST


def _is_judgement(one: Any) -> bool:
    return isinstance(one, list) and len(one) == 2 and all(isinstance(n, int) and 0 <= n < 2**53 for n in one)
