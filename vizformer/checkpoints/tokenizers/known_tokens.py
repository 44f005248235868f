"""A tokenizer without a token for the unknown: a text with something else than what it knows is refused by name."""

import re

from tokenizers import models

from vizformer.checkpoints.files.untrusted_folder import shown
from vizformer.errors import TokenizerError
from vizformer.text import Token, Tokenizer

_LONGEST = 100_000  # characters; the pages accept no such texts


class KnownTokens(Tokenizer):
    """Looks up the characters or words of a text, all of which must be in its vocabulary."""

    def encode(self, text: str, *, special: bool = True) -> tuple[Token, ...]:
        """The tokens of a text.

        Raises:
            TokenizerError: something in it is not in the vocabulary.
        """
        backend = self._backend
        clean = text[:_LONGEST]
        marks = [token.content for token in backend.get_added_tokens_decoder().values()]
        parts = re.split("|".join(map(re.escape, sorted(marks, key=len, reverse=True))), clean) if marks else [clean]
        for part in parts:
            cleaned = part if backend.normalizer is None else backend.normalizer.normalize_str(part)
            for piece, __ in backend.pre_tokenizer.pre_tokenize_str(cleaned):
                if backend.token_to_id(piece) is None:
                    raise TokenizerError(
                        "{piece} is not in the vocabulary of this model, which has no unknown token. Leave it out.",
                        piece=shown(piece[:40]),
                    )
        return super().encode(text, special=special)


def known_only(tokenizer: Tokenizer) -> Tokenizer:
    """The tokenizer itself, or the one that refuses what it does not know, where it looks up whole pieces of a text."""
    backend = tokenizer._backend
    if not isinstance(backend.model, models.WordLevel) or backend.pre_tokenizer is None:
        return tokenizer
    return tokenizer if backend.token_to_id(backend.model.unk_token) is not None else KnownTokens(backend)
