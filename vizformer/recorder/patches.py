"""Which tokens of a recorded run are patches of the image that went in: by the model's config and the run's own lengths."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn

from vizformer.errors import TraceError
from vizformer.pieces import Piece, patches

BEFORE: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("clip_vision_model", "dinov2", "dinov2_with_registers", "vit"), ("[CLS]",)),
    "deit": ("[CLS]", "[DIST]"),
    "siglip_vision_model": (),
}
"""The tokens before the patches, by the `model_type` of a config of `transformers`; registers follow them."""


def configs_of(model: nn.Module, stacks: Sequence[str]) -> dict[str, Any]:
    """The config with image_size and patch_size of the nearest module around each list of blocks that has one."""
    modules, found = dict(model.named_modules()), dict[str, Any]()
    for stack in stacks:
        parts = stack.split(".")
        around = (modules.get(".".join(parts[:n])) for n in range(len(parts), -1, -1))
        configs = (getattr(module, "config", None) for module in around)
        config = next((one for one in configs if hasattr(one, "image_size") and hasattr(one, "patch_size")), None)
        if config is not None:
            found[stack] = config
    return found


def deduced(config: Any, image: tuple[int, int], n: int) -> tuple[Piece, ...]:
    """The pieces of a stack of n tokens, of an image of a width and a height in px.

    Raises:
        TraceError: attention within windows; a type that is not in `BEFORE`; numbers that do not add up.
    """
    kind, size = str(getattr(config, "model_type", "-")), config.patch_size
    if hasattr(config, "window_size"):
        raise TraceError(
            "Attention of {kind} stays within windows: its queries are those of a window, not the patches of the image.",
            kind=kind,
        )
    if kind not in BEFORE:
        raise TraceError(
            "It is not known which tokens of {kind} are no patches: say rows, columns, and the names before and after.",
            kind=kind,
        )
    height, width = (size, size) if isinstance(size, int) else size
    rows, columns = image[1] // height, image[0] // width
    before = (*BEFORE[kind], *(f"[REG {at}]" for at in range(getattr(config, "num_register_tokens", 0))))
    if n != len(before) + rows * columns or n == len(before):
        raise TraceError(
            "{rows} × {columns} patches and {others} other tokens by the config, but the run has {n} tokens: say rows, "
            "columns, and the names before and after.",
            rows=rows,
            columns=columns,
            others=len(before),
            n=n,
        )
    return patches(rows, columns, image, size=(columns * width, rows * height), before=before)
