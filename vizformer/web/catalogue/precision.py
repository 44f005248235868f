"""The precisions in which models can compute, and the device that the server was started with."""

import os

from vizformer.web.link.model_ref import USUAL_DTYPE

VARIABLE = "VIZFORMER_DEVICE"
DTYPES = (USUAL_DTYPE, "bfloat16", "float16")
BITS = {"float32": 24, "bfloat16": 8, "float16": 11}  # of the significand, the hidden one included


def device() -> str:
    """The device on which all models of this server compute."""
    return os.environ.get(VARIABLE, "").strip() or "cpu"
