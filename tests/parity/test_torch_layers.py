"""Our blocks against torch.nn's own, weights copied, every parameter randomised first."""

from functools import partial
from itertools import product

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests import tiny
from vizformer.config import ModelConfig
from vizformer.model import Trace, Transformer
from vizformer.model.attention import Attention
from vizformer.model.block import Block
from vizformer.model.forward_pass import ForwardPass
from vizformer.model.masks import causal_mask, combine, padding_mask

pytestmark = pytest.mark.quick
ACTIVATIONS = {"relu": "relu", "gelu_tanh": partial(F.gelu, approximate="tanh")}
VARIANTS = [
    dict(norm_order=order, activation=activation, bias=bias)
    for order, activation, bias in product(("post", "pre"), ACTIVATIONS, (True, False))
]
variants = pytest.mark.parametrize("options", VARIANTS, ids=lambda o: "-".join(map(str, o.values())))
EPS = 1e-3  # far from torch's default: a norm that ignores it is caught


def copy_attention(ours: Attention, theirs: nn.MultiheadAttention) -> None:
    parts = (ours.W_Q, ours.W_K, ours.W_V)
    theirs.in_proj_weight.data = torch.cat([part.weight for part in parts]).detach()
    theirs.out_proj.weight.data = ours.W_O.weight.detach().clone()
    if ours.W_O.bias is not None:
        theirs.in_proj_bias.data = torch.cat([part.bias for part in parts]).detach()
        theirs.out_proj.bias.data = ours.W_O.bias.detach().clone()


def copied_norm(ours: nn.LayerNorm) -> nn.LayerNorm:
    """torch's layers drop the norms' biases with bias=False; ours keep them, as all published models do."""
    theirs = nn.LayerNorm(ours.weight.shape[0], eps=EPS)
    theirs.load_state_dict(ours.state_dict())
    return theirs


def copy_layer(ours: Block, theirs: nn.TransformerEncoderLayer | nn.TransformerDecoderLayer) -> None:
    copy_attention(ours.self_attention, theirs.self_attn)
    theirs.linear1.load_state_dict(ours.feedforward.W_in.state_dict())
    theirs.linear2.load_state_dict(ours.feedforward.W_out.state_dict())
    norms = [ours.self_norm, ours.feedforward_norm]
    if ours.cross_attention is not None and ours.cross_norm is not None:
        copy_attention(ours.cross_attention, theirs.multihead_attn)
        norms.insert(1, ours.cross_norm)
    for number, norm in enumerate(norms, start=1):
        setattr(theirs, f"norm{number}", copied_norm(norm))


def torch_options(config: ModelConfig) -> dict[str, object]:
    return dict(
        d_model=config.d_model,
        nhead=config.n_heads,
        dim_feedforward=config.d_ff,
        dropout=0.0,
        batch_first=True,
        activation=ACTIVATIONS[config.activation],
        norm_first=config.norm_order == "pre",
        bias=config.bias,
        layer_norm_eps=EPS,
    )


def rows(b: int, n: int, seed: int) -> Tensor:
    return torch.randn(b, n, 16, generator=torch.Generator().manual_seed(seed))


@variants
def test_encoder_layer(options: dict[str, object]) -> None:
    config = tiny.config("encoder-only", norm_eps=EPS, **options)
    ours = tiny.randomise(Block(config, cross=False)).eval()
    theirs = nn.TransformerEncoderLayer(**torch_options(config))
    copy_layer(ours, theirs)
    x, padding = rows(3, 7, seed=1), tiny.right_padded([7, 4, 1])
    found = ours(x, ForwardPass(padding_mask(padding)), "encoder.0")
    tiny.assert_close(found[~padding], theirs.train()(x, src_key_padding_mask=padding)[~padding])
    with torch.no_grad():  # torch's other way through the layer: it zeroes padded rows
        tiny.assert_close(found[~padding], theirs.eval()(x, src_key_padding_mask=padding)[~padding])
    tiny.assert_close(ours(x, ForwardPass(), "encoder.0"), theirs.train()(x))


