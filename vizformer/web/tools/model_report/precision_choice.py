"""The control that chooses in which precision a model computes."""

import streamlit as st

from vizformer.checkpoints import Report
from vizformer.checkpoints.tensors.memory import DoesNotFitError
from vizformer.errors import VizformerError
from vizformer.web.catalogue import model_cache, sources
from vizformer.web.catalogue.precision import DTYPES, device
from vizformer.web.link import state
from vizformer.web.link.model_ref import USUAL_DTYPE, ModelRef
from vizformer.web.words import errors, model_words
from vizformer.web.words.i18n import _


def choose(model: ModelRef, report: Report) -> None:
    """The control for the precision, what each takes of memory, and the way out where it is too much."""
    stored = {tensor.dtype for tensor in report.with_fate("used")}
    as_stored = next(iter(stored)) if len(stored) == 1 else ""
    now, key = model.dtype, f"computing.{model.files}"
    if st.session_state.get(key) not in DTYPES or st.session_state.get(f"{key}.seen") != now:
        st.session_state[key] = st.session_state[f"{key}.seen"] = now if now in DTYPES else USUAL_DTYPE
    control, words = st.columns([1, 2], vertical_alignment="bottom")
    with control:
        st.selectbox(
            _("Computes in"),
            DTYPES,
            key=key,
            on_change=_take,
            args=(model, key),
            format_func={
                name: _("{dtype} (as in the file)", dtype=name) if name == as_stored else name for name in DTYPES
            }.__getitem__,
            help=_(
                "float32 is the most exact. bfloat16 and float16 take half the memory and keep 2 to 3 digits; the "
                "proofs then allow a few units in the last one. float16 reaches only to 65504."
            ),
        )
    try:
        needed = model_cache.need(sources.stamped(model))
    except DoesNotFitError as error:
        errors.show(error.message)
        for other in error.fitting:
            st.button(_("Compute in {dtype}", dtype=other), key=f"{key}.{other}", on_click=_set, args=(model, other))
        return
    except VizformerError as error:
        errors.show(error.message)
        st.button(
            _("Compute in {dtype}", dtype=USUAL_DTYPE),
            key=f"{key}.{USUAL_DTYPE}",
            on_click=_set,
            args=(model, USUAL_DTYPE),
        )
        return
    with words:
        st.caption(errors.plain(model_words.memory(needed, device())))


def _take(model: ModelRef, key: str) -> None:
    _set(model, st.session_state[key])


def _set(model: ModelRef, dtype: str) -> None:
    state.update(model=model.within(dtype))
