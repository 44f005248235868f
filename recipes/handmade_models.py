"""Models whose weights are set by hand, not trained: it is known which head does what, and why.

What finds heads in other models is held against them; a learner sees here why each weight is what it is.  All are
decoders of attention alone (their feed-forward layers are 0), with learned positions whose table is the identity: every
position and every token has numbers of the residual stream of its own.  Beside the heads that work stand heads of random
weights, which read and write all of the stream and mean nothing.

    python -m recipes.handmade_models FOLDER      # writes `induction-by-hand`
"""

import math
from typing import Literal, NamedTuple

import torch
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as Backend
from torch import Tensor, nn

from recipes.arguments import paths
from vizformer.checkpoints import Checkpoint, save
from vizformer.config import ModelConfig
from vizformer.model import Transformer
from vizformer.model.attention import Attention
from vizformer.model.block import Block
from vizformer.text import Tokenizer

START, UNKNOWN, ARROW = "<s>", "<unk>", ">"
LETTERS, DIGITS = "abcdefghijklmnopqrstuvwxyz", "0123456789"
LENGTH = 8  # letters of a question of copy, reverse and count
COUNTED = "a"
SHARP = 32.0
"""The score of the key that a head looks for; all others have 0: exp(-32) is 1e-14."""
LOUD = 16.0  # by how much the token that is said leads among the logits
NOISE = 0.27  # of W_Q, W_K and W_V of a random head: its scores then have a deviation near 1
QUIET = 0.015  # of its W_O: a third of what a head that works writes
EPS = 1e-5

PREVIOUS_TOKEN, INDUCTION = (0, 1), (1, 2)
"""Layer and head of the two that work in `induction_by_hand`."""
WORKING = (0, 1)
"""Layer and head of the one that works in `task_by_hand`."""


class _Stream(NamedTuple):
    """Which numbers of the residual stream mean what: a number for every position, or for every token."""

    position: slice
    token: slice
    before: slice
    said: slice
    width: int

    @classmethod
    def of(cls, positions: int, tokens: int, spare: int) -> "_Stream":
        begin = [positions + count * tokens for count in range(4)]
        return cls(
            slice(0, begin[0]),
            slice(begin[0], begin[1]),
            slice(begin[1], begin[2]),
            slice(begin[2], begin[3]),
            begin[3] + spare,
        )


def induction_by_hand(seed: int = 0) -> Checkpoint:
    """Two layers of four heads that say what followed the last time: exact on text that repeats itself.

    Layer 0, head 1, the previous-token head: position i asks for key i - 1, so that W_Q is SHARP times the identity on
    positions and W_K moves every position on by one; W_V reads the token, W_O writes it where it says "before me stood".
    Layer 1, head 2, the induction head: the query is the token, the key is what stood before, so that it finds the place
    after an earlier occurrence; W_V reads the token there, W_O writes it where the logits are read.  The start mark is
    half as good a key for every letter: where a letter is new the head rests on it, and says nothing.  Heads 0, 2, 3 of
    layer 0 and 0, 1, 3 of layer 1 are random.

    RMSNorm is the identity here, but for what the random heads write: every row has the same length, by which its weight
    is multiplied.

    Source: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits"; Olsson et al. 2022, "In-context
    Learning and Induction Heads".
    """
    tokenizer = _tokenizer(LETTERS)
    n, stream = tokenizer.vocab_size, _Stream.of(48, tokenizer.vocab_size, 12)
    model = _model(stream, n, n_layers=2, positions=48, seed=seed)
    (first, second), ones = _attention(model), torch.eye(n)
    start, letters = _id(tokenizer, START), torch.eye(n)
    letters[start] = 0  # nothing is said for the start mark

    head = PREVIOUS_TOKEN[1]
    _write(first, head, "W_Q", stream.position, SHARP * torch.eye(48))
    _write(
        first, head, "W_K", stream.position, torch.eye(48).roll(1, dims=1).triu()
    )  # the last one has nobody after it
    _write(first, head, "W_V", stream.token, ones)
    _write(first, head, "W_O", stream.before, ones)

    head = INDUCTION[1]
    _write(second, head, "W_Q", stream.token, SHARP * ones)
    _write(second, head, "W_K", stream.before, letters)
    rest = torch.zeros(n, n)
    rest[start] = 0.5
    _write(second, head, "W_K", stream.token, rest)
    _write(second, head, "W_V", stream.token, letters)
    _write(second, head, "W_O", stream.said, ones)
    _unembedding(model)[:, stream.said] = LOUD * ones
    return _made("induction-by-hand", model, tokenizer)


