"""Downloads of heads, of masks and of the whole trace."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vizformer import components, figures
from vizformer.analysis import Kind, head_maps, site_name
from vizformer.analysis.heads.word_alignment import word_map, word_starts
from vizformer.components import attention, heatmap
from vizformer.components.lines import LineSelection
from vizformer.components.mask import MaskView
from vizformer.components.packing import HeadsPayload
from vizformer.figures.figure import Figure
from vizformer.model.trace_file import as_file
from vizformer.web.catalogue import subject_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link import state
from vizformer.web.link.view import Without
from vizformer.web.widgets import in_python
from vizformer.web.widgets.chart import Picture, caption, colours_said, take_away
from vizformer.web.words import labels
from vizformer.web.words.i18n import _, words

MOST_IN_A_GRID = 256 * 2**20  # bytes of the maps of all heads up to which their picture is offered


def one_head(
    subject: Subject,
    kind: Kind,
    layer: int,
    head: int,
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    scores: bool = False,
    own_range: bool = False,
    page: Callable[[], str] | None = None,
) -> Picture:
    view = state.view()
    without, level = view.without, view.level if view.picture == "map" else "tokens"
    told = head_name(kind, layer, head)

    def arrays() -> Mapping[str, Any]:
        return head_arrays(subject, kind, layer, head, without)

    def drawn() -> Figure:
        found = arrays()
        values, names = found["scores" if scores else "weights"], [list(queries), list(keys)]
        reasons: NDArray[Any] | None = found["reasons"]
        if level == "words" and not scores:
            values, *names = by_words(subject, kind, values)
            reasons = None
        how = "scores" if scores else "weights"
        return figures.attention_heatmap(values, *names, reasons=reasons, kind=how, own_range=own_range)  # type: ignore[arg-type]

    name = f"{kind}-layer{layer}-head{head}{'-scores' if scores else ''}"
    return Picture(
        name,
        caption(told, *colours_said("own" if own_range else "absolute")),
        drawn,
        arrays,
        page,
        title=told,
        more={(_("trace"), "safetensors"): trace(subject)},
        code=None if without != "none" else lambda: in_python.of_head(subject, kind, layer, head),
        content=("head", subject, kind, layer, head, without, level, scores, tuple(queries), tuple(keys)),
    )


def head_arrays(subject: Subject, kind: Kind, layer: int, head: int, without: Without) -> dict[str, Any]:
    """The numbers of a head, by name: weights, scores and reasons [queries, keys], the tokens, and which head it is."""
    found = subject_cache.numbers(subject, kind, without)
    return {
        "weights": found.pattern(layer, head),
        "scores": found.scores(layer, head),
        "reasons": found.blocked(layer),
        "site": np.array(site_name(kind, layer)),
        "head": np.array(head),
        **_tokens(subject, kind),
    }


def _tokens(subject: Subject, kind: Kind) -> dict[str, NDArray[Any]]:
    queries, keys = (labels.texts(subject.trace.tokens[stack]) for stack in labels.stacks(kind))
    return {"query_tokens": np.array(queries), "key_tokens": np.array(keys)}


def in_a_file(
    subject: Subject, kind: Kind, shape: tuple[int, int, int, int], layer: int, head: int, without: Without = "none"
) -> HeadsPayload:
    """The heads for a file without a server: all of them while they are few numbers, else the small maps and this one."""
    return subject_cache.heads(subject, kind, None if attention.fits(shape) else (layer, head), without)


def map_and_reasons(
    subject: Subject, kind: Kind, layer: int, head: int, without: Without
) -> tuple[NDArray[np.floating], NDArray[np.integer]]:
    """The weights of a head, and why its cells are masked, 0 where they are not [queries, keys]."""
    found = head_arrays(subject, kind, layer, head, without)
    return found["weights"], found["reasons"]


def by_words(
    subject: Subject, kind: Kind, weights: NDArray[np.floating]
) -> tuple[NDArray[np.floating], list[str], list[str]]:
    """A map of words, and what they are called."""
    starts, names = [], []
    for stack in labels.stacks(kind):
        tokens = subject.trace.tokens[stack]
        begins = word_starts([token.word for token in tokens])
        ends = [*begins[1:].tolist(), len(tokens)]
        starts.append(begins)
        names.append(["".join(token.text for token in tokens[a:b]) for a, b in zip(begins, ends, strict=True)])
    return word_map(weights, *starts).astype(np.float32), names[0], names[1]


def all_heads(subject: Subject, kind: Kind, shape: Sequence[int]) -> list[Picture]:
    """The small maps of all heads, where they are few enough to be held at once."""
    without = state.view().without
    if int(np.prod(shape)) * 4 > MOST_IN_A_GRID:
        return []

    def maps() -> Mapping[str, Any]:
        found = head_maps(subject_cache.seen(subject, kind, without), kind)
        sites = np.array([site_name(kind, layer) for layer in range(shape[0])])
        numbers = {"weights": found.weights, "scores": found.scores, "reasons": found.reasons}
        return {**numbers, "sites": sites, **_tokens(subject, kind)}

    def drawn() -> Figure:
        found = maps()
        return figures.head_grid(found["weights"], reasons=None)

    told = " · ".join([labels.kind_label(kind), _("All heads")])
    return [Picture(f"{kind}-all-heads", caption(told), drawn, maps, title=told)]


def together(
    subject: Subject,
    payload: HeadsPayload,
    kind: Kind,
    layer: int,
    name: str,
    queries: Sequence[str],
    keys: Sequence[str],
    page: Callable[[], str],
    *,
    own_range: bool = False,
) -> Picture:
    """The map of all heads of a layer together."""
    view = state.view()
    told = f"{labels.kind_label(kind)} · {name.format(layer=layer)}"

    def drawn() -> Figure:
        weights, reasons = payload.map_of(layer, 0)
        return figures.attention_heatmap(weights, queries, keys, reasons=reasons, own_range=own_range)

    content = ("together", subject, kind, view.over, view.without, layer, tuple(queries), tuple(keys))
    said = caption(told, *colours_said("own" if own_range else "absolute"))
    return Picture(f"{kind}-layer{layer}-{view.over}", said, drawn, page=page, content=content)


def text_of(
    whole: Callable[[], tuple[NDArray[np.floating], NDArray[np.integer] | None]],
    token: int,
    side: str,
    running: Sequence[Sequence[str]],
    told: str,
    page: Callable[[], str],
    content: Hashable,
) -> Picture:
    """The text, coloured by what a query (`side`) looks at, or by which queries look at a key; of the head `told`."""
    said = (_("from query {query}") if side == "query" else _("to key {query}")).format(query=token)

    def weights() -> NDArray[np.floating]:
        found, reasons = whole()
        found = found if reasons is None else np.where(reasons == 0, found, np.float32(np.nan))
        return found[token] if side == "query" else found[:, token]

    def drawn() -> Figure:
        same = running[0] == running[1]
        shown = running[1] if side == "query" else running[0]
        return figures.coloured_text(weights(), shown, marked=token if same else None)

    def arrays() -> Mapping[str, Any]:
        return {"weights": weights(), "tokens": np.array(running[1] if side == "query" else running[0])}

    of = ("text", content, token, side)
    return Picture(f"text-{side}{token}", caption(f"{told}, {said}"), drawn, arrays, page, content=of)


def lines(
    subject: Subject,
    kind: Kind,
    chosen: LineSelection,
    part: tuple[range, range],
    query_tokens: Sequence[str],
    key_tokens: Sequence[str],
    page: Callable[[], str],
) -> Picture:
    """The lines of some heads of a layer, between the queries and keys of a part of the text."""
    without = state.view().without
    heads = list(chosen.heads or ())
    said = ", ".join(map(str, heads[:12])) + (" …" if len(heads) > 12 else "")
    told = _(
        "{kind}, layer {layer}, heads {heads}, weights from {threshold} up",
        kind=labels.kind_label(kind),
        layer=chosen.layer,
        heads=said,
        threshold=f"{chosen.threshold:.2f}",
    )

    def weights() -> NDArray[np.floating]:
        found = subject_cache.numbers(subject, kind, without)
        return np.stack([found.pattern(chosen.layer, head, *part) for head in heads])

    def drawn() -> Figure:
        return figures.attention_lines(weights(), query_tokens, key_tokens, heads=heads, threshold=chosen.threshold)

    def arrays() -> Mapping[str, Any]:
        names = {"query_tokens": np.array(query_tokens), "key_tokens": np.array(key_tokens)}
        return {
            "weights": weights(),
            "site": np.array(site_name(kind, chosen.layer)),
            "heads": np.array(heads),
            **names,
        }

    return Picture(f"{kind}-layer{chosen.layer}-lines", caption(told), drawn, arrays, page)


def mask(view: MaskView, told: str) -> list[Picture]:
    """A mask, and the scores and the weights of a head where they are shown too: a picture of each panel."""
    said = words(components.mask.ENGLISH)

    def added() -> Figure:
        return figures.added_mask(view.reasons, view.queries, view.keys, words={"score": said["mask"]})

    def scores() -> Figure:
        assert view.scores is not None
        return figures.attention_heatmap(view.scores, view.queries, view.keys, kind="scores")

    def weights() -> Figure:
        assert view.weights is not None
        reasons = np.asarray(view.reasons)
        return figures.attention_heatmap(view.weights, view.queries, view.keys, reasons=reasons)

    def arrays() -> Mapping[str, Any]:
        named: dict[str, Any] = {
            "reasons": view.reasons,
            "scores": view.scores,
            "weights": view.weights,
            "kept": view.kept,
        }
        named |= {"query_tokens": view.queries, "key_tokens": view.keys}
        return {name: np.asarray(values) for name, values in named.items() if values is not None}

    page = partial(components.mask.to_html, view)
    found = [Picture("mask", caption(told, said["mask"]), added, arrays, page, said["mask"])]
    for name, values, drawn in (("scores", view.scores, scores), ("weights", view.weights, weights)):
        if values is not None:
            found.append(Picture(f"mask-{name}", caption(told, said[name]), drawn, arrays, title=said[name]))
    return found


def trace(subject: Subject) -> Callable[[], bytes]:
    """A function that writes the whole trace to a file's bytes."""
    about = {"model": str(subject.model), "text": subject.text, "target": subject.target, "edits": subject.edited}

    def make() -> bytes:
        return as_file(subject.trace, about=about)

    return make


def head_name(kind: Kind, layer: int, head: int) -> str:
    return _("{kind}, layer {layer}, head {head}", kind=labels.kind_label(kind), layer=layer, head=head)


def show(drawn: heatmap.Heatmap, *, key: str) -> None:
    """Mounts the map, and offers it below."""
    heatmap.mount(drawn, key=key)

    def figure() -> Figure:
        weighted = drawn.scores is None
        return figures.attention_heatmap(
            drawn.weights if drawn.scores is None else drawn.scores,
            drawn.query_tokens,
            drawn.key_tokens,
            reasons=drawn.reasons,
            kind="weights" if weighted else "scores",
            title=drawn.title,
        )

    take_away(Picture(key, caption(drawn.title), figure, page=lambda: heatmap.to_html(drawn)), key=key)
