"""Greedy and sampling: the text token by token, what each was chosen from, and where its row looks."""

from collections.abc import Callable
from dataclasses import replace

import streamlit as st

from vizformer import figures
from vizformer.analysis.costs.generation_cost import RecordedCache, TextCosts
from vizformer.analysis.heads.measures import find_telling_head
from vizformer.components import player
from vizformer.components.player import PlayerSelection, Written, branch_text, read_branch
from vizformer.errors import VizformerError
from vizformer.figures.figure import Figure
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link import state
from vizformer.web.link.generation_settings import Settings
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.pages.generation import computations
from vizformer.web.widgets import chart, map_words, model_suggestions
from vizformer.web.widgets.chart import Picture, caption, take_away
from vizformer.web.widgets.laboratories import laboratory
from vizformer.web.widgets.position_choice import ask_why
from vizformer.web.words import labels
from vizformer.web.words.errors import plain
from vizformer.web.words.i18n import _, show_note, show_text

_BASIS, _SHOWN = "generation.basis", "generation.shown"


@laboratory
def written(subject: Subject, settings: Settings) -> None:
    """The text, step by step; a token taken by hand writes it anew from there."""
    forget_branch(subject, settings)
    shape = subject.shape
    state.fit(layer=shape.n_decoder_layers, head=shape.n_heads)
    why = open_under_way(subject, settings)
    view = state.view()
    last: PlayerSelection | None = st.session_state.get(_SHOWN)
    kind = last.kind if last is not None and view.kind == "encoder" else view.kind  # this page has no encoder's map
    kind = kind if shape.n_encoder_layers else "decoder"
    wanted = PlayerSelection(view.new, "decoder" if kind == "decoder" else "cross", view.layer, view.head, view.branch)
    seen = player.peek(key="player", selected=wanted)
    keep(seen, wanted)
    key = (subject, settings, usable(subject, seen.branch))
    with st.spinner(_("Writing …"), show_time=False):
        text = computations.text(*key)
    if key[-1] != seen.branch:
        show_note("A token that you chose by hand does not exist in this model and is ignored.")
    shown = Written(
        tokens=labels.chips(text.tokens),
        start=text.start,
        steps=text.steps,
        kinds={kind: computations.heads(*key, kind, seen.layer) for kind in text.kinds},
        source=labels.texts(text.source),
        branch=seen.branch,
        name=" ".join(map(repr, key)),
    )
    step = state.fit(new=len(text.steps.ids)).new
    chosen = player.mount(shown, selected=replace(seen, step=step), key="player")
    picture = _picture(shown, chosen, lambda: player.to_html(shown, selected=chosen))
    take_away(replace(picture, code=lambda: computations.of_text(*key)), key="player")
    st.session_state[_SHOWN] = chosen
    keep(chosen, seen)
    if why:
        st.caption(why)
    map_words.say_pronoun(subject)
    why_chosen(subject, settings, text, chosen)
    with st.expander(_("The whole text")):
        st.text(text.read or _("(nothing: the model ended at once)"))
    if subject.edited:
        show_note("With numbers set by hand every step is a full forward; the counts below are those without them.")
    draw_costs(subject, text, chosen.step)


def open_under_way(subject: Subject, settings: Settings) -> str:
    """Opens on the new token of which the model was least sure, and on the head that says most of its row; and why."""
    with st.spinner(_("Writing …"), show_time=False):
        text = computations.text(subject, settings, usable(subject, state.view().branch))
    if (step := text.least_sure) is None or not state.suggest(new=step):
        return ""
    kind = text.kinds[-1]
    if (head := find_telling_head(text.trace, kind, text.start + step - 1)) is not None:
        state.suggest(layer=head.layer, head=head.head)
    return _(
        "Shown: new token {step}, “{token}”, the model's least certain choice.",
        step=step,
        token=plain(text.tokens[text.start + step].text),
    )


def why_chosen(subject: Subject, settings: Settings, text: computations.Text, chosen: PlayerSelection) -> None:
    """Asks why the chosen token was written, where that page reads the same tokens."""
    at, also = text.start + chosen.step, {}
    if subject.shape.architecture == "decoder-only":
        also = {"text": text.read}
        try:
            again = [token.id for token in subject.checkpoint.encode(text.read)]
        except VizformerError:  # that page would say so: it is longer than the model reads
            return
        if again[: at + 1] != [token.id for token in text.tokens[: at + 1]]:
            return
    elif settings != Settings(new=settings.new) or chosen.branch or subject.target.strip():  # it writes the likeliest
        return
    ask_why(text.tokens[at].text, at - 1, key="generation.why", **also)


