"""Exercise 7: attention of several heads, whose queries and keys may come from two places."""

from collections.abc import Iterator

from torch import Tensor

from vizformer.exercises.one_head import head
from vizformer.exercises.split_and_join import join, split
from vizformer.exercises.task import Case, Place, Task, below, readings
from vizformer.word_tables import words_of


def cross_attention(
    x: Tensor, source: Tensor, w: dict[str, Tensor], n_heads: int, blocked: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    q = split(x @ w["W_Q.weight"].T + w["W_Q.bias"], n_heads)
    k = split(source @ w["W_K.weight"].T + w["W_K.bias"], n_heads)
    v = split(source @ w["W_V.weight"].T + w["W_V.bias"], n_heads)
    weights, z = head(q, k, v, blocked)
    return weights, join(z) @ w["W_O.weight"].T + w["W_O.bias"]


def _cases(text: str) -> Iterator[Case]:
    for reading in readings(text):
        n_heads = reading.checkpoint.model.config.n_heads
        for layer, kind, rows, source in (
            ("decoder.0", "cross", "decoder.0.mid_self", "encoder.final"),
            ("encoder.0", "self", "encoder.0.pre", "encoder.0.pre"),
            ("decoder.0", "self", "decoder.0.pre", "decoder.0.pre"),
        ):
            site, trace = f"{layer}.{kind}", reading.trace
            weights = below(reading.weights(layer), f"{kind}_attention.")
            before = f"{layer}.self.norm" if kind == "cross" else f"{layer}.input"
            places = {"weights": Place(f"{site}.weights", before), "out": Place(f"{site}.out", before)}
            blocked = (trace[site].reason(0) > 0,) if site == "decoder.0.self" else ()
            arguments = (trace.residual(rows), trace.residual(source), weights, n_heads, *blocked)
            yield Case(reading.at(site), arguments, reading, places)


TASK = Task(
    "cross_attention",
    words_of(__file__),
    ("q = x W_Qᵀ + b_Q,  k = source W_Kᵀ + b_K,  v = source W_Vᵀ + b_V", "out = join(head(q, k, v)) W_Oᵀ + b_O"),
    (
        "x [n_q, d_model], source [n_k, d_model], n_heads, blocked [n_q, n_k] (bool) or None",
        'w: "W_Q.weight" [d_model, d_model], "W_Q.bias" [d_model], "W_K.weight", ..., "W_O.bias"',
        "→ weights [n_heads, n_q, n_k], out [n_q, d_model]",
    ),
    (cross_attention,),
    ("weights", "out"),
    _cases,
    uses=("head", "split_join"),
)
