"""Whether a model has learned texts like the one that it reads, from the forward that is there anyway.

    unknown    share of the text's tokens that stand for what the vocabulary does not have
    pieces     tokens per character that is no space: how finely the vocabulary has to cut
    log_prob   mean of ln p(token), in nats: of a decoder's tokens after its first, each from those before it; of an
               encoder's own tokens, each at its position

Held against what held-out texts of the model have (`Bounds`), measured once (`recipes/familiar_texts.py`).
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import torch

from vizformer.checkpoints import AnyCheckpoint
from vizformer.model.trace import Trace
from vizformer.text.scripts import LATIN, script

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
