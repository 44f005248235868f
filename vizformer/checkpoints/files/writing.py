"""Files of weights that we write."""

import stat
from collections.abc import Mapping
from pathlib import Path

from safetensors.torch import save_file
from torch import Tensor


def write_weights(tensors: Mapping[str, Tensor], path: Path, metadata: Mapping[str, str] | None = None) -> None:
    """A .safetensors file with the rights of any new file: the library's own are those of a temporary one, 0600."""
    path.touch()
    mode = stat.S_IMODE(path.stat().st_mode)
    save_file(dict(tensors), path, metadata=None if metadata is None else dict(metadata))
    path.chmod(mode)
