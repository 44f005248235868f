"""What a model will need, before anything is loaded: said in bytes, and refused where it does not fit.

How much this process may still take says the machine, each control group that it is in, and its own limits.  A job
of a cluster and a container are control groups inside others, each with a limit of its own or none: what is left is the
least of all of them, from the process's own group up to the root.

Source: cgroups(7), proc(5), getrlimit(2) of Linux; there is nothing of the kind elsewhere but the limits of the process.
"""

import math
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import torch
from torch import Tensor

from vizformer.checkpoints.files.untrusted_folder import shown
from vizformer.checkpoints.files.weights import all_finite
from vizformer.checkpoints.tensors.report import Report
from vizformer.config import ModelConfig, ModelShape
from vizformer.errors import CheckpointError
from vizformer.messages import N_, Message

PROC = Path("/proc")
_LIMITS = (  # file of a limit, file of what is used: of cgroups version 2, then of version 1
    ("memory.max", "memory.current"),
    ("memory.high", "memory.current"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes"),
)

DTYPES: dict[str, torch.dtype] = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "float64": torch.float64,
}
AUTO = "auto"


def free_bytes() -> int | None:
    """The least that is left of all limits; None where nobody says."""
    left = [*_of_the_machine(), *_of_control_groups(), *_of_the_process()]
    return max(min(left), 0) if left else None


def _of_the_machine() -> Iterator[int]:
    for name, value in _fields("meminfo"):
        if name == "MemAvailable":
            yield value


def _of_control_groups() -> Iterator[int]:
    for group in _groups():
        for limit, used in _LIMITS:
            try:
                yield int((group / limit).read_text()) - int((group / used).read_text()) + _given_back(group)
            except (OSError, ValueError):  # no such file, or "max"
                continue


def _given_back(group: Path) -> int:
    """The bytes of a group's inactive page cache, which the system reclaims first."""
    try:
        said = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):
        return 0
    # version 1 counts the groups inside apart
    return int(said.get("total_inactive_file", said.get("inactive_file", 0)))


def _groups() -> Iterator[Path]:
    """The folders of the groups that bound this process's memory, its own and those around it."""
    inside: dict[str, PurePosixPath] = {}  # kind of hierarchy -> path of this process's group in it
    for line in _lines("self/cgroup"):
        __, controllers, path = line.split(":", 2)
        if controllers == "" or "memory" in controllers.split(","):
            inside["cgroup2" if controllers == "" else "cgroup"] = PurePosixPath(path)
    for line in _lines("self/mountinfo"):
        mount, __, system = line.partition(" - ")
        fields, said = mount.split(), system.split()  # said: the kind of file system, the source, its options
        if (kind := said[0]) not in inside or (kind == "cgroup" and "memory" not in said[-1].split(",")):
            continue
        root, folder, own = PurePosixPath(fields[3]), Path(fields[4]), inside[kind]
        within = own.relative_to(root) if own.is_relative_to(root) and ".." not in own.parts else PurePosixPath()
        yield from (folder / part for part in (within, *within.parents))


def _of_the_process() -> Iterator[int]:
    """The bytes left under the limits of `ulimit -v` and `ulimit -d`, which also count memory-mapped files."""
    if sys.platform == "win32":
        return
    import resource

    used = dict(_fields("self/status"))
    for kind, field in ((resource.RLIMIT_AS, "VmSize"), (resource.RLIMIT_DATA, "VmData")):
        limit = resource.getrlimit(kind)[0]
        if limit != resource.RLIM_INFINITY and field in used:
            yield limit - used[field]


def _fields(name: str) -> Iterator[tuple[str, int]]:
    """The numbers of a file of /proc that has lines such as "VmSize:  1024 kB", in bytes."""
    for line in _lines(name):
        key, __, value = line.partition(":")
        number, __, unit = value.strip().partition(" ")
        if number.isdigit() and unit == "kB":
            yield key, int(number) * 1024


def _lines(name: str) -> list[str]:
    try:
        return (PROC / name).read_text().splitlines()
    except (OSError, ValueError):
        return []


