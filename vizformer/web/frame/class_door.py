"""What is drawn of a class on every page: the teacher's button, and what a student sees who follows."""

from urllib.parse import urlencode, urlsplit, urlunsplit

import streamlit as st

from vizformer.components import follow, lead
from vizformer.serving import one_of
from vizformer.web.classroom.rooms import LENGTH, tidy
from vizformer.web.frame import class_answers, class_rooms, classroom, inline_scripts, presses, share
from vizformer.web.words.i18n import _, show_info, show_note, translate

TRY_AGAIN = 5.0  # seconds
_CODE, _UNKNOWN, _POINTS = (f"class.{name}" for name in ("code", "unknown", "points"))


def leading() -> None:
    """What a teacher sees of the class, without opening anything: its code, and how many follow."""
    if (own := classroom.led()) is not None:
        code, secret = own
        text = _("Class {code}: {n} following", code=code, n="{n}")
        lead.mount(url=classroom.address(code), text=text, secret=secret, points=classroom.points(), key="class.lead")


def banner(presenting: bool) -> None:
    """What a student who follows can do, and what a teacher sees, above the page."""
    if cookie := classroom.remembered():
        inline_scripts.run("cookie.js", cookie=cookie)
    if classroom.is_to_lead():
        _take_over()
    if not presenting:
        leading()
    if classroom.has_ended():
        show_info("The class is over. The page is yours.")
    code = classroom.follows()
    if code is None:
        return
    free, asked = classroom.is_free(), class_answers.question()
    with st.container(horizontal=True, vertical_alignment="center", key="class-banner"):
        said = _("Class {code}: you explore by yourself.") if free else _("Class {code}: you follow the teacher.")
        st.caption(said.format(code=code), width="content")
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
        if one_of() > 1 and not class_rooms.is_shared():
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
    if (drawn := share.qr(link)) is not None:
        st.image(drawn, width=share.WIDTH)
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
