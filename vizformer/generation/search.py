"""Greedy decoding of many sources at once, and beam search."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch

from vizformer.config import ModelShape
from vizformer.generation.streaming import OwnReading, Reading
from vizformer.model import Cache, Transformer


@torch.inference_mode()
def greedy_batch(model: Transformer, sources: Sequence[Sequence[int]], *, max_new: int) -> list[list[int]]:
    """Greedy translations of many sources at once (one padded batch), without the end mark.

    Raises:
        ValueError: a model without a start mark, an end mark or a padding id.
    """
    config = model.config
    start = list(config.start_ids)
    if not start or config.eos_id is None or config.pad_id is None:
        raise ValueError("greedy_batch needs a model with a start mark, eos_id and pad_id")
    device = model.embedding.weight.device
    width = max(map(len, sources))
    filling = min(config.pad_id, config.input_vocab_size - 1)  # any id of the source will do: nothing looks at it
    ids = torch.tensor([[*s, *[filling] * (width - len(s))] for s in sources], device=device)  # [b, n]
    padding = torch.tensor([[i >= len(s) for i in range(width)] for s in sources], device=device)  # [b, n]
    memory = model.encode(ids, padding=padding)
    target = torch.tensor([start] * len(sources), device=device)  # [b, 1 or 2]
    done = torch.zeros(len(sources), dtype=torch.bool, device=device)
    cache = Cache()
    for _ in range(min(max_new, config.max_positions - len(start))):
        x = model.decode(target[:, cache.length :], memory, memory_padding=padding, cache=cache)
        logits = model.logits(x[:, -1])  # [b, vocab_size]
        if config.never_written is not None:
            logits[:, config.never_written] = -torch.inf
        following = logits.argmax(-1).masked_fill(done, config.eos_id)  # [b]
        target = torch.cat([target, following[:, None]], dim=1)
        done |= following == config.eos_id
        if done.all():
            break
    found: list[list[int]] = target[:, len(start) :].tolist()
    return [row[: row.index(config.eos_id)] if config.eos_id in row else row for row in found]


# Beam search: several hypotheses side by side, and the best finished one in the end.


@dataclass(frozen=True)
class Hypothesis:
    """A finished (or cut off) continuation.

    Attributes:
        ids: the new tokens, end mark included where there is one.
        log_probability: the log-probability of all of them together.
        score: log_probability / length_penalty(len(ids)); hypotheses are compared by it.
    """

    ids: tuple[int, ...]
    log_probability: float
    score: float


Fate = Literal["kept", "dropped", "finished"]


@dataclass(frozen=True)
class BeamNode:
    """A continuation that the search looked at.

    Attributes:
        step: how many tokens came before it; 0 for the first new one.
        parent: index of the node it continues in `BeamTree.nodes`; None at step 0.
        id: its token.
        log_probability: the log-probability of all tokens from the root to this one.
        score: log_probability / length_penalty: what finished hypotheses are compared by.
        fate: "kept" is continued in the next step (unless the search ended), "finished" ended with the end mark,
            "dropped" was not among the best.
    """

    step: int
    parent: int | None
    id: int
    log_probability: float
    score: float
    fate: Fate


@dataclass
class BeamTree:
    """The tree of a beam search, with every continuation it considered; `beam_search(..., tree=tree)` fills it in
    order.
    """

    nodes: list[BeamNode] = field(default_factory=list)

    def path(self, ids: Sequence[int]) -> list[int]:
        """The nodes of a hypothesis, from its first token to its last."""
        nodes: list[int] = []
        for id in ids:
            parent = nodes[-1] if nodes else None
            nodes.append(next(i for i, node in enumerate(self.nodes) if node.parent == parent and node.id == id))
        return nodes


def length_penalty(length: int, alpha: float) -> float:
    """lp = ((5 + length) / 6)^alpha; 1 for alpha = 0, so that only the probability counts.

    Without it beam search prefers short outputs: every further token lowers the probability.
    Source: Wu et al. 2016, "Google's Neural Machine Translation System", equation 14.
    """
    return float(((5 + length) / 6) ** alpha)


@torch.inference_mode()
def beam_search(
    model: Transformer,
    prompt: Sequence[int],
    prefix: Sequence[int] = (),
    *,
    width: int,
    max_new: int,
    alpha: float = 0.6,
    tree: BeamTree | None = None,
) -> list[Hypothesis]:
    """The `width` best continuations found, best first.

    In each step every live hypothesis is continued with every token and the `width` most probable ones stay; one that
    ends is put aside.  The search is over when `width` have ended and no live one scores better than the worst of them.

    Args:
        prompt, prefix, max_new: as in `stream`.
        width: hypotheses side by side, at least 1.
        alpha: the exponent of the length penalty.
        tree: records every continuation that was among the 2 * width best of its step.

    Raises:
        ValueError: a width below 1.
    """
    if width < 1:
        raise ValueError(f"width={width}: a beam needs at least one hypothesis")
    start, shape = prompt if model.encoder is None else prefix, model.config.shape
    return beam_search_of(OwnReading(model, prompt), shape, start, width=width, max_new=max_new, alpha=alpha, tree=tree)


def beam_search_of(
    reading: Reading,
    shape: ModelShape,
    start: Sequence[int],
    *,
    width: int,
    max_new: int,
    alpha: float = 0.6,
    tree: BeamTree | None = None,
) -> list[Hypothesis]:
    """Beam search with any reading (`vizformer.generation.streaming`); `start` is the beginning of every sequence."""
    eos, begun = shape.eos_id, list(start)
    live: list[tuple[list[int], float]] = [([], 0.0)]
    places: list[int | None] = [None]  # the indices of the live hypotheses in the tree
    finished: list[Hypothesis] = []
    parents = [0]
    for _ in range(min(max_new, shape.max_positions - len(begun))):
        logits = reading.next_logits([[*begun, *ids] for ids, _ in live], parents)
        log_p = torch.log_softmax(logits.double(), dim=-1)  # [b, vocab_size]
        if shape.never_written is not None:
            log_p[:, shape.never_written] = -torch.inf
        totals = log_p + torch.tensor([[total] for _, total in live], dtype=torch.double, device=log_p.device)
        best = totals.flatten().topk(min(2 * width, totals.numel()))  # enough candidates even if `width` of them end
        survivors: list[tuple[int, list[int], float]] = []
        reached: list[int | None] = []
        for rank, (total, flat) in enumerate(zip(best.values.tolist(), best.indices.tolist(), strict=True)):
            row, token = divmod(flat, totals.shape[1])
            hypothesis = _hypothesis([*live[row][0], token], total, alpha)
            fate: Fate = "dropped"
            if token == eos:
                if rank < width:  # an end that is not among the best continuations is no hypothesis
                    finished.append(hypothesis)
                    fate = "finished"
            elif len(survivors) < width:
                survivors.append((row, [*hypothesis.ids], total))
                fate = "kept"
                reached.append(None if tree is None else len(tree.nodes))
            if tree is not None:
                step = len(hypothesis.ids) - 1
                tree.nodes.append(BeamNode(step, places[row], token, total, hypothesis.score, fate))
        finished = sorted(finished, key=lambda h: -h.score)[:width]
        live, places = [(ids, total) for _, ids, total in survivors], reached
        # As usual, live ones are judged at their present length: waiting until none could ever win takes far longer.
        hope = max(total for _, total in live) / length_penalty(len(live[0][0]), alpha)
        if len(finished) == width and finished[-1].score >= hope:
            live = []
            break
        parents = [row for row, _, _ in survivors]
    found = [*finished, *(_hypothesis(ids, total, alpha) for ids, total in live if ids)]
    return sorted(found, key=lambda h: -h.score)[:width]


def _hypothesis(ids: list[int], total: float, alpha: float) -> Hypothesis:
    return Hypothesis(tuple(ids), total, total / length_penalty(len(ids), alpha))
