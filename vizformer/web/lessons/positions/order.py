"""Tokens in another order, in the lesson Positions: which output rows change?"""

import streamlit as st

from vizformer.components import matrix
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import presses
from vizformer.web.lessons.positions import computations
from vizformer.web.lessons.positions.schemes import choose
from vizformer.web.link import state
from vizformer.web.widgets import lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import labels
from vizformer.web.words.i18n import _

EXAMPLES = ("我爱中国", "国中爱我", "dog bites man")


@laboratory
def shuffle(subject: Subject) -> None:
    """The tokens in another order: which output rows change?"""
    st.html(matrix.style())
    tokens = computations.words_only(subject)[: computations.MOST]
    lesson.ask(shuffle_question(subject))
    scheme = choose("positions.scheme", "sinusoidal")
    masks = {"both": _("both sides (bidirectional)"), "causal": _("what is before (causal)")}
    mask = st.segmented_control(
        _("Each token sees"),
        list(masks),
        format_func=masks.__getitem__,
        required=True,
        **lesson.setting("positions.mask", "both", masks),
    )
    orders = {"reverse": _("reversed"), "random": _("at random")}
    kind = st.segmented_control(
        _("Shuffle my tokens"),
        list(orders),
        format_func=orders.__getitem__,
        required=True,
        **lesson.setting("positions.order", "reverse", orders),
    )
    seed = 0
    if kind == "random":
        seed = st.slider(_("Draw number"), 0, 20, **lesson.setting("positions.seed", 1, range(21)))
    with st.popover(_("Examples")):
        for text in (text for text in EXAMPLES if model_cache.reads(subject.model, text)):
            if presses.button(text, key=f"positions.example.{text}"):
                state.update(text=text, target="")
                st.rerun()  # the whole page: the sentence stands above
    if len(tokens) < 2:
        st.info(_("One token has only one order. Type a longer sentence."))
        return
    vocab_size = subject.config.input_vocab_size
    ids = tuple(token.id for token in tokens)
    found = computations.shuffled(scheme, vocab_size, mask == "causal", ids, kind, seed)
    texts = labels.texts(tokens)
    before = matrix.to_html(found.before[:, :5], rows=texts, caption=_("Outputs, your order"), digits=2, shown=10)
    after = matrix.to_html(
        found.after[:, :5], rows=[texts[i] for i in found.order], caption=_("Outputs, shuffled"), digits=2, shown=10
    )
    st.html(f'<div class="vf-row">{before}{after}</div>')
    moved = matrix.to_html(
        found.moved,
        columns=texts,
        caption=_("Per token: how far its output row has moved (largest |difference|)"),
        digits=3,
        shown=12,
    )
    st.html(moved)
    same = found.n_unmoved
    verdict = st.success if same == len(ids) else st.info
    verdict(
        _(
            "{same} of {n} tokens have the output row they had before (up to 0.00001). The rows of both outputs, taken "
            "as sets, are {sets} apart.",
            same=same,
            n=len(ids),
            sets=matrix.number(found.sets),
        )
    )
    st.caption(
        _(
            "An untrained model of 2 layers, 4 heads and 64 numbers a token, drawn from a fixed seed and the same under "
            "every scheme, reads your tokens (without start and end marks). The first 5 numbers of each row are shown. "
            "Without positions the rows stay the same whatever the weights."
        )
    )


def shuffle_question(subject: Subject) -> lesson.Choice | None:
    """Which row does a token get in the reversed sentence, without positions?"""
    tokens = computations.words_only(subject)[: computations.MOST]
    if len(tokens) < 2:
        return None
    n, texts, ids = len(tokens), labels.texts(tokens), tuple(token.id for token in tokens)
    vocab_size = subject.config.input_vocab_size
    token = next((i for i in range(n) if texts[n - 1 - i] != texts[i]), 0)  # another one comes to stand there
    found = computations.shuffled("none", vocab_size, False, ids, "reverse")
    choices = [
        _("It becomes another row: the token has other neighbours now"),
        _("It is the same row, at its new place"),
    ]
    if texts[n - 1 - token] != texts[token]:
        choices.append(_("It becomes the row that “{other}” had", other=texts[n - 1 - token]))
    return lesson.Choice(
        "positions",
        "shuffle",
        _(
            "A bidirectional model without positions reads your sentence backwards. “{token}” moves from place {here} to "
            "place {there}. What becomes of its output row?",
            token=texts[token],
            here=token,
            there=n - 1 - token,
        ),
        choices,
        1,
        _(
            "Measured: the row of “{token}” differs by {difference} at most, which is rounding. Each row is computed "
            "from its own token and from the set of all tokens; nothing in the arithmetic knows a place.",
            token=texts[token],
            difference=matrix.number(found.moved[token]),
        ),
        about=subject.text,
    )
