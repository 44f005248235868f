"""The texts of figures and components, in the reader's language.

Figures and components import nothing of ours: they list their texts in English and take them as arguments.
"""

from collections.abc import Mapping

from vizformer import figures
from vizformer.components import attention
from vizformer.config import ModelConfig
from vizformer.web.link.languages import catalogue
from vizformer.web.words.i18n import language


def of_heads(config: ModelConfig) -> dict[str, str]:
    """The texts of the component of attention, for a model of these options."""
    return words(attention.texts_of(sinks=config.sinks, with_states=config.state_layers is not None))


def of_figures() -> dict[str, str]:
    """The texts of all figures."""
    return words(figures.ENGLISH)


def words(english: Mapping[str, str]) -> dict[str, str]:
    """The same names with translated texts; placeholders stay for the component to fill."""
    found = catalogue(language())
    return {name: found.get(text, text) for name, text in english.items()}
