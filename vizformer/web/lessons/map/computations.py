"""Cached computations of the lesson "The map"."""

import json
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from vizformer.analysis.costs import layer_types
from vizformer.analysis.costs.layer_types import (
    LayerType,
    Reach,
    Sizes,
    connections,
    full_cost,
    longest_path,
    table_cost,
)
from vizformer.analysis.costs.model_boxes import Box, architecture
from vizformer.analysis.training import recurrent
from vizformer.analysis.training.recurrent import jacobian_cost
from vizformer.assets import asset
from vizformer.text import Token, Tokenizer
from vizformer.training.gru import GRULanguageModel, load_gru
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.catalogue.torch_setup import prepare_torch
from vizformer.web.link.model_ref import ModelRef

LONGEST = 48
"""Tokens whose gradients are computed: an exact Jacobian takes a second for 27 of them, and grows with their number."""
AFFORDABLE = 6 * 10**10
"""The most that an exact Jacobian may cost (`jacobian_cost`): the bundled models stay below with `LONGEST` tokens."""


def lengths(subject: Subject) -> tuple[int, int]:
    """Tokens of the stack that reads the text, and of the decoder that writes (0 where there is none beside it)."""
    tokens = subject.trace.tokens
    return len(subject.tokens), len(tokens["decoder"]) if "encoder" in tokens and "decoder" in tokens else 0


@cached
def boxes(model: ModelRef, n: int, target: int) -> tuple[Box, ...]:
    """The drawing's boxes, see `vizformer.analysis.costs.model_boxes`; no prediction where the files hold no head for it."""
    found = architecture(model_cache.checkpoint(model).model, n, target)
    return found if model_cache.predicts(model) else tuple(box for box in found if box.section != "prediction")


# --- layers compared --------------------------------------------------------------------------------------------------

KINDS: tuple[LayerType, ...] = ("attention", "recurrent", "contiguous", "dilated", "restricted")
DRAWN = 40
"""Tokens in the picture of the paths."""


@dataclass(frozen=True)
class Path:
    """A layer type's picture: levels above the input, who hears from whom, and the way from the first token."""

    levels: int
    edges: Int[np.ndarray, "edges 4"]
    way: Int[np.ndarray, "steps 2"]


def reach(kind: LayerType, n: int, k: int, r: int) -> Reach:
    return layer_types.reach(kind, n, k, r)


@cached
def path(kind: LayerType, n: int, k: int, r: int) -> Path:
    return Path(layer_types.reach(kind, n, k, r).layers, connections(kind, n, k, r), longest_path(kind, n, k, r))


def cost(kind: LayerType, n: int, d: int, k: int, r: int, full: bool) -> int:
    """Multiplications of a layer: as in the paper's table, or of every matrix product."""
    return int((full_cost if full else table_cost)(kind, Sizes(n, d, k, r)))


@cached
def cost_curves(d: int, k: int, r: int, full: bool) -> tuple[np.ndarray, dict[LayerType, np.ndarray]]:
    """Numbers of tokens, and what each layer type costs at them (the two convolutions cost the same)."""
    return layer_types.cost_curves(d, k, r, full=full)


# --- the GRU ----------------------------------------------------------------------------------------------------------


@cached
def gru() -> tuple[GRULanguageModel, Tokenizer]:
    prepare_torch()
    return load_gru(asset("lessons", "map"))


def gru_tokens(text: str) -> tuple[Token, ...]:
    """The first tokens of the text as the GRU reads them."""
    return gru()[1].encode(text)[:LONGEST]


@cached
def gru_gradients(text: str) -> Float[np.ndarray, " n"]:
    """|d h_last / d x_t| of the GRU for every token."""
    return recurrent.gru_gradients(gru()[0], [token.id for token in gru_tokens(text)])


def affordable(model: ModelRef, n: int) -> bool:
    """Whether the Transformer's exact gradient for n tokens takes seconds and not minutes."""
    return jacobian_cost(model_cache.checkpoint(model).model, min(n, LONGEST)) <= AFFORDABLE


@cached
def transformer_gradients(model: ModelRef, text: str) -> Float[np.ndarray, " n"]:
    """|d y_last / d x_t| of the stack that reads the text, for its first tokens."""
    loaded = model_cache.checkpoint(model)
    tokens = loaded.encode(text)[:LONGEST]
    return recurrent.transformer_gradients(loaded.model, [token.id for token in tokens], loaded.segments(tokens))


@dataclass(frozen=True)
class Training:
    """What the GRU became: its parameters, and its held-out loss on Chinese beside that of `stories` (nats a token)."""

    parameters: int
    loss: float
    transformer_loss: float


@cached
def gru_training() -> Training:
    notes = json.loads(asset("lessons", "map", "gru.json").read_text(encoding="utf-8"))
    other = json.loads(asset("models", "stories", "training.json").read_text(encoding="utf-8"))
    return Training(gru()[0].n_parameters, notes["held_out"]["chinese"], other["held_out"]["chinese"])
