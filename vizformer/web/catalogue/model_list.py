"""The models that a session may choose."""

from collections.abc import Iterable
from dataclasses import replace

import streamlit as st

from vizformer.errors import VizformerError
from vizformer.web.catalogue import (
    bundled_models,
    model_cache,
    named_code,
    server_folder,
    sources,
    training_steps,
    uploads,
)
from vizformer.web.link import state
from vizformer.web.link.model_ref import ModelRef


def models() -> tuple[ModelRef, ...]:
    """What can be chosen: the bundled models, those of the server's code and of its folder, what this session
    opened or put up or trained, and one that its link names; of a step of a training all others as well.
    """
    linked, opened = state.view().model, _opened()
    own = [base for base in opened if base.source != "models" and sources.is_there(base)]
    if linked.is_from_elsewhere and linked.source != "models":
        own.append(linked.base)  # there or not: the page says what is to be done
        opened = {linked.base: linked, **opened}
    trained = [
        *training_steps.listed(),
        *([linked] if linked.source == "training" and sources.is_there(linked) else []),
        *(_all_steps(linked) if linked.revision else ()),
    ]
    bases = [*bundled_models.listed(), *named_code.listed(), *server_folder.listed(), *own, *uploads.listed(), *trained]
    return tuple(opened.get(base, base) for base in dict.fromkeys(bases))


def _all_steps(model: ModelRef) -> tuple[ModelRef, ...]:
    """The final model of a training and its snapshots; empty for another model."""
    if model.source != "training":
        return ()
    end = replace(model, revision="")
    return (*([end] if sources.is_there(end) else []), *training_steps.steps(model))


def _opened() -> dict[ModelRef, ModelRef]:
    """The models that this session has opened, with their assumptions, which stay when it comes back."""
    opened: dict[ModelRef, ModelRef] = st.session_state.setdefault("vizformer.opened", {})
    for model in (state.view().other, state.view().model):
        if model is not None and model.is_from_elsewhere and (model.source == "models" or sources.is_there(model)):
            opened[model.base] = model
    return opened


def beside() -> tuple[ModelRef, ...]:
    """What can be chosen beside the model: the same ones, the steps of its training, and one that the link names, be it
    there or not: the page says what is to be done.
    """
    view = state.view()
    steps = (step for model in (view.model, view.other) if model is not None for step in _all_steps(model))
    known = list(dict.fromkeys((*models(), *steps)))
    if view.other is None or view.other in known:
        return tuple(known)
    return tuple(
        view.other if model == view.other.base else model for model in dict.fromkeys((*known, view.other.base))
    )


def titles(models: Iterable[ModelRef]) -> dict[ModelRef, str]:
    """The titles of a list as this session knows them: for widgets, which ask again outside of a run.

    No two are alike: a widget could not tell them apart.
    """
    said: dict[ModelRef, str] = {}
    for model in models:
        name = sources.title(model)
        said[model] = name if name not in said.values() else f"{name} · {model.base}"
    return said


def that_open() -> tuple[ModelRef, ...]:
    """The models on the shelf whose sizes can be read, for pages that offer another model."""
    found = []
    for model in models():
        try:
            model_cache.shape(model)
        except VizformerError:
            continue  # the page Model report says why
        found.append(model)
    return tuple(found)
