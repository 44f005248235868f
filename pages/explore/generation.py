"""Generation: a text token by token, what each token was chosen from, and what it costs."""

from dataclasses import astuple, replace
from typing import Any

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.components import player, tree
from vizformer.components.player import PlayerSelection, Written, branch_text, read_branch
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link import generation_settings, state
from vizformer.web.link.generation_settings import Settings
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.tools.generation import computed as generation
from vizformer.web.widgets import model_suggestions, rolling_cache_note
from vizformer.web.widgets.model_input import subject_box
from vizformer.web.words import labels
from vizformer.web.words.errors import guarded
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _

_BASIS, _SHOWN = "generation.basis", "generation.shown"


def page() -> None:
    subject = subject_box()
    if subject is None:
        return
    if not model_suggestions.writes(subject.model):
        other_model(subject.model)
        return
    if subject.target.strip():
        st.caption(_("The translation begins with the target that is given above; empty it to see the model's own."))
    settings = choose()
    if settings.strategy == "beam":
        beam(subject, settings)
    else:
        written(subject, settings)


def other_model(model: ModelRef) -> None:
    """Says what this model lacks, and offers one that has it."""
    if model_suggestions.fills_blanks(model):
        lacking = _(
            "This model has no decoder: it fills in hidden words and does not write on. See the page “Fill in the "
            "blank”, or choose a model that writes."
        )
    elif model_cache.options(model).architecture == "encoder-only":
        lacking = _("This model has no decoder: it reads a text and does not write on. Choose a model that writes.")
    elif not model_cache.predicts(model):
        lacking = _(
            "This model's files hold no head that predicts tokens, so it has nothing to write with. Choose a model "
            "that writes."
        )
    else:
        lacking = _(
            "Nothing says with which token this model's target begins, so it cannot begin to write. Say it on the page "
            "Model report, or choose another model."
        )
    st.info(lacking)
    model_suggestions.offer(model_suggestions.writes, "generation")


# --- settings: the view keeps them as one short text; each widget changes its own part of it ---


def choose() -> Settings:
    """How the next token is chosen."""
    settings = generation_settings.read(state.view().sampling) or Settings()
    names = {"greedy": _("Greedy"), "sampling": _("Sampling"), "beam": _("Beam search")}
    strategy, new, penalty = st.columns([3, 2, 2], vertical_alignment="bottom")
    with strategy:
        st.segmented_control(
            _("How the next token is chosen"),
            generation_settings.STRATEGIES,
            format_func=names.__getitem__,
            required=True,
            **tied("strategy", settings),
        )
    most = generation_settings.MOST_IN_A_BEAM if settings.strategy == "beam" else generation_settings.MOST_NEW
    new.number_input(
        _("New tokens, at most"),
        1,
        generation_settings.MOST_NEW,
        help=_("Here at most {most}.", most=most),
        **tied("new", settings),
    )
    if settings.strategy == "beam":
        beam_settings(settings)
        return settings
    penalty.slider(
        _("Repetition penalty"),
        *generation_settings.LIMITS["penalty"],
        step=0.05,
        help=_("Above 1, tokens that occurred become less probable; 1 is no penalty."),
        **tied("penalty", settings),
    )
    if settings.strategy == "greedy":
        st.caption(_("Greedy: always the most probable token. Nothing is drawn, so there is no seed."))
    else:
        sampling_settings(settings)
    return settings


