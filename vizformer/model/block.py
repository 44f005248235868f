"""One layer of a stack, and the stack of all its layers."""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor, nn

from vizformer.config import ModelConfig
from vizformer.model.attention import Attention
from vizformer.model.feedforward import FeedForward
from vizformer.model.forward_pass import ForwardPass
from vizformer.model.norms import Around, norm


class Block(nn.Module):
    """Self-attention, cross-attention if there is an encoder, feed-forward; add & norm around each.

    post-norm: x <- norm(x + sublayer(x))   (Vaswani et al. 2017, 3.1)
    pre-norm:  x <- x + sublayer(norm(x))   (Radford et al. 2019; Xiong et al. 2020)

    Models may have neither norms nor, around the sublayers, the x that these are added to.
    """

    def __init__(self, config: ModelConfig, cross: bool, windowed: bool = False) -> None:
        super().__init__()
        self.norm_order, self.residual = config.norm_order, config.residual
        self.windowed = windowed
        normed = config.norm_order != "none"
        self.self_attention = Attention(config)
        self.self_norm = norm(config) if normed else None
        self.cross_attention = Attention(config, cross=True) if cross else None
        self.cross_norm = norm(config) if cross and normed else None
        self.feedforward = FeedForward(config)
        self.feedforward_norm = norm(config) if normed else None
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Float[Tensor, "b n d_model"], run: ForwardPass, name: str) -> Float[Tensor, "b n d_model"]:
        """`name` is the layer's place in the model, e.g. "decoder.2"; the trace files its records under it."""
        entering = x = run.point(f"{name}.pre", x)  # [b, n, d_model], as every x and y here
        mask, cross, memory = run.windowed if self.windowed else run.mask, self.cross_attention, run.memory
        x = self.add("self", x, lambda y: self.self_attention(y, y, mask, run, f"{name}.self"), run, name)
        if cross is not None:
            if memory is None:
                raise ValueError(f"{name} has cross-attention: pass the encoder's output as memory")
            x = run.point(f"{name}.mid_self", x)
            x = self.add("cross", x, lambda y: cross(y, memory, run.memory_mask, run, f"{name}.cross"), run, name)
        x = run.point(f"{name}.mid" if cross is None else f"{name}.mid_cross", x)
        x = self.add("feedforward", x, lambda y: self.feedforward(y, run, name), run, name)
        return run.point(f"{name}.post", run.layer(name, entering, x))

    def add(
        self,
        kind: str,
        x: Float[Tensor, "b n d_model"],
        sublayer: Callable[[Tensor], Tensor],
        run: ForwardPass,
        name: str,
    ) -> Float[Tensor, "b n d_model"]:
        """after(x + dropout(sublayer(before(x)))): a sublayer with the norms around it, and what it adds to x."""
        around = self.around(kind)
        y = run.output(f"{name}.{kind}", sublayer(around.enter(x)))  # [b, n, d_model]
        return around.leave(x, self.dropout(y))  # [b, n, d_model]

    def around(self, kind: str) -> Around:
        """The norms around the sublayer "self", "cross" or "feedforward"."""
        own = {"self": self.self_norm, "cross": self.cross_norm, "feedforward": self.feedforward_norm}[kind]
        adds = self.residual != "none"
        return Around(before=own, adds=adds) if self.norm_order == "pre" else Around(after=own, adds=adds)


class Stack(nn.Module):
    """The layers of an encoder or a decoder, one after the other."""

    def __init__(self, config: ModelConfig, name: str, n_layers: int, cross: bool) -> None:
        super().__init__()
        self.name = name
        self.layers = nn.ModuleList(Block(config, cross, layer in config.windowed_layers) for layer in range(n_layers))
        self.final_norm = norm(config) if config.final_norm else None
        self.relative_bias = None  # T5's table: one number per bucket of distances and head, the same in all layers
        if config.has_relative_bias:
            self.relative_bias = nn.Embedding(config.relative_buckets, config.n_heads)

    def forward(
        self, x: Float[Tensor, "b n d_model"], run: ForwardPass, first: int = 0
    ) -> Float[Tensor, "b n d_model"]:
        """The output of the stack. `x` is the input of layer `first`; the layers before it are not run."""
        for index in range(first, len(self.layers)):
            x = self.layers[index](x, run, f"{self.name}.{index}")  # [b, n, d_model]
        return run.point(f"{self.name}.final", self.end(x))

    def end(self, x: Float[Tensor, "*n d_model"]) -> Float[Tensor, "*n d_model"]:
        """The output of the stack from x, the output of its last layer: the final norm, if there is one."""
        return x if self.final_norm is None else self.final_norm(x)
