"""A tokenizer for models that came without one: a text is the token ids themselves."""

import json
import re

from tokenizers import Regex, models, pre_tokenizers
from tokenizers import Tokenizer as Backend

from vizformer.errors import TokenizerError
from vizformer.text.tokenizer import Token, Tokenizer

MOST_QUOTED = 40  # characters of a word that is no token id


class IdTokenizer(Tokenizer):
    """Reads "17 4 256" as the tokens 17, 4 and 256; no vocabulary is made up."""

    def __init__(self, vocab_size: int) -> None:
        backend = Backend(models.WordLevel({str(id): id for id in range(vocab_size)}, unk_token=""))
        backend.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s,]+"), "removed")
        super().__init__(backend)

    def encode(self, text: str, *, special: bool = True) -> tuple[Token, ...]:
        """The tokens of numbers separated by spaces or commas.

        Raises:
            TokenizerError: something that is no token id.
        """
        words = re.split(r"[\s,]+", text.strip())
        stray = next((_quoted(word) for word in words if word and self.id_of(word) is None), None)
        if stray is None:
            return super().encode(text, special=special)
        raise TokenizerError(
            "This model came without a tokenizer: type token ids from 0 to {last}, separated by spaces. "
            "{value} is none.",
            last=self.vocab_size - 1,
            value=stray,
        )


def _quoted(word: str) -> str:
    """The beginning of a word as it was typed; what cannot be printed is escaped."""
    return json.dumps(word[:MOST_QUOTED], ensure_ascii=not word[:MOST_QUOTED].isprintable())
