"""Layouts of bare weights that open: one short file each, none of which knows another."""

from collections.abc import Callable

from vizformer.checkpoints.bare.layout import Layout
from vizformer.checkpoints.bare.layouts import gpt, torch_layers
from vizformer.checkpoints.files.weights import Weights

LAYOUTS: tuple[Callable[[Weights], Layout | None], ...] = (gpt.recognise, torch_layers.recognise)
NAMES = (*gpt.NAMES, *torch_layers.NAMES)
