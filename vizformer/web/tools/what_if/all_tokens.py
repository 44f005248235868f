"""The tokens of the input, taken out one after the other: how far the answer moves without each."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from vizformer.analysis.causes.tokens_left_out import Stack, TokenEffects, Way, ways
from vizformer.components import matrix, table
from vizformer.components.table import Number, Row
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.tools.what_if import computations
from vizformer.web.tools.what_if.place import Place, choose
from vizformer.web.widgets import in_python, model_suggestions, watched_work
from vizformer.web.widgets.choices import BESIDE, more, one_of
from vizformer.web.words import ablated_parts
from vizformer.web.words.i18n import _, show_info, show_note


def draw_all_tokens(subject: Subject, settings: DeltaGenerator) -> None:
    """The stack, how a token is taken out (in the line of settings), and the table of all tokens."""
    stacks: list[Stack] = [stack for stack in ("encoder", "decoder") if stack in subject.trace.tokens]
    stack: Stack = stacks[0]
    with settings:
        if len(stacks) > 1:
            named = {"encoder": _("the sentence"), "decoder": _("what the decoder has read")}
            stack = one_of(_("Tokens of"), "whatif.stack", named, labelled=False)  # type: ignore[assignment]
        names = {
            "mask": _("the mask token in its place"),
            "unknown": _("the unknown token in its place"),
            "unseen": _("blocked as a key"),
        }
        possible = {str(way): names[way] for way in ways(subject.checkpoint, stack)}
        if possible:
            with more():
                way: Way = one_of(_("How to remove a token"), "whatif.tokenway", possible)  # type: ignore[assignment]
    if not possible:
        show_info(
            "VizFormer cannot remove a token here: this model has no mask token and no unknown token, and its "
            "own code accepts no mask for it. Remove heads, or choose another model."
        )
        model_suggestions.offer(_any, "what_if.tokens")
        return
    n = len(subject.trace.tokens[stack])
    picture, beside = st.columns(BESIDE, gap="medium")
    with beside:
        place = choose(subject)
        explained(way)
    with picture:
        effects = watched_work.watched(
            computations.tokens,
            (subject, stack, place.row, place.token, way),
            quick=watched_work.cost(subject, n) < watched_work.AT_ONCE,
            runs=n,
            begin=_("Remove the tokens one by one"),
            key="what_if.tokens",
        )
        if effects is not None:
            listed(subject, place, effects)
    in_python.show(code(subject, place, stack, way))


def _any(model: ModelRef) -> bool:
    return not model_cache.is_recorded(model)


def listed(subject: Subject, place: Place, effects: TokenEffects) -> None:
    """Every token in the order of the text; the one that matters most is marked."""
    most = max(effects, key=lambda one: one.divergence)
    rows = [
        Row(
            str(one.position),
            one.token.text,
            Number(one.divergence / max(most.divergence, 1e-12), matrix.number(one.divergence)),  # a bar: its share
            Number(one.logit, ablated_parts.signed(one.logit)),
            Number(one.probability, ablated_parts.signed(100 * one.probability, 1)),
            one.best.text,
            kind="marked" if one is most and one.divergence > 0 else "",
        )
        for one in effects
    ]
    columns = (
        _("position"),
        _("without the token"),
        _("KL, nats"),
        _("logit of “{token}”", token=place.best[0].token.text),
        _("change of its probability, percentage points"),
        _("most probable without it"),
    )
    st.html(table.to_html(columns, rows, bar=2, caption=_("Change of the answer without each token")))


def explained(way: Way) -> None:
    """What becomes of a token that is taken out."""
    if way == "unseen":
        show_note(
            "The token stays in its place, but the mask blocks it as a key for all positions, like padding. The "
            "row of the token itself still begins with its embedding, so an answer at that row still depends on "
            "it."
        )
    else:
        show_note(
            "Another token takes its place, so all positions stay the same. The model reads a sentence with a "
            "gap, which is not the sentence without the word."
        )


def code(subject: Subject, place: Place, stack: Stack, way: Way) -> list[str]:
    """The sweep in Python."""
    return [
        *in_python.opening(subject, "from vizformer.analysis.causes.tokens_left_out import token_sweep"),
        f"effects = token_sweep(checkpoint, trace, {stack!r}, row={place.row}, token={place.token}, way={way!r})",
        "print(effects.to_frame())",
    ]
