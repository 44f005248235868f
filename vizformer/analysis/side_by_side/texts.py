"""On which texts two models are furthest apart: a model before and after fine-tuning.

For the weights p and q that a head gives to the keys in the same row of both models, and for the distributions P and Q of
the token that comes next in the first model and in the second one,

    maps       sum_j |p_j - q_j| / 2, the total variation: the share of the attention that goes elsewhere; the mean over the
               rows that have a choice, then over the heads
    answers    KL(Q || P) = sum_t Q_t log2(Q_t / P_t), in bits; the mean over the rows, of a text with a [MASK] its row
               alone; of encoders of sentences 1 - cosine of the pooled vectors
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray

from vizformer.analysis.corpus_heads.corpus import Passage
from vizformer.analysis.heads.maps import Kind
from vizformer.analysis.side_by_side.heads import head_divergences, total_variation
from vizformer.analysis.side_by_side.runs import TwoRuns, two_runs
from vizformer.analysis.side_by_side.similarity import text_similarity
from vizformer.checkpoints import Checkpoint
from vizformer.checkpoints.hugging_face.sentence_vectors import Pooling
from vizformer.errors import TraceError, VizformerError

MOST_TEXTS, CHARACTERS = 24, 120  # how many, and about how long


@dataclass(frozen=True)
class MovedText:
    """How far two models are apart on a text, as both read it.

    Attributes:
        heads: the total variation of every head, of each kind of attention; NaN where no row has a choice.
        answers: bits, or 1 - cosine; None of models that have neither a head that predicts nor a pooling.
    """

    passage: Passage
    heads: dict[Kind, Float[ndarray, "n_layers n_heads"]]
    answers: float | None

    @property
    def maps(self) -> float:
        """The mean over all heads."""
        return float(np.nanmean(np.concatenate([one.ravel() for one in self.heads.values()])))

    @property
    def most(self) -> tuple[Kind, int, int]:
        """The head that is furthest apart: its kind, layer and number."""
        found = {kind: np.where(np.isfinite(one), one, -1.0) for kind, one in self.heads.items()}
        kind = max(found, key=lambda kind: float(found[kind].max()))
        layer, head = np.unravel_index(int(found[kind].argmax()), found[kind].shape)
        return kind, int(layer), int(head)


def short_texts(passages: Sequence[Passage]) -> tuple[Passage, ...]:
    """The MOST_TEXTS passages whose lengths are nearest to CHARACTERS, in their order; a long one is cut."""
    nearest = sorted(passages, key=lambda one: abs(len(one.text) - CHARACTERS))[:MOST_TEXTS]
    return tuple(Passage(one.text[: 2 * CHARACTERS], one.target) for one in passages if one in nearest)


@torch.inference_mode()
def moved_texts(
    first: Checkpoint,
    second: Checkpoint,
    passages: Sequence[Passage],
    *,
    pooling: Pooling | None = None,
    heard: Callable[[int, int], None] | None = None,
) -> tuple[MovedText, ...]:
    """Both models on each of the texts, those on which their maps are furthest apart first.

    A text that one of them cannot read, or that they read as other token ids, is left out.

    Raises:
        VizformerError: why not one of the texts can be compared.
    """
    found = list[MovedText]()
    problem: VizformerError = TraceError("There is no text to compare the models on.")
    for done, passage in enumerate(passages, 1):
        try:
            found.append(_moved(first, second, _hidden(first, passage), pooling))
        except VizformerError as error:
            problem = error
        if heard is not None:
            heard(done, len(passages))
    if not found:
        raise problem
    return tuple(sorted(found, key=lambda one: -one.maps))


def _moved(first: Checkpoint, second: Checkpoint, passage: Passage, pooling: Pooling | None) -> MovedText:
    both = first.model.config.architecture == "encoder-decoder"
    target = (passage.target or passage.text) if both else None
    trace, other = (checkpoint.trace(passage.text, target=target) for checkpoint in (first, second))
    runs = two_runs(first, trace, second, other)
    heads = {kind: head_divergences(runs, kind, measure=total_variation) for kind in runs.kinds}
    if not any(np.isfinite(one).any() for one in heads.values()):
        raise TraceError("No row has a choice: each sees one key only.")
    if first.has_head and second.has_head:
        return MovedText(passage, heads, _answers(runs))
    alone = pooling is not None and first.model.config.architecture == "encoder-only"
    return MovedText(passage, heads, 1.0 - text_similarity(runs, pooling or "mean").cosine if alone else None)


def _answers(runs: TwoRuns) -> float:
    """The mean of KL(Q || P), over the tokens that both vocabularies have."""
    size = min(trace.logits.shape[-1] for trace in (runs.trace, runs.other))
    p, q = (torch.log_softmax(trace.logits[:, :size].double(), dim=-1).cpu() for trace in (runs.trace, runs.other))
    mask, tokens = runs.first.model.config.mask_id, next(reversed(runs.trace.tokens.values()))
    rows = [i for i, token in enumerate(tokens) if token.id == mask] or list(range(len(p)))
    apart = torch.where(q.exp() > 0, q.exp() * (q - p), 0.0).sum(-1) / np.log(2)
    return max(0.0, float(apart[rows].mean()))


def _hidden(checkpoint: Checkpoint, passage: Passage) -> Passage:
    """The passage with its middle word as a [MASK], where the model is one that fills them."""
    config = checkpoint.model.config
    if config.architecture != "encoder-only" or config.mask_id is None or not checkpoint.has_head:
        return passage
    tokens = [token for token in checkpoint.encode(passage.text) if not token.special and token.end > token.start]
    mask = checkpoint.tokenizer.tokens([config.mask_id])[0].text
    for at in sorted(tokens, key=lambda token: abs(token.start + token.end - len(passage.text))):
        text = f"{passage.text[: at.start]}{mask}{passage.text[at.end :]}"
        if any(token.id == config.mask_id for token in checkpoint.encode(text)):
            return Passage(text, passage.target)
    return passage
