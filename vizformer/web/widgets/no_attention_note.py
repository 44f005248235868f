"""What is said where attention is counted, of a model that has none."""

from vizformer.config import ModelConfig
from vizformer.web.words.i18n import show_note


def draw_note(config: ModelConfig) -> bool:
    """Says that no layer has attention; whether that is so."""
    if config.only_states:
        show_note(
            "No layer of this model has attention: each keeps a state, which does not grow with the text. What "
            "attention costs cannot be counted on it; choose a model with attention for that."
        )
    return config.only_states
