"""What a reader is looking at, and the link that says so.

`View` is the only thing that pages share. It lives in the session, and its fields that differ from their defaults
live in the address (`?text=...&head=3`), so that an address pasted into another browser shows the same view.

    view = state.fit(layer=6, head=8)              # the view, held within what the model has
    st.text_area(_("Sentence"), **state.bind("text"))
    state.update(head=3, query=2)                  # from a callback or a component
"""

import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import Field, dataclass, field, fields, replace
from typing import Any, cast

import streamlit as st

from vizformer.context_value import held
from vizformer.messages import N_, Message
from vizformer.web.inside_streamlit import get_script_run_ctx
from vizformer.web.link import beginnings, gone_parts, packed_text
from vizformer.web.link.link_settings import UnusableError
from vizformer.web.link.view import View, link_name

REMEMBERED = 64  # addresses per session that Back can return to exactly

# Fields of which a page may choose what is worth seeing.
SUGGESTED = ("kind", "layer", "head", "new", "hidden", "order")
# Those whose change makes what is suggested the reader's choice; of the order only where it is suggested itself.
_TAKES = ("layer", "head", "new", "hidden", "query", "edits")

_FIELDS: dict[str, Field[Any]] = {f.name: f for f in fields(View)}
_IN_LINKS: dict[str, Field[Any]] = {link_name(f): f for f in fields(View)}
_apart: ContextVar[str] = ContextVar("apart", default="")
_Address = tuple[str, tuple[tuple[str, str], ...]]  # page, parameters


@dataclass
class _Memory:
    """A session's view and what it knows about the addresses that stood for its views."""

    view: View = field(default_factory=View)
    # fields that a page has chosen -> what the link says of them
    suggested: dict[str, Any] = field(default_factory=dict)
    # fields that the link names, or the reader chose, though they are at their default
    said: frozenset[str] = frozenset()
    text_named: bool = False  # whether the link names the sentence, be it the usual one
    page: str | None = None  # None: nothing has been read from a link yet
    drawn: object = None  # what the page was drawn for: see `draw`
    holds: Collection[str] = ()  # what the page's address holds of the view; empty: all
    current: _Address | None = None
    seen: dict[_Address, View] = field(default_factory=dict)
    notices: list[Message] = field(default_factory=list)
    visit: int = 0  # counts the pages that were gone to
    heard: Callable[[str, dict[str, str]], None] | None = None  # is told of every new address
    beginning: beginnings.Beginning | None = None  # what a link that says nothing means to this reader
    began: bool = False  # whether the reader came by such a link
    beside: dict[str, str] = field(default_factory=dict)  # what the address says besides the view
    # widget -> visit and language it was drawn in last
    placed: dict[str, tuple[int, str]] = field(default_factory=dict)
    placing: dict[str, tuple[int, str]] = field(default_factory=dict)  # the same of the run that goes on

    @property
    def linked(self) -> View:
        """The view without what a page has suggested: what the link says."""
        return replace(self.view, **self.suggested) if self.suggested else self.view

    def show(self, view: View, said: Collection[str]) -> None:
        self.view, self.suggested, self.said = view, {}, frozenset(said)

    def remember(self, address: _Address) -> None:
        self.current = address
        self.seen.pop(address, None)
        self.seen[address] = self.linked
        while len(self.seen) > REMEMBERED:
            del self.seen[next(iter(self.seen))]


class _Run(threading.local):
    """The memory that this thread found last, kept since a page asks for its view hundreds of times in a run."""

    context: object = None
    memory: _Memory | None = None


_RUN = _Run()


def _memory() -> _Memory:
    context = get_script_run_ctx(suppress_warning=True)
    if context is not None and context is _RUN.context and _RUN.memory is not None:
        return _RUN.memory
    if "vizformer.view" not in st.session_state:
        st.session_state["vizformer.view"] = _Memory()
    memory = cast(_Memory, st.session_state["vizformer.view"])
    _RUN.context, _RUN.memory = context, memory
    return memory


def view() -> View:
    return _memory().view


def beginning() -> beginnings.Beginning:
    """The model and the sentence with which this reader begins where a link says nothing."""
    memory = _memory()
    if memory.beginning is None:
        memory.beginning = beginnings.of(st.context.locale)
    return memory.beginning


