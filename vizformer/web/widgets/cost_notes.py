"""What is said where costs are counted: of a model without attention, and of one with a sliding window."""

from vizformer.config import ModelConfig
from vizformer.messages import ranges
from vizformer.web.words.i18n import _
from vizformer.web.words.labels import size


def saved(config: ModelConfig, n: int, held: int, rolling: int) -> str:
    """What a cache of n positions with `held` bytes would need if it forgot what no query sees; empty without a window."""
    if config.sliding_window is None:
        return ""
    layers, window = ranges(sorted(config.windowed_layers)), f"{config.sliding_window:,}"
    if held == rolling:
        return _(
            "A sliding window hides all but the latest {window} tokens (layers: {layers}). These {n} fit into it, "
            "so there is nothing to forget yet.",
            layers=layers,
            window=window,
            n=f"{n:,}",
        )
    return _(
        "A sliding window hides all but the latest {window} tokens (layers: {layers}). The cache here keeps "
        "everything; without tokens that no query sees any more it would hold {rolling} instead of {held}.",
        layers=layers,
        window=window,
        rolling=size(rolling),
        held=size(held),
    )
