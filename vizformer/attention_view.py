"""`vf.view`: attention of a trace, or of any program without a model, in a notebook or as an HTML file.

vf.view(checkpoint.trace("..."), kind="cross") # every layer and head
vf.view(trace["decoder.2.cross"])              # the heads of one layer
vf.view(attentions, tokens)                    # [layers, heads, n, n], or a list with an array for each layer
vf.view(attentions, tokens).save("maps.html")  # works without a server and without a network
"""

import html
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from jaxtyping import UInt8

from vizformer.analysis.heads.attention_arrays import AttentionArrays, as_arrays, attention_groups
from vizformer.components import attention, lines
from vizformer.components._mount import Html
from vizformer.errors import TraceError
from vizformer.messages import N_
from vizformer.model import AttentionRecord, Trace

MOST_BYTES = 60_000_000  # of numbers in a file; of a larger one it has small maps and one head


@dataclass(frozen=True)
class AttentionView:
    """A picture of attention arrays; Jupyter shows it by itself.

    Attributes:
        arrays: the weights, and in `notes` what is to say about them (rows that do not sum to 1).
        picture: "map", or "lines" between the tokens.
        caption: which attention it is, where that is known: the picture counts the layers that it has from 0.
    """

    arrays: AttentionArrays
    picture: Literal["map", "lines"] = "map"
    caption: str = ""

    @property
    def html(self) -> Html:
        """The text of one HTML file."""
        found, component = self.arrays, lines if self.picture == "lines" else attention
        payload = component.pack_heads(found.weights, None, found.reasons, limit=MOST_BYTES)
        page: Html = component.to_html(payload, query_tokens=found.query_tokens, key_tokens=found.key_tokens)
        return page

    def save(self, path: str | Path) -> None:
        """Writes the HTML file."""
        Path(path).write_text(self.html, encoding="utf-8")

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>{html.escape(str(note))}</p>" for note in (self.caption, *self.arrays.notes) if note)
        return notes + self.html._repr_html_()


def view(
    arrays: object,
    tokens: Sequence[str] = (),
    *,
    key_tokens: Sequence[str] = (),
    kind: Literal["encoder", "decoder", "cross"] | None = None,
    picture: Literal["map", "lines"] = "map",
) -> AttentionView:
    """Attention weights as a picture, wherever they come from.

    Args:
        arrays: [layers, heads, queries, keys], [layers, 1, heads, queries, keys], [heads, queries, keys] or
            [queries, keys]; or a list or dict with one of the last two for each layer. Of numpy or PyTorch.
            Or a `Trace`, or one attention call of it (`trace[site]`).
        tokens: the label of each query, and of each key where `key_tokens` are not given. A trace brings its own.
        kind: of attention, of a trace that has several; without it the cross-attention.
        picture: "map" or "lines".

    Raises:
        TraceError: numbers that are no weights, shapes that have no place here, another number of tokens; a trace that
            is empty or lacks the kind.
    """
    if isinstance(arrays, Trace):
        records = _of_kind(arrays, kind)
    else:
        records = [arrays] if isinstance(arrays, AttentionRecord) else []
    if records:
        arrays = {one.site: torch.stack([one.pattern(head) for head in range(one.n_heads)])[None] for one in records}
        tokens, key_tokens = tokens or records[0].tokens[0], key_tokens or records[0].tokens[1]
    groups = attention_groups(as_arrays(arrays), tuple(map(str, tokens)), tuple(map(str, key_tokens)))
    if len(groups) > 1:
        raise TraceError(
            N_("These are several kinds of attention: {names}. Hand in one of them.", names=", ".join(list(groups)[:8]))
        )
    caption = " … ".join(dict.fromkeys((records[0].site, records[-1].site))) if records else ""
    if records and records[0].assumed:
        caption += f" · computed under these assumptions: {', '.join(records[0].assumed)}"
    found = next(iter(groups.values()))
    if records:
        found = replace(found, reasons=np.stack([_reasons(one) for one in records]))
    return AttentionView(found, picture, caption)


def _reasons(record: AttentionRecord) -> UInt8[np.ndarray, "n_q n_k"]:
    """Why a cell is blocked; 0 where any head sees it."""
    shape = (record.q.shape[1], record.k.shape[1])
    if record.reason_map is None:
        return np.zeros(shape, np.uint8)
    return record.reason_map.amin(0).expand(shape).cpu().numpy()


def _of_kind(trace: Trace, kind: str | None) -> list[AttentionRecord]:
    """The attention calls of one kind, in the order of the layers."""
    kinds: dict[str, list[AttentionRecord]] = {}
    for site in trace.sites:
        kinds.setdefault("cross" if site.endswith(".cross") else site.partition(".")[0], []).append(trace[site])
    if not kinds:
        raise TraceError(N_("This trace is empty: pass it to a forward first, as model(ids, trace=trace)."))
    wanted = kind or ("cross" if "cross" in kinds else next(iter(kinds)))
    if wanted not in kinds:
        raise TraceError(
            N_(
                "This trace has no attention of the kind {kind!r}. It has: {known}.",
                kind=wanted,
                known=", ".join(kinds),
            )
        )
    return kinds[wanted]
