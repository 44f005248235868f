"""Models that came without a tokenizer: what reads their token ids."""

from vizformer.config import ModelConfig
from vizformer.errors import CheckpointError
from vizformer.messages import N_, Message
from vizformer.text import IdTokenizer, Tokenizer

MOST_NUMBERS = 2**20  # rows; no vocabulary in use has more


def without_tokenizer(config: ModelConfig) -> tuple[IdTokenizer, IdTokenizer | None, Message]:
    """The tokenizer of token ids; the source's, where it has another vocabulary; and the assumption to report."""
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
            "There is no tokenizer, and a table of embeddings with {n:,} rows: at most {limit:,} are read "
            "without one. Put tokenizer.json beside the weights.",
            n=rows,
            limit=MOST_NUMBERS,
        )
    return IdTokenizer(rows)


def as_numbers(tokenizer: Tokenizer) -> Tokenizer:
    """The tokenizer itself, or the reader of numbers that it was before it was saved."""
    n = tokenizer.vocab_size
    if not n or any(tokenizer.id_of(str(id)) != id for id in range(n)):  # for others over after a token or two
        return tokenizer
    reader = IdTokenizer(n)
    return reader if reader.to_json() == tokenizer.to_json() else tokenizer
