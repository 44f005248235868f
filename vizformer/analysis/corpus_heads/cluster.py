"""A corpus through a model on the workers of a Dask cluster, which measure its groups of texts.

    with `hands=Cluster("tcp://10.0.0.1:8786", "stories", checkpoint, corpus.passages)` given to `head_report`

Every worker opens the model by itself, by the same name or path, and looks whether it is the same one.  A group that was
with a worker that is gone goes to another one; the results are added in the order of the texts, as always, and so are the
same to the last bit as those of one machine with processors of the same kind.

Who can reach a scheduler of Dask can run programs on its workers, and what a worker sends is unpacked here: name only a
cluster of your own.
"""

import os
import threading
from collections.abc import Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from vizformer.analysis.corpus_heads.corpus import Passage
from vizformer.analysis.corpus_heads.running import VERSION, Begun, Group, measure_group
from vizformer.checkpoints import Checkpoint, load
from vizformer.errors import VizformerError

PATIENCE = 10.0  # seconds that the scheduler has to answer
AHEAD = 2  # groups that a thread of a worker is given at once, so that it need not wait for the next one

_opening = threading.Lock()
_opened: dict[tuple[str, str, str], Checkpoint] = {}  # the last one that this worker has opened


class Cluster:
    """The workers of the cluster at an address, where every worker opens the model by the name or path `source`.

    Raises:
        VizformerError: the package distributed is not there, or no scheduler at this address.
    """

    def __init__(self, address: str, source: str, checkpoint: Checkpoint, passages: Sequence[Passage]) -> None:
        self._client: Any = _connected(address)
        self._ahead = 1
        self._passages, self._key = passages, checkpoint.key
        place = str(Path(source).resolve()) if Path(source).exists() else source
        self._model = (place, str(checkpoint.dtype).removeprefix("torch."), str(checkpoint.device))

    @property
    def workers(self) -> int:
        """The number of workers now; more may join."""
        return len(self._client.nthreads())

    @property
    def ahead(self) -> int:
        with suppress(OSError):  # the scheduler is away: what it has been given will say so
            threads: dict[str, int] = self._client.nthreads()
            self._ahead = max(1, AHEAD * sum(threads.values()))
        return self._ahead

    def begin(self, group: range) -> Begun:
        texts = tuple(self._passages[group.start : group.stop])
        future = self._client.submit(measure_there, self._model, self._key, VERSION, texts, group.start, pure=False)
        return _OnCluster(future)

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *raised: object) -> None:
        self._client.close()  # which takes back what it has given out


class _OnCluster:
    def __init__(self, future: Any) -> None:
        self._future = future

    def wait(self, seconds: float) -> bool:
        import distributed

        with suppress(distributed.TimeoutError, CancelledError):
            self._future.exception(timeout=seconds)
        return bool(self._future.done()) or self._future.status in ("cancelled", "lost")

    def result(self) -> Group:
        try:
            found: Group | str = self._future.result()
        except Exception as error:  # of the worker's, or of the way to it
            raise VizformerError(
                "The cluster has not measured a part of the texts: {error}. What was measured before is kept: the same "
                "command goes on from there.",
                error=" ".join(f"{type(error).__name__}: {error}"[:500].split()).rstrip("."),
            ) from error
        if isinstance(found, str):
            raise VizformerError("A worker of the cluster says: {reason}", reason=found)
        return found


def measure_there(
    model: tuple[str, str, str], key: str, version: int, texts: tuple[Passage, ...], first: int
) -> Group | str:
    """Measures a group in a worker, which opens the model the first time; returns the reason where it cannot."""
    torch.set_num_threads(1)  # groups are measured side by side, and a sum depends on how many threads have added it
    try:
        checkpoint = _open(*model)
    except VizformerError as error:
        return str(error)
    if checkpoint.key != key or version != VERSION:
        return (
            f"{model[0]} is another model here ({os.uname().nodename if hasattr(os, 'uname') else 'worker'}), or this is "
            "another version of VizFormer. Put the same files and the same version on every worker."
        )
    group = measure_group(checkpoint, texts, first)
    assert group is not None  # nobody cuts it off
    return group


def _open(source: str, dtype: str, device: str) -> Checkpoint:
    with _opening:  # the threads of a worker share one model
        wanted = (source, dtype, device)
        if wanted not in _opened:
            _opened.clear()
            _opened[wanted] = load(source, dtype=dtype, device=device)
        return _opened[wanted]


def _connected(address: str) -> Any:
    try:
        import distributed
    except ImportError as error:
        raise VizformerError(
            "A cluster needs the package distributed: `pip install vizformer[cluster]`, here and on its workers."
        ) from error
    client: Any = distributed.Client
    try:
        return client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise VizformerError(
            "No Dask scheduler answers at {address}. Start one (`dask scheduler`) and give the address that it prints, "
            "as tcp://host:8786.",
            address=address,
        ) from error
