"""Four ways of attention, and a layer of attention beside a recurrent one, measured on this machine against the length.

    full       softmax(q k^T / sqrt(d)) v, each product by itself: the n x n map is written down twice
    fused      the same in one call of `F.scaled_dot_product_attention`, which keeps no map
    windowed   every query sees the keys at most r away, computed in blocks of r queries and 3 r keys
    linear     phi(q) (phi(k)^T v), phi = elu + 1

One head without a mask, in float32, on one thread.  Whole layers of one width are compared by their times alone:

    attention, gru                       `torch.nn.MultiheadAttention` and `torch.nn.GRU` read n tokens
    attention_backward, gru_backward     and then the gradient of the sum of what comes out, for all their weights

Started as `python -m vizformer.analysis.costs.attention_speed FOLDER
PARENT` it is a process of its own, of low priority, which writes a line of JSON for each measurement into the folder,
and ends when somebody stops it, nobody looks at it any more, or its time is over (`vizformer.jobs.worker.Watch`).
"""

import contextlib
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Literal, cast, get_args

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from vizformer.jobs.worker import Watch, read_lines, take_low_priority

Way = Literal["full", "fused", "windowed", "linear"]
LayerWay = Literal["attention", "gru", "attention_backward", "gru_backward"]
Kind = Literal["heads", "layers"]
WAYS: tuple[Way, ...] = get_args(Way)
LAYER_WAYS: tuple[LayerWay, ...] = get_args(LayerWay)
WIDTH, REACH = 64, 64  # d of the head; r of the window
LAYER_WIDTH, LAYER_HEADS = 128, 4  # d of a layer, and the heads of the one of attention
REPEATS, LAYER_REPEATS = 5, 3
LONGEST_BACKWARD = 512  # tokens: the gradients of a GRU for more take half a second a call
RESULTS, SETTINGS = "measured.jsonl", "settings.json"


@dataclass(frozen=True)
class Comparison:
    """What is measured at which numbers of tokens, and for how many seconds at most, whatever the machine."""

    ways: tuple[str, ...]
    lengths: tuple[int, ...]
    seconds: float


COMPARISONS: Mapping[Kind, Comparison] = {
    "heads": Comparison(WAYS, (128, 256, 512, 1024, 2048, 4096), 30.0),
    "layers": Comparison(LAYER_WAYS, (32, 64, 128, 256, 512, 1024, 2048), 5.0),
}


@dataclass(frozen=True)
class Measured:
    """One way at one length: the median time of a call, and the most bytes that it held beside its input (of a head)."""

    way: str
    n: int
    seconds: float
    nbytes: int = 0


def attend(
    way: Way, q: Float[Tensor, "n d"], k: Float[Tensor, "n d"], v: Float[Tensor, "n d"], reach: int = REACH
) -> Float[Tensor, "n d"]:
    """Attention of one head.

    Raises:
        ValueError: a window whose reach does not divide the number of tokens.
    """
    scale = q.shape[1] ** -0.5
    if way == "full":
        return torch.softmax(q @ k.T * scale, -1) @ v
    if way == "fused":
        return F.scaled_dot_product_attention(q[None, None], k[None, None], v[None, None])[0, 0]
    if way == "linear":
        q, k = F.elu(q) + 1, F.elu(k) + 1
        return q @ (k.T @ v) / (q @ k.sum(0))[:, None]
    return _windowed(q, k, v, reach, scale)


def _windowed(q: Tensor, k: Tensor, v: Tensor, r: int, scale: float) -> Tensor:
    n, d = q.shape
    if n % r:
        raise ValueError(f"{n} tokens do not fit blocks of {r}")
    near = F.pad(k, (0, 0, r, r)).unfold(0, 3 * r, r)  # [blocks, d, 3 r]
    values = F.pad(v, (0, 0, r, r)).unfold(0, 3 * r, r)  # [blocks, d, 3 r]
    scores = q.view(-1, r, d) @ near * scale  # [blocks, r, 3 r]
    i, j = torch.arange(r)[:, None], torch.arange(3 * r)[None] - r  # within a block
    at = torch.arange(0, n, r)[:, None, None] + j  # [blocks, 1, 3 r]: the key's place in the text
    scores.masked_fill_(((i - j).abs() > r) | (at < 0) | (at >= n), -torch.inf)
    return (torch.softmax(scores, -1) @ values.transpose(1, 2)).reshape(n, d)