def sampling_settings(settings: Settings) -> None:
    temperature, top_k, top_p, min_p, seed = st.columns(5, vertical_alignment="bottom")
    temperature.slider(
        _("Temperature"),
        *generation_settings.LIMITS["temperature"],
        step=0.05,
        help=_("Below 1 the distribution is sharpened, above 1 flattened; 0 takes the most probable token."),
        **tied("temperature", settings),
    )
    top_k.number_input(
        "top-k",
        0,
        int(generation_settings.LIMITS["top_k"][1]),
        help=_("Only the k most probable tokens stay; 0 keeps all."),
        **tied("top_k", settings),
    )
    top_p.slider(
        "top-p",
        0.0,
        1.0,
        step=0.01,
        help=_("Only the most probable tokens that together reach p stay; 1 keeps all."),
        **tied("top_p", settings),
    )
    min_p.slider(
        "min-p",
        0.0,
        1.0,
        step=0.01,
        help=_("Only tokens at least this many times as probable as the best one stay; 0 keeps all."),
        **tied("min_p", settings),
    )
    seed.number_input(
        _("Seed"),
        0,
        generation_settings.LARGEST_SEED,
        help=_("The same seed gives the same text."),
        **tied("seed", settings),
    )
    if settings.temperature == 0:
        st.caption(_("Temperature 0: only the most probable token is left; the cuts and the seed change nothing."))
    elif settings.top_p == 0 or settings.top_k == 1 or settings.min_p == 1:
        st.caption(_("The cut leaves only the most probable token: the same as greedy, whatever the seed."))


def beam_settings(settings: Settings) -> None:
    width, alpha = st.columns(2)
    width.slider(
        _("Width: texts side by side"), *map(int, generation_settings.LIMITS["width"]), **tied("width", settings)
    )
    alpha.slider(
        _("Length penalty α"),
        *generation_settings.LIMITS["alpha"],
        step=0.1,
        help=_("Results are compared by log p / ((5 + length) / 6)^α: 0 favours short texts."),
        **tied("alpha", settings),
    )


def tied(name: str, settings: Settings) -> dict[str, Any]:
    """What ties a widget to one of the settings, both ways."""
    key, value = f"generation.{name}", getattr(settings, name)
    if key not in st.session_state or st.session_state[key] != value:
        st.session_state[key] = value
    return {"key": key, "on_change": _take, "args": (name, key), "persist_state": "session"}


def _take(name: str, key: str) -> None:
    if (value := st.session_state[key]) is not None:
        state.update(sampling=generation_settings.changed(state.view().sampling, **{name: value}))


# --- greedy and sampling: step by step ---


@st.fragment
@guarded()
def written(subject: Subject, settings: Settings) -> None:
    """The text, step by step; a token taken by hand writes it anew from there."""
    forget_branch(subject, settings)
    config = model_cache.options(subject.model)
    view = state.fit(layer=config.n_decoder_layers, head=config.n_heads)
    last: PlayerSelection | None = st.session_state.get(_SHOWN)
    site = last.site if last is not None and view.site == "encoder" else view.site  # this page has no encoder's map
    site = site if config.n_encoder_layers else "decoder"
    wanted = PlayerSelection(view.new, "decoder" if site == "decoder" else "cross", view.layer, view.head, view.branch)
    seen = player.peek(key="player", selected=wanted)
    keep(seen, wanted)
    key = (subject, str(settings), usable(subject, seen.branch))
    with st.spinner(_("Writing …"), show_time=False):
        text = generation.text(*key)
    if key[-1] != seen.branch:
        st.caption(_("A token that was taken by hand does not exist in this model; it is left out."))
    shown = Written(
        tokens=labels.chips(text.tokens),
        start=text.start,
        steps=text.steps,
        sites={site: generation.heads(*key, site, seen.layer) for site in text.sites},
        source=labels.texts(text.source),
        branch=seen.branch,
        name=" ".join(map(repr, key)),
    )
    step = state.fit(new=len(text.steps.ids)).new
    chosen = player.mount(shown, selected=replace(seen, step=step), words=words(player.ENGLISH), key="player")
    st.session_state[_SHOWN] = chosen
    keep(chosen, seen)
    with st.expander(_("The whole text")):
        st.text(text.read or _("(nothing: the model ended at once)"))
    if subject.edited:
        st.caption(_("With numbers set by hand every step is a full forward; the counts below are those without them."))
    costs(subject, text, chosen.step)


def keep(chosen: PlayerSelection, before: PlayerSelection) -> None:
    """Lets the link follow; the site only where it was changed here, because other pages have one more."""
    if chosen.site != before.site:
        state.update(site=chosen.site)
    state.update(new=chosen.step, layer=chosen.layer, head=chosen.head, branch=chosen.branch)


