"""In which precision a model computes, as its link says, and on which device, as the server was told."""

import os
import re
from typing import TYPE_CHECKING

import streamlit as st

from vizformer.errors import VizformerError
from vizformer.web.catalogue import model_reference
from vizformer.web.link import state
from vizformer.web.words import errors
from vizformer.web.words.i18n import _

if TYPE_CHECKING:
    from vizformer.checkpoints import Report

VARIABLE = "VIZFORMER_DEVICE"
DTYPE = "dtype"  # beside the assumptions in a model's name: models/NAME;dtype=bfloat16
USUAL = "float32"
DTYPES = (USUAL, "bfloat16", "float16")
BITS = {"float32": 24, "bfloat16": 8, "float16": 11}  # of the significand, the hidden one included


def device() -> str:
    """Where all models of this server compute."""
    return os.environ.get(VARIABLE, "").strip() or "cpu"


def dtype(model: str) -> str:
    """What a model computes in; nobody has looked yet whether that can be."""
    return model_reference.answers(model).get(DTYPE, USUAL)


def files(key: str) -> str:
    """The key without the precision: what is true of the files alone is kept only once."""
    return re.sub(rf";{DTYPE}=[^;@]*", "", key)


def within(model: str, dtype: str) -> str:
    """The name of the same model, in another precision."""
    said = {name: value for name, value in model_reference.answers(model).items() if name != DTYPE}
    return model_reference.under(model, said if dtype == USUAL else {**said, DTYPE: dtype})


def choose(model: str, report: "Report") -> None:
    """The control for the precision, what each takes of memory, and the way out where it is too much."""
    from vizformer.checkpoints.tensors.memory import DoesNotFitError, size
    from vizformer.web.catalogue import model_cache

    stored = {tensor.dtype for tensor in report.with_fate("used")}
    as_stored = next(iter(stored)) if len(stored) == 1 else ""
    now, key = dtype(model), f"computing.{files(model)}"
    if st.session_state.get(key) not in DTYPES or st.session_state.get(f"{key}.seen") != now:
        st.session_state[key] = st.session_state[f"{key}.seen"] = now if now in DTYPES else USUAL
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
        needed = model_cache.need(model_reference.key(model))
    except DoesNotFitError as error:
        errors.show(error.message)
        for other in error.fitting:
            st.button(_("Compute in {dtype}", dtype=other), key=f"{key}.{other}", on_click=_set, args=(model, other))
        return
    except VizformerError as error:
        errors.show(error.message)
        st.button(_("Compute in {dtype}", dtype=USUAL), key=f"{key}.{USUAL}", on_click=_set, args=(model, USUAL))
        return
    values = dict(
        copied=size(needed.copied),
        mapped=size(needed.mapped),
        forward=size(needed.forward),
        n=needed.tokens,
        device=device(),
    )
    if not needed.copied:
        said = _(
            "On {device}. The weights stay mapped to the file ({mapped}); a text of {n} tokens takes {forward}.",
            **values,
        )
    elif not needed.mapped:
        said = _("On {device}. The weights take {copied} of memory, a text of {n} tokens {forward} more.", **values)
    else:
        said = _(
            "On {device}. The weights take {copied} of memory ({mapped} more stay mapped to the file), a text of "
            "{n} tokens {forward} more.",
            **values,
        )
    with words:
        st.caption(errors.plain(said))


def _take(model: str, key: str) -> None:
    _set(model, st.session_state[key])


def _set(model: str, dtype: str) -> None:
    state.update(model=within(model, dtype))
