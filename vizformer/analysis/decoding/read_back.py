"""Reading translations back: from which of them is the sentence the easiest to find again?

A translator of both directions can judge its own candidates. Greedy and beam search look at P(translation | sentence), which
forgives a translation that leaves something out. From such a one the sentence can hardly be found again, and P(sentence |
translation) is small.

    score(y) = log P(y | x) + log P(x | y)

Source: Li et al. 2016, "A Diversity-Promoting Objective Function for Neural Conversation Models", section 4.2 (its lambda at
1/2); Yee et al. 2019, "Simple and Effective Noisy Channel Modeling for Neural Machine Translation", section 2.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch.nn.utils.rnn import pad_sequence

from vizformer.checkpoints import AnyCheckpoint
from vizformer.errors import TraceError
from vizformer.generation import Hypothesis
from vizformer.text import Token

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


@dataclass(frozen=True)
class ReadBack:
    """A translation y of a sentence x, with log P(y | x) and log P(x | y)."""

    text: str
    log_probability: float  # log P(y | x), in nats, its end mark included
    back: float  # log P(x | y), the same of the way back

    @property
    def score(self) -> float:
        """log P(y | x) + log P(x | y): the larger, the better."""
        return self.log_probability + self.back


def goes_both_ways(checkpoint: AnyCheckpoint) -> bool:
    """Whether it translates both into a language and from it: then it can read its own translations back."""
    if not checkpoint.is_own:
        return False
    shape, marks = checkpoint.shape, set(checkpoint.tokenizer_of("encoder").first_tokens.values())
    return shape.architecture == "encoder-decoder" and shape.eos_id is not None and len(marks) > 1


@torch.inference_mode()
def back_probabilities(checkpoint: AnyCheckpoint, text: str, translations: Sequence[str]) -> list[float]:
    """log P(text | translation) of each, in nats: the sum over the tokens of the text, and its end mark.

    -inf where there is nothing to read, or more than the model has positions for.  One forward reads them all: shorter
    ones are filled up to the longest, and no row looks at what fills them.

    Raises:
        TraceError: a model that does not translate both ways.
    """
    if not goes_both_ways(checkpoint):
        raise TraceError("{name} translates one way only: it cannot read a translation back.", name=checkpoint.name)
    found = [-math.inf] * len(translations)
    begun = _encoded(checkpoint.encode_target, text)  # start mark, then the text
    read = {i: ids for i, one in enumerate(translations) if (ids := _encoded(checkpoint.encode, one))}
    if not begun or not read:
        return found
    sources = pad_sequence([torch.tensor(ids) for ids in read.values()], batch_first=True)  # [b, n]
    lengths = torch.tensor([len(ids) for ids in read.values()])
    padding = (torch.arange(sources.shape[1]) >= lengths[:, None]).to(checkpoint.device)  # [b, n]
    targets = torch.tensor([begun] * len(read), device=checkpoint.device)  # [b, m]
    logits = checkpoint.model(sources.to(checkpoint.device), targets, padding=padding)  # [b, m, vocab_size]
    wanted = [*begun[len(checkpoint.model.config.start_ids) :], checkpoint.model.config.eos_id]
    log_p = torch.log_softmax(logits.double(), dim=-1)[:, range(len(wanted)), wanted].sum(-1)  # [b]
    for i, one in zip(read, log_p.tolist(), strict=True):
        found[i] = one
    return found


def _encoded(encode: Callable[[str], Sequence[Token]], text: str) -> list[int]:
    """The ids of a text; none where it cannot be read."""
    try:
        return [token.id for token in encode(text)]
    except TraceError:
        return []


def all_read_back(checkpoint: AnyCheckpoint, text: str, found: Sequence[tuple[str, Hypothesis]]) -> list[ReadBack]:
    """The hypotheses of beam search (`Checkpoint.beam`) read back, the best score first.

    Raises:
        TraceError: as `back_probabilities`.
    """
    backs = back_probabilities(checkpoint, text, [translation for translation, _ in found])
    judged = [
        ReadBack(one, hypothesis.log_probability, back) for (one, hypothesis), back in zip(found, backs, strict=True)
    ]
    return sorted(judged, key=lambda one: -one.score)


# BLEU of one text against one reference, count by count, as Papineni et al. 2002 define it and sacreBLEU counts
# words.
#
#     p_n = sum of min(count in the text, count in the reference) / number of n-grams in the text
#     BP = 1 if c > r else exp(1 - r / c)        (c, r: words in the text and in the reference)
#     BLEU = BP * (p_1 p_2 p_3 p_4)^(1/4)
#
# Nothing is smoothed: without a common run of four words, BLEU is 0.
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