def _picture(shown: Written, chosen: PlayerSelection, page: Callable[[], str]) -> Picture:
    """The map of the rows that have been written, as a file; the page is the player itself."""
    payload = shown.kinds[chosen.kind]
    names = [token["text"] for token in shown.tokens]
    keys = list(shown.source) if chosen.kind == "cross" else names
    told = _(
        "{kind}, layer {layer}, head {head}", kind=labels.kind_label(chosen.kind), layer=chosen.layer, head=chosen.head
    )

    def drawn() -> Figure:
        weights, reasons = payload.map_of(chosen.layer, chosen.head)
        rows, columns = weights.shape
        return figures.attention_heatmap(weights, names[:rows], keys[:columns], reasons=reasons)

    return Picture("generation", caption(told), drawn, page=page, title=told)


def keep(chosen: PlayerSelection, before: PlayerSelection) -> None:
    """Lets the link follow; the kind only where it was changed here, because other pages have one more."""
    if chosen.kind != before.kind:
        state.update(kind=chosen.kind)
    state.update(new=chosen.step, layer=chosen.layer, head=chosen.head, branch=chosen.branch)


def forget_branch(subject: Subject, settings: Settings) -> None:
    """Tokens taken by hand belong to one text: another prompt or other settings begin without them."""
    basis = (subject, settings)
    before = st.session_state.get(_BASIS)
    if before is not None and before != basis:
        state.unsay("new")
        state.update(branch="")
    st.session_state[_BASIS] = basis


def usable(subject: Subject, branch: str) -> str:
    """The part of a branch that names tokens of this model."""
    size = subject.checkpoint.tokenizer.vocab_size
    return branch_text([one for one in read_branch(branch) or () if one.id < size])


def draw_costs(subject: Subject, text: computations.Text, step: int) -> None:
    st.subheader(_("What it costs"), anchor=False)
    costs = text.costs
    if isinstance(costs, RecordedCache):
        show_text("A KV cache of this model holds {bytes} bytes now.", bytes=f"{costs.cache_bytes[step]:,}")
        show_note(
            "This counts the recorded keys and values. VizFormer counts multiplications only of models that it "
            "computes itself."
        )
        chart.show(_growth(costs, step), key="generation.cache")
        return
    cached, uncached, share = costs.up_to(step)
    show_text(
        "Up to token {step}: {cached} multiplications with the KV cache, {uncached} without it, {times} "
        "times as many. Of those with the cache, {share} belong to attention itself; the rest are the "
        "projections, the feed-forward networks and the unembedding. The cache holds {bytes} bytes.",
        step=step,
        cached=f"{cached:,}",
        uncached=f"{uncached:,}",
        times=f"{uncached / cached:.1f}",
        share=f"{share:.1%}",
        bytes=f"{costs.cache_bytes[step]:,}",
    )
    config, length = subject.config, text.start + step
    if said := model_suggestions.saved(config, length, costs.cache_bytes[step], costs.rolling_bytes[step]):
        st.caption(said)
    growth, products = st.columns([2, 3])
    chart.show(_growth(costs, step), key="generation.cache", on=growth)
    chart.show(
        figures.multiplications(costs.cached, costs.uncached, at=step, title=_("Multiplications of each step")),
        key="generation.multiplications",
        on=products,
    )


def _growth(costs: TextCosts | RecordedCache, step: int) -> Figure:
    title = _("The KV cache grows with every token")
    return figures.cache_growth(costs.cache_bytes, costs.memory_bytes, at=step, title=title)


def draw_other_model(model: ModelRef) -> None:
    """Says what this model lacks, and offers one that has it."""
    if model_suggestions.fills_blanks(model):
        lacking = _(
            "This model has no decoder: it fills in hidden words and does not continue a text. See the page "
            "“Fill in the blank”, or choose a model that writes."
        )
    elif model_cache.shape(model).architecture == "encoder-only":
        lacking = _("This model has no decoder: it reads a text and does not continue it. Choose a model that writes.")
    elif not model_cache.predicts(model):
        lacking = _(
            "This model's files contain no output layer that predicts tokens, so it cannot write. Choose a model "
            "that writes."
        )
    else:
        lacking = _(
            "This model's files name no start token, so it cannot begin to write. Give it on the page Model "
            "report, or choose another model."
        )
    st.info(lacking)
    model_suggestions.offer(model_suggestions.writes, "generation")
