"""A tokenizer for models that came without one: a text is the token ids themselves."""

import re

from tokenizers import Regex, models, pre_tokenizers
from tokenizers import Tokenizer as Backend

from vizformer.checkpoints.files.untrusted_folder import shown
from vizformer.config import ModelConfig
from vizformer.errors import CheckpointError, TokenizerError
from vizformer.messages import N_, Message
from vizformer.text import Token, Tokenizer

MOST_NUMBERS = 2**20  # rows; no vocabulary in use has more


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
        stray = next((_printable(word) for word in words if word and self.id_of(word) is None), None)
        if stray is None:
            return super().encode(text, special=special)
        raise TokenizerError(
            N_(
                "This model came without a tokenizer: type token ids from 0 to {last}, separated by spaces. "
                "{value} is none.",
                last=self.vocab_size - 1,
                value=stray,
            )
        )


def without_tokenizer(config: ModelConfig) -> tuple[IdTokenizer, IdTokenizer | None, Message]:
    """What reads the token ids of a model; the source's, where that has another vocabulary; what is assumed.

    Raises:
        CheckpointError: a vocabulary so large that its ids are not listed.
    """
    rows, last = config.source_vocab_size, config.vocab_size - 1
    if rows is None:
        return (
            _numbers(config.vocab_size),
            None,
            N_("there is no tokenizer: numbers separated by spaces are read as token ids, 0 to {last}", last=last),
        )
    return (
        _numbers(config.vocab_size),
        _numbers(rows),
        N_(
            "there is no tokenizer: numbers separated by spaces are read as token ids, 0 to {source} in the source and 0 "
            "to {last} in the target",
            source=rows - 1,
            last=last,
        ),
    )


def _numbers(rows: int) -> IdTokenizer:
    if rows > MOST_NUMBERS:
        raise CheckpointError(
            N_(
                "There is no tokenizer, and a table of embeddings with {n:,} rows: at most {limit:,} are read "
                "without one. Put tokenizer.json beside the weights.",
                n=rows,
                limit=MOST_NUMBERS,
            )
        )
    return IdTokenizer(rows)


def _printable(word: str) -> str:
    """A word as it was typed, if it can be printed: somebody's own, unlike what a file says."""
    return f'"{word[:40]}"' if word[:40].isprintable() else shown(word[:40])


def as_numbers(tokenizer: Tokenizer) -> Tokenizer:
    """The tokenizer itself, or the reader of numbers that it was before it was saved."""
    n = tokenizer.vocab_size
    if not n or any(tokenizer.id_of(str(id)) != id for id in range(n)):  # for others over after a token or two
        return tokenizer
    reader = IdTokenizer(n)
    return reader if reader.to_json() == tokenizer.to_json() else tokenizer
