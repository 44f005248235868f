"""What `nn.Transformer` calls the matrices of the lectures' toy, and where its conventions surprise."""

import streamlit as st

from vizformer.components import table
from vizformer.components.table import Row
from vizformer.web.words.i18n import _, show_markdown

NAMES = (  # the tensor of a layer of d_model = 4 and dim_feedforward = 8, its shape, and what it holds
    ("self_attn.in_proj_weight", "12 × 4", "W_Qᵀ, W_Kᵀ, W_Vᵀ"),
    ("self_attn.in_proj_bias", "12", "b_Q, b_K, b_V"),
    ("self_attn.out_proj.weight", "4 × 4", "W_Oᵀ"),
    ("linear1.weight", "8 × 4", "W_1ᵀ"),
    ("linear2.weight", "4 × 8", "W_2ᵀ"),
    ("norm1.weight, norm1.bias", "4", "γ, β"),
    ("norm2.weight, norm2.bias", "4", "γ, β"),
)
CODE = """import torch

torch.manual_seed(42)
x = torch.randn(3, 1, 4)  # [n, batch, d_model]: batch_first is False here
layer = torch.nn.TransformerEncoderLayer(d_model=4, nhead=2, dim_feedforward=8, dropout=0.0)
W_Q, W_K, W_V = layer.self_attn.in_proj_weight.chunk(3)  # each [out, in]
q = x @ W_Q.T + layer.self_attn.in_proj_bias[:4]

# The same layer for [batch, n, d_model], in a stack of one
stack = torch.nn.TransformerEncoder(
    torch.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True), num_layers=1
)
stack.layers[0].load_state_dict(layer.state_dict())
rows = x.transpose(0, 1)
padding = torch.tensor([[False, False, True]])  # True: this token may NOT be seen

trained = stack.train()(rows, src_key_padding_mask=padding)
with torch.no_grad():
    tested = stack.eval()(rows, src_key_padding_mask=padding)
print(trained[0, 2])  # the row of the padding: four numbers that mean nothing
print(tested[0, 2])  # ... and 0, 0, 0, 0: the quick way of eval() leaves padding out

# The other function: here True says that a token MAY be seen
k, v = torch.randn(2, 1, 2, 3, 2)  # [batch, heads, n, d_head]
q = q.view(3, 1, 2, 2).permute(1, 2, 0, 3)
z = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=~padding[:, None, None, :])
"""


def draw_interface() -> None:
    """Folded away until someone wants to find the picture's numbers in PyTorch's own layer."""
    with st.expander(_("The names and habits of nn.Transformer")):
        st.html(table.style())
        rows = [Row(name, shape, ours) for name, shape, ours in NAMES]
        st.html(table.to_html((_("tensor of PyTorch"), _("shape"), _("holds")), rows))
        show_markdown(
            "- A linear layer keeps its matrix **transposed**, one row for each number that comes out. The three of "
            "attention lie in one tensor, one below the other.\n"
            "- **batch_first** is False unless it is said: the first axis is then the token, and the second one the "
            "sentence.\n"
            "- **Masks have two opposite meanings.** In nn.MultiheadAttention and nn.Transformer True means *may not be "
            "seen*. In F.scaled_dot_product_attention True means *may be seen*. Numbers are added to the scores in "
            "both.\n"
            "- **Rows of padding.** A stack in eval(), without gradients and with batch_first, takes a quick way that "
            "leaves padding out, and writes zeros where it stood. In train() the same rows hold numbers. Neither is a "
            "result: nobody should read them."
        )
        st.code(CODE, language="python", wrap_lines=True)