def is_chosen(view: View) -> bool:
    """Whether somebody chose the model: a link that names it, or the reader, if it is another one than at the beginning."""
    begun = beginning()
    if view.model == begun.model and (_memory().began or view.text == begun.text):
        return False
    return view.model != beginnings.CHINESE.model


def is_text_chosen() -> bool:
    """Whether a link named the sentence, or it is another one than a link means that names none."""
    memory = _memory()
    return memory.text_named or memory.view.text != View().text


def linked() -> View:
    """The view as the link says it: without what a page has suggested."""
    return _memory().linked


def page() -> str:
    """The page that is shown, as the address calls it; empty for the first one, and without a frame."""
    return _memory().page or ""


def note_drawn() -> None:
    """Notes that the page is drawn for the sentence, target, model and numbers set by hand that the view has now."""
    _memory().drawn = _subject(view())


def is_drawn() -> bool:
    """Whether the page shows what the view asks for; where nothing was noted, it does."""
    return _memory().drawn in (None, _subject(view()))


def _subject(view: View) -> object:
    return view.model, view.text, view.target, view.edits


def notices() -> list[Message]:
    """What had to be corrected in the link; kept until the reader changes something."""
    return _memory().notices


def note(message: Message) -> None:
    """Tells the reader this beside what had to be corrected."""
    memory = _memory()
    memory.notices += [message] if message not in memory.notices else []


def update(**changes: object) -> View:
    """Changes fields of the view and the address with it (also inside fragments and callbacks).

    What a widget of a run that was cut short says (None) changes nothing, unless the field may be None.
    """
    memory = _memory()
    known = {name: value for name, value in changes.items() if value is not None or _FIELDS[name].default is None}
    changed = replace(memory.view, **cast(dict[str, Any], known))
    if changed != memory.view:
        if memory.suggested and any(
            getattr(changed, name) != getattr(memory.view, name)
            for name in (*_TAKES, *({"order"} & memory.suggested.keys()))
        ):
            keep_suggested()  # another row of a head that was suggested: that head is the reader's from now on
        memory.view = changed
        memory.notices = []
        push()
    return memory.view


def fit(**limits: int | Collection[object]) -> View:
    """Holds the view within `limits`: a number of layers, heads, ... (counted from 0) or the possible names.

    What lies outside goes back to the default (or to the first possible name), and the reader is told, unless it was
    the default of another model that nobody asked for.
    """
    memory = _memory()
    for name, limit in limits.items():
        value: Any = getattr(memory.view, name)
        otherwise: Any = _FIELDS[name].default
        if value is None:  # nothing was chosen
            continue
        if isinstance(limit, int):
            usable = 0 <= value < limit
        else:
            usable, otherwise = value in limit, otherwise if otherwise in limit else next(iter(limit), otherwise)
        if not usable and value != otherwise:
            if value != _FIELDS[name].default:
                label = _FIELDS[name].metadata["label"]
                rule = (
                    N_("numbers go from 0 to {last}", last=max(limit - 1, 0))
                    if isinstance(limit, int)
                    else N_("there are {choices}", choices=", ".join(filter(None, map(str, limit))))
                )
                memory.notices.append(
                    N_(
                        "This page has no {name} “{value}” ({rule}). It is left out.",
                        name=label,
                        value=str(value),
                        rule=rule,
                    )
                    if otherwise in (None, "")
                    else N_(
                        "This page has no {name} “{value}” ({rule}). It shows {otherwise} instead.",
                        name=label,
                        value=str(value),
                        rule=rule,
                        otherwise=str(otherwise),
                    )
                )
            memory.view, memory.said = replace(memory.view, **{name: otherwise}), memory.said - {name}
    push()
    return memory.view


def suggest(**values: object) -> bool:
    """Shows these values of fields of which neither the link nor the reader has said any; whether it does.

    The link goes on to leave them out, so that it opens on what is worth seeing of any other sentence.  They hold until the
    page runs anew; what the reader changes of them makes all of them said.
    """
    memory = _memory()
    linked = memory.linked
    if any(name in memory.said or getattr(linked, name) != _FIELDS[name].default for name in values):
        return False
    memory.suggested |= {name: getattr(linked, name) for name in values}
    memory.view = replace(memory.view, **cast(dict[str, Any], values))
    return True


