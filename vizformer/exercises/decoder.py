"""Exercise 9: a layer of the decoder."""

from collections.abc import Iterator

import torch
from torch import Tensor

from vizformer.exercises.add_norm import add_and_norm
from vizformer.exercises.attention_over_source import cross_attention
from vizformer.exercises.encoder import TASK as ENCODER
from vizformer.exercises.feedforward import feed_forward
from vizformer.exercises.task import Case, Place, Task, below, bundled_reading, random_reading
from vizformer.word_tables import words_of


def decoder_layer(x: Tensor, memory: Tensor, w: dict[str, Tensor], n_heads: int) -> tuple[Tensor, Tensor, Tensor]:
    n = len(x)
    blocked = torch.ones(n, n, dtype=torch.bool).triu(1)  # above the diagonal: what comes later
    own, out = cross_attention(x, x, below(w, "self_attention."), n_heads, blocked)
    x = add_and_norm(x, out, w["self_norm.weight"], w["self_norm.bias"])
    cross, out = cross_attention(x, memory, below(w, "cross_attention."), n_heads)
    x = add_and_norm(x, out, w["cross_norm.weight"], w["cross_norm.bias"])
    out = feed_forward(x, below(w, "feedforward."))
    x = add_and_norm(x, out, w["feedforward_norm.weight"], w["feedforward_norm.bias"])
    return own, cross, x


def _cases(text: str) -> Iterator[Case]:
    for reading, layer in ((random_reading(), "decoder.0"), (bundled_reading(text), "decoder.1")):
        places = {
            "own": Place(f"{layer}.self.weights", f"{layer}.input"),
            "cross": Place(f"{layer}.cross.weights", f"{layer}.self.weights"),
            "x": Place(f"{layer}.feedforward.norm", f"{layer}.cross.weights"),
        }
        trace, n_heads = reading.trace, reading.checkpoint.model.config.n_heads
        rows, memory = trace.residual(f"{layer}.pre"), trace.residual("encoder.final")
        title = reading.at(layer)
        yield Case(title, (rows, memory, reading.weights(layer), n_heads), reading, places)


_OWN = words_of(__file__)
TASK = Task(
    "decoder_layer",
    {**_OWN, "slips": {**_OWN["slips"], **ENCODER.told["slips_of_both"]}},
    (
        "blocked_ij = (j > i)",
        "x ← add_and_norm(x, cross_attention(x, x, blocked))",
        "x ← add_and_norm(x, cross_attention(x, memory))",
        "x ← add_and_norm(x, feed_forward(x))",
    ),
    (
        "x [n, d_model], memory [m, d_model], n_heads",
        'w: as in the encoder layer, and "cross_attention.W_Q.weight", ..., "cross_norm.bias"',
        "→ own [n_heads, n, n], cross [n_heads, n, m], x [n, d_model]",
    ),
    (decoder_layer,),
    ("own", "cross", "x"),
    _cases,
    uses=("cross_attention", "add_norm", "feedforward"),
    helpers=(below,),
)
