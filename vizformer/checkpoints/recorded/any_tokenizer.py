"""Wraps the tokenizer of any library as one of ours."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from tokenizers import Tokenizer as Backend

from vizformer.errors import CheckpointError, TokenizerError, VizformerError
from vizformer.text import Token, Tokenizer
from vizformer.text.pieces import readable
from vizformer.text.tokenizer import IdTokenizer

_MOST_HASHED = 300_000  # ids of which `to_json` writes down the texts


def as_tokenizer(given: Any, rows: int) -> Tokenizer:
    """A tokenizer of ours from one of ours, of `tokenizers`, of `transformers`, or an object with `encode` and `decode`.

    Args:
        given: None: token ids are typed.
        rows: of the model's table of embeddings.

    Raises:
        CheckpointError: it is none of these.
    """
    if given is None:
        return IdTokenizer(rows)
    if isinstance(given, Tokenizer):
        return given.with_rows(rows)
    if isinstance(given, Backend):
        return Tokenizer(given).with_rows(rows)
    if isinstance(backend := getattr(given, "backend_tokenizer", None), Backend):
        return Tokenizer(backend).with_rows(rows)
    if callable(getattr(given, "encode", None)) and callable(getattr(given, "decode", None)):
        return AnyTokenizer(given, rows)
    raise CheckpointError(
        "{kind} is no tokenizer: give one of tokenizers, one of transformers, or an object with encode(text) -> ids and "
        "decode(ids) -> text.",
        kind=type(given).__name__,
    )


class AnyTokenizer(Tokenizer):
    """Wraps an object with `encode(text) -> ids` and `decode(ids) -> text`; a token's piece is decode([id])."""

    def __init__(self, coder: Any, rows: int) -> None:
        self._coder, self._rows = coder, rows
        self._special = {id for id in getattr(coder, "all_special_ids", ()) if isinstance(id, int)}
        self._text = lru_cache(maxsize=2**16)(self._decoded)

    def _decoded(self, id: int) -> str:
        return self.decode([id]) or f"[{id}]"

    def _failed(self, what: str, error: Exception) -> TokenizerError:
        return TokenizerError(
            "The tokenizer's own code stopped at {what} ({kind}: {error}). Use a text that it can read, "
            "or correct the code.",
            what=what,
            kind=type(error).__name__,
            error=str(error)[:200],
        )

    @property
    def vocab_size(self) -> int:
        return self._rows

    def encode(self, text: str, *, special: bool = True) -> tuple[Token, ...]:
        try:
            ids = [int(id) for id in self._coder.encode(text)]
        except VizformerError:
            raise
        except Exception as error:  # whatever a stranger's code raises
            raise self._failed("encode", error) from error
        return self._placed(self.tokens(ids), text)

    def encode_target(self, text: str) -> tuple[Token, ...]:
        return self.encode(text, special=False)

    def encode_ids(self, texts: Sequence[str]) -> list[list[int]]:
        return [[token.id for token in self.encode(text)] for text in texts]

    @staticmethod
    def _placed(tokens: tuple[Token, ...], text: str) -> tuple[Token, ...]:
        """The tokens with their places in the text, as far as their texts are found there one after the other."""
        placed, at = [], 0
        for token in tokens:
            word = token.piece.strip()
            start = text.find(word, at) if word and not token.special else -1
            if start < 0 or text[at:start].strip():
                placed.append(token)
                continue
            at = start + len(word)
            placed.append(Token(token.id, token.text, token.piece, start, at, len(text[: start + 1].split()) - 1))
        return tuple(placed)

    def tokens(self, ids: list[int]) -> tuple[Token, ...]:
        return tuple(self._token(id) for id in ids)

    def _token(self, id: int, start: int = 0, end: int = 0, word: int | None = None) -> Token:
        if not 0 <= id < self._rows:
            raise TokenizerError(
                "Token id {id} is not in the vocabulary: ids go from 0 to {last}.", id=id, last=self._rows - 1
            )
        text = self._text(id)
        return Token(id, readable(text, "plain"), text, start, end, word, id in self._special)

    def decode(self, ids: list[int]) -> str:
        try:
            return str(self._coder.decode([id for id in ids if len(ids) == 1 or id not in self._special]))
        except Exception as error:  # whatever a stranger's code raises
            raise self._failed("decode", error) from error

    def id_of(self, piece: str) -> int | None:
        try:
            ids = [int(id) for id in self._coder.encode(piece)]
        except Exception:  # a piece that it does not know
            return None
        return ids[0] if len(ids) == 1 and self._text(ids[0]) == piece else None

    @property
    def unknown_id(self) -> int | None:
        found = getattr(self._coder, "unk_token_id", None)
        return found if isinstance(found, int) else None

    def bytes_of(self, id: int) -> bytes:
        return self._token(id).piece.encode()

    def with_rows(self, rows: int) -> Tokenizer:
        return AnyTokenizer(self._coder, max(rows, self._rows))

    def to_json(self) -> str:
        """The text of every id: two that agree in it are one for whoever looks."""
        return repr([type(self._coder).__qualname__, *map(self._said, range(min(self._rows, _MOST_HASHED)))])

    def _said(self, id: int) -> str:
        try:
            return self._decoded(id)
        except TokenizerError:
            return ""
