"""The tensors of a hand-written model beside the roles that they play, to be corrected with select boxes.

The mapping becomes part of the model's link, so that a link shows everywhere what it showed here; it can be taken along
as a TOML file, which is read by itself where it lies beside the weights.
"""

from collections.abc import Sequence
from dataclasses import replace
from html import escape
from typing import NamedTuple

import streamlit as st

from vizformer.checkpoints import Report, UnansweredError
from vizformer.checkpoints.bare.mapping.fitting import choices, with_biases
from vizformer.checkpoints.bare.mapping.kinds import TensorKind
from vizformer.checkpoints.bare.mapping.proposal import Sheet
from vizformer.checkpoints.bare.mapping.roles import Role, list_roles
from vizformer.checkpoints.tensors import role_mapping
from vizformer.checkpoints.tensors.role_mapping import Entry, RoleMapping
from vizformer.errors import VizformerError
from vizformer.messages import N_, Message, messages_of
from vizformer.web.catalogue import mapping_files, model_cache, sources
from vizformer.web.frame import presses, sitemap
from vizformer.web.link import state
from vizformer.web.link.codec import UnusableError
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.tools.model_report import report_words
from vizformer.web.words import errors
from vizformer.web.words.errors import guarded, plain
from vizformer.web.words.i18n import _, show_note, show_text, translate
from vizformer.word_tables import words_of

_WORDS = messages_of(words_of(__file__))
_PLACES: tuple[tuple[str, Message], ...] = (
    ("encoder.layers.#.", N_("Layers of the encoder")),
    ("decoder.layers.#.self", N_("Layers of the decoder: self-attention")),
    ("decoder.layers.#.cross", N_("Layers of the decoder: cross-attention")),
    ("decoder.layers.#.", N_("Layers of the decoder: feed-forward")),
    ("layers.#.", N_("In every layer")),
    ("", N_("Around the layers")),
)
_PARTS: dict[str, Message] = {"weight": N_("weight"), "bias": N_("bias")}
_LARGEST_FILE = 2**16


def by_hand(model: ModelRef, report: Report | None) -> None:
    """The form, folded away where the model opens without it; nothing for models that say themselves what they are."""
    if not model.is_from_elsewhere:
        return
    try:
        sheet = model_cache.mapping_sheet(sources.stamped(model))
    except VizformerError:
        return
    asked = _asked(model)
    family = report.family if report is not None else asked.layout
    if not sheet.kinds or family not in ("", report_words.BY_HAND):
        return
    current = _current(model, report, sheet)
    opened = bool(asked.names) if report is None else not report.problems  # what is asked comes first
    with st.expander(_("Tensors and roles: map them by hand"), expanded=not opened):
        _form(model, sheet, current)
        _file(model)
    if report is not None and report.mapping is not None:
        _take_along(model, report, report.mapping)


def _current(model: ModelRef, report: Report | None, sheet: Sheet) -> RoleMapping:
    """The mapping of the link, of the file beside the weights, or the one that is proposed."""
    if report is not None and report.mapping is not None:
        return report.mapping
    try:
        given = model.given.get("mapping")
        return role_mapping.read(given) if given else sheet.proposal
    except VizformerError:
        return sheet.proposal


@guarded()
def _form(model: ModelRef, sheet: Sheet, current: RoleMapping) -> None:
    show_text(
        "Which tensor plays which role? Filled in is what names and shapes say; what they leave open is empty. "
        "# is the number of a layer, * that of a head. A box offers only tensors whose shapes can play the role; a bias "
        "that is left empty is the one that lies beside its weight."
    )
    if sheet.doubt is not None:
        st.caption(translate(sheet.doubt, plain))
    key = f"by_hand.{model}"
    both, width = _frame(key, sheet, current)
    listed, chosen = st.columns([2, 3], gap="medium")
    with listed:
        st.html(_tensors(sheet.kinds, current))
    with chosen, st.form(key, border=False):
        entries = _boxes(f"{key}.{both}.{width}", sheet, current, both, width)
        patterns = [kind.pattern for kind in sheet.kinds]
        left_out = st.multiselect(
            _("Not part of the model: left out"),
            patterns,
            [pattern for pattern in current.left_out if pattern in patterns],
            format_func=_printable,
            key=f"{key}.left_out",
            placeholder=_("none"),
        )
        sent = presses.submit(_("Open with this mapping"), key="by_hand.open", type="primary")
    show_note(
        "That a mapping opens says that the shapes fit together, not that it is true. Whether the numbers are those of "
        "your own code, the page Check your own tells: hand in what your forward computes for a sentence."
    )
    st.page_link(sitemap.COMPARE.file, label=_("Compare with your own forward: Check your own"))
    if sent:
        open_with(model, RoleMapping(with_biases(entries, sheet.kinds, left_out), tuple(left_out)))


