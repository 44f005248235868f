"""A tokenizer for models that came without one: a text is the token ids themselves."""

import re

from tokenizers import Regex, models, pre_tokenizers
from tokenizers import Tokenizer as Backend

from vizformer.checkpoints.reading import shown
from vizformer.errors import TokenizerError
from vizformer.messages import N_
from vizformer.text import Token, Tokenizer


class NumberReader(Tokenizer):
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
        for word in re.split(r"[\s,]+", text.strip()):
            if word and self.id_of(word) is None:
                raise TokenizerError(
                    N_("This model came without a tokenizer: type token ids from 0 to {last}, separated by spaces. "
                       "{value} is none.", last=self.vocab_size - 1, value=_printable(word))
                )  # fmt: skip
        return super().encode(text, special=special)


def _printable(word: str) -> str:
    """A word as it was typed, if it can be printed: somebody's own, unlike what a file says."""
    return f'"{word[:40]}"' if word[:40].isprintable() else shown(word[:40])


def as_numbers(tokenizer: Tokenizer) -> Tokenizer:
    """The tokenizer itself, or the reader of numbers that it was before it was saved."""
    n = tokenizer.vocab_size
    if not n or any(tokenizer.id_of(str(id)) != id for id in range(n)):  # for others over after a token or two
        return tokenizer
    reader = NumberReader(n)
    return reader if reader.to_json() == tokenizer.to_json() else tokenizer
