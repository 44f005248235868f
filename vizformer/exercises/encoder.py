"""Exercise 8: a layer of the encoder."""

from collections.abc import Iterator

from torch import Tensor

from vizformer.exercises.add_norm import add_and_norm
from vizformer.exercises.attention_over_source import cross_attention
from vizformer.exercises.feedforward import feed_forward
from vizformer.exercises.task import Case, Place, Task, below, bundled_reading, random_reading
from vizformer.word_tables import words_of


def encoder_layer(x: Tensor, w: dict[str, Tensor], n_heads: int) -> tuple[Tensor, Tensor]:
    weights, out = cross_attention(x, x, below(w, "self_attention."), n_heads)
    x = add_and_norm(x, out, w["self_norm.weight"], w["self_norm.bias"])
    out = feed_forward(x, below(w, "feedforward."))
    x = add_and_norm(x, out, w["feedforward_norm.weight"], w["feedforward_norm.bias"])
    return weights, x


def _cases(text: str) -> Iterator[Case]:
    for reading, layer in ((random_reading(), "encoder.0"), (bundled_reading(text), "encoder.1")):
        places = {
            "weights": Place(f"{layer}.self.weights", f"{layer}.input"),
            "x": Place(f"{layer}.feedforward.norm", f"{layer}.self.weights"),
        }
        title = reading.at(layer)
        arguments = (
            reading.trace.residual(f"{layer}.pre"),
            reading.weights(layer),
            reading.checkpoint.model.config.n_heads,
        )
        yield Case(title, arguments, reading, places)


_OWN = words_of(__file__)
TASK = Task(
    "encoder_layer",
    {**_OWN, "slips": {**_OWN["slips"], **_OWN["slips_of_both"]}},
    ("x ← add_and_norm(x, cross_attention(x, x))", "x ← add_and_norm(x, feed_forward(x))"),
    (
        "x [n, d_model], n_heads",
        'w: "self_attention.W_Q.weight", ..., "self_norm.weight", ..., "feedforward.W_in.weight", ...',
        "→ weights [n_heads, n, n], x [n, d_model]",
    ),
    (encoder_layer,),
    ("weights", "x"),
    _cases,
    uses=("cross_attention", "add_norm", "feedforward"),
    helpers=(below,),
)
