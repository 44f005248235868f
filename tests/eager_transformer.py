"""The Transformer a second time: plain loops over heads in float64, nothing fused, nothing shared with vizformer.model.

Only the names of the weights are taken from there.  One sequence at a time; every intermediate number is kept.
"""

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from vizformer.config import ModelConfig
from vizformer.model import Transformer


@dataclass
class Call:
    """Everything inside one attention sublayer; lists have one entry per head."""

    before: Tensor
    x: Tensor
    source: Tensor
    q_projected: list[Tensor] = field(default_factory=list)  # before norms and rotary positions
    k_projected: list[Tensor] = field(default_factory=list)
    q_normed: list[Tensor] = field(default_factory=list)  # before rotary positions
    k_normed: list[Tensor] = field(default_factory=list)
    q: list[Tensor] = field(default_factory=list)
    k: list[Tensor] = field(default_factory=list)
    v: list[Tensor] = field(default_factory=list)
    dots: list[Tensor] = field(default_factory=list)
    scaled: list[Tensor] = field(default_factory=list)  # before ALiBi's or T5's bias
    scores: list[Tensor] = field(default_factory=list)
    masked: list[Tensor] = field(default_factory=list)
    pattern: list[Tensor] = field(default_factory=list)
    z: list[Tensor] = field(default_factory=list)
    head_out: list[Tensor] = field(default_factory=list)
    attn_out: Tensor = field(default_factory=lambda: torch.zeros(0))
    added: Tensor = field(default_factory=lambda: torch.zeros(0))
    after: Tensor = field(default_factory=lambda: torch.zeros(0))


