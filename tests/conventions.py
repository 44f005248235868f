"""Models under the names of a layout in every convention that their weights do not hold, with what is true of each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests import tiny
from tests.hooked_models import Hooked, attend
from tests.strangers import FF, LAYERS, LONGEST, D, H, Seq2Seq, V, future, heads, sine_waves, stack, together


class TorchEncoder(nn.Module):
    """nn.TransformerEncoder, and a norm beside it that nothing uses; `over_batch`: batch_first was forgotten."""

    def __init__(self, *, over_batch: bool = False, logits: float = 1.0) -> None:
        super().__init__()
        self.embedding, self.encoder = nn.Embedding(V, D), stack()
        for one in self.encoder.layers:
            one.self_attn.batch_first = not over_batch
        self.logits, self.norm_f, self.head = logits, nn.LayerNorm(D), nn.Linear(D, V)
        self.register_buffer("pe", sine_waves(LONGEST)[None])

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids) + self.get_buffer("pe")[:, : ids.shape[1]]
        for one in self.encoder.layers:  # without the kernel for inference, which knows no other order
            x = one.norm1(x + one.self_attn(x, x, x, need_weights=False)[0])
            x = one.norm2(x + one.linear2(F.relu(one.linear1(x))))
        return self.head(x) * self.logits


class Unnormed(Hooked):
    """TransformerLens with normalization_type=None."""

    def __init__(self) -> None:
        super().__init__(folded=True)

    def norm(self, norm: nn.Module, x: Tensor) -> Tensor:
        return x


class Small(nn.Module):
    """nanoGPT's names, with another kind of norm, or without the last norm."""

    def __init__(self, norm: type[nn.Module] = nn.LayerNorm, *, last: bool = True) -> None:
        super().__init__()
        inner = nn.ModuleDict(dict(wte=nn.Embedding(V, D), wpe=nn.Embedding(LONGEST, D)))
        inner["h"], inner["ln_f"] = nn.Sequential(*(NanoLayer(norm) for _ in range(LAYERS))), norm(D, eps=1e-5)
        self.transformer, self.lm_head, self.last = inner, nn.Linear(D, V, bias=False), last

    def forward(self, ids: Tensor) -> Tensor:
        x = self.transformer["wte"](ids) + self.transformer["wpe"](torch.arange(ids.shape[1]))
        x = self.transformer["h"](x)
        return self.lm_head(self.transformer["ln_f"](x) if self.last else x)


class NanoLayer(nn.Module):
    def __init__(self, norm: type[nn.Module]) -> None:
        super().__init__()
        self.ln_1, self.ln_2, bias = norm(D, eps=1e-5), norm(D, eps=1e-5), norm is nn.LayerNorm
        self.attn = nn.ModuleDict(dict(c_attn=nn.Linear(D, 3 * D, bias=bias), c_proj=nn.Linear(D, D, bias=bias)))
        self.mlp = nn.ModuleDict(dict(c_fc=nn.Linear(D, FF, bias=bias), c_proj=nn.Linear(FF, D, bias=bias)))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (heads(part) for part in self.attn["c_attn"](self.ln_1(x)).split(D, -1))
        x = x + self.attn["c_proj"](together(attend(q, k, v, future(x.shape[1]))))
        return x + self.mlp["c_proj"](F.gelu(self.mlp["c_fc"](self.ln_2(x))))


class TorchHeadless(nn.Module):
    """nn.TransformerEncoder, logits by the embeddings; positions are learned, and begin with row 1."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.position_embedding = nn.Embedding(V, D), nn.Embedding(LONGEST + 1, D)
        self.encoder = stack()

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids) + self.position_embedding(torch.arange(ids.shape[1]) + 1)
        return self.encoder(x) @ self.embedding.weight.T


class TorchOneNorm(Seq2Seq):
    """nn.Transformer with a norm after one of its stacks alone."""

    def __init__(self, without: str) -> None:
        super().__init__()
        getattr(self.transformer, without).norm = None


@dataclass(frozen=True)
class Kind:
    """A model, and the answers that are true of it; `open` are those that no strict question asks for."""

    make: Callable[[], nn.Module]
    strict: dict[str, Any]
    open: dict[str, Any]

    @property
    def answers(self) -> dict[str, Any]:
        return self.strict | self.open


TORCH: dict[str, Any] = dict(n_heads=H, norm_order="post", activation="relu", causal=False, scaled_embedding=False)
KINDS: dict[str, Kind] = {
    "PyTorch's, over the batch": Kind(
        lambda: TorchEncoder(over_batch=True), TORCH, dict(attention_over="batch", final_norm=False)
    ),
    "PyTorch's, logits by the root of the width": Kind(
        lambda: TorchEncoder(logits=D**-0.5), TORCH, dict(logit_scale="root_of_d_model", final_norm=False)
    ),
    "nanoGPT, a last norm that nothing uses": Kind(
        lambda: Small(last=False), dict(n_heads=H, activation="gelu"), dict(final_norm=False)
    ),
    "nanoGPT, RMS norms": Kind(
        lambda: Small(nn.RMSNorm),
        dict(n_heads=H, activation="gelu"),
        dict(norm="rms_norm"),
    ),
    "PyTorch's, logits by the embeddings, positions from 1 on": Kind(
        TorchHeadless,
        {name: value for name, value in TORCH.items() if name != "positions"},
        dict(tied=True, first_position=1),
    ),
    "TransformerLens without norms": Kind(Unnormed, dict(activation="gelu_tanh"), {}),
    "translator, PyTorch's": Kind(
        Seq2Seq, {**TORCH, "scaled_embedding": True, "causal": True}, dict(bos_id=1, eos_id=2)
    ),
}


def made(name: str) -> nn.Module:
    """The model with random weights; norms that nothing uses stay as they were made."""
    model = tiny.randomise(KINDS[name].make()).eval()
    for place, module in model.named_modules():
        last = place.rpartition(".")[2]
        if last == "norm_f" or (last == "ln_f" and isinstance(model, Small) and not model.last):
            nn.init.ones_(module.weight)
            nn.init.zeros_(module.bias)
    return model
