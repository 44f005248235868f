"""`vf.view`: attention of a trace, or of any program without a model, in a notebook or as an HTML file.

vf.view(checkpoint.trace("..."), kind="cross") # every layer and head
vf.view("trace.safetensors", kind="cross")     # the same of a trace that was saved (`trace.save`); of a .npz too
vf.view(trace, site="decoder.2.cross")         # the heads of one layer; trace["decoder.2.cross"] does the same
vf.view(trace, site="decoder.2.pre")           # the stream at a site, as a table
vf.view(vf.record(model, ids))                 # what any PyTorch model's attention computed
vf.view(outputs, tokens)                       # the output of a model of transformers, or of its generate()
vf.view(outputs.attentions, tokens)            # a list with an array for each layer
vf.view(array, tokens, first_axis="layers")    # [layers, heads, n, n]; "texts" where the first axis is a batch's
vf.view(attentions, tokens).save("maps.html")  # works without a server and without a network

shown = vf.view(trace)                         # with anywidget installed (`pip install "vizformer[notebook]"`) a widget
shown.head                                     # what is chosen in it: layer, head, query, key; None where nothing is
shown.layer, shown.head = 2, 3                 # the picture follows
shown.observe(lambda change: print(change.new), "head")
"""

import html
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, overload

from vizformer.analysis import TraceHeads, TraceNumbers
from vizformer.analysis.heads.trace_heads import RecordedNumbers, recorded_heads
from vizformer.analysis.other_programs.attention_arrays import (
    NOTEBOOK,
    AttentionArrays,
    Tokens,
    attention_groups,
    labels,
    texts_of,
)
from vizformer.analysis.other_programs.attention_files import read_attention
from vizformer.analysis.other_programs.attention_outputs import collect
from vizformer.components import attention, lines, matrix, reading
from vizformer.components._mount import Html
from vizformer.components.contract import Heads, Numbers
from vizformer.components.packing import LIMIT_BYTES, HeadsPayload
from vizformer.errors import TraceError
from vizformer.messages import N_, Message
from vizformer.model import AttentionRecord, Trace
from vizformer.model.trace_file import is_trace, open_trace
from vizformer.recorder import RecordedAttention, RecordedTrace

if TYPE_CHECKING:
    from vizformer.components.notebook import HeadsWidget

# The most bytes of numbers in a file. A larger view gets small maps and one head, or the lines of one layer.
MOST_BYTES = 60_000_000
_PICTURES = {"map": attention, "lines": lines, "text": reading}
STILL_BYTES = 1_000_000  # of numbers in the picture that a notebook keeps beside a widget
MOST_PICTURES = 16  # the most pictures in one view, one below the other
Picture = Literal["map", "lines", "text"]
FirstAxis = Literal["layers", "texts"]


class _Picture(ABC):
    """A view that Jupyter displays as a picture and that can be saved as an HTML file."""

    @property
    @abstractmethod
    def html(self) -> Html:
        """The picture as one HTML file."""

    def save(self, path: str | Path) -> None:
        Path(path).write_text(self.html, encoding="utf-8")


