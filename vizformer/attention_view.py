"""`vf.view`: attention of a trace, or of any program without a model, in a notebook or as an HTML file.

vf.view(checkpoint.trace("..."), kind="cross") # every layer and head
vf.view("trace.safetensors", kind="cross")     # the same of a trace that was saved (`trace.save`); of a .npz too
vf.view(trace, site="decoder.2.cross")         # the heads of one layer; trace["decoder.2.cross"] does the same
vf.view(trace, site="decoder.2.pre")           # the stream at a site, as a table
vf.view(attentions, tokens)                    # [layers, heads, n, n], or a list with an array for each layer
vf.view(attentions, tokens).save("maps.html")  # works without a server and without a network
"""

import html
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from vizformer.analysis import Kind, TraceHeads, TraceNumbers
from vizformer.analysis.heads.attention_arrays import MAX_BYTES, as_arrays, attention_groups, labels, read_attention
from vizformer.components import attention, lines, matrix, reading
from vizformer.components._mount import Html
from vizformer.components.contract import Heads, Numbers
from vizformer.errors import TraceError
from vizformer.messages import Message
from vizformer.model import AttentionRecord, Trace
from vizformer.model.trace_file import is_trace, open_trace

MOST_BYTES = (
    60_000_000  # of numbers in a file; of a larger one it has small maps and one head, or the lines of one layer
)
_PICTURES = {"map": attention, "lines": lines, "text": reading}
Picture = Literal["map", "lines", "text"]


class _Picture(ABC):
    """What Jupyter shows by itself."""

    @property
    @abstractmethod
    def html(self) -> Html:
        """The text of one HTML file."""

    def save(self, path: str | Path) -> None:
        Path(path).write_text(self.html, encoding="utf-8")


@dataclass(frozen=True)
class AttentionView(_Picture):
    """The heads of one kind of attention.

    Attributes:
        heads: whoever has their numbers.
        query_tokens, key_tokens: the labels.
        picture: "map", "lines" between the tokens, or the "text" coloured by one head.
        caption: which attention it is, where that is known.
        layers: the number of each layer; None: 0, 1, ...
        notes: what is to say about the numbers (rows that do not sum to 1).
    """

    heads: Heads
    query_tokens: Sequence[str]
    key_tokens: Sequence[str]
    picture: Picture = "map"
    caption: str = ""
    layers: Sequence[int] | None = None
    notes: tuple[Message, ...] = ()

    @property
    def html(self) -> Html:
        component, pack = _PICTURES[self.picture], lines.pack_lines if self.picture == "lines" else attention.pack
        names = {"query_tokens": self.query_tokens, "key_tokens": self.key_tokens}
        page: Html = component.to_html(pack(self.heads, limit=MOST_BYTES), layers=self.layers, **names)
        return page

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>{html.escape(str(note))}</p>" for note in (self.caption, *self.notes) if note)
        return notes + self.html._repr_html_()


@dataclass(frozen=True)
class StreamView(_Picture):
    """The residual stream at a site, a row for each token; of many tokens and numbers the first ones and the last.

    Attributes:
        numbers: whoever has them.
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


def view(
    source: object,
    tokens: Sequence[str] = (),
    *,
    key_tokens: Sequence[str] = (),
    kind: Kind | None = None,
    site: str = "",
    picture: Picture = "map",
) -> AttentionView | StreamView:
    """Attention weights as a picture, wherever they come from.

    Args:
        source: [layers, heads, queries, keys], [layers, 1, heads, queries, keys], [heads, queries, keys] or
            [queries, keys]; or a list or dict with one of the last two for each layer. Of numpy or PyTorch.
            Or a `Trace`, one attention call of it (`trace[site]`), or the path of a file: of a trace that was saved, or
            of arrays (.npz, .npy, .safetensors).
        tokens: the label of each query, and of each key where `key_tokens` are not given. A trace brings its own.
        kind: of attention, of a trace that has several; without it the cross-attention.
        site: of a trace, one attention call alone, or the stream there.
        picture: "map", "lines" or "text".

    Raises:
        TraceError: numbers that are no weights, shapes that have no place here, another number of tokens; a trace that
            is empty or lacks the kind or the site; a file that is damaged or too large, or that does not hold together.
    """
    if isinstance(source, str | Path) and is_trace(source):
        source = open_trace(source)  # not read as a whole, as arrays are
    if isinstance(source, Trace | AttentionRecord):
        return _of_trace(source, tokens, key_tokens, kind, site, picture)
    given = tuple(map(str, tokens)), tuple(map(str, key_tokens))
    if isinstance(source, str | Path):
        with Path(source).open("rb") as file:
            groups = read_attention(Path(source).name, file.read(MAX_BYTES + 1), *given)
    else:
        groups = attention_groups(as_arrays(source), *given)
    if len(groups) > 1:
        raise TraceError(
            "These are several kinds of attention: {names}. Hand in one of them.", names=", ".join(list(groups)[:8])
        )
    found = next(iter(groups.values()))
    return AttentionView(found, found.query_tokens, found.key_tokens, picture, notes=found.notes)


def _of_trace(
    source: Trace | AttentionRecord,
    tokens: Sequence[str],
    key_tokens: Sequence[str],
    kind: Kind | None,
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


def _joined(caption: Sequence[str], assumed: Sequence[str]) -> str:
    said = f"computed under these assumptions: {', '.join(assumed)}" if assumed else ""
    return " · ".join(part for part in (*caption, said) if part)
