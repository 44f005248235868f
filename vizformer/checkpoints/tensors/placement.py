"""In which precision a model computes, and on which device: what was asked for, and whether it can be had."""

from collections.abc import Iterable

import torch
from torch import Tensor

from vizformer.checkpoints.files.untrusted_folder import shown
from vizformer.checkpoints.files.weights import all_finite
from vizformer.errors import CheckpointError

DTYPES: dict[str, torch.dtype] = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "float64": torch.float64,
}
AUTO = "auto"


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
