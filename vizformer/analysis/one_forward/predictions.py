"""What the model expects next."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from vizformer.analysis.heads.maps import head_maps
from vizformer.checkpoints import AnyCheckpoint
from vizformer.errors import TraceError
from vizformer.model.input_check import row_at
from vizformer.model.input_check import token_id as checked_id
from vizformer.model.trace import Trace
from vizformer.text import Token
from vizformer.text.pieces import LATIN, script

AT_ONCE = 32  # sequences in a batch of `guesses`

FEWEST = 4  # tokens: of less nothing is said

Sign = Literal["unknown", "pieces", "log_prob"]
SIGNS: tuple[Sign, ...] = ("unknown", "pieces", "log_prob")


@dataclass(frozen=True)
class Familiarity:
    """The measures of one text, see the module, and how many tokens it has."""

    unknown: float
    pieces: float
    log_prob: float
    tokens: int


@dataclass(frozen=True)
class Bounds:
    """Between what nearly all held-out texts in one script lie: `unknown` and `pieces` below, `log_prob` above.

    Attributes:
        typical: the median of `log_prob`.
        share: of the held-out texts that keep each of the bounds.
        sentences: short held-out texts on which the model is at its best, to be offered.
    """

    unknown: float
    pieces: float
    log_prob: float
    typical: float
    share: float
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class Guess:
    """How well a token is guessed where it is hidden: its probability, and how many tokens are more probable."""

    probability: float
    rank: int


@dataclass(frozen=True)
class Prediction:
    """A candidate for the next token and its probability."""

    token: Token
    probability: float


def next_tokens(checkpoint: AnyCheckpoint, trace: Trace, position: int, count: int = 10) -> tuple[Prediction, ...]:
    """The `count` most probable tokens after position `position` of the last stack, most probable first.

    p = softmax(logits[position])
    """
    n = trace.logits.shape[0]
    return most_probable(checkpoint, trace.logits[row_at(position, n)], count)


def most_probable(
    checkpoint: AnyCheckpoint, logits: Float[Tensor, " vocab_size"], count: int = 10
) -> tuple[Prediction, ...]:
    """The `count` tokens of the largest softmax(logits) that the model may write, most probable first."""
    probabilities = torch.softmax(logits.double(), dim=-1)  # [vocab_size]
    ids = writable(checkpoint, probabilities).topk(min(count, probabilities.numel())).indices
    tokens = checkpoint.tokenizer.tokens(ids.tolist())
    return tuple(Prediction(token, p) for token, p in zip(tokens, probabilities[ids].tolist(), strict=True))


def writable(checkpoint: AnyCheckpoint, values: Float[Tensor, "*n vocab_size"]) -> Float[Tensor, "*n vocab_size"]:
    """Logits or probabilities to choose by: -inf for what the model never writes (`ModelShape.never_written`)."""
    never = checkpoint.shape.never_written
    if never is None:  # (a copy of the logits of a long text and a large vocabulary would be hundreds of megabytes)
        return values
    return values.index_fill(-1, torch.tensor([never], device=values.device), -torch.inf)


def least_sure(checkpoint: AnyCheckpoint, trace: Trace, rows: Sequence[int]) -> int:
    """The row, of some rows of the last stack, whose best token is least probable: argmin_i max_t p[i, t]."""
    logits = writable(checkpoint, trace.logits[list(rows)].double())
    return rows[int(torch.softmax(logits, dim=-1).amax(-1).argmin())]


@dataclass(frozen=True)
class Choice:
    """The token that a row of a decoder predicts, and the token that follows it in the text.

    Attributes:
        next: the token that does follow in this text; after the last row, the model's own choice.
        own: the token that the model itself finds most probable there.
    """

    next: Token
    own: Token


def choices(checkpoint: AnyCheckpoint, trace: Trace) -> tuple[Choice, ...]:
    """The choice of every row i of the decoder: argmax_t logits[i, t], and the token i + 1 of the text.

    Empty where nothing is chosen: a model without a decoder, or a recorded one without logits.
    """
    tokens = trace.tokens.get("decoder", ())
    if not checkpoint.shape.decoder_heads or not tokens or trace.has_no_logits:
        return ()
    own = checkpoint.tokenizer.tokens(writable(checkpoint, trace.logits).argmax(-1).tolist())
    return tuple(Choice(tokens[i + 1] if i + 1 < len(tokens) else best, best) for i, best in enumerate(own))


# Hidden tokens: what an encoder-only model puts in their place, and how well each token can be guessed.
def hide(checkpoint: AnyCheckpoint, tokens: Sequence[Token], positions: Collection[int]) -> Trace:
    """A forward over the tokens with those at `positions` replaced by [MASK].

    Raises:
        TraceError: a model without [MASK], or a position outside the tokens.
    """
    mask_id = _mask_id(checkpoint)
    hidden = {row_at(position, len(tokens)) for position in positions}
    return checkpoint.trace(ids=[mask_id if i in hidden else token.id for i, token in enumerate(tokens)])


def guess(trace: Trace, position: int, token_id: int) -> Guess:
    """Probability and rank of `token_id` at `position`, from 0 (the most probable) on."""
    logits = trace.logits[row_at(position, len(trace.logits))]
    token_id = checked_id(token_id, len(logits))
    return Guess(float(torch.softmax(logits.double(), -1)[token_id]), int((logits > logits[token_id]).sum()))


def guesses(checkpoint: AnyCheckpoint, tokens: Sequence[Token]) -> Float[ndarray, " n"]:
    """The probability of each token where it alone is hidden; NaN for special tokens.

    The logarithms of these add up to the sentence's pseudo-log-likelihood.
    Source: Salazar et al. 2020, "Masked Language Model Scoring", equation 1.

    Raises:
        TraceError: a model without [MASK].
    """
    mask_id = _mask_id(checkpoint)
    found = np.full(len(tokens), np.nan)
    ordinary = [i for i, token in enumerate(tokens) if not token.special]
    if not checkpoint.is_own:
        for at in ordinary:
            found[at] = guess(hide(checkpoint, tokens, [at]), at, tokens[at].id).probability
        return found
    ids = checkpoint.tensor(tokens)[0]  # [n]
    segments = checkpoint.segments(tokens)
    with torch.inference_mode():
        for start in range(0, len(ordinary), AT_ONCE):
            chosen = torch.tensor(ordinary[start : start + AT_ONCE], device=ids.device)
            rows = torch.arange(len(chosen), device=ids.device)
            batch = ids.repeat(len(chosen), 1)  # [b, n]
            batch[rows, chosen] = mask_id
            # [b, n, d_model]
            x = checkpoint.model.encode(batch, segments=None if segments is None else segments.expand(len(chosen), -1))
            p = torch.softmax(checkpoint.model.logits(x[rows, chosen]).double(), dim=-1)  # [b, vocab_size]
            found[chosen.cpu().numpy()] = p[rows, ids[chosen]].cpu().numpy()
    return found


def mean_guess(guesses: Float[ndarray, " n"]) -> float | None:
    """The geometric mean of the probabilities that are not NaN: exp(mean(log p)); None where there is none.

    Below 10^-12 a probability counts as that: one single 0 would leave nothing of the others.
    """
    known = guesses[~np.isnan(guesses)]
    return float(np.exp(np.log(np.maximum(known, 1e-12)).mean())) if len(known) else None


def looks_at(trace: Trace, position: int, head: int | None = None) -> Float[ndarray, "n_layers n"]:
    """The weights with which a position of the encoder attends, layer by layer: of one head, or their mean (None)."""
    weights = head_maps(trace, "encoder").weights  # [n_layers, n_heads, n, n]
    weights = weights[:, :, row_at(position, weights.shape[2])]  # [n_layers, n_heads, n]
    return weights.mean(1) if head is None else weights[:, head]


def _mask_id(checkpoint: AnyCheckpoint) -> int:
    shape = checkpoint.shape
    if shape.mask_id is None or shape.architecture != "encoder-only":
        raise TraceError(
            "{name} has no [MASK] token: it was not trained to fill in hidden words.", name=checkpoint.name
        )
    return shape.mask_id


# Whether a model has learned texts like the one that it reads, from the forward that is there anyway.
#
#     unknown    share of the text's tokens that stand for what the vocabulary does not have
#     pieces     tokens per character that is no space: how finely the vocabulary has to cut
#     log_prob   mean of ln p(token), in nats: of a decoder's tokens after its first, each from those before it; of an
#                encoder's own tokens, each at its position
#
# Held against what held-out texts of the model have (`Bounds`), measured once (`recipes/familiar_texts.py`).
def familiarity(checkpoint: AnyCheckpoint, trace: Trace, text: str) -> Familiarity:
    """The measures of `text`, which is what the trace is of.

    A text without a character or a token has 0 of everything.
    """
    read = trace.tokens["encoder"] if "encoder" in trace.tokens else trace.tokens["decoder"]
    unknown = checkpoint.tokenizer_of("encoder" if "encoder" in trace.tokens else "decoder").unknown_id
    own = [one for one in read if not one.special or one.id == unknown]
    last = trace.tokens["decoder" if "decoder" in trace.tokens else "encoder"]
    rows = range(len(last) - 1) if "decoder" in trace.tokens else [i for i, one in enumerate(last) if not one.special]
    said = [last[row + 1 if "decoder" in trace.tokens else row].id for row in rows]
    characters = len(re.sub(r"\s", "", text))
    if not own or not said or not characters:
        return Familiarity(0.0, 0.0, 0.0, len(own))
    with torch.inference_mode():
        logits = trace.logits[list(rows)].float()
        chosen = logits.gather(1, torch.tensor(said, device=logits.device)[:, None])[:, 0] - logits.logsumexp(1)
    return Familiarity(
        sum(one.id == unknown for one in own) / len(own), len(own) / characters, float(chosen.mean()), len(own)
    )


def strange(found: Familiarity, bounds: Bounds, *, written: bool = True) -> Sign | None:
    """The measure by which a text differs from the held-out texts; None where it does not, or is too short to tell.

    Args:
        written: whether the model itself chose the tokens after the first, or reads them: else their log-probability says
            nothing of the text.
    """
    if found.tokens < FEWEST:
        return None
    outside = {
        "unknown": found.unknown > bounds.unknown,
        "pieces": found.pieces > bounds.pieces,
        "log_prob": written and found.log_prob < bounds.log_prob,
    }
    return next((sign for sign in SIGNS if outside[sign]), None)


def read_bounds(content: Mapping[str, Mapping[str, Any]]) -> dict[str, Bounds]:
    """The bounds of a model by script, from what the recipe has written."""
    return {name: Bounds(**{**one, "sentences": tuple(one["sentences"])}) for name, one in content.items()}


def bounds_for(text: str, known: Mapping[str, Bounds]) -> Bounds:
    """The bounds for the script of a text, or those for Latin letters where the model has none for that script."""
    return known.get(script(text)) or known[LATIN]


def nearest(text: str, sentences: Iterable[str]) -> str:
    """The sentence that shares most pairs of signs, and Han characters, with a text: 2 |A n B| / (|A| + |B|) (Dice 1945)."""
    wanted = _pairs(text)

    def alike(sentence: str) -> float:
        own = _pairs(sentence)
        return 2 * (wanted & own).total() / max(1, wanted.total() + own.total())

    return max(sentences, key=alike)


@lru_cache(maxsize=512)
def _pairs(text: str) -> Counter[str]:
    low = re.sub(r"\W+", " ", f" {text.lower()} ")
    return Counter(low[i : i + 2] for i in range(len(low) - 1)) + Counter(re.findall(r"[\u3400-\u9fff]", low))
