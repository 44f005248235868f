"""Another model to choose, where the one that is chosen cannot do what a page shows."""

from collections.abc import Callable

import streamlit as st

from vizformer.web.catalogue import model_cache
from vizformer.web.link import state
from vizformer.web.words.i18n import _

MOST = 4  # buttons; the bundled models come first, and the list above has the rest


def writes(model: str) -> bool:
    """Whether the model can write a text by itself: it has a decoder, a head, and it is known how a target begins."""
    config = model_cache.options(model)
    if config.architecture == "encoder-only" or not model_cache.predicts(model):
        return False
    return config.architecture == "decoder-only" or bool(config.start_ids)


def offer(usable: Callable[[str], bool], key: str, **changes: object) -> None:
    """A button for each of the first models that are `usable`; it also makes these `changes` of the view."""
    with st.container(horizontal=True):
        for name in [name for name in model_cache.that_open() if usable(name)][:MOST]:
            st.button(
                _("Use the model {name}", name=model_cache.title(name)),
                key=f"{key}.use.{name}",
                on_click=_use,
                args=(name, changes),
            )


def _use(model: str, changes: dict[str, object]) -> None:
    state.update(model=model, **changes)