class Eager:
    """Runs a model's weights; the results are in `residuals`, `calls` and `logits`."""

    def __init__(self, model: Transformer) -> None:
        self.config = model.config
        self.weights = {name: tensor.detach().double() for name, tensor in model.state_dict().items()}
        self.residuals: dict[str, Tensor] = {}
        self.calls: dict[str, Call] = {}

    def run(self, ids: Tensor, target_ids: Tensor | None = None, padding: Tensor | None = None) -> "Eager":
        """`ids`, `target_ids`: [n]; `padding`: [n] of the encoder's (or only) input."""
        n = len(ids)
        keys = torch.zeros(n) if padding is None else torch.zeros(n).masked_fill(padding, -math.inf)
        if self.config.n_encoder_layers:
            x = self._stack("encoder", self._embed(ids), keys.expand(n, n), None, None)
            if target_ids is not None:
                m = len(target_ids)
                y = self._embed(target_ids, "decoder_" if self.config.stack_inputs == "own" else "")
                x = self._stack("decoder", y, self._future(m), x, keys.expand(m, n))
        else:
            x = self._stack("decoder", self._embed(ids), self._future(n) + keys, None, None)
        if self.config.head == "transform":
            dense = x @ self.weights["prediction.dense.weight"].T + self.weights["prediction.dense.bias"]
            x = self._norm("prediction.norm", self._activation(dense))
        x = x * self.config.logit_scale
        self.logits = x @ self.weights["embedding.weight" if self.config.tied_unembedding else "unembedding.weight"].T
        if self.config.logit_bias:
            self.logits = self.logits + self.weights["logit_bias"]
        if self.config.head == "transform":
            self.logits = self.logits + self.weights["prediction.logit_bias"]
        return self

    def _near(self, n: int, layer: int) -> Tensor:
        """An encoder's sliding window."""
        window, layers = self.config.sliding_window, self.config.sliding_layers
        mask = torch.zeros(n, n)
        for query in range(n):
            for key in range(n):
                if window is not None and (layers is None or layer in layers) and abs(query - key) >= window:
                    mask[query, key] = -math.inf
        return mask

    def _future(self, n: int) -> Tensor:
        return torch.full((n, n), -math.inf).triu(1)

    def _embed(self, ids: Tensor, own: str = "") -> Tensor:
        c = self.config
        rows = []
        for position, id in enumerate(ids.tolist()):
            row = self.weights["embedding.weight"][id]
            row = row * (math.sqrt(c.d_model) if c.scaled_embedding else 1.0)
            if c.positions in ("rope", "alibi", "relative", "none"):
                place = torch.zeros(c.d_model).double()
            elif c.positions == "learned":
                place = self.weights[f"{own}position_embedding.weight"][position]
            else:
                angles = [position / 10_000 ** (2 * i / c.d_model) for i in range(c.d_model // 2)]
                sines, cosines = [math.sin(a) for a in angles], [math.cos(a) for a in angles]
                mixed = [wave for pair in zip(sines, cosines, strict=True) for wave in pair]
                waves = [*sines, *cosines] if c.sinusoids == "halves" else mixed
                place = torch.tensor(waves, dtype=torch.float64)
            if c.n_segments:
                place = place + self.weights["segment_embedding.weight"][0]
            rows.append(row + place)
        x = torch.stack(rows)
        return self._norm(f"{own}embedding_norm", x) if c.embedding_norm else x

    def _stack(self, name: str, x: Tensor, mask: Tensor, memory: Tensor | None, memory_mask: Tensor | None) -> Tensor:
        c = self.config
        for index in range(c.n_encoder_layers if name == "encoder" else c.n_decoder_layers):
            layer, path = f"{name}.{index}", f"{name}.layers.{index}"
            self.residuals[f"{layer}.pre"] = x
            near = self._near(len(x), index) if name == "encoder" else 0.0
            x = self._attention(f"{layer}.self", f"{path}.self_attention", f"{path}.self_norm", x, None, mask + near)
            self.residuals[f"{layer}.mid" if memory is None else f"{layer}.mid_self"] = x
            if memory is not None and memory_mask is not None:
                x = self._attention(
                    f"{layer}.cross", f"{path}.cross_attention", f"{path}.cross_norm", x, memory, memory_mask
                )
                self.residuals[f"{layer}.mid_cross"] = x
            stays = 0.0 if c.residual == "none" else x
            if c.norm_order == "none":
                x = stays + self._feedforward(path, x)
            elif c.norm_order == "pre":
                x = stays + self._feedforward(path, self._norm(f"{path}.feedforward_norm", x))
            else:
                x = stays + self._feedforward(path, x)
                last = f"{path}.feedforward_norm"
                x = self._norm(last, x) if f"{last}.weight" in self.weights else x
            self.residuals[f"{layer}.post"] = x
        if f"{name}.final_norm.weight" in self.weights:
            x = self._norm(f"{name}.final_norm", x)
        self.residuals[f"{name}.final"] = x
        return x

    def _attention(self, site: str, path: str, norm: str, x: Tensor, memory: Tensor | None, mask: Tensor) -> Tensor:
        c = self.config
        d_head = c.d_model // c.n_heads if c.head_dim is None else c.head_dim
        groups = c.n_kv_heads
        y = self._norm(norm, x) if c.norm_order == "pre" and f"{norm}.weight" in self.weights else x
        call = Call(before=x, x=y, source=y if memory is None else memory)
        W_O = self.weights[f"{path}.W_O.weight"]
        for head in range(c.n_heads):
            own = slice(head * d_head, (head + 1) * d_head)
            shared = head if groups is None else head * groups // c.n_heads
            of_group = slice(shared * d_head, (shared + 1) * d_head)
            q, k, v = (
                torch.nn.functional.linear(
                    rows, self.weights[f"{path}.W_{letter}.weight"][part], self._bias(f"{path}.W_{letter}", part)
                )
                for rows, letter, part in ((y, "Q", own), (call.source, "K", of_group), (call.source, "V", of_group))
            )
            call.q_projected.append(q)
            call.k_projected.append(k)
            if c.qk_norm:
                q, k = self._norm(f"{path}.q_norm", q), self._norm(f"{path}.k_norm", k)
            call.q_normed.append(q)
            call.k_normed.append(k)
            if c.positions == "rope" and memory is None:
                q, k = self._turned(q), self._turned(k)
            dots = q @ k.T
            scaled = dots / math.sqrt(d_head) if c.attention_scale is None else dots * c.attention_scale
            scores = scaled if memory is not None else scaled + self._place(site, head, len(q), len(k))
            masked = scores + mask
            pattern = torch.softmax(masked, dim=-1)
            z = pattern @ v
            kept = dict(
                q=q,
                k=k,
                v=v,
                z=z,
                dots=dots,
                scaled=scaled,
                scores=scores,
                masked=masked,
                pattern=pattern,
            )
            for name, tensor in kept.items():
                getattr(call, name).append(tensor)
            call.head_out.append(z @ W_O[:, own].T)
        call.attn_out = torch.stack(call.head_out).sum(0)
        of_all = self.weights.get(f"{path}.W_O.matrix.bias")
        if (bias := self._bias(f"{path}.W_O", slice(None)) if of_all is None else of_all) is not None:
            call.attn_out = call.attn_out + bias
        call.added = call.attn_out if c.residual == "none" else x + call.attn_out
        call.after = self._norm(norm, call.added) if c.norm_order == "post" else call.added
        self.calls[site] = call
        return call.after

    def _bias(self, path: str, own: slice) -> Tensor | None:
        bias = self.weights.get(f"{path}.bias")
        return None if bias is None else bias[own]

    def _turned(self, rows: Tensor) -> Tensor:
        """Pair (m, m + d/2) as a complex number, times e^(i pos theta^(-2m/d))."""
        n, d = rows.shape
        pairs = torch.complex(rows[:, : d // 2].contiguous(), rows[:, d // 2 :].contiguous())
        plain = [self.config.rope_theta ** (-2 * m / d) for m in range(d // 2)]
        frequency = torch.tensor([slowed(self.config, f) for f in plain], dtype=torch.float64)
        angle = torch.arange(n).double()[:, None] * frequency
        turned = pairs * torch.polar(torch.ones_like(angle), angle)
        return torch.cat([turned.real, turned.imag], dim=-1)

    def _place(self, site: str, head: int, n_q: int, n_k: int) -> Tensor:
        """What is added to the scores for the distance between query and key, cell by cell."""
        place, stack = torch.zeros(n_q, n_k).double(), site.split(".")[0]
        for query in range(n_q):
            for key in range(n_k):
                if self.config.positions == "alibi":
                    place[query, key] = -slope(head, self.config.n_heads) * abs(query - key)
                elif self.config.has_relative_bias:
                    row = bucket(
                        key - query, self.config.relative_buckets, self.config.relative_max_distance, stack == "encoder"
                    )
                    place[query, key] = self.weights[f"{stack}.relative_bias.weight"][row, head]
        return place

    def _norm(self, path: str, x: Tensor) -> Tensor:
        if self.config.norm == "rms_norm":
            root = ((x * x).mean(-1, keepdim=True) + self.config.norm_eps).sqrt()
            return x / root * self.weights[f"{path}.weight"]
        centred = x - x.mean(-1, keepdim=True)
        root = (centred.pow(2).mean(-1, keepdim=True) + self.config.norm_eps).sqrt()
        return centred / root * self.weights[f"{path}.weight"] + self.weights[f"{path}.bias"]

    def _feedforward(self, path: str, x: Tensor) -> Tensor:
        path = f"{path}.feedforward"
        hidden = x @ self.weights[f"{path}.W_in.weight"].T
        if (bias := self._bias(f"{path}.W_in", slice(None))) is not None:
            hidden = hidden + bias
        if self.config.feedforward == "gated":
            gate = x @ self.weights[f"{path}.W_gate.weight"].T
            if (bias := self._bias(f"{path}.W_gate", slice(None))) is not None:
                gate = gate + bias
            hidden = self._activation(gate) * hidden
        else:
            hidden = self._activation(hidden)
        out = hidden @ self.weights[f"{path}.W_out.weight"].T
        bias = self._bias(f"{path}.W_out", slice(None))
        return out if bias is None else out + bias

    def _activation(self, x: Tensor) -> Tensor:
        kind = self.config.activation
        if kind == "relu":
            return x * (x > 0)
        if kind == "relu_squared":
            return x * x * (x > 0)
        if kind == "silu":
            return x / (1 + torch.exp(-x))
        if kind == "gelu":
            return x * torch.special.ndtr(x)
        if kind == "quick_gelu":
            return x / (1 + torch.exp(-1.702 * x))
        return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def slowed(config: ModelConfig, frequency: float) -> float:
    """Longer contexts: "linear" divides all by the factor, "llama3" those of wavelengths beyond trained / low."""
    if config.rope_scaling == "none":
        return frequency
    length = 2 * math.pi / frequency
    if config.rope_scaling == "linear" or length > config.rope_trained_positions / config.rope_low_turns:
        return frequency / config.rope_factor
    if length < config.rope_trained_positions / config.rope_high_turns:
        return frequency
    turns, low, high = config.rope_trained_positions / length, config.rope_low_turns, config.rope_high_turns
    return ((high - turns) * frequency / config.rope_factor + (turns - low) * frequency) / (high - low)


def slope(head: int, n_heads: int) -> float:
    """ALiBi: a geometric series from 2^(-8/n) on, with that as its ratio; other n borrow from twice the power below."""
    below = 2 ** math.floor(math.log2(n_heads))
    series, twice = ([2 ** (-8 / n * (k + 1)) for k in range(n)] for n in (below, 2 * below))
    return float([*series, *twice[0::2]][head])


def bucket(relative: int, n: int, max_distance: int, both_sides: bool) -> int:
    """T5's bucket of key - query, in whole numbers: ln(D/E) / ln(max/E) (B-E) >= k where D^(B-E) >= E^(B-E-k) max^k."""
    if both_sides:
        n //= 2
        first, distance = (n if relative > 0 else 0), abs(relative)
    else:
        first, distance = 0, max(-relative, 0)
    exact = n // 2
    if distance < exact:
        return first + distance
    wide = n - exact  # buckets that are not for one distance alone
    reached = [k for k in range(wide) if distance**wide >= exact ** (wide - k) * max_distance**k]
    return first + exact + max(reached)
