"""BLEU of one text against one reference, count by count, as Papineni et al. 2002 define it and sacreBLEU counts words.

    p_n = sum of min(count in the text, count in the reference) / number of n-grams in the text
    BP = 1 if c > r else exp(1 - r / c)        (c, r: words in the text and in the reference)
    BLEU = BP * (p_1 p_2 p_3 p_4)^(1/4)

Nothing is smoothed: without a common run of four words, BLEU is 0.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

LONGEST = 4  # words in a run
# Words are what stands between these: mteval-v13a's punctuation, and single Chinese characters.
_APART = re.compile(
    r"[!-&(-+/:-@\[-`{-~]|(?<![0-9])[.,]|[.,](?![0-9])|(?<=[0-9])-"
    r"|[\u2e80-\u303f\u3100-\u4db5\u4e00-\u9fbb\uf900-\ufad9\uff00-\uffef]"
)


@dataclass(frozen=True)
class Runs:
    """The runs of n words (n-grams) of a text, each with how often it stands there and in the reference."""

    in_text: Counter[tuple[str, ...]]
    in_reference: Counter[tuple[str, ...]]

    @property
    def counted(self) -> int:
        """The clipped count: n-grams of the text, each counted at most as often as it occurs in the reference."""
        return (self.in_text & self.in_reference).total()

    @property
    def precision(self) -> float:
        """p_n: their share; 0 for a text of fewer than n words."""
        return self.counted / max(self.in_text.total(), 1)


@dataclass(frozen=True)
class Bleu:
    """A text against a reference: the runs of 1 to 4 words, and how many words both have."""

    runs: tuple[Runs, ...]
    words: int
    reference_words: int

    @property
    def brevity_penalty(self) -> float:
        """1 for a text longer than the reference, else exp(1 - r / c); 0 for one without words."""
        return min(1.0, math.exp(1 - self.reference_words / self.words)) if self.words else 0.0

    @property
    def score(self) -> float:
        """Between 0 and 1; papers write it in percent."""
        return self.brevity_penalty * math.prod(one.precision for one in self.runs) ** (1 / LONGEST)


def words_of(text: str) -> list[str]:
    """The words and signs that are counted; capitals count as others than small letters."""
    return _APART.sub(r" \g<0> ", text).split()


def bleu(text: str, reference: str) -> Bleu:
    """BLEU of a text against one reference."""
    own, other = words_of(text), words_of(reference)
    runs = tuple(Runs(_runs(own, n), _runs(other, n)) for n in range(1, LONGEST + 1))
    return Bleu(runs, len(own), len(other))


def _runs(words: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(words[i:] for i in range(n)), strict=False))
