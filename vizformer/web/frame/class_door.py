"""What every page has of a class, for the teacher and for who follows; and Share, the link of what is on the screen."""

import contextlib
import secrets
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit, urlunsplit

import streamlit as st

from vizformer.components import follow, lead
from vizformer.serving import listening, one_of
from vizformer.web.classroom.rooms import LENGTH, NoRoomError, Place, tidy
from vizformer.web.classroom.stores import StoreError
from vizformer.web.frame import classroom, inline_scripts, presses
from vizformer.web.frame.classroom import ROOMS
from vizformer.web.frame.sitemap import HOME, PAGES, TEACH
from vizformer.web.link import state
from vizformer.web.words.i18n import _, show_info, show_note, translate

WIDTH = 304  # px of the code
MOST_IN_A_CODE = 800  # characters of a link up to which a QR code can be read from the last row of a classroom


def share_button() -> None:
    """The button; the link is written once it is pressed, as the view is then."""
    opened = st.popover(_("Share"), key="share", on_change="rerun")
    if opened.open:
        with opened:
            offer(address())


def offer(link: str) -> None:
    show_note("This link opens what you see now, in any browser that reaches this server.")
    st.code(link, language=None, wrap_lines=True)
    if (code := qr(link)) is not None:
        st.image(code, width=WIDTH)
    else:
        show_note("The link is too long for a code that can be read from afar: a shorter text helps.")
    for said in left_out(link):
        st.caption(said)


def address() -> str:
    """The address of what is on the screen, complete, as this browser reaches the server."""
    parts = urlsplit(st.context.url or "")
    return urlunsplit((parts.scheme, parts.netloc, parts.path, urlencode(state.link()), ""))


def qr(link: str) -> str | None:
    """The link as a QR code, an SVG, black on white also in the dark; None where it is too long."""
    if len(link) > MOST_IN_A_CODE:
        return None
    import segno

    made: str = segno.make(link, error="l", micro=False).svg_inline(
        omitsize=True, dark="#000000", light="#ffffff", border=4
    )
    return made


def left_out(link: str) -> Iterator[str]:
    """Sentences about what a link leaves out, where it matters for what is on the screen."""
    view, host = state.view(), urlsplit(link).hostname or ""
    if listening.is_loopback(host):
        yield _(
            "This address is that of your own computer: others reach the server under its name or number in the network "
            "(`vizformer --host 0.0.0.0` prints it)."
        )
    if state.clipped("text") or state.clipped("target"):
        yield _("The text is too long for a link: it holds only the beginning.")
    sources = {model.source for model in (view.model, view.other) if model is not None}
    if sources & {"upload", "path"}:
        yield _("The model was opened in this session alone: others have to open its files themselves.")
    if "training" in sources or view.run:
        yield _(
            "This server keeps the training until it restarts or needs the room for newer ones; then the "
            "link cannot open it."
        )
    yield _("The link does not contain your answers to questions.")


TRY_AGAIN = 5.0  # seconds
_CODE, _UNKNOWN, _POINTS = (f"class.{name}" for name in ("code", "unknown", "points"))

_VOTER, _NOTED = "classroom.voter", "classroom.noted"


def leading() -> None:
    """What a teacher sees of the class, without opening anything: its code, and how many follow."""
    if (own := classroom.led()) is not None:
        code, secret = own
        text = _("Class {code}: {n} following", code=code, n="{n}")
        with st.container(horizontal=True, vertical_alignment="center", width="content", key="class-leading"):
            lead.mount(
                url=classroom.address(code), text=text, secret=secret, points=classroom.points(), key="class.lead"
            )
            _way(code)


def _way(code: str) -> None:
    """To the counts of the class and, from there, back to where the class is."""
    page, label = TEACH, _("Where the class is")
    if state.page() == TEACH.url:
        with contextlib.suppress(NoRoomError, StoreError):
            page = PAGES.get(ROOMS.look(code).page, HOME)
            label = f"← {translate(page.title)}"
    st.page_link(page.file, label=label, width="content")


def banner(presenting: bool) -> None:
    """What a student who follows can do, and what a teacher sees, above the page."""
    if cookie := classroom.remembered():
        inline_scripts.run("cookie.js", cookie=cookie)
    if classroom.is_to_lead():
        _take_over()
    if not presenting:
        leading()
    if classroom.has_ended():
        with st.container(key="class-over"):
            show_info("The class is over. The page is yours.")
    code = classroom.follows()
    if code is None:
        return
    free, asked = classroom.is_free(), asked_question()
    with st.container(horizontal=True, vertical_alignment="center", key="class-banner"):
        said = _("Class {code}: you explore by yourself.") if free else _("Class {code}: you follow the teacher.")
        counted = _("Your teacher sees how many are where, and how many answered wrongly at first; no names.")
        st.caption(said.format(code=code), width="content", help=counted)
        if asked is not None and not asked.shown:
            st.caption(_("The teacher asks the class: answer in the box below."), width="content")
        if free:
            st.button(_("Follow again"), on_click=classroom.come_back, key="class.back", type="tertiary")
        else:
            st.button(_("Explore by myself"), on_click=classroom.let_go, key="class.free", type="tertiary")
        st.button(_("Leave the class"), on_click=classroom.leave, key="class.leave", type="tertiary")
    box = "" if asked is None else "st-key-ask-" + asked.question.replace("/", "-")
    follow.mount(url=classroom.address(code), seen=classroom.seen(), box=box, points=not free, key="class.ear")


