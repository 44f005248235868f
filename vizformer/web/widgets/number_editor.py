"""Setting numbers by hand: in the head that the Q·K·V page shows, and in the toy."""

import math
from collections.abc import Callable

import streamlit as st

from vizformer.web.catalogue import model_cache, subject_cache, subject_functions
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link import edits, state
from vizformer.web.words import labels
from vizformer.web.words.i18n import _, show_text


def head_editor(subject: Subject, site: str) -> None:
    """Change a cell of x, q, k, v or the mask, switch the scaling off, or set the softmax temperature."""
    with st.expander(_("Change a number")):
        view, trace = state.view(), subject.trace
        before = f"{site.rsplit('.', 1)[0]}.{'mid_self' if site.endswith('cross') else 'pre'}"
        names = {
            "x": _("x: the residual stream, input"),
            "q": _("q: the queries of this head"),
            "k": _("k: the keys of this head"),
            "v": _("v: the values of this head"),
            "mask": _("mask: visible and blocked cells"),
        }
        queries, keys = (trace.tokens[stack] for stack in labels.stacks(view.kind))
        what, row, column = st.columns(3)
        name = what.selectbox(_("What"), list(names), format_func=names.__getitem__, key="edit.what")
        rows = labels.numbered(keys if name in ("k", "v") else queries)
        start = view.query_of(queries) if name in ("x", "q", "mask") else 0
        position = row.selectbox(
            _("Position"), range(len(rows)), index=start, format_func=rows.__getitem__, key=f"edit.row.{name}"
        )
        if name == "mask":
            key_names = labels.numbered(keys)
            key = column.selectbox(_("Key"), range(len(keys)), format_func=key_names.__getitem__, key="edit.key")
            reason = trace[site].reason(view.head)[position, key]
            blocked = st.toggle(
                _("blocked"), value=bool(reason), key=f"edit.blocked.{site}.{position}.{key}.{subject.edited}"
            )
            item = edits.cell(f"{site}.mask", (position, key), -math.inf if blocked else 0.0)
        else:
            head = view.head if name in ("x", "q") else trace[site].kv_head(view.head)
            tensor = trace.residual(before) if name == "x" else getattr(trace[site], name)[head]
            component = column.number_input(_("Component"), 0, tensor.shape[1] - 1, 0, key=f"edit.component.{name}")
            now = float(tensor[position, component])
            value = st.number_input(
                _("Value (now {now})", now=f"{now:.4f}"),
                value=now,
                step=0.1,
                format="%.4f",
                key=f"edit.value.{site}.{view.head}.{name}.{position}.{component}.{subject.edited}",
            )
            index = (position, component) if name == "x" else (head, position, component)
            item = edits.cell(before if name == "x" else f"{site}.{name}", index, value)
        _set_button("edits", item)
        _switches("edits", site)


def what_changed(subject: Subject) -> None:
    """The edit's consequences at the end of the model: the translation and a prediction, before and after."""
    if not subject.edited or not model_cache.predicts(subject.model):
        return
    view = state.view()
    # An edit in the decoder cannot reach what is predicted before it: look where the query stands.
    decoder = subject.trace.tokens.get("decoder")  # none, where an earlier model's sentence is still shown
    position = 0 if view.kind == "encoder" or decoder is None else view.query_of(decoder)
    sides = ((_("Before"), subject.unedited), (_("After"), subject))
    for column, (title, side) in zip(st.columns(2), sides, strict=True):
        with column.container(border=True):
            st.caption(title)
            if (made := side.translation) is not None:
                st.text(made)
            there = min(position, side.trace.logits.shape[0] - 1)
            best = subject_cache.predictions(side, there)[:3]
            names = labels.told_apart([p.token for p in best])
            shown = ", ".join(f"{name} {labels.percent(p.probability)}" for name, p in zip(names, best, strict=True))
            show_text("After position {position}: {list}", position=there, list=shown)


