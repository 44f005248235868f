"""A model as a graph: what writes into the residual stream, what reads it, and a forward in which every reader has its own.

In a model that normalises what its sublayers read, and not what they write (pre-norm), the stream is a plain sum

    x = embedding + sum of heads + sum of networks + biases

so that every reader (the query, the key and the value of each head, each network, the logits) reads a sum over the writers
before it, and each term of each of these sums is an edge.  A run in which an edge is cut takes this one term from another
run.

Source: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits" (the stream as a sum); Wang et al. 2022,
"Interpretability in the Wild" (edges into queries, keys and values).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy import ndarray
from torch import Tensor

from vizformer.checkpoints import AnyCheckpoint
from vizformer.errors import TraceError
from vizformer.model.block import Block, Stack
from vizformer.model.masks import total_bias
from vizformer.model.records import Scoring, mix
from vizformer.model.trace import Trace

Incoming = Callable[[slice, list[Tensor], Tensor], Tensor]
"""Computes readers' inputs [b, readers, n, d_model] from their slice, the writers' outputs [b, n, d_model] and biases."""


@dataclass(frozen=True)
class ModelGraph:
    """The writers and the readers of a model with one stack.

    Attributes:
        writers: "embedding", "decoder.0.self.3" (a head), "decoder.0.feedforward", in the order of the forward.
        readers: "decoder.1.self.2.q", the same with k and v (of a key/value head), "decoder.1.feedforward", "logits".
        edges: whether a reader comes after a writer.

    Raises:
        TraceError: the stream of this model is no plain sum of what is written.
    """

    checkpoint: AnyCheckpoint

    def __post_init__(self) -> None:
        config = self.checkpoint.model.config
        sums = config.norm_order in ("pre", "none") and config.residual == "sequential"
        if not sums or config.architecture == "encoder-decoder":
            raise TraceError(
                "VizFormer follows edges only in a model of one stack, decoder or encoder, whose "
                "residual stream is the plain sum of what is written (pre-norm). Choose such a model."
            )

    @property
    def stack(self) -> Stack:
        found = self.checkpoint.model.decoder or self.checkpoint.model.encoder
        assert found is not None
        return found

    @property
    def writers(self) -> tuple[str, ...]:
        config, name = self.checkpoint.model.config, self.stack.name
        found = ["embedding"]
        for layer in range(len(self.stack.layers)):
            found += [f"{name}.{layer}.self.{head}" for head in range(config.n_heads)] + [f"{name}.{layer}.feedforward"]
        return tuple(found)

    @property
    def readers(self) -> tuple[str, ...]:
        config, name = self.checkpoint.model.config, self.stack.name
        found = list[str]()
        for layer in range(len(self.stack.layers)):
            for part, n in (("q", config.n_heads), ("k", config.kv_heads), ("v", config.kv_heads)):
                found += [f"{name}.{layer}.self.{head}.{part}" for head in range(n)]
            found.append(f"{name}.{layer}.feedforward")
        return (*found, "logits")

    @property
    def edges(self) -> Bool[ndarray, "writers readers"]:
        def written(name: str) -> int:
            return -1 if name == "embedding" else 2 * int(name.split(".")[1]) + name.endswith("feedforward")

        def read(name: str) -> int:
            if name == "logits":
                return 2 * len(self.stack.layers)
            return 2 * int(name.split(".")[1]) + name.endswith("feedforward")

        return np.array([[written(writer) < read(reader) for reader in self.readers] for writer in self.writers])

    def forward(
        self, trace: Trace, first: Float[Tensor, "b n d_model"], row: int, incoming: Incoming
    ) -> tuple[Tensor, Tensor]:
        """The logits at a row [b, vocab_size], and what the writers have written [b, writers, n, d_model].

        Args:
            trace: of the same length.
            first: what the stack reads, the embedding.
        """
        model, stack, tokens = self.checkpoint.model, self.stack, next(iter(trace.tokens.values()))
        run = model.forward_pass(stack.name, self.checkpoint.tensor(tokens))  # type: ignore[arg-type]
        out, biases, at = [first], torch.zeros_like(first[:1]), 0
        config = model.config
        n_heads, n_kv = config.n_heads, config.kv_heads
        for layer in range(len(stack.layers)):
            block: Block = stack.layers[layer]  # type: ignore[assignment]
            attention, around, name = block.self_attention, block.around("self"), f"{stack.name}.{layer}"
            before, network = (out, biases), at + n_heads + 2 * n_kv
            read = incoming(slice(at, network), *before)  # [b, readers, n, d_model]
            read = around.enter(read)
            mask = run.windowed if block.windowed else run.mask
            q, k, v = (
                _own_part(linear, part)
                for linear, part in zip(
                    (attention.W_Q, attention.W_K, attention.W_V),
                    torch.split(read, [n_heads, n_kv, n_kv], dim=1),
                    strict=True,
                )
            )
            q = attention.normed_and_turned(q, attention.q_norm, run)
            k = attention.normed_and_turned(k, attention.k_norm, run)
            bias = total_bias(run.position_bias, None if mask is None else mask.bias)
            bias = None if bias is None else bias.to(q.dtype)
            z = mix(q, k, v, bias, Scoring(attention.scale))  # [b, n_heads, n, d_head]
            w_o = attention.W_O.weight.reshape(config.d_model, n_heads, -1)  # [d_model, n_heads, d_head]
            written = torch.einsum("bhne,dhe->bhnd", z, w_o)
            out = [*out, *written.unbind(1)]
            if attention.W_O.bias is not None:
                biases = biases + attention.W_O.bias
            at, around = network + 1, block.around("feedforward")
            y = incoming(slice(network, at), out, biases)[:, 0]
            out.append(block.feedforward(around.enter(y), run, name))
        x = incoming(slice(at, at + 1), out, biases)[:, 0, row]
        x = x if stack.final_norm is None else stack.final_norm(x)
        return model.logits(x), torch.stack(out, dim=1)


def _own_part(linear: torch.nn.Linear, read: Float[Tensor, "b h n d_model"]) -> Float[Tensor, "b h n d_head"]:
    """Projects the input of each head with this head's own rows of a projection matrix."""
    heads, d_model = read.shape[1], read.shape[3]
    found = torch.einsum("bhnd,hed->bhne", read, linear.weight.reshape(heads, -1, d_model))
    return found if linear.bias is None else found + linear.bias.reshape(heads, 1, -1)


def all_of(readers: slice, out: list[Tensor], biases: Tensor) -> Tensor:
    """The input of every reader in an unpatched forward: the sum of all earlier outputs and biases."""
    whole = torch.stack(out).sum(0) + biases
    return whole[:, None].expand(-1, readers.stop - readers.start, -1, -1)