def keep_suggested() -> None:
    """Makes the suggestions of a page count as the reader's choice from now on, for links to other pages."""
    memory = _memory()
    memory.said, memory.suggested = memory.said | memory.suggested.keys(), {}
    push()


def unsay(*names: str) -> None:
    """These fields go back to their default, and a page may suggest them again."""
    memory = _memory()
    memory.view, memory.suggested = memory.linked, {}
    memory.view = replace(memory.view, **cast(dict[str, Any], {name: _FIELDS[name].default for name in names}))
    memory.said = memory.said.difference(names)
    push()


def bind(name: str) -> dict[str, Any]:
    """The keyword arguments that tie a keyed Streamlit widget to the field `name` of the view, both ways."""
    key, value = widget(f"view.{name}"), getattr(view(), name)
    show(key, value)
    # Without `persist_state` a widget on a new page counts as empty before: emptying a text box would go unnoticed.
    return {"key": key, "on_change": _take, "args": (name, key), "persist_state": "session"}


def apart(name: str) -> AbstractContextManager[None]:
    """Has widgets that are drawn inside keys of their own, where a page draws several for one field of the view."""
    return held(_apart, f".{name}")


def widget(key: str) -> str:
    """The key of a widget that a page may draw several times."""
    return key + _apart.get()


def show(key: str, value: object) -> None:
    """Has the widget of this key, which is drawn next, show a value.

    It is assigned only where the widget arrives or differs: an assignment throws away what the reader is typing just now.
    """
    if arrives(key) or key not in st.session_state or st.session_state[key] != value:
        st.session_state[key] = value


def arrives(key: str) -> bool:
    """Whether a widget is drawn for the first time since the page was gone to: the browser does not know its value then.

    A value that nobody assigns again is right on the screen, but the browser takes the widget for untouched: with the
    next thing that is pressed it reports an empty text, or the first of a list.  So is it where the language has changed: a
    list would go on showing its choice in the other one.
    """
    memory = _memory()
    now = memory.placing[key] = memory.visit, memory.view.lang
    return memory.placed.get(key) != now


def drawn() -> None:
    """Notes that a run came to its end: what it told the browser has arrived, as not all of a run that is cut short has."""
    memory = _memory()
    memory.placed |= memory.placing
    memory.placing.clear()


def _take(name: str, key: str) -> None:
    # A segmented control can be switched off (None), and where the options of a list have changed under the browser's
    # feet, Streamlit hands out the old option's label: both keep what was.
    value = st.session_state[key]
    if isinstance(value, type(getattr(view(), name))):
        update(**{name: value})


def clipped(name: str) -> bool:
    """Whether the address does not hold this text, but names it."""
    return not packed_text.holds(getattr(view(), name))


# --- the link ---------------------------------------------------------------------------------------------------------


def pull(page: str, holds: Collection[str] = ()) -> bool:
    """Reads the address at the start of a run, if it says something new; whether it did.

    `holds` are the fields that the page's address holds (all where none are named); what others are set to goes along
    with the reader, unseen.

    It does on the first run, after Back or Forward, and when a page is opened with parameters. It does not when
    the navigation dropped the parameters (the view goes with the reader), nor when the browser, asked to run again
    before it heard of the newest address, sends the one before.
    """
    memory = _memory()
    parameters = {name: value for name, value in st.query_params.to_dict().items() if name in _IN_LINKS}
    address = (page, tuple(sorted(parameters.items())))
    first, moved, memory.page = memory.page is None, memory.page != page, page
    memory.drawn = None
    memory.holds = holds
    memory.view, memory.suggested = memory.linked, {}
    if moved:
        memory.notices = []
        memory.visit += 1
    read = False
    if not first and address == memory.current:
        return False
    back = bool(getattr(get_script_run_ctx(suppress_warning=True), "is_history_navigation", False))
    if back and address in memory.seen:
        memory.show(memory.seen[address], _said(parameters, memory.seen[address]))
        memory.notices = []
    elif first or back or (parameters and (moved or address not in memory.seen)):
        view, memory.notices = _read(parameters)
        memory.began = not parameters
        if memory.began:
            view = replace(view, model=beginning().model, text=beginning().text)
        memory.show(view, _said(parameters, view))
        memory.text_named = link_name(_FIELDS["text"]) in parameters
        read = True
    elif not moved:  # an address that is out of date: `push` corrects it
        return False
    memory.remember(address)
    return read