def peak_bytes(call: Callable[[], object]) -> int:
    """The most bytes that are held at a time of those that a call asks PyTorch's allocator for."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, profile_memory=True) as profile:
        kept = call()
    del kept
    raw = profile.profiler.kineto_results.events()
    changes = sorted((event.start_ns(), event.nbytes()) for event in raw if event.name() == "[memory]")
    held = most = 0
    for __, nbytes in changes:
        held += nbytes
        most = max(most, held)
    return most


def median_seconds(call: Callable[[], object], repeats: int = REPEATS) -> float:
    """The median time of a call, after one that does not count."""
    call()
    times = []
    for __ in range(repeats):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def layer_call(way: LayerWay, x: Float[Tensor, "n d"]) -> Callable[[], object]:
    """A call that reads the tokens with a new layer as wide as they are, and for "..._backward" takes the gradients too."""
    d = x.shape[1]
    gru = torch.nn.GRU(d, d, batch_first=True)
    attention = torch.nn.MultiheadAttention(d, LAYER_HEADS, batch_first=True)
    rows = x[None]

    def forward() -> Tensor:
        return gru(rows)[0] if way.startswith("gru") else attention(rows, rows, rows, need_weights=False)[0]

    def backward() -> object:
        layer = gru if way.startswith("gru") else attention
        return torch.autograd.grad(forward().sum(), tuple(layer.parameters()))

    return backward if way.endswith("backward") else torch.inference_mode()(forward)


def due(kind: Kind, lengths: Sequence[int] | None = None) -> list[tuple[str, int]]:
    """What is measured, in order: every way at every length (default: those of the comparison), gradients of short texts."""
    usual = COMPARISONS[kind]
    every = ((way, n) for n in lengths or usual.lengths for way in usual.ways)
    return [(way, n) for way, n in every if n <= LONGEST_BACKWARD or not way.endswith("_backward")]


def measure(
    lengths: Sequence[int] | None = None, stop: Callable[[], bool] = lambda: False, kind: Kind = "heads"
) -> Iterator[Measured]:
    """Every way at every length, short ones first; asks before each whether to stop."""
    generator = torch.Generator().manual_seed(0)
    inputs: dict[int, list[Tensor]] = {}
    for way, n in due(kind, lengths):
        if n not in inputs:
            width, count = (WIDTH, 3) if kind == "heads" else (LAYER_WIDTH, 1)
            inputs[n] = [torch.randn(n, width, generator=generator) for __ in range(count)]
        if stop():
            return
        if kind == "layers":
            call = layer_call(cast("LayerWay", way), *inputs[n])
            yield Measured(way, n, median_seconds(call, LAYER_REPEATS))
            continue
        with torch.inference_mode():
            q, k, v = inputs[n]
            attending = partial(attend, cast("Way", way), q, k, v)
            seconds = median_seconds(attending)
            nbytes = peak_bytes(attending)
        yield Measured(way, n, seconds, nbytes)


def read(folder: Path) -> tuple[list[Measured], str]:
    """What a process has measured so far, and how it ended ("" while it goes on)."""
    found, ending = read_lines(folder / RESULTS)
    return [Measured(**one) for one in found], ending


def main(folder: Path, parent: int) -> None:
    """Measures what the folder's settings say, for the process `parent`."""
    torch.set_num_threads(1)
    take_low_priority()
    settings = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
    watch, end = Watch(folder, parent), time.monotonic() + settings["seconds"]
    ending = "done"

    def stop() -> bool:
        nonlocal ending
        ending = watch.ending(end) or ending
        return ending != "done"

    with (folder / RESULTS).open("a", encoding="utf-8") as file:
        for one in measure(settings["lengths"], stop, settings["kind"]):
            file.write(json.dumps(asdict(one)) + "\n")
            file.flush()
        file.write(json.dumps({"ending": ending}) + "\n")


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main(Path(sys.argv[1]), int(sys.argv[2]))
