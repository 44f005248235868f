"""A text of the model's own kind decides between the answers to what bare weights do not say, as far as it can."""

import streamlit as st

from vizformer.checkpoints import Report
from vizformer.checkpoints.weighing.text_evidence import LEAST_TOKENS, MOST_COMBINATIONS, Evidence, Finding, evidence
from vizformer.web.catalogue import precision, sources
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.long_work import HEARD
from vizformer.web.catalogue.torch_setup import prepare_torch
from vizformer.web.frame import presses
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.tools.model_report import report_words
from vizformer.web.tools.model_report.questions import assume
from vizformer.web.widgets import data_table
from vizformer.web.widgets.laboratories import laboratory
from vizformer.web.widgets.watched_work import watched
from vizformer.web.words.errors import plain
from vizformer.web.words.i18n import _, show_note, show_text, translate


@laboratory
def draw_text_evidence(model: ModelRef, report: Report) -> None:
    """The boxes for the text and for the author's number, and what they say."""
    kind = report.config.architecture
    st.markdown("**" + _("Let a text decide") + "**")
    show_text(
        "A trained model predicts a text of its own kind well, and badly where it is computed in another way than its "
        "author did. The loss of the same tokens is measured under one combination of answers after another."
    )
    text = st.text_area(
        _("Pairs of the kind that it was trained on, one in each line: text, tab, target")
        if kind == "encoder-decoder"
        else _("A text of the kind that it was trained on, at least {n} tokens", n=LEAST_TOKENS),
        key="evidence.text",
        persist_state="session",
    )
    author = st.text_input(
        _("The author's own number for this text, if there is one (the text may then be short)"),
        placeholder=_("its loss, or the first logits of its last token"),
        key="evidence.author",
        persist_state="session",
    )
    mask_id = None
    if kind == "encoder-only" and report.config.mask_id is None:
        label, last = _("Token id that hides another one ([MASK])"), report.config.vocab_size - 1
        mask_id = st.number_input(label, 0, last, None, step=1, key="evidence.mask", persist_state="session")
    if not (text or "").strip():
        return
    found = watched(
        weigh,
        (sources.stamped(model), text, author or "", mask_id),
        quick=False,
        runs=MOST_COMBINATIONS,
        begin=_("Compare the answers"),
        key="evidence.begin",
        said=lambda done, n: _("{done} of {n} combinations of answers", done=f"{done:,}", n=f"{n:,}"),
        takes=_(
            "That takes up to {n} runs of the model: one answer at a time, then two. You can stop them.",
            n=MOST_COMBINATIONS,
        ),
    )
    if found is not None:
        results(model, found)


@cached
def weigh(model: ModelRef, text: str, author: str, mask_id: int | None) -> Evidence:
    prepare_torch()
    with sources.reading(model) as folder:
        return evidence(
            folder,
            text,
            author=author if author.strip() else None,
            mask_id=mask_id,
            device=precision.device(),
            heard=HEARD.get(),
            **model.given,
        )


def _row(one: Finding, by_author: bool) -> tuple[str, str, str, str]:
    """The best answer, whether it is decided, the nearest other answer, and how far that is."""
    result = _("decided") if one.settled else _("stays open")
    if one.rival is None:
        return report_words.answer(one.question.name, one.answer), result, "–", "–"
    far = f"{one.difference:+.3g}" + ("" if by_author else f" ± {one.error:.2g}")
    return (
        report_words.answer(one.question.name, one.answer),
        result,
        report_words.answer(one.question.name, one.rival),
        far,
    )


def results(model: ModelRef, found: Evidence) -> None:
    """A row for each question, what keeps the rest open, and the button that takes over what is decided."""
    if found.by_author:
        said = _("{n} combinations of answers were compared with the author's number.", n=found.combinations)
    else:
        said = _(
            "{n} combinations of answers, {tokens} tokens. Loss per token: {before} under the present answers, {best} at "
            "best; only counting the tokens of the text gives {counting}.",
            n=found.combinations,
            tokens=f"{found.tokens:,}",
            before=f"{found.before:.3f}",
            best=f"{found.best:.3f}",
            counting=f"{found.counting:.3f}",
        )
    st.text(said)
    if found.why_not is not None:
        st.warning(translate(found.why_not, plain))
    apart = _("Further from the number") if found.by_author else _("More loss per token")
    columns = (_("Question"), _("Best answer"), _("Result"), _("Nearest other answer"), apart)
    rows = [(translate(one.question.text), *_row(one, found.by_author)) for one in found.findings]
    if (over := found.over_counting) is not None:
        fits = (_("Yes"), _("decided")) if over.is_worse else (_("No"), _("none of these fits"))
        far = f"{over.difference:+.3g} ± {over.error:.2g}"
        question = _("Does the model predict this text better than counting its tokens does?")
        rows.insert(0, (question, *fits, _("only counting the tokens"), far))
    data_table.show(dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True)), hide_index=True)
    if not found.by_author:
        show_note(
            "An answer is decided where every combination with another one has a higher loss, by three standard errors "
            "(±) of the differences token by token, and by at least 0.001."
        )
    if not found.complete:
        show_note("Not all combinations were measured: there are too many of them, or it took too long.")
    if found.settled and presses.button(_("Open with what is decided"), type="primary", key="evidence.take"):
        assume(model, dict(found.answers))
        st.rerun()
