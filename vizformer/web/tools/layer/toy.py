"""The lectures' toy: a whole layer of 3 rows of 4 numbers, all of which can be set by hand."""

from vizformer.errors import VizformerError
from vizformer.web.catalogue import toy_cache
from vizformer.web.link import state
from vizformer.web.tools.layer.interface import draw_interface
from vizformer.web.tools.layer.stack import choose_stack
from vizformer.web.widgets.laboratories import laboratory
from vizformer.web.widgets.number_editor import set_by_hand, toy_editor
from vizformer.web.widgets.step_view import overview, walk
from vizformer.web.words import errors
from vizformer.web.words.i18n import show_note


@laboratory
def draw_toy() -> None:
    """The toy's encoder or decoder layer, on one screen and step by step."""
    stack = choose_stack(["encoder", "decoder"])
    edited = state.view().toy
    set_by_hand("toy")  # first: whatever is wrong with the numbers, the way back is on the page
    try:
        steps = toy_cache.toy_layer(stack, edited)
    except VizformerError as error:
        errors.show(error.message)
        show_note("The numbers set by hand do not fit here and are left out. Undo or reset them.")
        edited = ""
        steps = toy_cache.toy_layer(stack)
    overview(steps, lambda step: {})
    show_note(
        "What torch.manual_seed(42), torch.randn(3, 1, 4) and nn.TransformerEncoderLayer(d_model=4, nhead=2, "
        "dim_feedforward=8, dropout=0.0) give; the decoder layer follows from the same random numbers."
    )
    toy_editor(stack)
    walk(steps, lambda step: {}, toy_cache.toy_layer(stack) if edited else None)
    if stack == "encoder":
        draw_interface()
