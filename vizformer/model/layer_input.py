"""Per-layer inputs: every layer reads its token again, by tables of its own.

Source: Google DeepMind 2025, "Gemma 3n" (per-layer embeddings), and 2026, "Gemma 4", as `transformers` has them.
"""

from jaxtyping import Float, Int
from torch import Tensor, nn

from vizformer.config import ModelConfig
from vizformer.model.embedding import embedding_table
from vizformer.model.feedforward import activation
from vizformer.model.forward_pass import ForwardPass
from vizformer.model.norms import norm


class LayerInputTables(nn.Module):
    """p_l = (norm(W_l x_0 / sqrt(d_model)) + sqrt(d_p) E_l[id]) / sqrt(2), for every layer l; d_p is layer_input_dim.

    x_0 is the token's row of the usual table, scaled; E holds d_p more numbers for each token and layer. Neither has
    seen another token: p_l is the same wherever the token stands.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.width, self.depth = config.layer_input_dim or 0, config.depth
        self.rows = config.layer_input_vocab or config.vocab_size
        self.table = embedding_table(self.rows, self.depth * self.width)
        self.W = nn.Linear(config.d_model, self.depth * self.width, bias=False)
        self.norm = norm(config, self.width)

    def columns(self, layer: int) -> slice:
        """Where the numbers of a layer stand in the table, and the rows of W that make them."""
        return slice(layer * self.width, (layer + 1) * self.width)

    def known(self, ids: Int[Tensor, "*n"]) -> Int[Tensor, "*n"]:
        """The rows of the table that these tokens read: 0 for those that it does not have."""
        return ids.where(ids < self.rows, 0)

    def forward(self, ids: Int[Tensor, "b n"], x: Float[Tensor, "b n d_model"]) -> Float[Tensor, "b n layers d_p"]:
        """`x` is x_0 of these tokens."""
        own = (self.table(self.known(ids)) * self.width**0.5).unflatten(-1, (self.depth, self.width))
        made = (self.W(x) * x.shape[-1] ** -0.5).unflatten(-1, (self.depth, self.width))
        p: Tensor = (self.norm(made) + own) * 2**-0.5
        return p


class LayerInput(nn.Module):
    """The third sublayer: f(x) = (act(x W_gate) * p) W_out, with a norm of its own behind it (`Block`)."""

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__()
        self.layer, width = layer, config.layer_input_dim or 0
        self.W_gate = nn.Linear(config.d_model, width, bias=False)
        self.W_out = nn.Linear(width, config.d_model, bias=False)
        self.activation = activation(config)

    def forward(self, x: Float[Tensor, "b n d_model"], run: ForwardPass) -> Float[Tensor, "b n d_model"]:
        assert run.layer_inputs is not None
        out: Tensor = self.W_out(self.activation(self.W_gate(x)) * run.layer_inputs[:, :, self.layer])
        return out
