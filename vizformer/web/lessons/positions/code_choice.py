"""What the laboratories of the sinusoidal code share in the lesson Positions: its width and a position."""

import streamlit as st

from vizformer.web.catalogue.subject import Subject
from vizformer.web.widgets import lesson
from vizformer.web.words.errors import plain
from vizformer.web.words.i18n import _

WIDTHS = (8, 16, 32, 64, 128, 256, 512)
FURTHEST = 64


def width(subject: Subject) -> int:
    """The slider of d_model; it begins where the model stands."""
    default = subject.config.d_model if _has_code(subject) else 64
    chosen: int = st.select_slider(
        _("Width of the code, d_model"), WIDTHS, **lesson.setting("positions.d", default, WIDTHS)
    )
    return chosen


def _has_code(subject: Subject) -> bool:
    return subject.config.positions == "sinusoidal" and subject.config.d_model in WIDTHS


def whose(subject: Subject, d: int) -> None:
    """Whether the model adds the code of this width."""
    own = _has_code(subject)
    if own and d == subject.config.d_model:
        st.caption(_("{model} adds exactly this code to its embeddings.", model=plain(subject.title)))
    elif own:
        st.caption(
            _(
                "{model} adds the code of width {d} to its embeddings.",
                model=plain(subject.title),
                d=subject.config.d_model,
            )
        )
    else:
        st.caption(
            _(
                "{model} tells its positions in another way (part 6); the code of 2017 is worked out here anyway.",
                model=plain(subject.title),
            )
        )


def position() -> int:
    chosen: int = st.slider(_("Position pos"), 0, FURTHEST - 1, **lesson.setting("positions.pos", 3, range(FURTHEST)))
    return chosen


def rounded(length: float) -> str:
    """A wavelength: three digits are enough."""
    return f"{length:,.0f}" if length >= 100 else f"{length:.3g}"
