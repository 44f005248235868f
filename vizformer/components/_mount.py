"""The common part of all components: source text, mounting on a Streamlit page, files; and of the views of heads."""

import base64
import html
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from vizformer.components import _bundle
from vizformer.components.packing import HeadsPayload, describe
from vizformer.word_tables import spoken, words_of

Column = NDArray[np.generic]
Value = TypeVar("Value")
NO_COLUMNS: Mapping[str, Column] = {}

_FOLDER = Path(__file__).parent

KNOWN: dict[str, "Component"] = {}
"""The components whose modules were loaded, by their entries."""

State = Any  # a JSON value: what a component has selected


@dataclass
class Echo:
    """The values last exchanged between the page and one mounted component."""

    version: int  # number of the value last sent; the browser ignores a value whose version it has seen
    sent: State  # that value
    argument: State  # what the page passed in the last run
    returned: State  # what `mount` returned in the last run
    seq: int | None = None  # serial number of the last report from the browser; None until there is one

    def bump(self, value: State) -> None:
        """Makes a new version; reports that speak of an older one no longer count."""
        self.version = max(self.version + 1, _now())
        self.sent = value


def _now() -> int:
    return time.time_ns() // 1_000_000


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
        return style_of(self.entry) if self.drawn else ""

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
        content = {**self.content(data, columns, words), "static": True, "version": 1, "selected": selected}
        return page_of(self.entry, self.style, content, title=title, language=language)

    def content(
        self, data: Mapping[str, Any], columns: Mapping[str, Column], words: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """What it is called with outside of Streamlit, as JSON."""
        return {**self._said(data, words), **as_text(columns)}

    @property
    def notebook_script(self) -> str:
        """Its JavaScript as anywidget loads it; its style sheets come with it."""
        css = json.dumps(outside_style(self.style))
        return f"{outside_script(self.entry)}export default inNotebook({self.entry}, {css});\n"

    def _said(self, data: Mapping[str, Any], words: Mapping[str, str] | None) -> Mapping[str, Any]:
        return {**data, "words": {**spoken(self.words), **(words or {})}} if self.words else data


def page_of(entry: str, style: str, content: Mapping[str, Any], *, title: str, language: str) -> "Html":
    """A file that calls `<entry>.js` with this content."""
    text = (_FOLDER / "page.html").read_text(encoding="utf-8")
    return Html(
        text.format(
            language=html.escape(language),
            title=html.escape(title),
            css=outside_style(style),
            js=outside_script(entry),
            entry=entry,
            data=json.dumps(content).replace("<", "\\u003c"),  # a token may be "</script>"
        )
    )


def outside_script(entry: str) -> str:
    """A script and what calls it outside of Streamlit (js/outside.js)."""
    script = _bundle.bundle(_FOLDER / f"{entry}.js", _FOLDER / "js" / "outside.js")
    return script.replace("export default ", "")


def outside_style(style: str) -> str:
    return f"{style_of('outside', common=False)}\n{style}"


def as_text(columns: Mapping[str, Column]) -> dict[str, Any]:
    """Columns as base64, and `types`, the name of the type of each: as `readColumn` in js/numbers.js reads them."""
    packed: dict[str, Any] = {
        name: base64.b64encode(_bytes(column)).decode("ascii") for name, column in columns.items()
    }
    return {**packed, "types": {name: column.dtype.name for name, column in columns.items()}}


@cache
def style_of(entry: str, *, common: bool = True) -> str:
    """The style sheets of a script; `common`: with the one that all share."""
    paths = [*([_FOLDER / "common.css"] if common else []), _FOLDER / f"{entry}.css"]
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
) -> tuple[Value | None, Echo]:
    """The current selection, and the record of the exchange with the browser (see `_echo`).

    `ahead`: only predicts the selection; the record is not changed.
    """
    import streamlit as st

    slot = f"_echo of {key}"
    echo = st.session_state.get(slot)
    if not isinstance(echo, Echo):
        echo = open_echo(argument)
        if not ahead:
            st.session_state[slot] = echo
    elif ahead:
        echo = replace(echo)
    report, seq = read_report(echo, reported(key).get("selected"))
    return settle(echo, argument, None if report is None else parse(report), seq), echo


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


# The value that a component shows: the browser's while someone clicks, Python's when its own value changes.
#
# A click is drawn at once and reported later; by the time the report has made its round trip through the server the
# reader may have clicked twice more. Sending the reported value back would throw the view back to an old click (and
# would send megabytes of unchanged heads again). So every value that Python sends carries a version, the browser
# obeys a version only once, and Python makes a new one only when the page asks for something that did not come from
# the browser.
def open_echo(argument: State) -> Echo:
    """The beginning of the conversation; versions start at the clock so that a restarted server repeats none."""
    return Echo(version=_now(), sent=argument, argument=argument, returned=argument)


def settle(echo: Echo, argument: State, reported: State, seq: int | None) -> State:
    """Decides what is selected now, and makes a new version where the browser has to be told.

    `argument`: the page's own value; None where the page leaves the choice to the component.
    """
    shown, bumped = (echo.sent if reported is None else reported), False
    # a page that still passes its old value beside a new report was cut short before it could keep that report
    behind = argument == echo.argument and seq != echo.seq
    if reported is None and echo.seq is not None:
        # mounted anew, on another visit of the page: the browser starts empty
        shown, bumped = (echo.returned if argument is None else argument), True
    elif argument is not None and argument not in (shown, echo.returned) and not behind:
        shown, bumped = argument, True
    if bumped:
        echo.bump(shown)
    echo.argument, echo.returned, echo.seq = argument, shown, None if bumped else seq
    return shown