def _frame(key: str, sheet: Sheet, current: RoleMapping) -> tuple[bool, int]:
    """How many stacks there are and how wide their rows are: what the boxes depend on."""
    stacks, side = st.columns(2)
    now = any(role.startswith(("encoder.", "decoder.layers.")) for role in current.roles) or sheet.both
    words = (_("one"), _("an encoder and a decoder that reads it"))
    both = stacks.selectbox(
        _("Stacks"), (False, True), index=int(now), format_func=words.__getitem__, key=f"{key}.both"
    )
    widths = tuple(dict.fromkeys((sheet.width, *sheet.widths)))
    width = side.selectbox(_("Width of the rows"), widths, key=f"{key}.width")
    return bool(both), int(width or sheet.width)


def _boxes(key: str, sheet: Sheet, current: RoleMapping, both: bool, width: int) -> dict[str, Entry]:
    """A box for the weight of every role, and one for its bias, stack by stack."""
    entries: dict[str, Entry] = {}
    places: dict[str, list[Role]] = {}
    for role in list_roles(both=both):
        place = next(words for start, words in _PLACES if role.name.startswith(start))
        places.setdefault(translate(place), []).append(role)
    for words, members in places.items():
        st.markdown(f"**{words}**")
        for role in members:
            columns = st.columns(2)
            for part, column in zip(("weight", "bias") if role.biased else ("weight",), columns, strict=False):
                with column:
                    entry = _box(key, sheet, current, role, part, width)
                if entry is not None:
                    entries[f"{role.name}.{part}"] = entry
    return entries


def _box(key: str, sheet: Sheet, current: RoleMapping, role: Role, part: str, width: int) -> Entry | None:
    name = f"{role.name}.{part}"
    now = current.roles.get(name)
    turned = any(entry.transpose for entry in current.roles.values())
    offered = choices(sheet.kinds, role, part, width, current=now, turned=turned)
    label = _in_words(name)
    shapes = {kind.pattern: kind for kind in sheet.kinds}
    options = (None, *offered)
    words: dict[Entry | None, str] = {
        None: _("none"),
        **{entry: _said(entry, shapes[entry.tensor]) for entry in offered},
    }
    return st.selectbox(
        label,
        options,
        index=options.index(now) if now in offered else 0,
        format_func=words.__getitem__,
        key=f"{key}.{name}",
        disabled=not offered,
        help=f"`{name}`",
    )


def _said(entry: Entry, kind: TensorKind) -> str:
    shape = " × ".join(map(str, kind.shape))
    said = f"{_printable(entry.tensor)} [{shape}]"
    if entry.transpose:
        said += " " + _("turned over")
    if entry.rows is not None:
        said += " " + _("rows {first} to {last}", first=entry.rows[0], last=entry.rows[1] - 1)
    return said


