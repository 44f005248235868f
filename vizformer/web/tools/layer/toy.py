"""The lectures' toy: a whole layer of 3 rows of 4 numbers, all of which can be set by hand."""

import streamlit as st

from vizformer.components import table
from vizformer.components.table import Row
from vizformer.errors import VizformerError
from vizformer.web.catalogue import toy_cache
from vizformer.web.link import state
from vizformer.web.tools.layer.stack import choose_stack
from vizformer.web.widgets.laboratories import laboratory
from vizformer.web.widgets.number_editor import set_by_hand, toy_editor
from vizformer.web.widgets.step_view import overview, walk
from vizformer.web.words import errors
from vizformer.web.words.i18n import _, show_markdown, show_note
from vizformer.word_tables import data_of

NAMES = (  # the tensor of a layer of d_model = 4 and dim_feedforward = 8, its shape, and what it holds
    ("self_attn.in_proj_weight", "12 × 4", "W_Qᵀ, W_Kᵀ, W_Vᵀ"),
    ("self_attn.in_proj_bias", "12", "b_Q, b_K, b_V"),
    ("self_attn.out_proj.weight", "4 × 4", "W_Oᵀ"),
    ("linear1.weight", "8 × 4", "W_1ᵀ"),
    ("linear2.weight", "4 × 8", "W_2ᵀ"),
    ("norm1.weight, norm1.bias", "4", "γ, β"),
    ("norm2.weight, norm2.bias", "4", "γ, β"),
)
CODE: str = data_of(__file__)["code"]


def draw_interface() -> None:
    """Folded away until someone wants to find the picture's numbers in PyTorch's own layer."""
    with st.expander(_("The names and conventions of nn.Transformer")):
        st.html(table.style())
        rows = [Row(name, shape, ours) for name, shape, ours in NAMES]
        st.html(table.to_html((_("tensor of PyTorch"), _("shape"), _("holds")), rows))
        show_markdown(
            "- A linear layer keeps its matrix **transposed**, one row for each number that comes out. The three of "
            "attention lie in one tensor, one below the other.\n"
            "- **batch_first** is False unless it is said: the input is then (T, B, d), tokens, sentences, numbers. The toy "
            "has (3, 1, 4). For the heads q, k and v become (T, B · h, d / h), and, with the first two axes exchanged, "
            "(B · h, T, d / h): here (2, 3, 2).\n"
            "- **Masks have two opposite meanings.** In nn.MultiheadAttention and nn.Transformer True means *may not be "
            "seen*. In F.scaled_dot_product_attention True means *may be seen*. Numbers are added to the scores in "
            "both.\n"
            "- **Rows of padding.** A stack in eval(), without gradients and with batch_first, takes a quick way that "
            "leaves padding out, and writes zeros where it stood. In train() the same rows hold numbers. Neither is a "
            "result: nobody should read them."
        )
        st.code(CODE, language="python", wrap_lines=True)


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
        show_note("The numbers set by hand do not fit here and are ignored. Undo or reset them.")
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
