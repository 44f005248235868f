"""Share: the link of what is on the screen, as a text, to copy, and as a QR code for a projector."""

from collections.abc import Iterator
from urllib.parse import urlencode, urlsplit, urlunsplit

import streamlit as st

from vizformer.serving import listening
from vizformer.web.link import state
from vizformer.web.words.i18n import _, show_note

WIDTH = 304  # px of the code
MOST_IN_A_CODE = 800  # characters of a link up to which a QR code can be read from the last row of a classroom


def button() -> None:
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
