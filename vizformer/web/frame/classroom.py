"""A class: the teacher's button, and what a student sees who follows."""

import contextlib
from urllib.parse import urlencode, urlsplit, urlunsplit

import streamlit as st
from streamlit.runtime import Runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from vizformer.components import follow
from vizformer.serving import one_of
from vizformer.web.classroom.rooms import LENGTH, MemoryStore, NoRoomError, Place, Rooms, tidy
from vizformer.web.classroom.waiting import PATH, Waiting
from vizformer.web.frame import share
from vizformer.web.frame.sitemap import HOME, SECTIONS
from vizformer.web.link import state
from vizformer.web.words.i18n import _

ROOM = "room"  # of a link: the code of a class to join
_LEADS, _FOLLOWS, _FREE, _SEEN, _ENDED = (
    f"classroom.{name}"
    for name in ("leads", "follows", "free", "seen", "ended")  # (keys of buttons begin otherwise)
)
_CODE, _JOINED, _UNKNOWN = (f"class.{name}" for name in ("code", "joined", "unknown"))
_OWN = ("lang",)  # of the view: what stays the student's


def _is_there(session: str) -> bool:
    return Runtime.exists() and Runtime.instance().is_active_session(session)


ROOMS = Rooms(MemoryStore(), _is_there)
WAITING = Waiting(ROOMS)


def _session() -> str:
    context = get_script_run_ctx(suppress_warning=True)
    return "" if context is None else context.session_id


# --- before the page is drawn -----------------------------------------------------------------------------------------


def arrive() -> None:
    """Joins the class that the link names."""
    if (code := tidy(str(st.query_params.get(ROOM, "")))) and st.session_state.get(_FOLLOWS) != code:
        st.session_state[_ENDED] = not join(code)


def keep_up(page: str) -> None:
    """Takes a student who follows to where the teacher is, and tells the class where its teacher is."""
    if (own := st.session_state.get(_LEADS)) is not None:
        state.listen(lambda where, parameters: _lead(own, where, parameters))
        return
    state.listen(None)
    place = _wanted()
    if place is None:
        return
    if _file(place.page) != _file(page):  # seen once it is there: a run that is cut short goes nowhere
        st.switch_page(_file(place.page))
    st.session_state[_SEEN] = place.version
    here = {name: value for name, value in state.link().items() if name in _OWN}
    parameters = {**{name: value for name, value in place.parameters.items() if name not in _OWN}, **here}
    state.adopt(parameters)


def _file(page: str) -> str:
    """The file of a page; of the first one, whatever its address is."""
    return next((entry.file for __, entries in SECTIONS for entry in entries if entry.url == page), HOME.file)


def _lead(own: tuple[str, str], page: str, parameters: dict[str, str]) -> None:
    with contextlib.suppress(NoRoomError):  # it is said at the next look at the button
        ROOMS.move(*own, page, parameters)


def _wanted() -> Place | None:
    """Where the teacher is, if the student follows and is not there yet."""
    code = st.session_state.get(_FOLLOWS)
    if code is None:
        return None
    try:
        place = ROOMS.look(code)
    except NoRoomError:
        leave()
        st.session_state[_ENDED] = True
        return None
    known = st.session_state.get(_SEEN, 0)
    return None if st.session_state.get(_FREE) or place.version == known else place


# --- what is drawn ----------------------------------------------------------------------------------------------------


def banner() -> None:
    """What a student who follows can do, above the page."""
    if st.session_state.pop(_ENDED, False):
        st.info(_("The class is over. The page is yours."))
    code = st.session_state.get(_FOLLOWS)
    if code is None:
        return
    free = bool(st.session_state.get(_FREE))
    with st.container(horizontal=True, vertical_alignment="center", key="class-banner"):
        said = _("Class {code}: you look around by yourself.") if free else _("Class {code}: you follow the teacher.")
        st.caption(said.format(code=code), width="content")
        if free:
            st.button(_("Follow again"), on_click=come_back, key="class.back", type="tertiary")
        else:
            st.button(_("Look around by myself"), on_click=let_go, key="class.free", type="tertiary")
        st.button(_("Leave the class"), on_click=leave, key="class.leave", type="tertiary")
    base = st.get_option("server.baseUrlPath").strip("/")
    url = f"{'/' + base if base else ''}{PATH}/{code}"
    follow.mount(url=url, seen=st.session_state.get(_SEEN, 0), key="class.ear")


@st.fragment
def button() -> None:
    """The button of the class, beside that of the link."""
    if st.session_state.pop(_JOINED, False):  # the whole page: it is to show what the teacher's does
        st.rerun()
    opened = st.popover(_("Class"), key="class", on_change="rerun")
    if not opened.open:
        return
    with opened:
        if one_of() > 1:
            st.caption(_("A class needs a server with one worker: start it without `--workers`."))
        elif (own := st.session_state.get(_LEADS)) is not None:
            _leading(*own)
        else:
            _door()


def _leading(code: str, secret: str) -> None:
    try:
        ROOMS.look(code)
    except NoRoomError:
        del st.session_state[_LEADS]
        st.rerun()
    parts = urlsplit(st.context.url or "")
    link = urlunsplit((parts.scheme, parts.netloc, parts.path, urlencode({ROOM: code}), ""))
    st.markdown(f"# {code}")
    st.caption(
        _("Students open this link, or press “Class” and type the code. They see your page, model, text and head.")
    )
    st.code(link, language=None, wrap_lines=True)
    if (drawn := share.qr(link)) is not None:
        st.image(drawn, width=share.WIDTH)
    st.caption(_("The class ends when you end it, a minute after you leave, and after four hours. Nothing is kept."))
    st.button(_("End the class"), on_click=end, args=(code, secret), key="class.end")


def _door() -> None:
    st.caption(_("As a teacher: whoever joins sees what you look at, move by move."))
    if st.button(_("Start a class"), key="class.start", type="primary"):
        _start()
        st.rerun()
    st.divider()
    label = _("As a student: the code of the class")
    st.text_input(label, key=_CODE, max_chars=2 * LENGTH, on_change=_typed)
    if st.session_state.pop(_UNKNOWN, False):
        st.caption(_("There is no class with this code."))


def _start() -> None:
    leave()
    try:
        own = ROOMS.open(_session())
    except NoRoomError:
        return
    st.session_state[_LEADS] = own
    _lead(own, state.page(), state.link())


# --- what is pressed --------------------------------------------------------------------------------------------------


def join(code: str) -> bool:
    """Follows a class; whether there is one of this code."""
    try:
        ROOMS.look(code)
    except NoRoomError:
        return False
    leave()
    st.session_state[_FOLLOWS] = code
    return True


def _typed() -> None:
    """A code that was typed is used once: it would have the student join again with every run."""
    code, st.session_state[_CODE] = tidy(st.session_state[_CODE] or ""), ""
    st.session_state[_JOINED] = joined = join(code)
    st.session_state[_UNKNOWN] = not joined


def let_go() -> None:
    st.session_state[_FREE] = True


def come_back() -> None:
    st.session_state[_FREE], st.session_state[_SEEN] = False, 0


def leave() -> None:
    """Follows nobody any more."""
    for name in (_FOLLOWS, _FREE, _SEEN):
        st.session_state.pop(name, None)


def end(code: str, secret: str) -> None:
    """Ends the teacher's own class."""
    st.session_state.pop(_LEADS, None)
    with contextlib.suppress(NoRoomError):
        ROOMS.close(code, secret)
