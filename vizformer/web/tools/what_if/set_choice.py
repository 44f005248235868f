"""Which set of prompts is asked, a bundled one or the reader's own, and what is measured of it."""

import streamlit as st

from vizformer.analysis import PromptSet, bundled_sets, read_prompt_set
from vizformer.analysis.causes.prompt_sets import LARGEST, MOST
from vizformer.checkpoints.any_checkpoint import check_characters
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.tools.what_if.circuit_edges import has_edges
from vizformer.web.widgets.choices import box
from vizformer.web.words.i18n import _, show_info, words
from vizformer.word_tables import words_of

_WORDS = words_of(__file__)
SET, OWN = "whatif.set", "own"
EXAMPLE = (
    "clean, corrupted, answer, wrong\nThe boy lost, The girl lost, his, her\nThe king lost, The queen lost, his, her"
)


@cached(refusals=lambda text: True)
def read(text: str) -> PromptSet:
    """Reads a set of prompts that somebody has written or pasted."""
    return read_prompt_set(text, OWN)


def chosen_name(subject: Subject) -> str:
    """One of the bundled sets that fit the model, or OWN."""
    names = {name: set_name(name, subject) for name in (*bundled_sets(subject.checkpoint), OWN)}
    return box(_("Set of prompts"), SET, names, labelled=False)


def own_set() -> PromptSet | None:
    """What the reader has written or pasted; None where there is nothing yet."""
    written = st.text_area(
        _(
            "A table (CSV or JSON) with the columns clean, corrupted, answer, wrong and target, or a template with words"
        ),
        key="what_if.set.own",
        placeholder=EXAMPLE,
        persist_state="session",
    )
    check_characters(written or "", LARGEST // 4)
    if not (written or "").strip():
        show_info(
            "Paste 2 to {most} prompts. Only the column clean is needed. A template has a line “clean: The {{who}} "
            "lost” and a line “who: boy, king, man” with the words for it.",
            most=MOST,
        )
        return None
    return read(written)


def set_name(name: str, subject: Subject) -> str:
    """What a set is called; with the model for which it is written where that is another one."""
    if name == OWN:
        return _("My own prompts")
    task, model = name.split(".")
    called = words(_WORDS["sets"])[task]
    return called if model == subject.checkpoint.name else f"{called} ({model})"


def what_is_measured(subject: Subject) -> str:
    names = words(_WORDS["measures"])
    if not subject.checkpoint.is_own:
        names.pop("attribution", None)
    elif has_edges(subject):
        names["circuit"] = _("a circuit: edges by gradients")
    return box(_("What is measured"), "whatif.over", names, "patching", labelled=False)
