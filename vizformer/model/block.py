"""One layer of a stack, and the stack of all its layers."""

from jaxtyping import Float
from torch import Tensor, nn

from vizformer.config import ModelConfig
from vizformer.model.attention import Attention
from vizformer.model.embedding import embedding_table
from vizformer.model.feedforward import FeedForward
from vizformer.model.forward_pass import AttentionCall, ForwardPass
from vizformer.model.norms import Around, Norm, norm


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
        self.self_attention = Attention(config)
        normed = config.norm_order != "none"
        self.self_norm = norm(config) if normed else None
        self.cross_attention = Attention(config) if cross else None
        self.cross_norm = norm(config) if cross and normed else None
        self.feedforward = FeedForward(config)
        self.feedforward_norm = norm(config) if normed else None
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Float[Tensor, "b n d_model"], run: ForwardPass, name: str) -> Float[Tensor, "b n d_model"]:
        """`name` is the layer's place in the model, e.g. "decoder.2"; the trace files its records under it."""
        x = entering = run.point(f"{name}.pre", x)
        around = self.around("self")
        y = _through(around.before, x)
        y = self.self_attention(y, y, self._call(run, name))
        x = self._add(x, run.output(f"{name}.self", y), around)
        if self.cross_attention is None:
            x = run.point(f"{name}.mid", x)
        else:
            if run.memory is None:
                raise ValueError(f"{name} has cross-attention: pass the encoder's output as memory")
            x = run.point(f"{name}.mid_self", x)
            around = self.around("cross")
            y = self.cross_attention(_through(around.before, x), run.memory, run.cross_attention(name))
            x = self._add(x, run.output(f"{name}.cross", y), around)
            x = run.point(f"{name}.mid_cross", x)
        around = self.around("feedforward")
        y = self.feedforward(_through(around.before, x), run, name)
        x = self._add(x, run.output(f"{name}.feedforward", y), around)
        return run.point(f"{name}.post", run.layer(name, entering, x))

    def keys_and_values(
        self, x: Float[Tensor, "b n d_model"], run: ForwardPass, name: str
    ) -> tuple[Float[Tensor, "b n_kv_heads n_k d_head"], Float[Tensor, "b n_kv_heads n_k d_value"]]:
        """The self-attention's keys and values of x alone, for rows of which nothing else is needed; a cache keeps
        them.
        """
        return self.self_attention.keys_and_values(_through(self.around("self").before, x), self._call(run, name))

    def _call(self, run: ForwardPass, name: str) -> AttentionCall:
        return run.self_attention(name, windowed=self.windowed)

    def _add(self, x: Tensor, y: Tensor, around: Around) -> Tensor:
        """after(x + dropout(y)), or after(dropout(y)) without residual connections; y is the output of a sublayer."""
        return _through(around.after, around.onto(x, self.dropout(y)))

    def around(self, kind: str) -> Around:
        """The norms around the sublayer "self", "cross" or "feedforward"."""
        own = {"self": self.self_norm, "cross": self.cross_norm, "feedforward": self.feedforward_norm}[kind]
        adds = self.residual != "none"
        return Around(before=own, adds=adds) if self.norm_order == "pre" else Around(after=own, adds=adds)


def _through(norm: Norm | None, x: Tensor) -> Tensor:
    y: Tensor = x if norm is None else norm(x)
    return y


class Stack(nn.Module):
    """The layers of an encoder or a decoder, one after the other."""

    def __init__(self, config: ModelConfig, name: str, n_layers: int, cross: bool) -> None:
        super().__init__()
        self.name = name
        self.layers = nn.ModuleList(Block(config, cross, layer in config.windowed_layers) for layer in range(n_layers))
        self.final_norm = norm(config) if config.final_norm else None
        self.relative_bias = None  # T5's table: one number per bucket of distances and head, the same in all layers
        if config.has_relative_bias:
            self.relative_bias = embedding_table(config.relative_buckets, config.n_heads)

    def forward(
        self, x: Float[Tensor, "b n d_model"], run: ForwardPass, first: int = 0
    ) -> Float[Tensor, "b n d_model"]:
        """The output of the stack. `x` is the input of layer `first`; the layers before it are not run."""
        for index in range(first, len(self.layers)):
            x = self.layers[index](x, run, f"{self.name}.{index}")
        return run.point(f"{self.name}.final", self.end(x))

    def end(self, x: Float[Tensor, "*n d_model"]) -> Float[Tensor, "*n d_model"]:
        """The output of the stack from x, the output of its last layer: the final norm, if there is one."""
        return x if self.final_norm is None else self.final_norm(x)