def holds_more(names: Collection[str]) -> bool:
    """Whether the address says something of the view beside these fields."""
    return any(name in _IN_LINKS and name not in names for name in st.query_params)


def listen(heard: Callable[[str, dict[str, str]], None] | None) -> None:
    """Has `heard` called with the page and the parameters of every address that this session comes to."""
    _memory().heard = heard


def carry(**beside: str) -> None:
    """Has the address of this tab say this besides the view, on every page; it is no part of `link`."""
    _memory().beside = beside


def adopt(parameters: dict[str, str]) -> None:
    """Shows what these parameters say, on the same page."""
    memory = _memory()
    view, memory.notices = _read({name: value for name, value in parameters.items() if name in _IN_LINKS})
    memory.show(view, _said(parameters, view))
    push()


def link() -> dict[str, str]:
    """The parameters of the address that stands for the view on this page."""
    memory = _memory()
    written = _write(memory.linked, memory.said)
    found = {name: value for name, value in written.items() if not memory.holds or name in memory.holds}
    # A view at its defaults has a link that says nothing: where that means something else to the reader, it names the model.
    return found if found or beginning() == beginnings.CHINESE else {"model": str(memory.view.model)}


def lead(**parameters: str) -> dict[str, str]:
    """The parameters of an address that opens another page with these, and with the reader's model and text."""
    memory = _memory()
    written = _write(memory.linked, memory.said)
    kept = (link_name(_FIELDS[name]) for name in ("model", "text", "target"))
    return {name: written[name] for name in kept if name in written} | parameters


def push() -> None:
    """Writes the view into the address; what is at its default is left out."""
    memory = _memory()
    if memory.page is None:  # no frame around us, as in a page run on its own
        return
    parameters = link()
    memory.remember((memory.page, tuple(sorted(parameters.items()))))
    if st.query_params.to_dict() != (shown := {**parameters, **memory.beside}):
        st.query_params.from_dict(shown)
    if memory.heard is not None:
        memory.heard(memory.page, parameters)


def _write(view: View, said: Collection[str] = ()) -> dict[str, str]:
    link = {}
    for name, f in _IN_LINKS.items():
        if (value := getattr(view, f.name)) != f.default or f.name in said:
            write: Callable[[Any], str] = f.metadata.get("write", str)
            link[name] = write(value)
    return link


def _said(parameters: Mapping[str, str], view: View) -> set[str]:
    """The fields that a page may suggest, and that the address gives and the view has taken over."""
    return {name for name in SUGGESTED if parameters.get(link_name(_FIELDS[name])) == str(getattr(view, name))}


def _read(parameters: dict[str, str]) -> tuple[View, list[Message]]:
    values: dict[str, Any] = {}
    problems = []
    for name, value in parameters.items():
        f = _IN_LINKS[name]
        try:
            values[f.name] = f.metadata["read"](value)
            if f.name == "settings":
                values["settings"], gone = gone_parts.take_out(values["settings"])
                problems += gone
            if f.metadata["read"] is packed_text.read and packed_text.is_gone(value):
                problems.append(
                    N_(
                        "The link names a text that a server keeps for only {hours} hours, and this server does not have "
                        "it. The page shows its beginning: paste the text again.",
                        hours=packed_text.HOURS,
                    )
                )
        except UnusableError as unusable:
            otherwise = "" if f.default is None else str(f.default)
            problems.append(_notice(f, value, unusable.message, otherwise))
    return View(**values), problems


def _notice(f: Field[Any], value: str, rule: Message, otherwise: str) -> Message:
    label: Message = f.metadata["label"]
    if not otherwise:
        return N_(
            "The link sets “{name}” to “{value}”, but {rule}. It is left out.", name=label, value=value, rule=rule
        )
    return N_(
        "The link sets “{name}” to “{value}”, but {rule}. The page shows “{otherwise}” instead.",
        name=label,
        value=value,
        rule=rule,
        otherwise=otherwise,
    )
