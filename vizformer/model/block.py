"""One layer of a stack, and the stack."""

from jaxtyping import Float
from torch import Tensor, nn

from vizformer.config import ModelConfig
from vizformer.model.attention import Attention
from vizformer.model.embedding import embedding_table
from vizformer.model.feedforward import FeedForward
from vizformer.model.forward_pass import ForwardPass
from vizformer.model.norm import Norm, norm


class Block(nn.Module):
    """Self-attention, cross-attention where there is an encoder to look at, feed-forward; add & norm around each.

    post-norm: x <- norm(x + sublayer(x))   (Vaswani et al. 2017, 3.1)
    pre-norm:  x <- x + sublayer(norm(x))   (Radford et al. 2019; Xiong et al. 2020)
    parallel:  x <- x + attention(norm(x)) + feedforward(norm'(x))   (Wang & Komatsuzaki 2021, "GPT-J")
    """

    def __init__(self, config: ModelConfig, cross: bool, windowed: bool = False, turned: bool = True) -> None:
        super().__init__()
        self.norm_order, self.residual = config.norm_order, config.residual
        self.windowed, self.turned = windowed, turned
        self.self_attention, self.self_norm = Attention(config), norm(config)
        self.cross_attention = Attention(config) if cross else None
        self.cross_norm = norm(config) if cross else None
        self.feedforward, self.feedforward_norm = FeedForward(config), norm(config)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Float[Tensor, "b n d_model"], run: ForwardPass, name: str) -> Float[Tensor, "b n d_model"]:
        """`name` is the layer's place in the model, e.g. "decoder.2"; the trace files its records under it."""
        x = entering = run.point(f"{name}.pre", x)
        y = self._before(self.self_norm, x)
        call = run.self_attention(name, windowed=self.windowed, turned=self.turned)
        x = self._add(x, run.output(f"{name}.self", self.self_attention(y, y, call)), self.self_norm)
        if self.cross_attention is None or self.cross_norm is None:
            x = run.point(f"{name}.mid", x)
        else:
            if run.memory is None:
                raise ValueError(f"{name} has cross-attention: pass the encoder's output as memory")
            x = run.point(f"{name}.mid_self", x)
            y = self._before(self.cross_norm, x)
            y = self.cross_attention(y, run.memory, run.cross_attention(name))
            x = self._add(x, run.output(f"{name}.cross", y), self.cross_norm)
            x = run.point(f"{name}.mid_cross", x)
        y = self._before(self.feedforward_norm, entering if self.residual == "parallel" else x)
        x = self._add(x, run.output(f"{name}.feedforward", self.feedforward(y, run, name)), self.feedforward_norm)
        return run.point(f"{name}.post", run.layer(name, entering, x))

    def _before(self, norm: Norm, x: Tensor) -> Tensor:
        """What a sublayer reads."""
        y: Tensor = norm(x) if self.norm_order == "pre" else x
        return y

    def _add(self, x: Tensor, y: Tensor, norm: Norm) -> Tensor:
        """x with what a sublayer made, y."""
        out: Tensor = x + self.dropout(y)
        return norm(out) if self.norm_order == "post" else out


class Stack(nn.Module):
    """The layers of an encoder or a decoder, one after the other."""

    def __init__(self, config: ModelConfig, name: str, n_layers: int, cross: bool) -> None:
        super().__init__()
        self.name = name
        self.layers = nn.ModuleList(
            Block(config, cross, layer in config.windowed_layers, config.turns(layer)) for layer in range(n_layers)
        )
        self.final_norm = norm(config) if config.final_norm else None
        self.relative_bias = None  # T5's: a number per bucket of distances and head, the same in all layers
        if config.positions == "relative":
            self.relative_bias = embedding_table(config.relative_buckets, config.n_heads)

    def forward(self, x: Float[Tensor, "b n d_model"], run: ForwardPass) -> Float[Tensor, "b n d_model"]:
        for index, layer in enumerate(self.layers):
            x = layer(x, run, f"{self.name}.{index}")
        x = x if self.final_norm is None else self.final_norm(x)
        return run.point(f"{self.name}.final", x)
