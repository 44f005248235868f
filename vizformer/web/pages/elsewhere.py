"""Attention that another program computed, as a map of every head or as lines between the tokens."""

import secrets
import weakref
from collections.abc import Mapping
from dataclasses import replace
from threading import Lock
from typing import Any

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis.heads.measures import find_rest, telling
from vizformer.analysis.other_programs.attention_arrays import PAGE, AttentionArrays, Tokens, texts_of
from vizformer.analysis.other_programs.attention_files import read_attention
from vizformer.assets import asset
from vizformer.checkpoints.any_checkpoint import check_characters
from vizformer.components import attention, lines
from vizformer.components.packing import LIMIT_BYTES, HeadsPayload
from vizformer.errors import TraceError, VizformerError
from vizformer.figures.figure import Figure
from vizformer.messages import N_
from vizformer.web.catalogue import session_folders, uploads
from vizformer.web.catalogue.bounded_cache import Cache, cached, limit
from vizformer.web.frame import presses
from vizformer.web.widgets import model_input
from vizformer.web.widgets.chart import Picture, caption, colours_said, take_away
from vizformer.web.widgets.choices import line
from vizformer.web.words import counts, errors
from vizformer.web.words.errors import plain
from vizformer.web.words.i18n import _, show_info, show_markdown, show_note, translate

