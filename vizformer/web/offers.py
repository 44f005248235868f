"""Another model to choose, where the one that is chosen cannot do what a page shows."""

from collections.abc import Callable

import streamlit as st

from vizformer.web import models, state
from vizformer.web.i18n import _

MOST = 4  # buttons; the bundled models come first, and the list above has the rest


def writes(model: str) -> bool:
    """Whether the model can write a text by itself: it has a decoder, a head, and it is known how a target begins."""
    config = models.options(model)
    if config.architecture == "encoder-only" or not models.predicts(model):
        return False
    return config.architecture == "decoder-only" or bool(config.start_ids)


def offer(usable: Callable[[str], bool], key: str, **changes: object) -> None:
    """A button for each of the first models that are `usable`; it also makes these `changes` of the view."""
    with st.container(horizontal=True):
        for name in [name for name in models.that_open() if usable(name)][:MOST]:
            st.button(
                _("Use the model {name}", name=models.title(name)), key=f"{key}.use.{name}",
                on_click=_use, args=(name, changes),
            )  # fmt: skip


def _use(model: str, changes: dict[str, object]) -> None:
    state.update(model=model, **changes)
