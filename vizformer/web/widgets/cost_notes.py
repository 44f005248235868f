"""What is said where costs are counted: of a model without attention, and of one with a sliding window."""

from vizformer.config import ModelConfig
from vizformer.messages import ranges
from vizformer.web.words.i18n import _, show_note
from vizformer.web.words.labels import size


def draw_no_attention(config: ModelConfig) -> bool:
    """Says that no layer has attention; whether that is so."""
    if config.only_states:
        show_note(
            "No layer of this model has attention: each keeps a state, which does not grow with the text. What "
            "attention costs cannot be counted on it; choose a model with attention for that."
        )
    return config.only_states


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
        "everything; one that forgets what no query sees any more would hold {rolling} instead of {held}.",
        layers=layers,
        window=window,
        rolling=size(rolling),
        held=size(held),
    )