class _Chosen:
    """A trait of the widget."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, view: "AttentionView | None", owner: type) -> Any:
        return self if view is None else getattr(view.widget, self.name)

    def __set__(self, view: "AttentionView", value: SupportsIndex | None) -> None:
        setattr(view.widget, self.name, value)


@dataclass(eq=False)
class AttentionView(_Picture):
    """The heads of one kind of attention: a widget where anywidget is installed, else a picture that Python does not hear.

    Attributes:
        heads: the source of their numbers.
        query_tokens, key_tokens: the labels.
        picture: "map", "lines" between the tokens, or the "text" coloured by one head.
        caption: which attention it is, if it is known.
        layers: the number of each layer; None: 0, 1, ...
        notes: remarks about the numbers (for example: rows that do not sum to 1).
        layer, head, query, key: what is chosen in the widget, by the numbers that stand in it, to be read and set; None
            where none is, and the head of "lines" where several are shown. One that does not exist is a TraitError of
            traitlets.
    """

    layer, head, query, key = _Chosen(), _Chosen(), _Chosen(), _Chosen()

    heads: Heads
    query_tokens: Sequence[str]
    key_tokens: Sequence[str]
    picture: Picture = "map"
    caption: str = ""
    layers: Sequence[int] | None = None
    notes: tuple[Message, ...] = ()
    limit: int | None = None  # bytes of numbers in the file; default MOST_BYTES

    @property
    def html(self) -> Html:
        at = self._selected
        return self._page(self._packed(at.layer, getattr(at, "head", 0)) if at else self._packed())

    @property
    def _selected(self) -> Any:
        return self.widget.selected if "widget" in self.__dict__ else None

    def _packed(self, layer: int = 0, head: int = 0, most: int = MOST_BYTES) -> HeadsPayload:
        limit = min(most, self.limit or MOST_BYTES)
        if self.picture == "lines":
            return lines.pack_lines(self.heads, layer=layer, limit=limit)
        return attention.pack(self.heads, chosen=(layer, head), limit=limit)

    def _page(self, payload: HeadsPayload) -> Html:
        names = {"query_tokens": self.query_tokens, "key_tokens": self.key_tokens, "layers": self.layers}
        page: Html = _PICTURES[self.picture].VIEW.to_html(payload, selected=self._selected, **names)
        return page

    @property
    def _said(self) -> list[str]:
        return [str(note) for note in (self.caption, *self.notes) if note]

    def _repr_html_(self) -> str:
        return self._framed(self.html)

    def _framed(self, page: Html) -> str:
        return "".join(f"<p>{html.escape(one)}</p>" for one in self._said) + page._repr_html_()

    @cached_property
    def widget(self) -> "HeadsWidget":
        """The widget of anywidget; it is made when it is first asked for.

        Raises:
            TraceError: anywidget is not installed.
        """
        if not find_spec("anywidget"):
            raise TraceError('What is chosen in a picture is read with anywidget: pip install "vizformer[notebook]".')
        from vizformer.components.notebook import HeadsWidget

        return HeadsWidget(
            _PICTURES[self.picture].VIEW,
            lambda layer, head: self._packed(layer, head, LIMIT_BYTES),
            query_tokens=self.query_tokens,
            key_tokens=self.key_tokens,
            layers=self.layers,
            notes=self._said,
        )

    def observe(self, handler: Callable[[Any], object], names: str | Sequence[str]) -> None:
        """Calls `handler` with each change of `names`, for example "head"; see traitlets."""
        self.widget.observe(handler, names)

    def _repr_mimebundle_(self, **_: object) -> tuple[dict[str, Any], dict[str, Any]]:
        """The widget, and beside it a smaller picture for whoever opens the notebook without a kernel."""
        if not find_spec("anywidget"):
            return {}, {}
        payload, at = self.widget.payload, self.widget.selected
        if payload.complete and payload.nbytes > STILL_BYTES and self.picture != "lines":
            payload = self._packed(at.layer, at.head, STILL_BYTES)
        still = self._framed(self._page(payload)) if payload.nbytes <= 1.5 * STILL_BYTES else ""
        bundle, about = self.widget._repr_mimebundle_() or ({}, {})
        return {**bundle, "text/html": still}, about

    def _display_(self) -> object:
        """What marimo shows."""
        return self.widget if find_spec("anywidget") else self.html


@dataclass(frozen=True)
class AttentionViews(_Picture):
    """Heads of several shapes or kinds, one picture below the other.

    Attributes:
        views: a picture each, whose caption is the name of its arrays.
    """

    views: tuple[AttentionView, ...]

    @property
    def html(self) -> Html:
        title = html.escape(", ".join(view.caption for view in self.views))
        return Html(f'<!doctype html><meta charset="utf-8"><title>{title}</title>{self._repr_html_()}')

    def _repr_html_(self) -> str:
        return "".join(view._repr_html_() for view in self.views)

    def _ipython_display_(self) -> None:
        from IPython.display import display

        display(*self.views)  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class StreamView(_Picture):
    """The residual stream at a site, one row for each token; if there are many tokens or numbers, the first ones and
    the last.

    Attributes:
        numbers: the source of the numbers.
        site: "decoder.2.pre".
        caption: which stream it is.
    """

    numbers: Numbers
    site: str
    caption: str

    @property
    def html(self) -> Html:
        return Html(f'<!doctype html><meta charset="utf-8"><title>{html.escape(self.site)}</title>{self._repr_html_()}')

    def _repr_html_(self) -> str:
        table = matrix.to_html(
            self.numbers.stream(self.site), rows=self.numbers.tokens(self.site), caption=self.caption
        )
        return matrix.style() + table


@overload
def view(source: Trace, *, kind: str | None = None, picture: Picture = "map") -> AttentionView: ...


@overload
def view(
    source: object,
    tokens: Sequence[str] = (),
    *,
    key_tokens: Sequence[str] = (),
    kind: str | None = None,
    site: str = "",
    picture: Picture = "map",
    first_axis: FirstAxis | None = None,
    text: int | None = None,
) -> AttentionView | AttentionViews | StreamView: ...


def view(
    source: object,
    tokens: Sequence[str] = (),
    *,
    key_tokens: Sequence[str] = (),
    kind: str | None = None,
    site: str = "",
    picture: Picture = "map",
    first_axis: FirstAxis | None = None,
    text: int | None = None,
) -> AttentionView | AttentionViews | StreamView:
    """Attention weights as a picture, wherever they come from.

    Args:
        source: [layers, heads, queries, keys], [layers, texts, heads, queries, keys], [heads, queries, keys] or
            [queries, keys]; or a list or dict with an array for each layer. Of numpy or PyTorch.
            The output of a model (`outputs.attentions` of transformers, and of its decoder), or of `generate()`, whose
            steps are joined. Or a `Trace`, one attention call of it (`trace[site]`), or the path of a file: of a trace
            that was saved, or of arrays (.npz, .npy, .safetensors, .json).
            Or what `vf.record` hands back, or one attention call of it.
        tokens: the label of each query, and of each key where `key_tokens` are not given. A trace brings its own.
        kind: the kind of attention, or the name of an array, if there are several; default: the cross-attention of a trace,
            and of arrays all, one below the other.
        site: the one attention call of a trace to be shown, or a point of its stream.
        picture: "map", "lines" or "text".
        first_axis: for one array [n, heads, queries, keys], whether n counts layers or the texts of a batch.
        text: which text of a batch, counted from 0.

    Raises:
        TraceError: numbers that are no weights, shapes that do not fit, another number of tokens; no weights, as
            fused kernels have none; one array whose first axis may be either, and a batch without `text`; a trace that
            is empty or lacks the kind or the site; a file that is missing, damaged or too large, or does not hold together.
    """
    if isinstance(source, str | Path):
        if not Path(source).is_file():
            raise TraceError("There is no file {path}.", path=str(source)[:200])
        if is_trace(source):
            source = open_trace(source)  # the file of a trace is not read as a whole, a file of arrays is
    if isinstance(source, RecordedTrace | RecordedAttention):
        return _of_recorded(source, tokens, key_tokens, kind, site, picture)
    if isinstance(source, Trace | AttentionRecord):
        return _of_trace(source, tokens, key_tokens, kind, site, picture)
    given = Tokens(tuple(map(str, tokens)), tuple(map(str, key_tokens)))
    if isinstance(source, str | Path):
        with Path(source).open("rb") as file:
            groups = read_attention(Path(source).name, file.read(NOTEBOOK.file + 1), given, NOTEBOOK)
    else:
        groups = attention_groups(collect(source, NOTEBOOK), given, NOTEBOOK)
    groups = _of_kind(_of_text(groups, first_axis, text), kind)
    if len(groups) == 1:
        return _drawn(next(iter(groups.values())), picture)
    limit = MOST_BYTES // len(groups)
    return AttentionViews(tuple(_drawn(found, picture, name, limit) for name, found in groups.items()))


def _drawn(found: AttentionArrays, picture: Picture, name: str = "", limit: int | None = None) -> AttentionView:
    return AttentionView(
        found, found.query_tokens, found.key_tokens, picture, name, found.numbers, notes=found.notes, limit=limit
    )


def _of_text(
    groups: dict[str, AttentionArrays], first_axis: FirstAxis | None, text: int | None
) -> dict[str, AttentionArrays]:
    """The arrays of one text of a batch. For one array with four dimensions the caller says what its first axis is."""
    found: dict[str, AttentionArrays] = {}
    for name, arrays in groups.items():
        if arrays.either and first_axis is None and text is None:
            raise TraceError(
                'The array has {n} in its first axis: {n} layers, or {n} texts of a batch? Say first_axis="layers", or '
                "text=0 for the first of the texts.",
                n=arrays.shape[0],
            )
        found |= texts_of(name, arrays) if arrays.either and first_axis != "layers" else {name: arrays}
    texts = sorted({arrays.text for arrays in found.values() if arrays.text is not None})
    if texts and text is None:
        raise TraceError("These are {n} texts of a batch. Say which one: text=0 is the first.", n=len(texts))
    if text is not None and texts and text not in texts:
        raise TraceError("There is no text {text}: they are counted from 0 to {last}.", text=text, last=texts[-1])
    return {name: arrays for name, arrays in found.items() if arrays.text in (None, text)}


def _of_kind(groups: dict[str, AttentionArrays], kind: str | None) -> dict[str, AttentionArrays]:
    names = ", ".join(list(groups)[:8])
    if kind is not None and len(groups) > 1:
        chosen = {
            name: found for name, found in groups.items() if name == kind or name.startswith((f"{kind}[", f"{kind} "))
        }
        if not chosen:
            raise TraceError("There is no {kind} among these: {names}.", kind=kind[:60], names=names)
        return chosen
    if len(groups) > MOST_PICTURES:
        raise TraceError(
            "These are {n} kinds or shapes of attention: {names}, … Choose one with kind=.", n=len(groups), names=names
        )
    return groups


def _of_trace(
    source: Trace | AttentionRecord,
    tokens: Sequence[str],
    key_tokens: Sequence[str],
    kind: str | None,
    site: str,
    picture: Picture,
) -> AttentionView | StreamView:
    caption = [""]
    if isinstance(source, AttentionRecord):
        heads, assumed = TraceHeads((source,)), source.assumed
    else:
        numbers = TraceNumbers(source)
        caption, assumed = [numbers.about.get("model", "")], source.assumed
        if site in numbers.streams:
            return StreamView(numbers, site, _joined([*caption, site], assumed))
        first = "cross" if "cross" in numbers.kinds else next(iter(numbers.kinds), "")
        heads = TraceHeads((source[site],)) if site else numbers.heads(kind or first)
    sites = [record.site for record in heads.records]
    queries, keys = labels(*heads.shape[2:], tokens or heads.query_tokens, key_tokens or heads.key_tokens)
    caption += [" … ".join(dict.fromkeys((sites[0], sites[-1])))]
    layers = [int(one.split(".")[1]) for one in sites]
    return AttentionView(heads, queries, keys, picture, _joined(caption, assumed), layers)


def _of_recorded(
    source: RecordedTrace | RecordedAttention,
    tokens: Sequence[str],
    key_tokens: Sequence[str],
    kind: str | None,
    site: str,
    picture: Picture,
) -> AttentionView | StreamView:
    """The view of a recorded model. If it ran several times, the last run is shown. The notes say so, and they name the
    calls that the recorder could not follow and the numbers that are not the model's own.
    """
    notes: list[Message] = []
    caption: list[str] = []
    sites: tuple[str, ...]
    if isinstance(source, RecordedAttention):
        heads, sites = recorded_heads([source]), (source.site,)
    else:
        if (runs := source.n_runs) > 1:
            notes.append(N_("Run {n} of {n}: the last.", n=runs))
            source = source.run(runs - 1)
        if not source.sites:
            raise TraceError("No attention was recorded. {escaped}", escaped=source.escaped or "")
        notes += source.escaped
        numbers, caption = RecordedNumbers(source), [source.model_name]
        if site in numbers.streams and site not in source.sites:
            return StreamView(numbers, site, _joined([*caption, site], ()))
        if site:
            heads, sites = recorded_heads([source[site]]), (site,)
        else:
            kind = kind or next((one for one in numbers.kinds if " cross" in one), numbers.kinds[0])
            heads, sites = numbers.heads(kind), numbers.sites(kind)
    drawn = (source,) if isinstance(source, RecordedAttention) else source.attention
    notes += [said for one in drawn if one.site in sites and (said := one.unproved) is not None]
    queries, keys = labels(*heads.shape[2:], tokens or heads.query_tokens, key_tokens or heads.key_tokens)
    caption.append(" … ".join(dict.fromkeys((sites[0], sites[-1]))))
    return AttentionView(heads, queries, keys, picture, _joined(caption, ()), notes=tuple(notes))


def _joined(caption: Sequence[str], assumed: Sequence[str]) -> str:
    said = f"computed under these assumptions: {', '.join(assumed)}" if assumed else ""
    return " · ".join(part for part in (*caption, said) if part)
