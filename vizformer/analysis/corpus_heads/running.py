"""A corpus through a model on all cores, cut off and gone on with as one likes: the result is the same to the last bit.

Texts are measured in groups; what a group says is added to what all groups before it said, in their order, whoever was
done first.  A file holds the sums of the groups so far and how many these are: a run that was killed begins after them,
and one that is over is read from there.
"""

import hashlib
import os
import threading
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from zipfile import BadZipFile

import numpy as np
import torch

from vizformer.analysis.corpus_heads.corpus import Corpus
from vizformer.analysis.corpus_heads.one_text import MOST_TOKENS, heads_of, measure_text, repeated_induction
from vizformer.analysis.corpus_heads.report import HeadReport, make_report
from vizformer.analysis.corpus_heads.sums import CORNER, Sums
from vizformer.analysis.heads import Kind
from vizformer.checkpoints import Checkpoint
from vizformer.errors import VizformerError
from vizformer.messages import N_

GROUP = 8  # texts
VERSION = 1  # of what is measured: another one makes the files of before useless


class Tell(Protocol):
    """Told after every group."""

    def __call__(self, done: int, texts: int) -> None: ...


class _Group(NamedTuple):
    read: int
    sums: dict[Kind, Sums]


def head_report(
    checkpoint: Checkpoint,
    corpus: Corpus,
    *,
    work: Path | None = None,
    threads: int | None = None,
    tell: Tell | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> HeadReport | None:
    """Measures all heads of a model on a corpus; None where `stop` said so before the end.

    Args:
        work: a folder that keeps the sums (see above), in a file named by model and corpus.
        threads: texts that are measured at once, each on one core; None: as many as there are cores.

    Raises:
        VizformerError: the model reads none of the texts.
    """
    path = None if work is None else work / f"{run_key(checkpoint, corpus)}.npz"
    done, read, sums = _begun(path, checkpoint)
    passages = corpus.passages
    groups = [range(first, min(first + GROUP, len(passages))) for first in range(0, len(passages), GROUP)]
    workers = max(1, threads or os.cpu_count() or 1)
    cut_off = threading.Event()

    def measured(group: range) -> _Group | None:
        found, count = _empty(checkpoint), 0
        for number in group:
            if cut_off.is_set():
                return None
            count += measure_text(checkpoint, passages[number], number, found)
        return _Group(count, found)

    before = torch.get_num_threads()
    torch.set_num_threads(
        1
    )  # a text on one core, several texts at once: and the same sums, however many cores there are
    try:
        with ThreadPoolExecutor(workers) as pool:
            running: dict[int, Future[_Group | None]] = {}
            ahead = done
            try:
                while done < len(groups):
                    while ahead < len(groups) and len(running) < 2 * workers:
                        running[ahead] = pool.submit(measured, groups[ahead])
                        ahead += 1
                    wait([running[done]], timeout=0.2, return_when=FIRST_COMPLETED)
                    if stop():
                        return None
                    if not running[done].done():
                        continue
                    group = running.pop(done).result()
                    assert group is not None
                    read += group.read
                    for kind, part in group.sums.items():
                        sums[kind].add(part)
                    done += 1
                    _keep(path, done, read, sums)
                    if tell is not None:
                        tell(groups[done - 1].stop, len(passages))
            finally:
                cut_off.set()
        if not read:
            raise VizformerError(
                N_("{model} can read none of the texts of {name}.", model=checkpoint.name, name=corpus.name)
            )
        return make_report(checkpoint, corpus, read, sums, repeated_induction(checkpoint))
    finally:
        torch.set_num_threads(before)


def run_key(checkpoint: Checkpoint, corpus: Corpus) -> str:
    """By model, texts and what is measured of them."""
    said = f"{VERSION} {MOST_TOKENS} {CORNER} {checkpoint.dtype} {checkpoint.key} {corpus.key}"
    return hashlib.blake2b(said.encode(), digest_size=12).hexdigest()


def _empty(checkpoint: Checkpoint) -> dict[Kind, Sums]:
    return {kind: Sums.empty(*shape) for kind, shape in heads_of(checkpoint).items()}


def _begun(path: Path | None, checkpoint: Checkpoint) -> tuple[int, int, dict[Kind, Sums]]:
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