def toy_editor(stack: str) -> None:
    """Any number of the toy: its input, its weights, its masks, the scaling and the temperature."""
    with st.expander(_("Change a number"), expanded=bool(state.view().toy)):
        stored = subject_functions.toy_tensors(stack)
        inputs = {"x": _("x: the input, 3 rows"), "target": _("target: the decoder's input, 2 rows")}
        name = st.selectbox(
            _("Tensor"),
            list(stored),
            key=f"toy.tensor.{stack}",
            format_func=lambda n: f"{inputs.get(n, n)} {list(stored[n].shape)}",
        )
        shape = tuple(stored[name].shape)
        columns = st.columns(len(shape) + 1, vertical_alignment="bottom")
        index = tuple(
            int(column.number_input(_("Index {axis}", axis=axis), 0, size - 1, 0, key=f"toy.{name}.{axis}"))
            for axis, (column, size) in enumerate(zip(columns, shape, strict=False))
        )
        now = float(stored[name][index])
        value = columns[-1].number_input(
            _("Value (stored {now})", now=f"{now:.4f}"),
            value=now,
            step=0.1,
            format="%.4f",
            key=f"toy.{name}.{index}.{state.view().toy}",
        )
        _set_button("toy", edits.cell(name, index, value))
        site = f"{stack}.0.self"
        n = next(iter(stored.values())).shape[0]  # rows of the input
        pairs = [(query, key) for query in range(n) for key in range(n)]
        names = [_("query {query}, key {key}", query=query, key=key) for query, key in pairs]
        mask, block, open_ = st.columns([2, 1, 1], vertical_alignment="bottom")
        pair = pairs[mask.selectbox(_("Mask cell"), range(len(pairs)), format_func=names.__getitem__, key="toy.pair")]
        for column, label, value in ((block, _("Block it"), -math.inf), (open_, _("Open it"), 0.0)):
            item = edits.cell(f"{site}.mask", pair, value)
            column.button(label, on_click=_change, args=("toy", edits.add, item), key=f"toy.mask.{value}")
        _switches("toy", site)


def set_by_hand(field: str) -> None:
    """What is set by hand in `field` of the view ("edits" or "toy"), and the way back."""
    items = edits.read(getattr(state.view(), field))
    if not items:
        return
    shown = ", ".join(_describe(item) for item in items[:4]) + (" …" if len(items) > 4 else "")
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        show_text("Set by hand: {items}", items=shown)
        st.button(_("Undo the last"), on_click=_change, args=(field, edits.undo), key=f"{field}.undo")
        st.button(_("Reset all"), on_click=_reset, args=(field,), key=f"{field}.reset")


def _describe(item: edits.Item) -> str:
    """An item as a person reads it: encoder.0.self.q[2, 3, 0] = 2.5."""
    if item.kind == "unscaled":
        return _("{site}: not divided by √d", site=item.name)
    if item.kind == "t":
        return _("{site}: temperature {value}", site=item.name, value=f"{item.value:g}")
    shown = "−∞" if math.isinf(item.value) else f"{item.value:g}"
    return f"{item.name}[{item.kind.replace(',', ', ')}] = {shown}"


def _set_button(field: str, item: edits.Item) -> None:
    st.button(_("Set it"), type="primary", on_click=_change, args=(field, edits.add, item), key=f"{field}.set")


def _switches(field: str, site: str) -> None:
    """The division by sqrt(d_head) on or off, and the temperature of the softmax."""
    items = edits.read(getattr(state.view(), field))
    scaling, warmth = st.columns(2, vertical_alignment="center")
    scaled_key, warm_key = f"{field}.scale.{site}", f"{field}.t.{site}"
    chosen = next((item.value for item in items if item.about == (site, "t")), 1.0)
    state.show(scaled_key, edits.unscaled(site) not in items)
    state.show(warm_key, min(max(chosen, 0.01), 1000.0))
    # In the toy there always is a division to switch off, in the model only where it has one.
    if field == "toy" or model_cache.options(state.view().model).attention_scale is None:
        scaling.toggle(_("Divide by √d_head"), key=scaled_key, on_change=_take_scale, args=(field, site, scaled_key))
    warmth.number_input(
        _("Softmax temperature"),
        0.01,
        1000.0,
        step=0.1,
        key=warm_key,
        on_change=_take_temperature,
        args=(field, site, warm_key),
    )


def _change(field: str, change: Callable[..., str], *items: edits.Item) -> None:
    state.update(**{field: change(getattr(state.view(), field), *items)})


def _reset(field: str) -> None:
    state.update(**{field: ""})


def _take_scale(field: str, site: str, key: str) -> None:
    _change(field, edits.remove if st.session_state[key] else edits.add, edits.unscaled(site))


def _take_temperature(field: str, site: str, key: str) -> None:
    value = st.session_state[key]
    _change(field, edits.remove if value == 1.0 else edits.add, edits.temperature(site, value))
