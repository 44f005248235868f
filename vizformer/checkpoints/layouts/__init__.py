"""Layouts of bare weights that open: one short file each, none of which knows another."""

from collections.abc import Callable

from vizformer.checkpoints.layout import Layout
from vizformer.checkpoints.layouts import gpt, torch_layers
from vizformer.checkpoints.weights import Weights

LAYOUTS: tuple[Callable[[Weights], Layout | None], ...] = (gpt.recognise, torch_layers.recognise)
NAMES = (*gpt.NAMES, *torch_layers.NAMES)
