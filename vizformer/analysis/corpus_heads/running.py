"""Runs a corpus through a model on all cores; stopped and continued at any time, the result is the same to the last bit.

Texts are measured in groups; what a group says is added to what all groups before it said, in their order, whoever was
done first.  A file holds the sums of the groups so far and how many these are: a run that was killed begins after them,
and one that is over is read from there.

Who measures the groups are `Hands`: the threads of this process (`Threads`), or the workers of a cluster
(`vizformer.analysis.corpus_heads.cluster`).  Both call `measure_group`, and what they bring is added here.
"""

import hashlib
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable
from zipfile import BadZipFile

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray

from vizformer.analysis.attribution.backward import HeadsBackward
from vizformer.analysis.attribution.lens import predicting_stack
from vizformer.analysis.corpus_heads.corpus import Corpus, Passage
from vizformer.analysis.corpus_heads.evaluation import make_report
from vizformer.analysis.corpus_heads.one_text import (
    MOST_TOKENS,
    heads_of,
    measure_text,
    read_tokens,
    repeated_induction,
)
from vizformer.analysis.corpus_heads.report import HeadReport
from vizformer.analysis.corpus_heads.sums import CORNER, Sums
from vizformer.analysis.heads.maps import Kind, kind_of
from vizformer.analysis.masks import rerun
from vizformer.checkpoints import AnyCheckpoint
from vizformer.errors import VizformerError

GROUP = 8  # texts
LOOK = 0.2  # seconds between two looks whether it is to stop
VERSION = 3  # of what is measured: another one makes the files of before useless

TEXTS, TOKENS, ROWS = 6, 64, 24  # of the corpus, of a text, and of all of them, evenly: each is a way back


@runtime_checkable
class Tell(Protocol):
    """A callback that is called after every group."""

    def __call__(self, done: int, texts: int) -> None: ...


class Group(NamedTuple):
    """The result of a group of texts: how many of them the model can read, and their sums."""

    read: int
    sums: dict[Kind, Sums]


@runtime_checkable
class Begun(Protocol):
    def wait(self, seconds: float) -> bool:
        """Whether it is measured, after so many seconds at most."""

    def result(self) -> Group:
        """The result of the group; raises the error of its measurement."""


@runtime_checkable
class Hands(Protocol):
    """Who measures groups of texts.  Inside `with`; what they do then ends there."""

    @property
    def ahead(self) -> int:
        """The number of groups that may be in progress at once."""

    def begin(self, group: range) -> Begun:
        """Starts measuring the texts with these indices."""

    def __enter__(self) -> "Hands": ...

    def __exit__(self, *raised: object) -> None: ...


def measure_group(
    checkpoint: AnyCheckpoint, passages: Sequence[Passage], first: int, cut_off: Callable[[], bool] = lambda: False
) -> Group | None:
    """Measures some texts, of which `first` is the number of the first one; None where `cut_off` said so before the end.

    One core each: several groups are measured at once, and the sums are the same however many cores there are.
    """
    found, count = _empty(checkpoint), 0
    for number, passage in enumerate(passages, first):
        if cut_off():
            return None
        count += measure_text(checkpoint, passage, number, found)
    return Group(count, found)


class Threads:
    """The threads of this process, of which each measures a group; as many as there are cores, if not said."""

    def __init__(self, checkpoint: AnyCheckpoint, passages: Sequence[Passage], threads: int | None = None) -> None:
        self._checkpoint, self._passages = checkpoint, passages
        workers = max(1, threads or os.cpu_count() or 1)
        self.ahead = 2 * workers
        self._cut_off = threading.Event()
        self._pool = ThreadPoolExecutor(workers)

    def begin(self, group: range) -> Begun:
        texts = self._passages[group.start : group.stop]
        return _InThread(self._pool.submit(measure_group, self._checkpoint, texts, group.start, self._cut_off.is_set))

    def __enter__(self) -> "Threads":
        return self

    def __exit__(self, *raised: object) -> None:
        self._cut_off.set()
        self._pool.shutdown()


class _InThread:
    def __init__(self, future: "Future[Group | None]") -> None:
        self._future = future

    def wait(self, seconds: float) -> bool:
        return bool(wait([self._future], timeout=seconds).done)

    def result(self) -> Group:
        group = self._future.result()
        assert group is not None  # nobody has cut it off
        return group


