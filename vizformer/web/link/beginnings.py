"""What a reader begins with where a link says nothing: a model and a sentence in the reader's language.

The bundled translator reads both languages: who reads English gives it an English sentence.  The models that continue a text
or fill its gaps have a longer one, which asks for something: of the second a word is hidden that it finds.
"""

from dataclasses import dataclass

from vizformer.web.link.languages import SOURCE, match
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.link.view import View


@dataclass(frozen=True)
class Beginning:
    model: ModelRef
    text: str


CHINESE = Beginning(View().model, View().text)  # also what links mean that say anything, but no model or no sentence
ENGLISH = Beginning(CHINESE.model, "I have a cat.")
CONTINUED = Beginning(ModelRef("bundled", "stories"), "The dog was tired, so it went to")
FILLED = Beginning(ModelRef("bundled", "cloze"), "She opened the door and went in.")
TEXTS = (CHINESE.text, ENGLISH.text, CONTINUED.text, FILLED.text)  # the sentences that nobody typed


def of(locale: str | None) -> Beginning:
    """What a reader begins with whose browser asks for the language `locale`; None: it asks for none."""
    return ENGLISH if locale and (match(locale) or SOURCE) == SOURCE else CHINESE


def in_language(language: str) -> Beginning:
    """What begins in a language: "en" or "zh"."""
    return ENGLISH if language == "en" else CHINESE