_ARRAYS = Cache(lambda: limit() // 2)  # of all sessions, and what is made of them: payloads, small maps
_FOUND = "elsewhere.found"
ERROR = "elsewhere.error"  # of what was handed in last, until it is shown
_SELECTED = "elsewhere.selection"
_LIMIT = LIMIT_BYTES // 3  # bytes of all heads that go to the browser at once

_ROUND = "elsewhere.round"  # of uploads: a new one begins with an empty box
_CHARACTERS = 100_000  # of tokens
_ONE_AT_A_TIME = Lock()  # while a file is read, it takes several times the memory that stays


class _HandedIn:
    """What one session handed in: a name in the store. It is let go with this object, or when the session has ended."""

    def __init__(
        self, found: Mapping[str, AttentionArrays], watch: session_folders.Watch = session_folders.WATCH
    ) -> None:
        self.name = secrets.token_hex(8)
        watch.add(session_folders.current(), weakref.finalize(self, _ARRAYS.forget_at_the_end, self.name))
        _ARRAYS.get(self.name, lambda: {name: (arrays, _packed(arrays)) for name, arrays in found.items()})

    def found(self) -> dict[str, tuple[AttentionArrays, HeadsPayload | None]]:
        """The arrays by name, and what is made of each; a TraceError where the store needed the room for what came later."""

        def missing() -> dict[str, tuple[AttentionArrays, HeadsPayload | None]]:
            raise TraceError(
                "This server needed the memory for others. Upload the file again, or run VizFormer yourself."
            )

        return _ARRAYS.get(self.name, missing)


def _packed(arrays: AttentionArrays) -> HeadsPayload | None:
    """All heads where they fit; their small maps are kept in any case."""
    packed = attention.pack(arrays, limit=_LIMIT)
    return packed if packed.complete else None


def keep(found: Mapping[str, AttentionArrays]) -> None:
    """Keeps what was found for this session, until another file takes its place."""
    st.session_state[_FOUND] = _HandedIn(found)


def _answer(name: str, arrays: AttentionArrays, answer: str) -> None:
    """The first axis of one array is layers, or the texts of a batch, as the reader says."""
    handed_in: _HandedIn = st.session_state[_FOUND]
    try:
        found = {called: one for called, (one, _packed) in handed_in.found().items()}
    except TraceError:  # said where the picture would be
        return
    answered: dict[str, AttentionArrays] = {}
    for called, one in found.items():
        if called != name:
            answered[called] = one
        else:
            try:
                answered |= {name: replace(arrays, either=False)} if answer == "layers" else texts_of(name, arrays)
            except TraceError as error:  # too many texts
                st.session_state[ERROR] = error.message
                return
    keep(answered)


def _ask(name: str, arrays: AttentionArrays) -> None:
    """Nobody but the reader knows what the first axis of one array is."""
    n, *others = arrays.shape
    with st.container(border=True):
        show_markdown(
            "**{name}** has the shape [{n}, {others}]. What are the {n} in the first axis?",
            name=plain(name),
            n=n,
            others=", ".join(map(str, others)),
        )
        with line():
            for answer, label in (
                ("layers", _("{n} layers of one text", n=n)),
                ("texts", _("{n} texts of a batch, of one layer", n=n)),
            ):
                st.button(label, key=f"elsewhere.first.{answer}", on_click=_answer, args=(name, arrays, answer))


def forget() -> None:
    for name in (_FOUND, _SELECTED, f"{_SELECTED}.lines"):
        st.session_state.pop(name, None)


@cached
def example() -> dict[str, tuple[AttentionArrays, HeadsPayload | None]]:
    """Arrays that come with VizFormer, for a page on which nothing was handed in yet."""
    path = asset("attention", "example.npz")
    read = read_attention(path.name, path.read_bytes())
    found = {name: replace(arrays, either=False) for name, arrays in read.items()}  # they are the layers of one text
    return {name: (arrays, _packed(arrays)) for name, arrays in found.items()}


def draw_pictures() -> None:
    """What was handed in last; an example where nothing was."""
    handed_in: _HandedIn | None = st.session_state.get(_FOUND)
    # what was handed in cannot be shown: an example would hide that
    if handed_in is None and ERROR in st.session_state:
        return
    found = example() if handed_in is None else handed_in.found()
    names = list(found)
    kinds = {"map": _("Map"), "lines": _("Lines")}
    with line():
        name = names[0]
        if len(names) > 1:
            name = st.selectbox(_("Which of the arrays"), names, key="elsewhere.group", width=320) or name
        picture = st.segmented_control(
            _("Picture"),
            list(kinds),
            default="map",
            format_func=kinds.__getitem__,
            label_visibility="collapsed",
            key="elsewhere.picture",
        )
        if handed_in is None:
            show_note("An example, until you upload your own arrays below: the cross-attention of a translation model.")
    arrays, packed = found[name]
    if arrays.either:
        _ask(name, arrays)
        return
    for note in arrays.notes:
        st.info(translate(note, plain))
    if picture == "lines":
        _as_lines(name, arrays, packed)
    else:
        _as_map(name, arrays, packed)
    layers, heads, n_q, n_k = arrays.shape
    st.caption(
        plain(name)
        + " · "
        + _(
            "{layers}, {heads}, maps of {n_q} × {n_k}",
            layers=counts.layers(layers),
            heads=counts.heads(heads),
            n_q=n_q,
            n_k=n_k,
        )
    )
    if layers > 1 or arrays.layers[0] != name:
        with st.expander(_("Which array became which layer")):
            st.markdown("\n".join(f"- {layer}: {plain(called)}" for layer, called in enumerate(arrays.layers)))


def telling_place(arrays: AttentionArrays) -> tuple[int, int, int]:
    """Layer, head and row to open on: the largest weight of the last row that has a word to look at."""
    keys = np.array(
        [any(map(str.isalnum, text)) and not text.startswith("<") for text in arrays.key_tokens], dtype=bool
    )

    def rests(layer: int, head: int) -> bool:
        weights = np.nan_to_num(arrays.weights[layer, head])
        return find_rest(weights, (weights == 0).astype(np.uint8)) is not None

    for query in reversed(range(arrays.shape[2])):
        text = arrays.query_tokens[query]
        itself = arrays.query_tokens == arrays.key_tokens  # (as far as tokens tell: of self-attention)
        weights = np.nan_to_num(arrays.weights[:, :, query])
        found = telling(weights, keys & (np.arange(len(keys)) != (query if itself else -1)), rests)
        if found is not None and any(map(str.isalnum, text)) and not text.startswith("<"):
            return found.layer, found.head, query
    return 0, 0, 0


def _labels(arrays: AttentionArrays) -> dict[str, Any]:
    tokens = {"query_tokens": arrays.query_tokens, "key_tokens": arrays.key_tokens}
    return tokens if arrays.numbers is None else {**tokens, "layers": arrays.numbers}


def _as_map(name: str, arrays: AttentionArrays, packed: HeadsPayload | None) -> None:
    last = st.session_state.get(_SELECTED) or attention.Selection(*telling_place(arrays))
    shown = attention.peek(key="elsewhere.heads", selected=last)
    wanted = min(shown.layer, arrays.shape[0] - 1), min(shown.head, arrays.shape[1] - 1)
    payload = packed or attention.pack(arrays, chosen=wanted, limit=_LIMIT)
    shown_as = _labels(arrays)
    chosen = attention.mount(payload, selected=last, key="elsewhere.heads", **shown_as)
    st.session_state[_SELECTED] = chosen

    def drawn() -> Figure:
        weights = arrays.weights[chosen.layer, chosen.head]
        tokens, reasons = (arrays.query_tokens, arrays.key_tokens), arrays.blocked(chosen.layer)
        return figures.attention_heatmap(weights, *tokens, reasons=reasons, own_range=chosen.colours == "own")

    told = _("Layer {layer}, head {head}", layer=chosen.layer, head=chosen.head)
    take_away(
        Picture(
            f"layer{chosen.layer}-head{chosen.head}",
            caption(told, name, *colours_said(chosen.colours), model=False),
            drawn,
            page=lambda: attention.to_html(payload, selected=chosen, **shown_as),
            title=told,
        ),
        key="elsewhere.heads",
    )


def _as_lines(name: str, arrays: AttentionArrays, packed: HeadsPayload | None) -> None:
    if not lines.fits((1, *arrays.shape[1:]), scored=False):
        show_info("The text is too long for lines. The map shows every head of it.")
        return
    last = st.session_state.get(f"{_SELECTED}.lines")
    layer = min(lines.peek(key="elsewhere.lines", selected=last).layer, arrays.shape[0] - 1)
    payload = packed or lines.pack_lines(arrays, layer=layer, limit=_LIMIT)
    shown_as = _labels(arrays)
    chosen = lines.mount(payload, selected=last, key="elsewhere.lines", **shown_as)
    st.session_state[f"{_SELECTED}.lines"] = chosen
    heads = list(chosen.heads or ())

    def drawn() -> Figure:
        return figures.attention_lines(
            arrays.weights[chosen.layer, heads],
            arrays.query_tokens,
            arrays.key_tokens,
            heads=heads,
            threshold=chosen.threshold,
        )

    told = _("layer {layer}", layer=chosen.layer)
    take_away(
        Picture(
            f"layer{chosen.layer}-lines",
            caption(told, name, model=False),
            drawn,
            page=lambda: lines.to_html(payload, selected=chosen, **shown_as),
        ),
        key="elsewhere.lines",
    )


def hand_in() -> None:
    """Takes a file, and says why it cannot be shown; what is in it belongs to this session alone."""
    show_markdown(
        "Attention weights of any program, as `.npz`, `.npy`, `.safetensors` or `.json`: one array `[layers, "
        "heads, queries, keys]`, or `[heads, queries, keys]` for each layer. No model is needed. In a "
        "notebook `vf.view(outputs, tokens)` shows the outputs of a transformers model or of its "
        "`generate()`."
    )
    if not uploads.is_on():
        show_info("This server takes no uploads. In Python `vf.view(arrays, tokens)` shows them.")
        return
    number = st.session_state.setdefault(_ROUND, 0)
    most = min(PAGE.file, uploads.limit())
    with st.form("elsewhere.form"):
        st.html(model_input.style(_("Choose a file")))
        file = st.file_uploader(
            _("A file of attention weights: .npz, .npy, .safetensors or .json"),
            key=f"elsewhere.file.{number}",
            max_upload_size=max(1, most // 2**20),
        )
        left, right = st.columns(2)
        queries = left.text_area(
            _("Tokens of the queries (may be empty)"),
            placeholder=_("one per line, or with blanks between them"),
            key="elsewhere.queries",
        )
        keys = right.text_area(
            _("Tokens of the keys, if they differ"),
            placeholder=_("one per line, or with blanks between them"),
            key="elsewhere.keys",
        )
        sent = presses.submit(_("Show"), key="elsewhere.show", type="primary")
    show_note(
        "At most {limit} MB. Only numbers and texts are read; no program is run here. A .npz or .json may hold the tokens "
        "itself, as texts called tokens, or query_tokens and key_tokens, or source_tokens and target_tokens; a trace that "
        "was saved has them.",
        limit=most // 2**20,
    )
    if sent:
        forget()
        try:
            if file is None:
                st.session_state[ERROR] = N_("Choose a file first.")
            else:
                keep(_read(file.name, file.getvalue(), queries, keys))
        except VizformerError as error:
            st.session_state[ERROR] = error.message
        finally:
            uploads.forget([] if file is None else [file.file_id])
            st.session_state[_ROUND] = number + 1
        st.rerun()  # with an empty box for files
    if (message := st.session_state.pop(ERROR, None)) is not None:
        errors.show(message)


def _read(name: str, content: bytes, queries: str, keys: str) -> dict[str, AttentionArrays]:
    with _ONE_AT_A_TIME:
        return read_attention(name, content, Tokens(_tokens(queries), _tokens(keys)))


def _tokens(text: str) -> list[str]:
    """One per line where there are lines; else what stands between blanks."""
    check_characters(text, _CHARACTERS)
    lines = [line for line in text.splitlines() if line.strip()]
    return [line.strip() for line in lines] if len(lines) > 1 else text.split()
