"""Files of weights that we write."""

import stat
from collections.abc import Mapping
from pathlib import Path

from safetensors.torch import save_file
from torch import Tensor


def write_weights(tensors: Mapping[str, Tensor], path: Path, metadata: Mapping[str, str] | None = None) -> None:
    """A .safetensors file with the rights of any new file: the library's own are those of a temporary one, 0600."""
    save_file(dict(tensors), path, metadata=None if metadata is None else dict(metadata))
    new = path.with_name(f".{path.name}.rights")
    new.touch()
    path.chmod(stat.S_IMODE(new.stat().st_mode))
    new.unlink()
