"""Reading translations back: from which of them is the sentence the easiest to find again?

A translator of both directions can judge its own candidates. Greedy and beam search look at P(translation | sentence), which
forgives a translation that leaves something out. From such a one the sentence can hardly be found again, and P(sentence |
translation) is small.

    score(y) = log P(y | x) + log P(x | y)

Source: Li et al. 2016, "A Diversity-Promoting Objective Function for Neural Conversation Models", section 4.2 (its lambda at
1/2); Yee et al. 2019, "Simple and Effective Noisy Channel Modeling for Neural Machine Translation", section 2.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from vizformer.checkpoints import AnyCheckpoint
from vizformer.errors import TraceError
from vizformer.generation import Hypothesis


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
def back_probability(checkpoint: AnyCheckpoint, text: str, translation: str) -> float:
    """log P(text | translation), in nats: the sum over the tokens of the text, and its end mark.

    -inf where there is nothing to read, or more than the model has positions for.

    Raises:
        TraceError: a model that does not translate both ways.
    """
    if not goes_both_ways(checkpoint):
        raise TraceError("{name} translates one way only: it cannot read a translation back.", name=checkpoint.name)
    try:
        read = checkpoint.encode(translation)
        begun = checkpoint.encode_target(text)  # start mark, then the text
    except TraceError:
        return -math.inf
    wanted = [*(token.id for token in begun[len(checkpoint.model.config.start_ids) :]), checkpoint.model.config.eos_id]
    logits = checkpoint.model(checkpoint.tensor(read), checkpoint.tensor(begun))[0]  # [n, vocab_size]
    log_p = torch.log_softmax(logits.double(), dim=-1)
    return float(log_p[range(len(wanted)), wanted].sum())


def all_read_back(checkpoint: AnyCheckpoint, text: str, found: Sequence[tuple[str, Hypothesis]]) -> list[ReadBack]:
    """The hypotheses of beam search (`Checkpoint.beam`) read back, the best score first.

    Raises:
        TraceError: as `back_probability`.
    """
    judged = [
        ReadBack(translation, hypothesis.log_probability, back_probability(checkpoint, text, translation))
        for translation, hypothesis in found
    ]
    return sorted(judged, key=lambda one: -one.score)
