"""Examples of symbolic tasks as batches, their loss, and how many a model gets right."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from vizformer.model import Transformer
from vizformer.options.common import Architecture
from vizformer.training.loss import IGNORED, PairBatch, RowBatch, token_logits, translation_logits
from vizformer.training.tasks import BOS, EOS, PAD, Example, Task

Batch = PairBatch | RowBatch


class Marks(NamedTuple):
    """The loss and the accuracy of a model on held-out questions."""

    loss: float  # cross-entropy per symbol of the right answers, in nats
    accuracy: float  # share of the questions answered without a mistake
    symbols: float  # share of the answers' symbols that are right, each given the right ones before it


def ids_of(task: Task, example: Example, architecture: Architecture) -> tuple[list[int], list[int]]:
    """The ids of the question, and those of the answer (with the end mark, if the task has one).

    An encoder-decoder's encoder reads the question and an end mark; its decoder's start mark is not included.
    """
    number = {piece: id for id, piece in enumerate(task.vocabulary)}
    question = [number[symbol] for symbol in example.question]
    answer = [number[symbol] for symbol in example.answer] + ([number[EOS]] if task.ends else [])
    if architecture == "encoder-decoder":
        return [*question, number[EOS]], answer
    return [number[BOS], *question, *(number[symbol] for symbol in task.separator)], answer


def batch_of(task: Task, architecture: Architecture, examples: Sequence[Example]) -> Batch:
    """A padded batch of examples; it has labels only for the answers."""
    vocabulary = list(task.vocabulary)
    pad, bos = vocabulary.index(PAD), vocabulary.index(BOS)
    pairs = [ids_of(task, example, architecture) for example in examples]
    if architecture == "encoder-decoder":
        return PairBatch(_padded([read for read, _ in pairs], pad), _padded([[bos, *write] for _, write in pairs], pad))
    ids = _padded([[*read, *write[:-1]] for read, write in pairs], pad)
    labels = _padded([[IGNORED] * (len(read) - 1) + write for read, write in pairs], IGNORED)
    return RowBatch(ids, labels, torch.zeros_like(ids), ids.eq(pad))


def loss_of(model: Transformer, batch: Batch) -> Tensor:
    """The mean cross-entropy of the answers' symbols."""
    logits, labels = translation_logits(model, batch) if isinstance(batch, PairBatch) else token_logits(model, batch)
    return torch.nn.functional.cross_entropy(logits, labels)


@torch.no_grad()
def marks(model: Transformer, batch: Batch) -> Marks:
    """The `Marks` of a batch.

    Without a mistake given the right answer so far means without a mistake when the model goes on from its own words,
    so one forward tells what greedy decoding would.
    """
    if isinstance(batch, PairBatch):
        labels = batch.target[:, 1:]  # [b, m-1]
        pad = model.config.pad_id or 0
        labels = labels.masked_fill(labels.eq(pad), IGNORED)
        logits = model(batch.source, batch.target[:, :-1], padding=batch.source.eq(pad))  # [b, m-1, vocab_size]
    else:
        labels = batch.labels  # [b, n]
        logits = model(batch.ids)  # [b, n, vocab_size]
    asked = labels.ne(IGNORED)
    hit = logits.argmax(-1).eq(labels)  # [b, n]
    loss = torch.nn.functional.cross_entropy(logits[asked], labels[asked])
    return Marks(loss.item(), float((hit | ~asked).all(dim=1).float().mean()), float(hit[asked].float().mean()))


def _padded(rows: Sequence[Sequence[int]], fill: int) -> Tensor:
    return pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=fill)  # [b, n]