def read_report(echo: Echo, state: object) -> tuple[Mapping[str, Any] | None, int | None]:
    """The browser's report and its serial number, or (None, None) without one that speaks of the current version.

    A report without a version counts as current: tests write bare values into session state.
    """
    if not isinstance(state, Mapping) or state.get("version", echo.version) != echo.version:
        return None, None
    seq = state.get("seq", 0)
    return state, seq if isinstance(seq, int) else 0


# The base of the views of packed heads: it mounts them on a page and writes them to a file.

ByWord = tuple[Sequence[int | None], Sequence[int | None]]


class HeadsSelection(Protocol):
    """The selection in a view, with indices from 0: a dataclass whose defaults are the initial selection."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __init__(self) -> None: ...

    @classmethod
    def parse(cls, value: Mapping[str, Any]) -> Self:
        """Reads what a browser sent; anything that is not what it should be becomes the default."""

    def within(self, payload: HeadsPayload) -> Self:
        """The selection clipped to the shape of the payload."""


Selected = TypeVar("Selected", bound=HeadsSelection)


@dataclass(frozen=True)
class HeadsComponent(Generic[Selected]):
    """A view of the heads of one kind."""

    component: Component
    selection: type[Selected]
    title: str
    refused: tuple[str, str]  # which payloads it cannot show (`HeadsPayload.held`), and what to do instead
    first: Callable[[HeadsPayload], Selected]

    def peek(self, *, key: str, selected: Selected | None = None) -> Selected:
        """The selection that the next `mount` with this key and `selected` will return, before its numbers are computed.

        Not cut to the size of the heads yet: they are not known here.
        """
        shown, _ = current(key, selected, self.selection.parse, ahead=True)
        return shown or self.selection()

    def mount(
        self,
        payload: HeadsPayload,
        *,
        query_tokens: Sequence[str],
        key_tokens: Sequence[str],
        selected: Selected | None = None,
        layers: Sequence[int | str] | None = None,
        by_word: ByWord | None = None,
        words: Mapping[str, str] | None = None,
        key: str,
        height: int | None = None,
        strip: Mapping[str, Any] | None = None,
    ) -> Selected:
        """Shows the heads on a Streamlit page; what is selected now.

        Args:
            layers: label of each layer; a number stands in the component's words, a text as it is. Default 0, 1, ...
            words: those that are not the usual ones.
            by_word: the word of each query and of each key (None: a token that stands for itself), where the large map is
                to have words for rows and columns: the sum over a key word's tokens, the mean over a query word's.
            height: of the whole component in px; by default it fits the sequence.
            strip: heads that stand above the small maps where these are grouped by what the heads do: over how many
                `texts` that was measured (0: not yet, and they are found in the payload), how many heads are `resting`,
                and the `heads`, each a mapping of `layer`, `head`, `target`, `mean`, `low`, `high`.

        Raises:
            ValueError: labels that do not fit the payload, or a payload without the heads that this view shows.
        """
        data = self._data(payload, query_tokens, key_tokens, layers, by_word, height)
        data |= {} if strip is None else {"strip": dict(strip)}
        wish = None if selected is None else selected.within(payload)
        shown, echo = current(key, wish, lambda report: self.selection.parse(report).within(payload))
        sent = asdict((echo.sent or self.selection()).within(payload))
        self.component.mount(data, payload.columns, words=words, version=echo.version, selected=sent, key=key)
        return (shown or self.selection()).within(payload)

    def content(
        self,
        payload: HeadsPayload,
        query_tokens: Sequence[str],
        key_tokens: Sequence[str],
        layers: Sequence[int | str] | None,
    ) -> dict[str, Any]:
        """What a notebook calls the component with, but for what is selected."""
        return self.component.content(self._data(payload, query_tokens, key_tokens, layers), payload.columns)

    def to_html(
        self,
        payload: HeadsPayload,
        *,
        query_tokens: Sequence[str],
        key_tokens: Sequence[str],
        selected: Selected | None = None,
        layers: Sequence[int | str] | None = None,
        by_word: ByWord | None = None,
        words: Mapping[str, str] | None = None,
        height: int | None = None,
        title: str | None = None,
    ) -> Html:
        return self.component.page(
            self._data(payload, query_tokens, key_tokens, layers, by_word, height),
            payload.columns,
            words=words,
            selected=asdict((selected or self.first(payload)).within(payload)),
            title=title or self.title,
        )

    def _data(
        self,
        payload: HeadsPayload,
        query_tokens: Sequence[str],
        key_tokens: Sequence[str],
        layers: Sequence[int | str] | None,
        by_word: ByWord | None = None,
        height: int | None = None,
    ) -> dict[str, Any]:
        held, instead = self.refused
        if payload.held == held:
            raise ValueError(instead)
        data = describe(payload, query_tokens, key_tokens, layers)
        if by_word is not None:
            data |= {"query_words": list(by_word[0]), "key_words": list(by_word[1])}
            if (len(by_word[0]), len(by_word[1])) != payload.shape[2:]:
                raise ValueError(f"by_word names the words of {len(by_word[0])} queries and {len(by_word[1])} keys")
        return {**data, "height": height}
