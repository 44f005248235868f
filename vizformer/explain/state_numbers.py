"""All numbers of a layer that keeps a state (`vizformer.model.state_rule`), recomputed in float64 and compared.

    [q k v] = silu(conv(x [W_Q W_K W_V])) -> (q, k of length 1) -> gates -> the state, token by token -> o = S^T q (+ D v)

q, k, v, the gates and o are compared with the model's own; in half precision the arithmetic goes on from those.
"""

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray

from vizformer.explain.arrays import float64, is_half, set_cells, stored
from vizformer.explain.site_words import in_words
from vizformer.explain.step import Proof, sizes
from vizformer.messages import N_, Message
from vizformer.model.state_layers import StateLayer
from vizformer.model.state_rule import StateGates, effective_map
from vizformer.model.trace import Trace


def _or_0(bias: torch.Tensor | None) -> ndarray | float:
    return 0.0 if bias is None else float64(bias)


class StateNumbers:
    """Those of every head and token; of the state those at token `at`.

    Attributes:
        packed, convolved, mixed: [n, channels], after the matrices, the convolution and the SiLU.
        q, k, v, beta, decay, o, opened: head by head, as in the trace.
        kept, held, u, S: what is left of the state, what it holds under the key, what is written, and the state then.
        proofs: of q, k, v, beta, decay, o and opened.
    """

    def __init__(self, layer: StateLayer, trace: Trace, site: str, x: Float[ndarray, "n d"], at: int) -> None:
        record = trace[site]
        assert record.gates is not None
        assert layer.W_gate is not None
        self.layer, self.x, self.at, self.scale, self.dtype = layer, x, at, record.scale, record.q.dtype
        self.group, self.keys = layer.n_heads // layer.n_key_heads, layer.n_key_heads * layer.d_key
        self.filters, self.short = float64(layer.filters)[:, 0], is_half(self.dtype)  # [channels, kernel]
        self.corrects = layer.rule == "delta"
        self.proofs: dict[str, Proof] = {}
        W = np.concatenate([float64(getattr(layer, f"W_{letter}").weight).T for letter in "QKV"], axis=1)
        self.biases = [bias for one in "QKV" if (bias := getattr(layer, f"W_{one}").bias) is not None]
        self.packed = stored(x @ W + (float64(torch.cat(self.biases)) if self.biases else 0.0), self.dtype)
        self.padded = np.pad(self.packed, ((self.filters.shape[1] - 1, 0), (0, 0)))
        seen = np.stack([self.padded[t : t + len(x)] for t in range(self.filters.shape[1])])  # [kernel, n, channels]
        self.convolved = stored(np.einsum("tnc,ct->nc", seen, self.filters) + _or_0(layer.filter_bias), self.dtype)
        self.mixed = stored(self.convolved / (1 + np.exp(-self.convolved)), self.dtype)
        terms = np.sqrt(np.einsum("tnc,ct->nc", seen**2, self.filters**2))
        place = in_words(site)
        anchor = N_("q, k and v recorded in {place}", place=place)
        cuts = [(0, self.keys), (self.keys, 2 * self.keys), (2 * self.keys, None)]
        self.q, self.k, self.v = (
            self._same(name, anchor, set_cells(trace, f"{site}.{name}", rows), getattr(record, name), size)
            for name, cut in zip("qkv", cuts, strict=True)
            for rows, size in [self._heads(name, self.mixed[:, slice(*cut)], terms[:, slice(*cut)])]
        )
        anchor, rate = N_("the gates recorded in {place}", place=place), np.exp(float64(layer.rate))[:, None]
        step = np.logaddexp(0, self._through(layer.W_a) + float64(layer.bias)[:, None])
        terms = sizes(x, float64(layer.W_a.weight).T).T
        if self.corrects:
            written = stored(1 / (1 + np.exp(-self._through(layer.W_b))), self.dtype)
            self.beta = self._same("beta", anchor, written, record.gates.beta, 0.0)
        else:
            step = self.beta = self._same("beta", anchor, np.clip(step, *layer.limits), record.gates.beta, terms)
        self.decay = self._same("decay", anchor, -rate * step, record.gates.decay, rate * terms)
        anchor = N_("what the rule has read in the model's own forward: {place}", place=place)
        own = torch.stack([record.z(head) for head in range(layer.n_heads)])
        read = self._run()
        self.own = float64(own)
        self.o = self._same("o", anchor, read, own, np.abs(read).max(initial=0.0))
        gate = self._through(layer.W_gate)  # [channels, n]
        gate = (gate / (1 + np.exp(-gate))).reshape(layer.n_heads, layer.d_head, -1).transpose(0, 2, 1)
        normed, weight = self.o, float64(layer.norm.weight).reshape(-1, 1, layer.d_head)
        axes: tuple[int, ...] = (-1,)
        if not self.corrects:  # the gate first, and all heads of a group together
            normed, axes = (self.o * gate).reshape(layer.n_key_heads, self.group, *self.o.shape[1:]), (1, 3)
        root = np.sqrt((normed**2).mean(axes, keepdims=True) + (layer.norm.eps or 0.0))
        self.root = root if self.corrects else np.repeat(root[:, 0], self.group, 0)  # [n_heads, n, 1]
        opened = weight * gate / self.root
        assert record.opened is not None
        anchor = N_("the gates recorded in {place}", place=place)
        self.opened = self._same("opened", anchor, opened, record.opened, np.abs(opened))

    def _same(self, name: str, anchor: Message, found: ndarray, own: torch.Tensor, terms: ndarray | float) -> ndarray:
        """What the arithmetic goes on with, once it has been compared with the model's own."""
        self.proofs[name] = Proof.compare(anchor, found, own, terms=terms if self.short else 0.0, dtype=self.dtype)
        return float64(own) if self.short else found

    def _through(self, linear: torch.nn.Linear) -> Float[ndarray, "width n"]:
        return stored(self.x @ float64(linear.weight).T + _or_0(linear.bias), self.dtype).T

    def _heads(self, name: str, mixed: ndarray, terms: ndarray) -> tuple[ndarray, ndarray]:
        """[n, width] -> [n_heads, n, d]; queries and keys at length 1, once for each head that shares them."""
        d = self.layer.d_head if name == "v" else self.layer.d_key
        rows, size = (t.reshape(len(t), -1, d).transpose(1, 0, 2) for t in (mixed, terms))
        if name == "v":
            return rows, size
        length = np.sqrt((rows**2).sum(-1, keepdims=True) + 1e-6) if self.corrects else 1.0
        return np.repeat(stored(rows / length, self.dtype), self.group, 0), np.repeat(size / length, self.group, 0)

    def _run(self) -> Float[ndarray, "h n d_value"]:
        """Token by token."""
        S, found = np.zeros((len(self.k), self.k.shape[2], self.v.shape[2])), []
        for t in range(len(self.x)):
            kept = np.exp(self.decay[:, t, None, None]) * S
            held = np.einsum("hkv,hk->hv", kept, self.k[:, t]) if self.corrects else np.zeros_like(self.v[:, t])
            u = self.beta[:, t, None] * (self.v[:, t] - held)
            S = kept + self.k[:, t, :, None] * u[:, None]
            read = np.einsum("hkv,hk->hv", S, self.q[:, t]) * self.scale
            skipped = 0.0 if self.layer.skip is None else float64(self.layer.skip)[:, None] * self.v[:, t]
            found.append(stored(read + skipped, self.dtype))
            if t == self.at:
                self.kept, self.held, self.u, self.S = kept, held, u, S
        return np.stack(found, axis=1)

    def map(self, heads: slice = slice(None)) -> Float[ndarray, "h n n"]:
        """M of some heads."""
        q, k, beta, decay = (torch.from_numpy(t[heads]) for t in (self.q, self.k, self.beta, self.decay))
        skip = None if self.layer.skip is None else torch.from_numpy(float64(self.layer.skip)[heads])
        return effective_map(q * self.scale, k, StateGates(beta, decay, skip=skip)).numpy() + 0.0  # no -0

    def map_error(self, head: int | None) -> float:
        """|M v - o| / |o|, o as the model has computed it."""
        of = slice(None) if head is None else slice(head, head + 1)
        return float(np.linalg.norm(self.map(of) @ self.v[of] - self.own[of]) / np.linalg.norm(self.own[of]))

    def channels(self, head: int | None) -> ndarray:
        """Which columns of the packed rows are those of a head; all, where none is named."""
        if head is None:
            return np.arange(self.packed.shape[1])
        key = np.arange(self.layer.d_key) + head // self.group * self.layer.d_key
        value = np.arange(self.layer.d_head) + head * self.layer.d_head
        return np.concatenate([key, key + self.keys, value + 2 * self.keys])
