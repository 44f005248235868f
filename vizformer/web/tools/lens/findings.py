"""The scan: what is most remarkable about this answer, each sentence with a way to its picture."""

import streamlit as st

from vizformer.analysis.attribution.finding_words import sentence
from vizformer.analysis.attribution.findings import Finding
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import presses, sitemap
from vizformer.web.link import state
from vizformer.web.tools.lens import computations, terms
from vizformer.web.tools.lens.token_choice import Asked
from vizformer.web.widgets import lesson
from vizformer.web.words.errors import plain
from vizformer.web.words.i18n import _, show_note, translate


def remarkable(subject: Subject, asked: Asked) -> None:
    """The button and, once it was pressed, the findings; also in the link."""
    if not lesson.value("lens.scan", False):
        asking = _("Scan: what is most remarkable here?")
        st.button(asking, type="primary", key="lens.scan", on_click=lesson.change, args=("lens.scan", True, False))
        return
    with st.container(border=True):
        st.markdown("**" + _("Most remarkable here") + "**")
        for number, finding in enumerate(computations.findings(subject, asked.position, asked.token)):
            said, there = st.columns([4, 1], vertical_alignment="center")
            said.markdown(translate(sentence(finding), plain))
            with there:
                picture(finding, number)
        show_note(
            "Shares are those of the sum below, against the mean logit of all tokens. A head copies where it looks at "
            "the answer and adds at least a tenth of its logit from there. Heads and layers are taken "
            "out one at a time, as on the page What if."
        )
        st.button(_("Hide"), type="tertiary", key="lens.hide", on_click=lesson.change, args=("lens.scan", False, False))


def picture(finding: Finding, number: int) -> None:
    """The way to the picture of a finding: a head on the page Attention, or what is drawn below."""
    if finding.head is None:
        if finding.what in ("part", "layer"):  # (the lens is beside it)
            below = _("the terms")  # (the extractor does not look into f-strings)
            st.markdown(f"[→ {below}](#{terms.ANCHOR})")
        return
    label = "→ " + _("L{layer} H{head}", layer=finding.layer, head=finding.head)
    if presses.button(label, type="tertiary", key=f"lens.finding.{number}", help=_("This head on the page Attention")):
        go_to(finding)


def go_to(finding: Finding) -> None:
    """The page Attention at that head."""
    state.update(
        kind=finding.kind, layer=finding.layer, head=finding.head, query=finding.query, picture="map", over="one"
    )
    st.switch_page(sitemap.ATTENTION.file)