TOKENS = 512  # of the text that the first forward is reckoned with; the pages accept no longer one
SPARE = 256 * 2**20  # for the server, the browser's pictures and everything that is not reckoned

CPU = torch.device("cpu")


@dataclass(frozen=True)
class Need:
    """Bytes, on the device that the model computes on."""

    weights: int  # but for those that stay mapped to the file: its own pages, which the system gives back when it must
    forward: int
    tokens: int  # the length of the text that the estimate assumes

    @property
    def total(self) -> int:
        return self.weights + self.forward


def need(report: Report, dtype: torch.dtype, device: torch.device = CPU) -> Need:
    """What opening a model in `dtype` on `device` and one traced forward over `TOKENS` tokens take.

    Weights stay mapped on the processor, in the file's dtype.  Of the machine's own memory, a model for another device needs
    room for one tensor at a time.
    """
    weights = 0
    for tensor in report.tensors:
        if tensor.fate != "used":
            continue
        if tensor.reordered or tensor.dtype != name_of(dtype) or device.type != "cpu":
            weights += dtype.itemsize * math.prod(tensor.shape)
    config = report.config
    if config is None:
        n = min(TOKENS, report.shape.max_positions)
        return Need(weights + report.buffers, recorded_bytes(report.shape, n, dtype), n)
    tables = [t.shape for t in report.tensors if t.fate == "used" and "embedding.weight" in t.becomes]
    made = config.vocab_size * config.d_model - sum(math.prod(shape) for shape in tables)
    weights += dtype.itemsize * max(0, made)  # a table that is made of smaller tensors
    n = min(TOKENS, config.max_positions)
    return Need(weights, forward_bytes(config, n, dtype), n)


def forward_bytes(config: ModelConfig, n: int, dtype: torch.dtype) -> int:
    """A traced forward over n tokens: per layer q, k, v and the points of the residual stream, then the logits.

    (2 d_attn + 2 d_kv + 3 d_model) n numbers a layer at most (cross-attention has its own q, k, v), the hidden layer once,
    and n vocab_size logits.
    """
    heads, shared = config.n_heads * config.d_head, config.kv_heads * config.d_head
    layers = config.n_encoder_layers + 2 * config.n_decoder_layers  # with cross-attention, a decoder layer has two
    per_layer = heads + 2 * shared + 3 * config.d_model
    return n * (layers * per_layer + 3 * config.d_ff + 2 * config.vocab_size) * dtype.itemsize


def recorded_bytes(shape: ModelShape, n: int, dtype: torch.dtype) -> int:
    """A recorded forward over n tokens: per layer q, k, v, z (of both kinds in a decoder behind an encoder) and a point of
    the stream, a mask of n^2 numbers in float32, and the scores of the widest layer, twice; then the logits.
    """
    calls = sum(map(len, (shape.encoder_heads, shape.decoder_heads, shape.cross_heads)))
    width = max(shape.d_model, shape.n_heads * shape.d_head)
    kept = n * (calls * 4 * width + shape.depth * shape.d_model + 2 * shape.vocab_size)
    return (kept + 2 * shape.n_heads * n * n) * dtype.itemsize + calls * n * n * 4


def available(device: torch.device = CPU) -> int | None:
    """Bytes that can be had now, of the machine or of the container that we are in; None where nobody says.

    Of a GPU: what its driver says is free, with what this process holds of it without using it.
    """
    if device.type == "cuda":
        idle = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(torch.cuda.mem_get_info(device)[0]) + idle
    if device.type == "mps":
        return int(torch.mps.recommended_max_memory()) - int(torch.mps.driver_allocated_memory())
    if device.type != "cpu":
        return None
    return free_bytes()