def head_report(
    checkpoint: AnyCheckpoint,
    corpus: Corpus,
    *,
    work: Path | None = None,
    threads: int | None = None,
    hands: Hands | None = None,
    tell: Tell | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> HeadReport | None:
    """Measures all heads of a model on a corpus; None where `stop` said so before the end.

    Args:
        work: a folder that keeps the sums (see above), in a file named by model and corpus.
        threads: texts that are measured at once, each on one core; None: as many as there are cores.
        hands: who measures; None: threads of this process.

    Raises:
        VizformerError: the model reads none of the texts.
    """
    path = None if work is None else work / f"{run_key(checkpoint, corpus)}.npz"
    done, read, sums = _begun(path, checkpoint)
    passages = corpus.passages
    groups = [range(first, min(first + GROUP, len(passages))) for first in range(0, len(passages), GROUP)]
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with hands or Threads(checkpoint, passages, threads) as measuring:
            running: dict[int, Begun] = {}
            ahead = done
            while done < len(groups):
                while ahead < len(groups) and len(running) < max(1, measuring.ahead):
                    running[ahead] = measuring.begin(groups[ahead])
                    ahead += 1
                ready = running[done].wait(LOOK)
                if stop():
                    return None
                if not ready:
                    continue
                group = running.pop(done).result()
                read += group.read
                for kind, part in group.sums.items():
                    sums[kind].add(part)
                done += 1
                _keep(path, done, read, sums)
                if tell is not None:
                    tell(groups[done - 1].stop, len(passages))
        if not read:
            raise VizformerError(
                "{model} can read none of the texts of {name}.", model=checkpoint.name, name=corpus.name
            )
        repeated, effects = repeated_induction(checkpoint), next_token_effects(checkpoint, corpus)
        return make_report(checkpoint, corpus, read, sums, repeated, effects)
    finally:
        torch.set_num_threads(before)


def run_key(checkpoint: AnyCheckpoint, corpus: Corpus) -> str:
    """A hash of the model, the texts and the measures, by which a run that was cut off is found again."""
    said = f"{VERSION} {MOST_TOKENS} {CORNER} {checkpoint.dtype} {checkpoint.key} {corpus.key}"
    return hashlib.blake2b(said.encode(), digest_size=12).hexdigest()


def _empty(checkpoint: AnyCheckpoint) -> dict[Kind, Sums]:
    return {kind: Sums.empty(*shape) for kind, shape in heads_of(checkpoint).items()}


def _begun(path: Path | None, checkpoint: AnyCheckpoint) -> tuple[int, int, dict[Kind, Sums]]:
    """How many groups are done, how many of their texts could be read, and their sums."""
    if path is not None and path.is_file():
        with suppress(OSError, EOFError, ValueError, KeyError, BadZipFile), np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
            kept = {kind: Sums.of_arrays(arrays, kind) for kind in heads_of(checkpoint)}
            return int(arrays["done"]), int(arrays["read"]), kept
    return 0, 0, _empty(checkpoint)


def _keep(path: Path | None, done: int, read: int, sums: dict[Kind, Sums]) -> None:
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    arrays: dict[str, Any] = {name: array for kind, part in sums.items() for name, array in part.arrays(kind).items()}
    with new.open("wb") as file:
        np.savez(file, **(arrays | {"done": done, "read": read}))
    new.replace(path)


def next_token_effects(
    checkpoint: AnyCheckpoint, corpus: Corpus
) -> dict[Kind, Float[ndarray, "rows n_layers n_heads"]]:
    """The direct effects on ROWS rows of the first texts; empty of a model that does not predict what comes next, of
    recorded code, and where the logit is no sum of what the parts write.

    effect = z_i W_O . g_i(t) for the token t after row i, less the mean logit of all tokens: its term of the logit of t
    (`attribution.direct`).  What later parts make of it is not in it.

    Source: Wang et al. 2022, "Interpretability in the Wild", section 3.1.
    """
    stack = predicting_stack(checkpoint)
    if not checkpoint.has_head or stack == "encoder" or not checkpoint.is_own:
        return {}
    traces = []
    for passage in corpus.passages[: 2 * TEXTS]:
        with suppress(VizformerError):
            tokens = {name: row[:TOKENS] for name, row in read_tokens(checkpoint, passage).items()}
            traces.append(rerun(checkpoint, tokens, None))
        if len(traces) == TEXTS:
            break
    rows = [(trace, row) for trace in traces for row in range(len(trace.tokens[stack]) - 1)]
    kept = np.unique(np.linspace(0, len(rows) - 1, ROWS).round().astype(int)) if rows else ()
    found: dict[Kind, ndarray] = {
        kind: np.full((len(kept), *shape), np.nan) for kind, shape in heads_of(checkpoint).items() if kind != "encoder"
    }
    for number, at in enumerate(kept):
        trace, row = rows[at]
        with suppress(VizformerError):  # of a part that is not linear
            back = HeadsBackward(checkpoint, trace, row)
            back.head(trace.tokens[stack][row + 1].id, "mean")
            back.stack()
            for term in back.terms:
                if term.part == "head" and (kind := kind_of(term.place)) in found:
                    found[kind][number, term.layer, term.head] = term.value
    return found
