"""How the next token is chosen.  The view keeps it as one short text; each widget changes its own part of it."""

from typing import Any

import streamlit as st

from vizformer.web.link import generation_settings, state
from vizformer.web.link.generation_settings import Settings
from vizformer.web.widgets.choices import line, more
from vizformer.web.words.i18n import _, show_note


def choose() -> Settings:
    """How the next token is chosen: the way in the line of settings, the rest in "More"."""
    settings = generation_settings.read(state.view().sampling)
    names = {"greedy": _("Greedy"), "sampling": _("Sampling"), "beam": _("Beam search")}
    with line():
        st.segmented_control(
            _("How the next token is chosen"),
            generation_settings.STRATEGIES,
            format_func=names.__getitem__,
            required=True,
            label_visibility="collapsed",
            **tied("strategy", settings),
        )
        with more():
            rest(settings)
    return settings


def rest(settings: Settings) -> None:
    beam = settings.strategy == "beam"
    st.number_input(
        _("New tokens, at most"),
        1,
        generation_settings.MOST_NEW,
        help=_(
            "Here at most {most}.", most=generation_settings.MOST_IN_A_BEAM if beam else generation_settings.MOST_NEW
        ),
        **tied("new", settings),
    )
    if beam:
        limits = generation_settings.LIMITS
        st.slider(_("Width: texts side by side"), *map(int, limits["width"]), **tied("width", settings))
        st.slider(
            _("Length penalty α"),
            *limits["alpha"],
            step=0.1,
            help=_("Results are compared by log p / ((5 + length) / 6)^α: 0 favours short texts."),
            **tied("alpha", settings),
        )
        return
    st.slider(
        _("Repetition penalty"),
        *generation_settings.LIMITS["penalty"],
        step=0.05,
        help=_("Above 1, tokens that the text already contains become less probable; 1 is no penalty."),
        **tied("penalty", settings),
    )
    if settings.strategy == "greedy":
        show_note("Greedy: always the most probable token, without a random draw or a seed.")
    else:
        sampling_settings(settings)


def sampling_settings(settings: Settings) -> None:
    st.slider(
        _("Temperature"),
        *generation_settings.LIMITS["temperature"],
        step=0.05,
        help=_("Below 1 the distribution is more concentrated, above 1 flatter; 0 takes the most probable token."),
        **tied("temperature", settings),
    )
    st.number_input(
        "top-k",
        0,
        int(generation_settings.LIMITS["top_k"][1]),
        help=_("Only the k most probable tokens stay; 0 keeps all."),
        **tied("top_k", settings),
    )
    for name, label, told in (
        ("top_p", "top-p", _("Only the most probable tokens that together reach p stay; 1 keeps all.")),
        ("min_p", "min-p", _("Only tokens at least this many times as probable as the best one stay; 0 keeps all.")),
    ):
        st.slider(label, 0.0, 1.0, step=0.01, help=told, **tied(name, settings))
    st.number_input(
        _("Seed"),
        0,
        generation_settings.LARGEST_SEED,
        help=_("The same seed gives the same text."),
        **tied("seed", settings),
    )
    if settings.temperature == 0:
        show_note("Temperature 0: only the most probable token is left; the cuts and the seed change nothing.")
    elif settings.top_p == 0 or settings.top_k == 1 or settings.min_p == 1:
        show_note("The cut leaves only the most probable token: the same as greedy, whatever the seed.")


def tied(name: str, settings: Settings) -> dict[str, Any]:
    """The arguments that bind a widget to one of the settings in both directions."""
    key, value = f"generation.{name}", getattr(settings, name)
    if key not in st.session_state or st.session_state[key] != value:
        st.session_state[key] = value
    return {"key": key, "on_change": _take, "args": (name, key), "persist_state": "session"}


def _take(name: str, key: str) -> None:
    if (value := st.session_state[key]) is not None:
        state.update(sampling=generation_settings.changed(state.view().sampling, **{name: value}))