@variants
def test_decoder_layer(options: dict[str, object]) -> None:
    config = tiny.config("encoder-decoder", norm_eps=EPS, **options)
    ours = tiny.randomise(Block(config, cross=True)).eval()
    theirs = nn.TransformerDecoderLayer(**torch_options(config))
    copy_layer(ours, theirs)
    x, memory = rows(3, 6, seed=2), rows(3, 6, seed=3)  # as many keys as queries: nothing may mix them up
    padding, memory_padding = tiny.right_padded([6, 3, 1]), tiny.right_padded([2, 6, 5])
    mask = combine([padding_mask(padding), causal_mask(6)])
    found = ours(x, ForwardPass(mask, memory=memory, memory_mask=padding_mask(memory_padding)), "decoder.0")
    expected = theirs(
        x,
        memory,
        tgt_mask=torch.ones(6, 6, dtype=torch.bool).triu(1),
        tgt_key_padding_mask=padding,
        memory_key_padding_mask=memory_padding,
    )
    tiny.assert_close(found[~padding], expected[~padding])


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@variants
def test_whole_transformer(options: dict[str, object]) -> None:
    """`encode` and `decode` from the embeddings on; nn.Transformer always has final norms."""
    ours = tiny.model("encoder-decoder", final_norm=True, scaled_embedding=True, norm_eps=EPS, **options)
    theirs = whole_torch(ours)
    source, target = tiny.ids(9).expand(3, 9), tiny.ids(7, seed=1).expand(3, 7)
    padding, target_padding = tiny.right_padded([9, 5, 2]), tiny.right_padded([3, 7, 5])
    memory = ours.encode(source, padding=padding)
    found = ours.decode(target, memory, memory_padding=padding, padding=target_padding)
    expected = theirs(
        ours.embed(source),
        ours.embed(target),
        tgt_mask=torch.ones(7, 7, dtype=torch.bool).triu(1),
        src_key_padding_mask=padding,
        tgt_key_padding_mask=target_padding,
        memory_key_padding_mask=padding,
    )
    tiny.assert_close(found[~target_padding], expected[~target_padding])
    logits = ours(source, target, padding=padding, target_padding=target_padding)
    tiny.assert_close(logits[~target_padding], (expected @ ours.embedding.weight.T)[~target_padding])


def whole_torch(ours: Transformer) -> nn.Transformer:
    config = ours.config
    theirs = nn.Transformer(
        num_encoder_layers=config.n_encoder_layers, num_decoder_layers=config.n_decoder_layers, **torch_options(config)
    )
    for own, other in ((ours.encoder, theirs.encoder), (ours.decoder, theirs.decoder)):
        for our_layer, their_layer in zip(own.layers, other.layers, strict=True):
            copy_layer(our_layer, their_layer)
        other.norm = copied_norm(own.final_norm)
    return theirs.train()


@pytest.mark.parametrize("bias", [True, False])
def test_attention_maps(bias: bool) -> None:
    """Every head's pattern, which the fused kernel never forms, against the weights that torch's attention returns."""
    config = tiny.config(bias=bias)
    ours = tiny.randomise(Attention(config)).eval()
    theirs = nn.MultiheadAttention(config.d_model, config.n_heads, bias=bias, batch_first=True)
    copy_attention(ours, theirs)
    x, memory, padding = rows(1, 5, seed=4), rows(1, 8, seed=5), tiny.right_padded([6], 8)
    cases = [
        (x, causal_mask(5), dict(attn_mask=torch.ones(5, 5, dtype=torch.bool).triu(1))),
        (memory, padding_mask(padding), dict(key_padding_mask=padding)),
    ]
    for source, mask, arguments in cases:
        trace = Trace()
        found = ours(x, source, mask, ForwardPass(trace=trace), "decoder.0.self")
        expected, maps = theirs(x, source, source, need_weights=True, average_attn_weights=False, **arguments)
        tiny.assert_close(found, expected)
        record = trace["decoder.0.self"]
        for head in range(config.n_heads):
            tiny.assert_close(record.pattern(head), maps[0, head])
