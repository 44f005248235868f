"""The bytes that a KV cache of recorded code holds, by the keys and values that were seen."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int
from numpy import ndarray

from vizformer.model import Trace


@dataclass(frozen=True)
class RecordedCache:
    """Bytes of keys and values.

    Attributes:
        cache_bytes: when each step's token was chosen.
        memory_bytes: what of them does not grow: it belongs to the source.
    """

    cache_bytes: Int[ndarray, " steps"]
    memory_bytes: int


def recorded_cache(trace: Trace, start: int, steps: int) -> RecordedCache:
    """The KV cache of each of `steps` new tokens after `start` positions: the keys and values of all positions before it.

    A row of a decoder's self-attention has sum over layers of n_kv_heads (d_head + d_value) numbers; rows that heads share
    count once.  The source's rows of cross-attention stay the same.
    """
    row, memory = 0, 0
    for site in trace.sites:
        if site.startswith("decoder."):
            record = trace[site]
            held = record.k.nbytes + record.v.nbytes
            row, memory = (row, memory + held) if site.endswith(".cross") else (row + held // record.k.shape[1], memory)
    return RecordedCache(memory + row * np.arange(start, start + steps, dtype=np.int64), memory)
