"""The laboratory Who is "it"?: whether some head looks at the noun that a pronoun means, measured on pairs of sentences."""

import streamlit as st

from vizformer.analysis.heads.pronouns import ReferenceShift
from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import presses
from vizformer.web.lessons.heads import computations
from vizformer.web.lessons.heads.sentences import PAIRS, Pronoun
from vizformer.web.link import state
from vizformer.web.widgets import lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import counts, labels
from vizformer.web.words.i18n import _

RARE, MOST = 0.05, 0.75  # chance below which it is hardly luck; sentences in which the meant noun has to be found
CODE = """lead = w[:, :, 0] - w[:, :, 1]        # [pairs, sentences]: weight on the first noun less that on the second
shift = (lead[:, 0] - lead[:, 1]) / 2  # of one head, for each pair"""


@laboratory
def reference(subject: Subject) -> None:
    """Pairs of sentences, the best head of the model, and how far it can be trusted."""
    st.html(table.style())
    lesson.ask(reader_question())
    readable = computations.readable(subject.model)
    if not readable:
        st.info(
            _(
                "This model is too large for two dozen sentences while you wait, or cannot read them. Choose another one."
            )
        )
        return
    names = {
        "he": _("he / she: the form decides"),
        "he_first": _("he / she, the man always first"),
        "it": _("it: the meaning decides"),
        "ta_form": _("他 / 她: the form decides"),
        "ta_meaning": _("它: the meaning decides"),
    }
    chinese = any("\u4e00" <= character <= "\u9fff" for character in subject.text)
    usual: Pronoun = next((name for name in readable if name.startswith("ta") == chinese), readable[0])
    chosen = st.segmented_control(
        _("Pronoun"),
        readable,
        format_func=names.__getitem__,
        required=True,
        **lesson.setting("heads.pronoun", usual, readable),
    )
    pronoun: Pronoun = next(name for name in readable if name == (chosen or usual))
    found = computations.reference_shift(subject.model, pronoun)
    _verdict(found)
    _table(pronoun, found)
    _open(subject, found)
    w = found.weights[..., found.layer, found.head]
    lesson.formula(
        r"\mathrm{shift} = \tfrac12 \big[(a_{1,A} - a_{1,B}) - (a_{2,A} - a_{2,B})\big]",
        live=rf"\tfrac12 \big[({w[0, 0, 0]:.3f} - {w[0, 0, 1]:.3f}) - ({w[0, 1, 0]:.3f} - {w[0, 1, 1]:.3f})\big] = "
        rf"{found.shifts[0, found.layer, found.head]:.3f}",
        code=CODE,
        given={"w": w.astype("float32")},
    )


def _verdict(found: ReferenceShift) -> None:
    if found.never_moves:
        st.info(
            _(
                "Nothing moves, in no head. This model reads from left to right, and up to the pronoun both sentences of a "
                "pair are the same: when its row is computed, the word that decides has not come yet."
            )
        )
        return
    n, heads = len(found.sentences), found.shifts[0].size
    numbers = {
        "layer": found.layer,
        "head": found.head,
        "points": f"{100 * found.mean:.1f}",
        "right": found.right,
        "n": n,
        "found": found.found,
        "sentences": 2 * n,
        "heads": counts.heads(heads),
        "chance": labels.percent(found.chance),
    }
    measured = _(
        "The best of {heads} is head {head} of layer {layer}: {points} points of its attention move to the noun that "
        "is meant, on average, and in {right} of {n} pairs they move the right way. If coins said which noun is right, the "
        "best head would do as well in {chance} of all cases. In {found} of {sentences} sentences it gives the meant noun "
        "more than the other one; half would be luck.",
        **numbers,
    )
    if found.chance > RARE:
        st.warning(_("**Not shown by this model.**") + " " + measured)
    elif found.found < MOST * 2 * n:
        st.info(_("**It moves, but it does not find.**") + " " + measured)
    else:
        st.success(_("**Shown.**") + " " + measured)


def _table(pronoun: Pronoun, found: ReferenceShift) -> None:
    weights, shifts = (of[..., found.layer, found.head] for of in (found.weights, found.shifts))
    rows = []
    for written, (first, __), w, shift in zip(PAIRS[pronoun], found.sentences, weights, shifts, strict=True):
        one, other = (first.text[start:end] for start, end in first.spans[:2])
        rows.append(
            Row(
                (
                    written.replace("[", "").replace("]", "").replace("{", "").replace("}", ""),
                    f"{one} {labels.percent(float(w[0, 0]))} · {other} {labels.percent(float(w[0, 1]))}",
                    f"{one} {labels.percent(float(w[1, 0]))} · {other} {labels.percent(float(w[1, 1]))}",
                    Number(float(shift), f"{100 * shift:+.1f}".replace("-", "−")),
                ),
                "marked" if shift > 0 else "",
            )
        )
    columns = (_("the pair"), _("with the first word"), _("with the second word"), _("shift, in points"))
    caption = _("Layer {layer}, head {head}: the pronoun's weights", layer=found.layer, head=found.head)
    st.html(table.to_html(columns, rows, caption=caption))
    st.caption(_("Framed: the attention moves to the noun that is meant."))


def _open(subject: Subject, found: ReferenceShift) -> None:
    """A button that makes a sentence the page's own and shows the head among all heads."""
    best = int(found.shifts[:, found.layer, found.head].argmax())
    text = found.sentences[best][0].text
    if presses.button(_("Look at this head in: {text}", text=text), key="heads.reference.open"):
        kind = "encoder" if "encoder" in subject.trace.tokens else "decoder"
        state.update(text=text, target="", edits="", kind=kind, layer=found.layer, head=found.head, part="all")
        st.rerun()  # the whole page


def reader_question() -> lesson.Choice:
    """What can a model know at the pronoun that reads from left to right?"""
    return lesson.Choice(
        "heads",
        "reader",
        _(
            "“The cat did not cross the street because it was too tired.” With “wide” in place of “tired”, “it” is the "
            "street. By how much does the row of “it” change in a model that reads from left to right?"
        ),
        [_("not at all"), _("a little"), _("its attention moves from the cat to the street")],
        0,
        _(
            "The word that decides comes after “it”, and the causal mask hides it: up to “it” the sentences are the same. "
            "Such a model can settle the question only in later rows. An encoder sees both sides."
        ),
    )
