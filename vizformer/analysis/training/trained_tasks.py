"""What a model that was trained on a task makes of it: one question, its positions, and its heads on repeated tokens."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float32
from numpy import ndarray

from vizformer.analysis.heads.induction import HeadScores, head_scores, repeated_tokens
from vizformer.analysis.heads.maps import HeadMaps, Kind, head_maps, kinds
from vizformer.checkpoints import AnyCheckpoint
from vizformer.text import Token
from vizformer.training.examples import ids_of
from vizformer.training.live import Plan
from vizformer.training.tasks import BOS, EOS, MARKS


@dataclass(frozen=True)
class TaskAnswer:
    own: str
    right: tuple[str, ...]  # the right answer's symbols, with the end mark where there is one
    probabilities: Float32[ndarray, "symbols places"]  # of every symbol at every place of the right answer
    symbols: tuple[str, ...]
    maps: dict[Kind, HeadMaps]  # all heads while the model reads the question and the right answer
    tokens: dict[str, tuple[Token, ...]]  # what stands at the rows and columns of the maps, by stack


def task_answer(checkpoint: AnyCheckpoint, plan: Plan, text: str) -> TaskAnswer:
    """The question that a text is, read with its right answer (one forward), and answered by the model itself.

    Raises:
        VizformerError: a text that is no question of the task.
    """
    task = plan.on
    example = task.read(text)
    read, write = ids_of(task, example, plan.architecture)
    asked = write[:-1]
    if plan.architecture == "encoder-decoder":
        trace = checkpoint.trace(ids=read, target_ids=[task.vocabulary.index(BOS), *asked])
        prompt = example.question
    else:
        trace = checkpoint.trace(ids=[*read, *asked])
        prompt = example.question + task.separator
    # The last rows predict the answer: the one before its first symbol, and so on.
    p = trace.logits[-len(write) :].double().softmax(-1).float().numpy()  # [places, vocab_size]
    shown = (*task.symbols, EOS) if task.ends else tuple(task.symbols)
    rows = [task.vocabulary.index(symbol) for symbol in shown]
    return TaskAnswer(
        own=checkpoint.generate(prompt, max_new=len(write) + (4 if task.ends else 0)).text,
        right=tuple(task.vocabulary[id] for id in write),
        probabilities=np.ascontiguousarray(p[:, rows].T),
        symbols=shown,
        maps={kind: head_maps(trace, kind) for kind in kinds(trace)},
        tokens=trace.tokens,
    )


def position_rows(checkpoint: AnyCheckpoint, plan: Plan) -> Float32[ndarray, "n d_model"] | None:
    """The vectors that are added at the positions that occur in training; None where none are."""
    found = checkpoint.model.positions(plan.longest)
    return None if found is None else found.detach().numpy()


def repetition_scores(checkpoint: AnyCheckpoint, plan: Plan) -> HeadScores:
    """How much each head is a previous-token head or an induction head, on random symbols of the task that come twice:
    8 sequences of 10, each after the start mark.
    """
    symbols = torch.arange(len(MARKS), len(plan.on.vocabulary))
    ids = repeated_tokens(symbols, sequences=8, period=10, seed=1)
    bos = torch.full((len(ids), 1), MARKS.index(BOS))
    return head_scores(checkpoint.model, torch.cat([bos, ids], dim=1), 10, start=1)
