"""Layouts of bare weights that open: one short file each, none of which knows another."""

from collections.abc import Callable

from vizformer.checkpoints.bare.layout import Layout
from vizformer.checkpoints.bare.layouts import gpt, meta, torch_layers, transformer_lens
from vizformer.checkpoints.files.weights import Weights

LAYOUTS: tuple[Callable[[Weights], Layout | None], ...] = (
    gpt.recognise,
    torch_layers.recognise,
    transformer_lens.recognise,
)
NAMES = (*gpt.NAMES, *torch_layers.NAMES, *transformer_lens.NAMES, meta.NAME)
