"""One layer of a stack, and the stack."""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor, nn

from vizformer.config import ModelConfig
from vizformer.model.attention import Attention
from vizformer.model.cache import Cache
from vizformer.model.edit import Edit
from vizformer.model.feedforward import FeedForward
from vizformer.model.masks import Mask
from vizformer.model.norm import norm
from vizformer.model.positions import Rotation
from vizformer.model.table import table
from vizformer.model.trace import Trace


class Block(nn.Module):
    """Self-attention, cross-attention where there is an encoder to look at, feed-forward; add & norm around each.

    post-norm: x <- norm(x + sublayer(x))   (Vaswani et al. 2017, 3.1)
    pre-norm:  x <- x + sublayer(norm(x))   (Radford et al. 2019; Xiong et al. 2020)
    parallel:  x <- x + attention(norm(x)) + feedforward(norm'(x))   (Wang & Komatsuzaki 2021, "GPT-J")
    """

    def __init__(self, config: ModelConfig, cross: bool) -> None:
        super().__init__()
        self.norm_order, self.residual = config.norm_order, config.residual
        self.self_attention, self.self_norm = Attention(config), norm(config)
        self.cross_attention = Attention(config) if cross else None
        self.cross_norm = norm(config) if cross else None
        self.feedforward, self.feedforward_norm = FeedForward(config), norm(config)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self,
        x: Float[Tensor, "b n d_model"],
        mask: Mask | None,
        memory: Float[Tensor, "b n_k d_model"] | None = None,
        memory_mask: Mask | None = None,
        *,
        name: str,
        rotation: Rotation | None = None,
        position_bias: Float[Tensor, "1 n_heads n n_all"] | None = None,
        trace: Trace | None = None,
        edit: Edit | None = None,
        cache: Cache | None = None,
    ) -> Float[Tensor, "b n d_model"]:
        """`name` is the layer's place in the model, e.g. "decoder.2"; the trace files its records under it."""

        def point(place: str, x: Tensor) -> Tensor:
            return stream_point(f"{name}.{place}", x, trace, edit)

        x = entering = point("pre", x)
        x = self._add_and_norm(
            x,
            self.self_norm,
            lambda y: self.self_attention(
                y, y, mask, site=f"{name}.self", rotation=rotation, position_bias=position_bias, trace=trace, edit=edit,
                cache=cache,
            ),
        )  # fmt: skip
        if (cross := self.cross_attention) is None or self.cross_norm is None:
            x = point("mid", x)
        else:
            if memory is None:
                raise ValueError(f"{name} has cross-attention: pass the encoder's output as memory")
            x = point("mid_self", x)
            site = f"{name}.cross"
            x = self._add_and_norm(
                x,
                self.cross_norm,
                lambda y: cross(y, memory, memory_mask, site=site, trace=trace, edit=edit, cache=cache),
            )
            x = point("mid_cross", x)
        if self.residual == "parallel":
            x = x + self.dropout(self.feedforward(self.feedforward_norm(entering)))
        else:
            x = self._add_and_norm(x, self.feedforward_norm, self.feedforward)
        return point("post", x)

    def _add_and_norm(self, x: Tensor, norm: nn.Module, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        if self.norm_order == "post":
            out: Tensor = norm(x + self.dropout(sublayer(x)))
        else:
            out = x + self.dropout(sublayer(norm(x)))
        return out


class Stack(nn.Module):
    """The layers of an encoder or a decoder, one after the other."""

    def __init__(self, config: ModelConfig, name: str, n_layers: int, cross: bool) -> None:
        super().__init__()
        self.name, self.windowed_layers = name, config.windowed_layers
        self.layers = nn.ModuleList(Block(config, cross) for _ in range(n_layers))
        self.final_norm = norm(config) if config.final_norm else None
        self.relative_bias = None  # T5's: a number per bucket of distances and head, the same in all layers
        if config.positions == "relative":
            self.relative_bias = table(config.relative_buckets, config.n_heads)

    def forward(
        self,
        x: Float[Tensor, "b n d_model"],
        mask: Mask | None,
        memory: Float[Tensor, "b n_k d_model"] | None = None,
        memory_mask: Mask | None = None,
        *,
        windowed: Mask | None = None,
        rotation: Rotation | None = None,
        position_bias: Float[Tensor, "1 n_heads n n_all"] | None = None,
        trace: Trace | None = None,
        edit: Edit | None = None,
        cache: Cache | None = None,
    ) -> Float[Tensor, "b n d_model"]:
        """`windowed` takes the place of `mask` in the layers that have a sliding window."""
        for index, layer in enumerate(self.layers):
            name = f"{self.name}.{index}"
            x = layer(
                x, windowed if index in self.windowed_layers else mask, memory, memory_mask, name=name,
                rotation=rotation, position_bias=position_bias, trace=trace, edit=edit, cache=cache,
            )  # fmt: skip
        if self.final_norm is not None:
            x = self.final_norm(x)
        return stream_point(f"{self.name}.final", x, trace, edit)


def stream_point(name: str, x: Tensor, trace: Trace | None, edit: Edit | None) -> Tensor:
    """A named point of the residual stream: where it can be edited, and is recorded."""
    if edit is not None:
        x = edit.apply(name, x)
    if trace is not None:
        trace.record_residual(name, x)
    return x
