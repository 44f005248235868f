"""Words of two senses in the lesson Tokens and embeddings: does the model tell the senses apart?"""

import streamlit as st

from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.tokens import computations
from vizformer.web.lessons.tokens.sentences import FRAMES
from vizformer.web.widgets import lesson
from vizformer.web.words import labels
from vizformer.web.words.i18n import _

RARE, CLEAR = 0.05, 0.1  # chance below which it is hardly luck; share from which the senses are told apart


def senses_in_frames(subject: Subject) -> None:
    """The switch, and the table for every word that the model can read."""
    if not st.toggle(_("Measure words of two senses"), **lesson.setting("tokens.senses", False)):
        return
    found = computations.sense_gaps(subject.model)
    if not found:
        st.info(_("This model is too large for sixty sentences while you wait, or cannot read them."))
        return
    st.html(table.style())
    rows = []
    for token, gap in found.items():
        same, different, chance, share = (float(of[-1]) for of in (gap.same, gap.different, gap.chance, gap.share))
        apart = chance <= RARE and share >= CLEAR
        rows.append(
            Row(
                (
                    token,
                    Number(same, f"{same:.3f}"),
                    Number(different, f"{different:.3f}"),
                    Number(share, labels.percent(max(share, 0.0))),
                    Number(chance, labels.percent(chance)),
                    _("yes") if apart else _("no"),
                ),
                "marked" if apart else "",
            )
        )
    columns = (
        _("token"),
        _("same sense"),
        _("two senses"),
        _("share of the way"),
        _("by chance"),
        _("told apart"),
    )
    st.html(
        table.to_html(
            columns,
            rows,
            caption=_("Mean cosines after the last layer; {n} frames for each word", n=len(gap.sentences)),
        )
    )
    st.caption(
        _(
            "Each frame is one sentence with one word changed, and only different frames are compared. Share of the way: 0 "
            "where the sense plays no part, 100% where each sense has one vector. By chance: in how many of all draws by "
            "coin the difference would be as large. “Yes” from {clear} of the way on, where chance is unlikely.",
            clear=labels.percent(CLEAR),
        )
    )
    with st.expander(_("The frames")):
        st.text("\n".join(f"{token}: " + " · ".join(map(_plain, FRAMES[token])) for token in found))
    if subject.config.architecture == "decoder-only":
        st.info(
            _("Where the word that decides stands after the token, this model cannot tell: it has not read it yet.")
        )


def _plain(written: str) -> str:
    return written.replace("[", "").replace("]", "").replace("{", "").replace("}", "")