def forget_branch(subject: Subject, settings: Settings) -> None:
    """Tokens taken by hand belong to one text: another prompt or other settings begin without them."""
    basis = (subject, settings)
    before = st.session_state.get(_BASIS)
    if before is not None and before != basis:
        state.update(branch="", new=0)
    st.session_state[_BASIS] = basis


def usable(subject: Subject, branch: str) -> str:
    """The part of a branch that names tokens of this model."""
    size = model_cache.checkpoint(subject.model).tokenizer.vocab_size
    return branch_text([one for one in read_branch(branch) or () if one.id < size])


def costs(subject: Subject, text: generation.Text, step: int) -> None:
    """What the text costs up to the step that is looked at: bytes of the cache, multiplications with and without it."""
    st.subheader(_("What it costs"), anchor=False)
    sides = [np.array([astuple(cost) for cost in side], dtype=np.int64) for side in (text.cached, text.uncached)]
    cached, uncached = (int(side[: step + 1].sum()) for side in sides)
    share = sides[0][: step + 1, 0].sum() / cached
    st.text(
        _(
            "Up to token {step}: {cached} multiplications with the KV cache, {uncached} without it, {times} times as "
            "many. Of those with the cache, {share} belong to attention itself; the rest are the projections, the "
            "feed-forward layers and the unembedding. The cache holds {bytes} bytes.",
            step=step,
            cached=f"{cached:,}",
            uncached=f"{uncached:,}",
            times=f"{uncached / cached:.1f}",
            share=f"{share:.1%}",
            bytes=f"{text.cache_bytes[step]:,}",
        )
    )
    config, length = model_cache.options(subject.model), text.start + step
    if said := rolling_cache_note.saved(config, length, text.cache_bytes[step], text.rolling_bytes[step]):
        st.caption(said)
    growth, products = st.columns([2, 3])
    growth.plotly_chart(
        figures.cache_growth(
            np.array(text.cache_bytes),
            text.memory_bytes,
            at=step,
            title=_("The KV cache grows with every token"),
            words=words(figures.ENGLISH),
        ),
        config={"displayModeBar": False},
        key="generation.cache",
    )
    products.plotly_chart(
        figures.multiplications(*sides, at=step, title=_("Multiplications of each step"), words=words(figures.ENGLISH)),
        config={"displayModeBar": False},
        key="generation.multiplications",
    )


# --- beam search ---


@st.fragment
@guarded()
def beam(subject: Subject, settings: Settings) -> None:
    """The tree of the search, and what it found beside the greedy text."""
    with st.spinner(_("Searching …"), show_time=False):
        search = generation.beam(subject.unedited, str(settings))
        plain = generation.text(subject.unedited, str(Settings(new=settings.new)), "")
    if subject.edited:
        st.caption(_("Beam search runs without the numbers set by hand."))
    st.caption(
        _(
            "In each step the {width} most probable texts are kept and continued. The tree shows the {looked} best "
            "continuations of each step.",
            width=settings.width,
            looked=2 * settings.width,
        )
    )
    best = set(search.tree.path(search.found[0][1].ids)) if search.found else set()
    nodes: list[tree.Node] = [
        {
            "step": node.step,
            "parent": node.parent,
            "text": search.names[node.id],
            "total": node.log_probability,
            "score": node.score,
            "fate": node.fate,
            "best": index in best,
        }
        for index, node in enumerate(search.tree.nodes)
    ]
    tree.mount(nodes, words=words(tree.ENGLISH), key="beam")
    st.subheader(_("What was found"), anchor=False)
    rows = [(text, found.log_probability, found.score) for text, found in search.found]
    st.dataframe(
        {
            _("text"): [text or _("(nothing)") for text, *__ in rows],
            "log p": [log_p for __, log_p, ___ in rows],
            _("score"): [score for *__, score in rows],
        },
        hide_index=True,
    )
    new = model_cache.checkpoint(subject.model).tokenizer.decode(list(plain.steps.ids)).strip()
    st.text(_("Greedy writes: {text}", text=new or _("(nothing)")))


page()
