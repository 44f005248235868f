"""A model whose residual connections are taken away: what the sums around the sublayers are good for, seen without them.

It is no option of `ModelConfig`: nobody publishes such models, and the steps and proofs of the pages are those of sums.

Source: Vaswani et al. 2017, section 3.1; He et al. 2016, "Deep Residual Learning for Image Recognition".
"""

from torch import Tensor, nn

from vizformer.model import Transformer
from vizformer.model.block import Block, Stack
from vizformer.model.norm import Around


class BlockWithoutSum(Block):
    """A layer whose rows are replaced by what a sublayer made of them.

    post-norm: x <- norm(sublayer(x))
    pre-norm:  x <- sublayer(norm(x))
    """

    def _add(self, x: Tensor, y: Tensor, around: Around) -> Tensor:
        out: Tensor = self.dropout(y)
        return out if around.after is None else around.after(out)


def take_sums_away(model: Transformer) -> Transformer:
    """The same model with the same weights, in place, and no residual connection in any layer."""
    for stack in (model.encoder, model.decoder):
        if not isinstance(stack, Stack):
            continue
        assert isinstance(stack.layers, nn.ModuleList)
        for index, block in enumerate(stack.layers):
            assert isinstance(block, Block)
            without = BlockWithoutSum(model.config, cross=block.cross_attention is not None, windowed=block.windowed)
            without.load_state_dict(block.state_dict(), assign=True)
            stack.layers[index] = without
    return model