@st.fragment(run_every=TRY_AGAIN)
def _take_over() -> None:
    classroom.take_over()
    if not classroom.is_to_lead():
        st.rerun()


def button() -> None:
    """The button; the whole page runs where it is pressed, since a part that runs alone would cost each run of it more."""
    opened = st.popover(_("Class"), key="class", on_change="rerun")
    if not opened.open:
        return
    with opened:
        if one_of() > 1 and not classroom.is_shared():
            show_note(
                "A class on a server with several workers needs a Redis that they share: start it with "
                "VIZFORMER_REDIS_URL, or without `--workers`."
            )
        elif (own := classroom.led()) is not None:
            _leading(*own)
        else:
            _door()


def _leading(code: str, secret: str) -> None:
    parts = urlsplit(st.context.url or "")
    link = urlunsplit((parts.scheme, parts.netloc, parts.path, urlencode({classroom.ROOM: code}), ""))
    st.markdown(f"# {code}")
    show_note("Students open this link, or press “Class” and type the code. They see your page, model, text and head.")
    st.code(link, language=None, wrap_lines=True)
    if (drawn := qr(link)) is not None:
        st.image(drawn, width=WIDTH)
    show_note("Every question of a lesson has a button that asks it to the class and counts the answers.")
    st.toggle(_("Show the class my pointer"), value=classroom.points(), key=_POINTS, on_change=_point)
    show_note("The class ends when you end it, a minute after you leave, and after four hours. Nothing is kept.")
    st.button(_("End the class"), on_click=classroom.end, args=(code, secret), key="class.end")


def _door() -> None:
    show_note("As a teacher: students see each of your steps.")
    if presses.button(_("Start a class"), key="class.start", type="primary"):
        if (refused := classroom.start()) is None:
            st.rerun()  # its questions can be asked to the class from now on
        st.warning(translate(refused))
    st.divider()
    label = _("As a student: the code of the class")
    st.text_input(label, key=_CODE, max_chars=2 * LENGTH, on_change=_typed)
    if st.session_state.pop(_UNKNOWN, False):
        show_note("There is no class with this code.")


def _point() -> None:
    classroom.show_pointer(st.session_state[_POINTS])


def _typed() -> None:
    """A typed code is used once: else the student would join again with every run."""
    code, st.session_state[_CODE] = tidy(st.session_state[_CODE] or ""), ""
    st.session_state[_UNKNOWN] = not (code and classroom.join(code))


# The question that a class is asked, and the answers of its students.
def asked_question() -> Place | None:
    """What the class of this session is asked, by its teacher or for a student who follows; None where nothing is."""
    if (own := classroom.leads()) is not None:
        try:
            place = ROOMS.look(own[0])
        except (NoRoomError, StoreError):
            return None
    else:
        found = None if classroom.is_free() else classroom.look()
        if found is None:
            return None
        place = found
    return place if place.question else None


def ask(asked: str) -> None:
    """Asks the class that this session leads; the empty question takes back what was asked."""
    if (own := classroom.leads()) is not None:
        with contextlib.suppress(NoRoomError, StoreError):
            ROOMS.ask(*own, asked)


def show_answer() -> None:
    if (own := classroom.leads()) is not None:
        with contextlib.suppress(NoRoomError, StoreError):
            ROOMS.show(*own)


def answer(asked: str, said: str) -> bool:
    """Sends this student's answer; whether it was taken."""
    code, voter = classroom.follows(), st.session_state.setdefault(_VOTER, secrets.token_urlsafe(9))
    if code is None:
        return False
    try:
        return ROOMS.answer(code, asked, voter, said)
    except (NoRoomError, StoreError):
        return False


def answers() -> Counter[str]:
    """How often the class of this session's teacher has given each answer."""
    return _of_own_class(ROOMS.answers)


def counts() -> Counter[str]:
    """What is counted in the class of this session's teacher (`Rooms.counts`)."""
    return _of_own_class(ROOMS.counts)


def _of_own_class(told: Callable[[str, str], Counter[str]]) -> Counter[str]:
    if (own := classroom.leads()) is None:
        return Counter()
    try:
        return told(*own)
    except (NoRoomError, StoreError):
        return Counter()


class Outcome(NamedTuple):
    """Whether an answer is right and, where it is not, the name of its misconception; empty where none is known."""

    right: bool
    misconception: str = ""


def note(asked: str, outcome: Outcome) -> None:
    """Counts this student's first answer to a question in the class that is followed."""
    code, noted = classroom.follows(), st.session_state.setdefault(_NOTED, set())
    if code is not None and (code, asked) not in noted:
        noted.add((code, asked))
        with contextlib.suppress(NoRoomError, StoreError):
            ROOMS.note(code, f"right {asked}" if outcome.right else f"wrong {asked} {outcome.misconception}")