def _tensors(kinds: Sequence[TensorKind], current: RoleMapping) -> str:
    """Every kind of tensor with its shape, and the role that it plays now."""
    from vizformer.checkpoints.bare.mapping import roles

    played: dict[str, list[str]] = {}
    for role, entry in current.roles.items():
        if roles.find(role) is not None:
            played.setdefault(entry.tensor, []).append(role)
    rows = []
    for kind in kinds:
        shape = " × ".join(map(str, kind.shape)) + (f" (× {kind.n})" if kind.n > 1 else "")
        role = ", ".join(map(_in_words, played.get(kind.pattern, [])))
        if not role:
            role = _("left out") if kind.pattern in current.left_out else _("no role yet")
        name = escape(_printable(kind.pattern)).replace(".", ".<wbr>")
        rows.append(
            f'<tr><th scope="row">{name}</th><td class="vf-number">{escape(shape)}</td><td>{escape(role)}</td></tr>'
        )
    titles = (_("Tensor"), _("Shape"), _("Role"))
    head = "<tr>" + "".join(f"<th>{escape(title)}</th>" for title in titles) + "</tr>"
    table = f'<table class="vf-facts vf-mapping"><thead>{head}</thead>{"".join(rows)}</table>'
    return f'<div class="vf-mapping-list">{table}</div>'


def _in_words(role: str) -> str:
    """A role such as layers.#.self_attention.W_Q.bias, without the stack."""
    module, __, part = role.rpartition(".")
    last = module.rpartition(".")[2]
    words = _WORDS.get(last) or _WORDS["qkv" if len(last) == 3 else "kv"]
    return f"{translate(words)} · {translate(_PARTS[part])}"


def _printable(name: str) -> str:
    return name if name.isprintable() else ascii(name)


def open_with(model: ModelRef, mapping: RoleMapping) -> None:
    """Puts a mapping into the link, with those of the answers that are still asked for."""
    try:
        mapped = model.under(dict(mapping.answers)).mapped(mapping.plain())
    except UnusableError as error:
        errors.show(N_("This mapping cannot be opened from here: {reason}.", reason=error.message))
        return
    asked = _asked(model.under({}).mapped(mapping.plain())).names
    state.update(model=mapped.under({**dict(mapping.answers), **{n: a for n, a in model.answers if n in asked}}))
    st.rerun()


class _Asked(NamedTuple):
    """The names of the questions that are open, or answered, and the layout that asks them; empty where none opens."""

    names: frozenset[str] = frozenset()
    layout: str = ""


def _asked(model: ModelRef) -> _Asked:
    try:
        report = model_cache.report(sources.stamped(model))
        return _Asked(frozenset(question.name for question in report.questions), report.family)
    except UnansweredError as error:
        return _Asked(frozenset(question.name for question in error.questions), error.layout)
    except VizformerError:
        return _Asked()


@guarded()
def _file(model: ModelRef) -> None:
    given = st.file_uploader(
        _("A mapping as a file (TOML)"), type=["toml"], key=f"by_hand.file.{model.base}", max_upload_size=1
    )
    if given is None:
        return
    if not presses.button(_("Open with the mapping of this file"), key="by_hand.file.open"):
        return
    content = given.read(_LARGEST_FILE + 1)
    open_with(model, role_mapping.from_toml(content.decode(errors="replace"), given.name))


@guarded()
def _take_along(model: ModelRef, report: Report, mapping: RoleMapping) -> None:
    """The mapping as a file, beside the weights where that is this reader's to do, and the way back."""
    answers = {name: value for name, value in report.answers.items() if report.taken[name] != "usual"}
    text = replace(mapping, answers=answers).to_toml()
    file = f"{next(iter(report.files))}{mapping_files.SUFFIX}"
    with st.container(horizontal=True, vertical_alignment="center"):
        st.download_button(_("Mapping as TOML"), text, file, "application/toml", key="by_hand.download")
        if mapping_files.may_write(model) and presses.button(_("Save beside the weights"), key="by_hand.save"):
            mapping_files.write(model, file, text)
            state.update(model=model.under({}).mapped(None))
            st.rerun()
        if model.mapping:
            st.button(_("Without this mapping"), key="by_hand.without", on_click=_without, args=(model,))
    if model.mapping:
        show_note(
            "The link of this page holds the mapping. As a file {file} beside the weights it is read by itself, also in "
            "Python.",
            file=plain(file),
        )


def _without(model: ModelRef) -> None:
    state.update(model=model.under({}).mapped(None))