def task_by_hand(task: Literal["copy", "reverse", "count"], seed: int = 0) -> Checkpoint:
    """One layer of four heads, of which head 1 solves a task on LENGTH letters: "abcdefgh>" and then the answer.

    copy, reverse: the token that says answer letter t stands at position LENGTH + 1 + t; W_Q sends it to the position
    1 + t, or LENGTH - t.
    count: the arrow looks at all letters alike, W_V is 1 for the letter COUNTED and 0 for others, so that the head
    writes c / LENGTH for a count c; the logit of digit k is 2 k c - k^2, which is largest at k = c.
    """
    symbols = LETTERS + ARROW + (DIGITS if task == "count" else "")
    tokenizer, positions = _tokenizer(symbols), 2 * LENGTH + 2
    n, stream = tokenizer.vocab_size, _Stream.of(positions, tokenizer.vocab_size, 12)
    model = _model(stream, n, n_layers=1, positions=positions, seed=seed, logit_bias=task == "count")
    (attention,), head, ones = _attention(model), WORKING[1], torch.eye(n)
    if task == "count":
        asks, is_letter = torch.zeros(n, 1), torch.zeros(positions, 1)
        asks[_id(tokenizer, ARROW)], is_letter[1 : LENGTH + 1] = SHARP, 1
        _write(attention, head, "W_Q", stream.token, asks)
        _write(attention, head, "W_K", stream.position, is_letter)
        counted = torch.zeros(n, 1)
        counted[_id(tokenizer, COUNTED)] = 1
        _write(attention, head, "W_V", stream.token, counted)
        _write(attention, head, "W_O", slice(stream.said.start, stream.said.start + 1), torch.ones(1, 1))
        assert model.logit_bias is not None
        model.logit_bias.fill_(-1000.0)  # of what is no digit
        for k in range(LENGTH + 1):
            _unembedding(model)[_id(tokenizer, str(k)), stream.said.start] = 2 * k * LENGTH
            model.logit_bias[_id(tokenizer, str(k))] = -float(k * k)
    else:
        sent = torch.zeros(positions, positions)
        for t in range(LENGTH):
            sent[LENGTH + 1 + t, 1 + t if task == "copy" else LENGTH - t] = SHARP
        _write(attention, head, "W_Q", stream.position, sent)
        _write(attention, head, "W_K", stream.position, torch.eye(positions))
        _write(attention, head, "W_V", stream.token, ones)
        _write(attention, head, "W_O", stream.said, ones)
        _unembedding(model)[:, stream.said] = LOUD * ones
    return _made(f"{task}-by-hand", model, tokenizer)


def _tokenizer(symbols: str) -> Tokenizer:
    """A token for every symbol, after a start mark; spaces and capitals do not count."""
    vocabulary = {piece: id for id, piece in enumerate((START, UNKNOWN, *symbols))}
    backend = Backend(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    backend.add_special_tokens([AddedToken(piece, special=True, normalized=False) for piece in (START, UNKNOWN)])
    backend.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Split(Regex("."), "isolated")]
    )
    backend.post_processor = processors.TemplateProcessing(single=f"{START} $A", special_tokens=[(START, 0)])
    backend.decoder = decoders.Fuse()
    return Tokenizer(backend)


def _model(
    stream: _Stream, vocab_size: int, *, n_layers: int, positions: int, seed: int, logit_bias: bool = False
) -> Transformer:
    """All heads random, everything else 0, the tables and the norms as `induction_by_hand` says."""
    config = ModelConfig(
        vocab_size=vocab_size,
        d_model=stream.width,
        n_heads=4,
        head_dim=max(positions, vocab_size),
        d_ff=1,
        n_decoder_layers=n_layers,
        max_positions=positions,
        positions="learned",
        attention_scale=1.0,
        norm_order="pre",
        norm="rms_norm",
        norm_eps=EPS,
        bias=False,
        tied_unembedding=False,
        logit_bias=logit_bias,
        dropout=0.0,
        bos_id=0,
    )
    model, generator = Transformer(config).requires_grad_(False), torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.zero_()
    model.embedding.weight[:, stream.token] = torch.eye(vocab_size)
    assert model.position_embedding is not None
    model.position_embedding.weight[:, stream.position] = torch.eye(positions)
    for attention in _attention(model):
        for name, size in (("W_Q", NOISE), ("W_K", NOISE), ("W_V", NOISE), ("W_O", QUIET)):
            weight = getattr(attention, name).weight
            weight.copy_(torch.randn(weight.shape, generator=generator) * size)
    for layer, block in enumerate(_blocks(model)):
        # 1 for the token, 1 for its position, and 1 for what each layer's head has written
        assert block.self_norm is not None
        assert block.feedforward_norm is not None
        block.self_norm.weight.fill_(math.sqrt((2 + layer) / stream.width + EPS))
        block.feedforward_norm.weight.fill_(1.0)
    working = (WORKING,) if n_layers == 1 else (PREVIOUS_TOKEN, INDUCTION)
    for layer, head in working:  # these are to be written
        for name in ("W_Q", "W_K", "W_V", "W_O"):
            _of_head(_attention(model)[layer], head, name).zero_()
    return model


def _blocks(model: Transformer) -> list[Block]:
    assert model.decoder is not None
    return [layer for layer in model.decoder.layers if isinstance(layer, Block)]


def _attention(model: Transformer) -> list[Attention]:
    return [block.self_attention for block in _blocks(model)]


def _of_head(attention: Attention, head: int, name: str) -> Tensor:
    """A head's own part of a matrix, [d_model, d_head] of W_Q, W_K and W_V, [d_head, d_model] of W_O: a view."""
    linear: nn.Linear = getattr(attention, name)
    own = slice(head * attention.d_head, (head + 1) * attention.d_head)
    return linear.weight[:, own].T if name == "W_O" else linear.weight[own].T


def _write(attention: Attention, head: int, name: str, part: slice, block: Tensor) -> None:
    """Sets what a head reads from a part of the stream (W_O: writes into it), [size of the part, up to d_head]."""
    matrix = _of_head(attention, head, name)
    if name == "W_O":
        matrix[: block.shape[0], part] = block
    else:
        matrix[part, : block.shape[1]] = block


def _unembedding(model: Transformer) -> Tensor:
    assert model.unembedding is not None
    return model.unembedding.weight


def _id(tokenizer: Tokenizer, piece: str) -> int:
    found = tokenizer.id_of(piece)
    assert found is not None
    return found


def _made(name: str, model: Transformer, tokenizer: Tokenizer) -> Checkpoint:
    """With numbers that float16 holds: what is saved is what was built."""
    for parameter in model.parameters():
        parameter.copy_(parameter.half())
    return Checkpoint(name, model, tokenizer)


if __name__ == "__main__":
    save(induction_by_hand(), paths(1, __doc__)[0])
