"""TransformerLens's models with the forward of their author: names and shapes of HookedTransformer."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.strangers import FF, LAYERS, LONGEST, D, H, V, future

W = D // H


def attend(q: Tensor, k: Tensor, v: Tensor, blocked: Tensor | None = None, scale: float = W**-0.5) -> Tensor:
    """softmax(q k^T scale) v, [..., n, w]"""
    scores = q @ k.transpose(-2, -1) * scale
    if blocked is not None:
        scores = scores.masked_fill(blocked, -math.inf)
    return scores.softmax(-1) @ v


class Hooked(nn.Module):
    """Its names and shapes: W_Q [head, d_model, d_head]; norms with weights, or folded; with or without a network."""

    def __init__(self, *, folded: bool = False, network: bool = True, outputs: int = V) -> None:
        super().__init__()
        self.embed, self.pos_embed, self.unembed = nn.Module(), nn.Module(), nn.Module()
        self.embed.W_E, self.pos_embed.W_pos = numbers(V, D), numbers(LONGEST, D)
        self.unembed.W_U, self.unembed.b_U = numbers(D, outputs), numbers(outputs)
        self.blocks = nn.ModuleList(nn.Module() for _ in range(LAYERS))
        for block in self.blocks:
            block.attn = nn.Module()
            for letter in "QKV":
                block.attn.register_parameter(f"W_{letter}", numbers(H, D, W))
                block.attn.register_parameter(f"b_{letter}", numbers(H, W))
            block.attn.W_O, block.attn.b_O = numbers(H, W, D), numbers(D)
            block.attn.register_buffer("mask", ~future(LONGEST))
            block.attn.register_buffer("IGNORE", torch.tensor(-1e5))
            block.ln1 = normed(folded)
            if network:
                block.ln2, block.mlp = normed(folded), nn.Module()
                block.mlp.W_in, block.mlp.b_in = numbers(D, FF), numbers(FF)
                block.mlp.W_out, block.mlp.b_out = numbers(FF, D), numbers(D)
        self.ln_final = normed(folded)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embed.W_E[ids] + self.pos_embed.W_pos[: ids.shape[1]]
        for block in self.blocks:
            a, y = block.attn, self.norm(block.ln1, x)
            q, k, v = (
                torch.einsum("bnd,hdw->bhnw", y, getattr(a, f"W_{letter}")) + getattr(a, f"b_{letter}")[:, None]
                for letter in "QKV"
            )
            z = attend(q, k, v, future(x.shape[1]))
            x = x + torch.einsum("bhnw,hwd->bnd", z, a.W_O) + a.b_O
            if hasattr(block, "mlp"):
                hidden = F.gelu(self.norm(block.ln2, x) @ block.mlp.W_in + block.mlp.b_in, approximate="tanh")
                x = x + hidden @ block.mlp.W_out + block.mlp.b_out
        return self.norm(self.ln_final, x) @ self.unembed.W_U + self.unembed.b_U

    def norm(self, norm: nn.Module, x: Tensor) -> Tensor:
        return F.layer_norm(x, (D,), getattr(norm, "w", None), getattr(norm, "b", None))


def numbers(*shape: int) -> nn.Parameter:
    return nn.Parameter(torch.zeros(shape))


def normed(folded: bool) -> nn.Module:
    norm = nn.Module()
    if not folded:
        norm.w, norm.b = numbers(D), numbers(D)
    return norm


MODELS = {  # with what has to be answered about them
    "TransformerLens": (Hooked, dict(activation="gelu_tanh")),
    "TransformerLens, folded": (lambda: Hooked(folded=True), dict(activation="gelu_tanh", norm="layer_norm")),
    "TransformerLens, attention only": (lambda: Hooked(network=False), dict(score_scale="root_of_d_head")),
}
