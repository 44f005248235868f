"""What a text asks of a model: sequences of token ids, and the tokens that their rows should say.

A decoder is asked for the next token; in windows, each of which begins with the marks that the tokenizer puts before a
text.  An encoder is asked for hidden tokens: in every window each token is hidden once, one in seven at a time.  An
encoder-decoder is asked for a given target, pair by pair.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from vizformer.checkpoints.own.checkpoint import Checkpoint, readable
from vizformer.errors import TraceError
from vizformer.model import Transformer
from vizformer.text import Token

LEAST_TOKENS = 200  # that a model has to say, so that chance does not decide
MOST_TOKENS = 2_048  # what follows in a longer text is not read
MOST_WORK = 2e10  # multiplications for a combination, about: of a larger model fewer tokens are read
WINDOW = 128  # tokens that are read at once: more than many small models were trained on would say little
TIMES = 7  # passes over a window of an encoder: each hides 15 %, as BERT was trained (Devlin et al. 2018, 3.1)
AT_ONCE = 16  # sequences
ROWS = 64  # of logits at a time: a row of a large vocabulary takes a megabyte


@dataclass(frozen=True)
class Asked:
    """One sequence that a model reads."""

    source: Sequence[int]  # the ids that the encoder of an encoder-decoder reads; empty for the others
    read: Sequence[int]  # the ids of the stack that predicts
    rows: Sequence[int]  # those of the logits that are asked
    right: Sequence[int]  # the ids that they should say, one a row


def asked(checkpoint: Checkpoint, text: str, mask_id: int | None, *, whole: bool = False) -> list[Asked]:
    """What `text` asks of this model.

    Args:
        mask_id: the token id that hides another one, where the model's files do not say it.
        whole: the text in one piece, as its author may have read it.

    Raises:
        TraceError: a text that is too short or too long, pairs where there should be none, or none where there should;
            an encoder of which nobody knows how tokens are hidden.
        TokenizerError: what is no token id.
    """
    config = checkpoint.model.config
    if config.architecture == "encoder-decoder":
        sequences = _pairs(checkpoint, readable(text))
    else:
        tokens = checkpoint.tokenizer_of("encoder").encode(readable(text))
        size = config.max_positions if whole else min(config.max_positions, WINDOW)
        if whole and len(tokens) > size:
            raise TraceError(
                "The author's number is that of a text which the model reads in one piece: of {n:,} tokens; this one "
                "has {found:,}.",
                n=size,
                found=len(tokens),
            )
        hides = config.mask_id if mask_id is None else mask_id
        if config.architecture == "decoder-only":
            sequences = _next_tokens(tokens, size)
        elif whole:
            ids = [token.id for token in tokens]
            sequences = iter([Asked((), ids, range(len(ids)), ids)])
        elif hides is None:
            raise TraceError(
                "An encoder predicts what stands in the place of hidden tokens, and nothing says which token id "
                "hides one ([MASK]): give it. If the model predicts the next token, answer first that a position "
                "sees only those "
                "before it."
            )
        elif not 0 <= hides < config.vocab_size:
            raise TraceError("There is no token {id}: choose 0 to {last}.", id=hides, last=config.vocab_size - 1)
        else:
            sequences = _hidden(tokens, size, hides)
    return list(sequences) if whole else _enough(sequences, sum(p.numel() for p in checkpoint.model.parameters()))


def _enough(sequences: Iterator[Asked], n_parameters: int) -> list[Asked]:
    most = max(LEAST_TOKENS, min(MOST_TOKENS, int(MOST_WORK / max(1, n_parameters))))
    found: list[Asked] = []
    n = 0
    for sequence in sequences:
        if n < most:
            found.append(sequence)
            n += len(sequence.rows)
    if n < LEAST_TOKENS:
        raise TraceError(
            "This text has {n} tokens for the model to predict; at least {least} are needed, or chance decides. Take a "
            "longer one, of the kind that the model was trained on.",
            n=n,
            least=LEAST_TOKENS,
        )
    return found


def _cut(tokens: Sequence[Token], size: int) -> Iterator[tuple[list[int], list[int], list[int]]]:
    """Marks before the text, the ids of a window, marks after it."""
    ordinary = [i for i, token in enumerate(tokens) if not token.special]
    first, end = (ordinary[0], ordinary[-1] + 1) if ordinary else (len(tokens), len(tokens))
    ids = [token.id for token in tokens]
    step = max(1, size - first - (len(ids) - end))
    for start in range(first, end, step):
        yield ids[:first], ids[start : min(start + step, end)], ids[end:]


def _next_tokens(tokens: Sequence[Token], size: int) -> Iterator[Asked]:
    for before, window, __ in _cut(tokens, size):
        read = [*before, *window]
        rows = range(max(0, len(before) - 1), len(read) - 1)
        if rows:
            yield Asked((), read, rows, [read[row + 1] for row in rows])


def _hidden(tokens: Sequence[Token], size: int, mask_id: int) -> Iterator[Asked]:
    dice = np.random.default_rng(0)
    for before, window, after in _cut(tokens, size):
        order = len(before) + dice.permutation(len(window))
        whole = [*before, *window, *after]
        for time in range(TIMES):
            rows = sorted(order[time::TIMES].tolist())
            if rows:
                read = [mask_id if row in rows else id for row, id in enumerate(whole)]
                yield Asked((), read, rows, [whole[row] for row in rows])


def _pairs(checkpoint: Checkpoint, text: str) -> Iterator[Asked]:
    end = checkpoint.model.config.eos_id
    for number, line in enumerate(text.splitlines(), 1):
        source, target, *__ = (*line.split("\t", 2), "")
        if not line.strip():
            continue
        if not source.strip() or not target.strip():
            raise TraceError(
                "An encoder-decoder predicts a given target of a text: write a pair in each line, text, tab, "
                "target. Line {number} is not a pair.",
                number=number,
            )
        read = [token.id for token in checkpoint.encode_target(target)]
        right = read[1:] if end is None else [*read[1:], end]
        if right:
            yield Asked([token.id for token in checkpoint.encode(source)], read, range(len(right)), right)


@torch.inference_mode()
def losses(model: Transformer, sequences: Sequence[Asked]) -> Float[ndarray, " tokens"]:
    """-log P of each token that should be said, in nats; what is equally long is read together, in order."""
    found = [torch.empty(0, dtype=torch.float64)]
    for __, group in groupby(sequences, lambda one: (len(one.source), len(one.read))):
        alike = list(group)
        for together in (alike[start : start + AT_ONCE] for start in range(0, len(alike), AT_ONCE)):
            for one, stream in zip(together, _streams(model, together), strict=True):
                x, right = stream[list(one.rows)], torch.tensor(one.right, device=stream.device)
                for start in range(0, len(right), ROWS):
                    logits = model.logits(x[start : start + ROWS]).float()
                    found.append(F.cross_entropy(logits, right[start : start + ROWS], reduction="none").double().cpu())
    values: ndarray = torch.cat(found).numpy()
    # What overflows is as wrong as can be.
    bounded: ndarray = np.nan_to_num(values, nan=1e4, posinf=1e4).clip(max=1e4)
    return bounded


@torch.inference_mode()
def last_logits(model: Transformer, one: Asked, count: int) -> Float[ndarray, " count"]:
    """The first logits of the last token that is read."""
    found: ndarray = model.logits(_streams(model, [one])[0, -1:])[0, :count].double().cpu().numpy()
    return found


def _streams(model: Transformer, together: Sequence[Asked]) -> Float[Tensor, "b n d_model"]:
    """The last residual stream of sequences of one length."""
    device = model.embedding.weight.device
    ids = torch.tensor([list(one.read) for one in together], device=device)
    if together[0].source:
        return model.decode(ids, model.encode(torch.tensor([list(one.source) for one in together], device=device)))
    return model.encode(ids) if model.decoder is None else model.decode(ids)


def by_counting(sequences: Sequence[Asked], vocab_size: int) -> Float[ndarray, " tokens"]:
    """-log P of the same tokens for who counts what has come so far, or, if that is less, takes all for as likely; in nats.

        P(t) = (n_t + D / V) / (n + D): n_t of the n tokens so far are t, and there are D different ones

    Source: Witten and Bell 1991, "The Zero-Frequency Problem" (method C).
    """
    counts: Counter[int] = Counter()
    found = []
    for n, right in enumerate(id for one in sequences for id in one.right):
        different = max(1, len(counts))
        found.append(-np.log((counts.get(right, 0) + different / vocab_size) / (n + different)))
        counts[right] += 1
    guessed = np.full(len(found), np.log(vocab_size))
    counted = np.array(found)
    return counted if counted.mean() < guessed.mean() else guessed
