"""A small model of each architecture, and a run of it."""

from typing import Any

from tests import tiny
from vizformer.checkpoints import Checkpoint
from vizformer.model import Trace

MODELS: dict[str, dict[str, Any]] = {"encoder-decoder": {}, "decoder-only": tiny.LLAMA, "encoder-only": tiny.BERT}


def checkpoint(architecture: str) -> Checkpoint:
    return tiny.checkpoint(architecture, **MODELS[architecture])


def traced(model: Checkpoint, text: str) -> Trace:
    return model.trace(text, target="I have a cat." if model.model.config.architecture == "encoder-decoder" else None)
