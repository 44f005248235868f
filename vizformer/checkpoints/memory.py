"""What a model will need, before anything is loaded: said in bytes, and refused where it does not fit."""

from dataclasses import dataclass
from pathlib import Path

import torch

from vizformer.checkpoints.report import Report
from vizformer.config import ModelConfig
from vizformer.errors import CheckpointError
from vizformer.messages import N_

TOKENS = 512  # of the text that the first forward is reckoned with; the pages accept no longer one
SPARE = 256 * 2**20  # for the server, the browser's pictures and everything that is not reckoned
_MEMINFO = Path("/proc/meminfo")
_CGROUPS = (
    (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")),
    (Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"), Path("/sys/fs/cgroup/memory/memory.usage_in_bytes")),
)


@dataclass(frozen=True)
class Need:
    """Bytes: of weights that are copied, of weights that stay mapped to the file, of one traced forward."""

    copied: int
    mapped: int
    forward: int

    @property
    def total(self) -> int:
        """What must be free; mapped weights are the file's own pages, which the system gives back when it must."""
        return self.copied + self.forward


def need(report: Report, dtype: torch.dtype) -> Need:
    """What opening a model in `dtype` and one traced forward over `TOKENS` tokens take."""
    copied = mapped = 0
    for tensor in report.tensors:
        if tensor.fate != "used":
            continue
        size = dtype.itemsize
        for length in tensor.shape:
            size *= length
        if tensor.dtype == _name(dtype):
            mapped += size
        else:
            copied += size
    return Need(copied, mapped, forward_bytes(report.config, min(TOKENS, report.config.max_positions), dtype))


def forward_bytes(config: ModelConfig, n: int, dtype: torch.dtype) -> int:
    """A traced forward over n tokens: per layer q, k, v and the points of the residual stream, then the logits.

    (2 d_attn + 2 d_kv + 3 d_model) n numbers a layer at most (cross-attention has its own q, k, v), the widest hidden
    layer once, and n vocab_size logits.
    """
    heads = config.n_heads * config.d_head
    shared = config.kv_heads * config.d_head
    layers = config.n_encoder_layers + 2 * config.n_decoder_layers  # with cross-attention, a decoder layer has two
    per_layer = heads + 2 * shared + 3 * config.d_model
    return n * (layers * per_layer + 3 * config.d_ff + 2 * config.vocab_size) * dtype.itemsize


def available() -> int | None:
    """Bytes that can be had now, of the machine or of the container that we are in; None where nobody says."""
    free: list[int] = []
    try:
        for line in _MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                free.append(int(line.split()[1]) * 1024)
    except (OSError, ValueError, IndexError):
        pass
    for limit, used in _CGROUPS:
        try:
            free.append(int(limit.read_text()) - int(used.read_text()))
        except (OSError, ValueError):  # no such file, or "max"
            continue
    return max(min(free), 0) if free else None


def require(report: Report, dtype: torch.dtype) -> None:
    """Refuses a model that does not fit.

    Raises:
        CheckpointError: says what it needs, what there is, and the ways out.
    """
    free, needed = available(), need(report, dtype)
    if free is None or needed.total + SPARE <= free:
        return
    smaller = [other for other in (torch.bfloat16, torch.float16) if other.itemsize < dtype.itemsize]
    fitting = [other for other in smaller if need(report, other).total + SPARE <= free]
    values = dict(
        name=report.name, weights=gigabytes(needed.copied), forward=gigabytes(needed.forward), free=gigabytes(free),
        dtype=_name(dtype), n=TOKENS,
    )  # fmt: skip
    if fitting:
        raise CheckpointError(
            N_("{name} does not fit: in {dtype} its weights take {weights} GB and a text of {n} tokens {forward} GB; "
               "{free} GB are free. In {half} it fits (dtype=torch.{half}); or choose a smaller model, or a machine "
               "with more memory.", half=_name(min(fitting, key=lambda other: need(report, other).total)), **values)
        )  # fmt: skip
    raise CheckpointError(
        N_("{name} does not fit: in {dtype} its weights take {weights} GB and a text of {n} tokens {forward} GB; "
           "{free} GB are free. Choose a smaller model, or a machine with more memory.", **values)
    )  # fmt: skip


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def gigabytes(size: int) -> str:
    return f"{size / 1e9:.2f}" if size < 1e10 else f"{size / 1e9:.0f}"
