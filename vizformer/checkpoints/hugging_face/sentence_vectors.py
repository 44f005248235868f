"""How an encoder of sentences makes one vector of a text: the files that sentence-transformers writes beside the weights."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from vizformer.checkpoints.files.untrusted_folder import Folder, shown
from vizformer.errors import CheckpointError

MODULES, PLACE, CONFIG = "modules.json", "1_Pooling", "config.json"
Pooling = Literal["mean", "cls", "max", "mean_sqrt_len"]
_MODES: Mapping[str, Pooling] = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len",
}
_READ = ("Transformer", "Pooling", "Normalize")  # a cosine does not see the last one


def sentence_pooling(path: Path) -> Pooling | None:
    """One of "mean", "cls", "max" and "mean_sqrt_len"; None where no file says."""
    above = Folder(path)
    if not above.has(PLACE) or not (path / PLACE).resolve().is_relative_to(path.resolve()):
        return None
    if above.has(MODULES):
        modules = above.json(MODULES)
        types = [str(one.get("type")) for one in modules if isinstance(one, dict)] if isinstance(modules, list) else []
        for kind in types:
            if kind.rpartition(".")[2] not in _READ:
                raise CheckpointError(
                    "{file} names {kind} after the model, which VizFormer does not compute: it would "
                    "show another vector of the text than this model has.",
                    file=MODULES,
                    kind=shown(kind),
                )
    said = Folder(path / PLACE).object(CONFIG)
    on = [name for name, value in said.items() if name.startswith("pooling_mode") and value is True]
    if len(on) != 1 or on[0] not in _MODES:
        raise CheckpointError(
            "{file} says {modes}; supported here is one of {choices}.",
            file=f"{PLACE}/{CONFIG}",
            modes=", ".join(on[:4]) or "-",
            choices=", ".join(_MODES),
        )
    return _MODES[on[0]]