class DoesNotFitError(CheckpointError):
    """A model that needs more memory than there is; `fitting` are the names of dtypes in which it would fit."""

    passing = True  # memory comes and goes

    def __init__(self, message: Message, fitting: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.fitting = fitting


def require(report: Report, dtype: torch.dtype, device: torch.device = CPU) -> None:
    """Refuses a model that does not fit.

    Raises:
        DoesNotFitError: says what it needs, what there is, and the ways out.
    """
    needed = need(report, dtype, device)
    if _fits(needed, device):
        return
    fitting = smaller_that_fit(report, dtype, device)
    raise DoesNotFitError(
        N_(
            "{name} does not fit: in {dtype} its weights take {weights} and a text of {n} tokens {forward}; {free} are "
            "free ({device}). {way_out}",
            name=report.name,
            weights=size(needed.weights),
            forward=size(needed.forward),
            free=size(available(device) or 0),
            dtype=name_of(dtype),
            n=needed.tokens,
            device=str(device),
            way_out=N_(
                "In {half} it fits (dtype={half!r}; in the app: Model report, Computes in); or choose a smaller model, or "
                "a machine with more memory.",
                half=fitting[0],
            )
            if fitting
            else N_("Choose a smaller model, or a machine with more memory."),
        ),
        fitting,
    )


def smaller_that_fit(report: Report, dtype: torch.dtype, device: torch.device = CPU) -> tuple[str, ...]:
    """The names of the smaller precisions in which a model fits, the smallest need first."""
    needs = {
        name_of(other): need(report, other, device)
        for other in (torch.bfloat16, torch.float16)
        if other.itemsize < dtype.itemsize
    }
    return tuple(sorted((name for name in needs if _fits(needs[name], device)), key=lambda name: needs[name].total))


def _fits(needed: Need, device: torch.device) -> bool:
    free = available(device)
    return free is None or needed.total + SPARE <= free


def size(n_bytes: int) -> str:
    """Bytes, as people read them."""
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if n_bytes >= 1024**power:
            return f"{n_bytes / 1024**power:,.1f} {unit}"
    return f"{n_bytes} B"


# In which precision a model computes, and on which device: what was asked for, and whether it can be had.
def name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def chosen_dtype(asked: torch.dtype | str, stored: Iterable[str]) -> torch.dtype:
    """The dtype to compute in: as asked or, for "auto", the one that the `stored` tensors have.

    Where these are mixed, the smallest that holds all of them exactly: float32 for bfloat16 beside float16.
    """
    name = name_of(asked) if isinstance(asked, torch.dtype) else str(asked)
    if name == AUTO:
        kinds = [DTYPES[kind] for kind in dict.fromkeys(stored) if kind in DTYPES]
        common = kinds[0] if kinds else torch.float32
        for kind in kinds[1:]:
            common = torch.promote_types(common, kind)
        return common
    if name not in DTYPES:
        raise CheckpointError(
            "Models compute in {options}, or with dtype={auto!r} as their file stores them, not in {dtype}.",
            options=", ".join(DTYPES),
            auto=AUTO,
            dtype=name[:40],
        )
    return DTYPES[name]


def chosen_device(asked: torch.device | str) -> torch.device:
    """The device by its name: "cpu", "cuda" (the current one), "cuda:1", "mps", ..."""
    try:
        device = torch.device(asked)
        if device == torch.device("cuda") and torch.cuda.is_available():
            device = torch.device("cuda", torch.cuda.current_device())
        if device.type == "meta":
            raise RuntimeError("tensors there hold no numbers")
        torch.empty(1, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError, ValueError) as error:  # as each backend says it
        raise CheckpointError(
            "There is no device {device} here: {reason}. There is: {devices}. Leave the device out to compute on "
            "the processor.",
            device=str(asked)[:40],
            reason=str(error).partition("\n")[0].rstrip(". ")[:200],
            devices=", ".join(devices()),
        ) from error
    return device


def place(tensor: Tensor, dtype: torch.dtype, device: torch.device, name: str = "") -> Tensor:
    """The tensor in the dtype and where the model computes; the same memory where it is so already."""
    found = tensor.to(device, dtype)
    if dtype == torch.float16 and tensor.dtype != torch.float16 and not all_finite(found):
        raise CheckpointError(
            "{name} has numbers above 65504, which float16 cannot hold. Choose bfloat16 or float32.", name=shown(name)
        )
    return found


def devices() -> list[str]:
    """The names of the devices of this machine that can hold a model."""
    found = ["cpu", *(f"cuda:{index}" for index in range(torch.cuda.device_count()))]
    return [*found, "mps"] if torch.backends.mps.is_available() else found
