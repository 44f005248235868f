"""The common part of all components: their source text, mounting on a Streamlit page, and writing to a file."""

import base64
import html
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from vizformer.components import _bundle, _echo
from vizformer.word_tables import spoken, words_of

Column = NDArray[np.generic]
Value = TypeVar("Value")
NO_COLUMNS: Mapping[str, Column] = {}

_FOLDER = Path(__file__).parent


KNOWN: dict[str, "Component"] = {}
"""The components whose modules were loaded, by their entries."""


@dataclass(frozen=True)
class Component:
    """A component of the browser, made of `<entry>.js`, `common.css` and `<entry>.css`.

    `words`: its texts in English, by the names of its script, which are sent in the language of whoever looks.
    `drawn`: whether there is anything to see; otherwise there are no style sheets.
    """

    entry: str
    words: Mapping[str, str] = field(default_factory=dict, compare=False)
    drawn: bool = True

    def __post_init__(self) -> None:
        KNOWN[self.entry] = self

    @property
    def script(self) -> str:
        """Its JavaScript, with everything that this imports, as one ES module."""
        return _bundle.bundle(_FOLDER / f"{self.entry}.js")

    @property
    def style(self) -> str:
        return _styles(self.entry) if self.drawn else ""

    def mount(
        self,
        data: Mapping[str, Any],
        columns: Mapping[str, Column] = NO_COLUMNS,
        *,
        words: Mapping[str, str] | None = None,
        version: int = 0,
        selected: object = None,
        key: str,
    ) -> None:
        """Puts the component on the page, its numbers as one Arrow column each; `words` that are not the usual ones."""
        import pyarrow as pa

        tables = {name: pa.table({name: pa.array(column)}) for name, column in columns.items()}
        content = {**self._said(data, words), **tables, "key": key, "version": version, "selected": selected}
        renderer(self)(key=streamlit_key(key), data=content, on_selected_change=nothing)

    def page(
        self,
        data: Mapping[str, Any],
        columns: Mapping[str, Column] = NO_COLUMNS,
        *,
        words: Mapping[str, str] | None = None,
        selected: object = None,
        title: str,
        language: str = "en",
    ) -> "Html":
        """A file that shows the component by itself: the same JavaScript, the numbers as base64, no network."""
        packed = {name: base64.b64encode(_bytes(column)).decode("ascii") for name, column in columns.items()}
        types = {name: column.dtype.name for name, column in columns.items()}
        said = {**self._said(data, words), **packed, "types": types}
        content = json.dumps({**said, "static": True, "version": 1, "selected": selected})
        text = (
            (_FOLDER / "page.html")
            .read_text(encoding="utf-8")
            .format(
                language=html.escape(language),
                title=html.escape(title),
                css=self.style,
                js=self.script,
                entry=self.entry,
                data=content.replace("<", "\\u003c"),  # a token may be "</script>"
            )
        )
        return Html(text)

    def _said(self, data: Mapping[str, Any], words: Mapping[str, str] | None) -> Mapping[str, Any]:
        return {**data, "words": {**spoken(self.words), **(words or {})}} if self.words else data


@cache
def _styles(entry: str) -> str:
    paths = [_FOLDER / "common.css", _FOLDER / f"{entry}.css"]
    return "\n".join(path.read_text(encoding="utf-8") for path in paths)


def send_instead(instead: Callable[[Component], tuple[str, str]]) -> None:
    """Has messages hold what this makes of a component, a script and a style sheet, in the place of its own."""
    global _instead
    _instead = instead


def renderer(component: Component) -> Any:
    """The function that mounts the component on a Streamlit page; it is registered once."""
    return _registered(component, _instead)


@cache
def _registered(component: Component, instead: Callable[[Component], tuple[str, str]]) -> Any:
    import streamlit as st

    script, style = instead(component)
    return st.components.v2.component(f"vizformer_{component.entry}", js=script, css=style)


def _itself(component: Component) -> tuple[str, str]:
    return component.script, component.style


_instead: Callable[[Component], tuple[str, str]] = _itself


def nothing() -> None:
    """Streamlit reports a state only where it is given something to call."""


def streamlit_key(key: str) -> str:
    """A key that may hold what a reader typed, as Streamlit takes it: not with two underscores, for a component."""
    return key.replace("__", "\u2017")


def reported(key: str) -> Mapping[str, Any]:
    """The values that the browser last reported of the component with this key, by name."""
    import streamlit as st

    state = st.session_state.get(streamlit_key(key))
    return state if isinstance(state, Mapping) else {}


def news(key: str) -> Mapping[str, Any]:
    """The last press in a component that numbers its reports (`seq`); returned once, then empty."""
    import streamlit as st

    heard, report = f"_heard of {key}", reported(key).get("selected")
    if not isinstance(report, Mapping) or not isinstance(report.get("seq"), int | float):
        return {}
    if report["seq"] == st.session_state.get(heard):
        return {}
    st.session_state[heard] = report["seq"]
    return report


def current(
    key: str, argument: Value | None, parse: Callable[[Mapping[str, Any]], Value | None], *, ahead: bool = False
) -> tuple[Value | None, _echo.Echo]:
    """The current selection, and the record of the exchange with the browser (see `_echo`).

    `ahead`: only predicts the selection; the record is not changed.
    """
    import streamlit as st

    slot = f"_echo of {key}"
    echo = st.session_state.get(slot)
    if not isinstance(echo, _echo.Echo):
        echo = _echo.open_echo(argument)
        if not ahead:
            st.session_state[slot] = echo
    elif ahead:
        echo = replace(echo)
    report, seq = _echo.read_report(echo, reported(key).get("selected"))
    return _echo.settle(echo, argument, None if report is None else parse(report), seq), echo


class Html(str):
    """The text of an HTML file; a notebook shows it in a frame of its own."""

    height = 760

    def _repr_html_(self) -> str:
        """The frame; of a notebook that is not trusted viewers leave out frame and style, so that the sentence is seen."""
        return (
            f'<style>.vf-left-out{{display:none}}</style><p class="vf-left-out">{html.escape(LEFT_OUT)}</p>'
            f'<iframe srcdoc="{html.escape(self)}" style="width:100%;height:{self.height}px;border:0"></iframe>'
        )


LEFT_OUT = words_of(__file__)["left_out"]


def _bytes(column: Column) -> bytes:
    return np.ascontiguousarray(column, dtype=column.dtype.newbyteorder("<")).tobytes()  # as browsers read them
