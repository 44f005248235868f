"""The `tokenizers` library under one small type: text to tokens a person can read, with their place in the text."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tokenizers import Encoding, Regex, models, pre_tokenizers
from tokenizers import Tokenizer as Backend

from vizformer.errors import TokenizerError
from vizformer.messages import N_, Message
from vizformer.text import text_growth
from vizformer.text.pieces import Spelling, piece_bytes, readable, script

UNKNOWN_PIECES = ("<unk>", "[UNK]", "<UNK>")
_SHORT = 10_000  # characters; longer texts are cut while the interpreter does something else
_MOST_TOKENS = 2**16  # tokens; a text becomes more only if it has at least a quarter as many characters


@dataclass(frozen=True)
class Token:
    """One token of a text.

    Attributes:
        id: its row in the embedding table.
        text: the text for display, without byte-level or word-piece markers and never broken UTF-8.
        piece: the vocabulary entry itself.
        start, end: the characters of the text it covers, text[start:end]; empty for added special tokens.
        word: index of the word it belongs to, None for added special tokens.
        special: whether it steers the model instead of standing for text.
    """

    id: int
    text: str
    piece: str
    start: int = 0
    end: int = 0
    word: int | None = None
    special: bool = False


class Tokenizer:
    """Text to tokens and back.

    Attributes:
        first_tokens: script of a text -> the token that is put before it (`with_first_tokens`); mostly empty.

    Raises (all methods): TokenizerError, naming the value, the rule and the way out.
    """

    first_tokens: Mapping[str, str] = MappingProxyType({})

    def __init__(self, backend: Backend, target: Backend | None = None) -> None:
        self._backend, self._target = backend, target
        self._rows = 0  # ids below it are a model's, even where the vocabulary has nothing for them
        self._special = {id for id, token in backend.get_added_tokens_decoder().items() if token.special}
        decoder = _state(backend.decoder)
        self._spelling = _spelling(decoder)
        try:
            self._growth = [
                text_growth.growth(_state(one.normalizer), _state(one.pre_tokenizer))
                for one in (backend, target or backend)
            ]
            self._grown_back = text_growth.decoded(decoder)
        except text_growth.BoundsError as error:
            raise TokenizerError(
                "The tokenizer cannot be used ({reason}). Copy it again from the model's source.", reason=error.message
            ) from error

    @classmethod
    def from_file(cls, path: Path) -> "Tokenizer":
        with _calling(
            lambda reason: N_(
                "{path} is not a tokenizer file ({reason}). Copy tokenizer.json again from the model's source.",
                path=path.name,
                reason=reason,
            )
        ):
            return cls(Backend.from_file(str(path)))

    def save(self, path: Path) -> None:
        self._backend.save(str(path))

    def to_json(self) -> str:
        """The content of the file that `save` writes."""
        return str(self._backend.to_str())

    @property
    def target_json(self) -> str:
        """The content of the target tokenizer's file, if translations have a tokenizer of their own; else empty."""
        return "" if self._target is None else str(self._target.to_str())

    def with_target(self, target: Backend | None) -> "Tokenizer":
        """This tokenizer with `target` for translations, which must have the same vocabulary."""
        if target is None:
            return self
        if target.get_vocab(with_added_tokens=True) != self._backend.get_vocab(with_added_tokens=True):
            raise TokenizerError(
                "Texts and translations have different vocabularies: copy the tokenizer again from the model's source."
            )
        return Tokenizer(self._backend, target)

    @property
    def vocab_size(self) -> int:
        return self._backend.get_vocab_size(with_added_tokens=True)

    def encode(self, text: str, *, special: bool = True) -> tuple[Token, ...]:
        """The tokens of `text`; with `special`, also those the model expects around it (such as its end mark)."""
        first = self.tokens(self._first_ids(text)) if special else ()
        return (*first, *self._encoded(self._backend, text, special))

    def encode_target(self, text: str) -> tuple[Token, ...]:
        """The tokens of a given translation, without marks; some models split translations otherwise than texts."""
        if self._target is None:
            return self.encode(text, special=False)
        return self._encoded(self._target, text, special=False)

    def _encoded(self, backend: Backend, text: str, special: bool) -> tuple[Token, ...]:
        grown = self._growth[backend is self._target]
        if not text_growth.allows(text, grown):
            raise _too_long(len(text))
        with _calling(_not_split):
            encoding: Encoding
            if len(text) * grown > _SHORT:  # (only `encode_batch` releases the interpreter lock)
                (encoding,) = backend.encode_batch([text], add_special_tokens=special)
            else:
                encoding = backend.encode(text, add_special_tokens=special)
        if len(encoding) > max(_MOST_TOKENS, 4 * len(text)):
            raise _too_long(len(text))
        return tuple(
            self._token(id, start, end, word)
            for id, (start, end), word in zip(encoding.ids, encoding.offsets, encoding.word_ids, strict=True)
        )

    def with_rows(self, rows: int) -> "Tokenizer":
        """This tokenizer for a model whose embedding table has `rows` rows, more than the vocabulary has tokens.

        Tables are often rounded up: T5's has 28 rows that no text uses, but that the model could predict.
        """
        if rows <= self.vocab_size:
            return self
        wider = copy(self)
        wider._rows = rows
        return wider

    def with_first_tokens(self, first_tokens: Mapping[str, str]) -> "Tokenizer":
        """This tokenizer for a translator of both directions, whose first token says into which language it translates.

        It reads `<2en>我爱中国。` and `<2zh>I love China.`: the script that most of a text is in decides.  A text in none of
        the scripts (numbers, another language) gets the first of the tokens.
        Source: Johnson et al. 2017, section 3.

        Args:
            first_tokens: script, by its Unicode name -> token: `{"CJK": "<2en>", "LATIN": "<2zh>"}`.
        """
        missing = next((piece for piece in first_tokens.values() if self.id_of(piece) is None), None)
        if missing is not None:
            raise TokenizerError("The first token {piece} is not in the vocabulary.", piece=repr(missing)[:80])
        marked = copy(self)
        marked.first_tokens = MappingProxyType(dict(first_tokens))
        return marked

    def _first_ids(self, text: str) -> list[int]:
        by_script = self.first_tokens
        if not by_script:
            return []
        id = self.id_of(by_script.get(script(text), next(iter(by_script.values()))))
        return [] if id is None else [id]

    def encode_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of many texts at once, with the special tokens the model expects: for training."""
        if not all(text_growth.allows(text, self._growth[0]) for text in texts):
            raise _too_long(max(map(len, texts)))
        with _calling(_not_split):
            cut = self._backend.encode_batch_fast(list(texts))
        return [[*self._first_ids(text), *encoding.ids] for text, encoding in zip(texts, cut, strict=True)]

    def tokens(self, ids: list[int]) -> tuple[Token, ...]:
        """Tokens of ids that did not come from a text (a generated target): without offsets and word indices."""
        return tuple(self._token(id) for id in ids)

    def decode(self, ids: list[int]) -> str:
        """The text of `ids`, without the special tokens."""
        if self._grown_back > 1:
            pieces = "".join(self._backend.id_to_token(id) or "" for id in ids if 0 <= id < 2**32)
            if not text_growth.allows(pieces, self._grown_back):
                raise _too_long(len(pieces))
        with _calling(
            lambda reason: N_(
                "These tokens cannot be turned into a text ({reason}). Copy the tokenizer again from the model's source.",
                reason=reason,
            )
        ):
            if len(ids) > _SHORT:
                return str(self._backend.decode_batch([ids], skip_special_tokens=True)[0])
            return str(self._backend.decode(ids, skip_special_tokens=True))

    def id_of(self, piece: str) -> int | None:
        id: int | None = self._backend.token_to_id(piece)
        return id

    @property
    def unknown_id(self) -> int | None:
        """The id of the unknown token: the one that the file names, else one with a usual name; None if there is none."""
        named = getattr(self._backend.model, "unk_token", None)
        pieces = [named, *UNKNOWN_PIECES] if isinstance(named, str) else UNKNOWN_PIECES
        return next((id for piece in pieces if (id := self.id_of(piece)) is not None), None)

    def is_special(self, id: int) -> bool:
        return id in self._special

    def _token(self, id: int, start: int = 0, end: int = 0, word: int | None = None) -> Token:
        piece = self._backend.id_to_token(id) if 0 <= id < 2**32 else None  # the library overflows on other numbers
        if piece is None and 0 <= id < self._rows:
            piece = f"[{id}]"
        if piece is None:
            raise TokenizerError(
                "Token id {id} is not in the vocabulary: ids go from 0 to {last}.",
                id=id,
                last=max(self._rows, self.vocab_size) - 1,
            )
        special = id in self._special
        return Token(id, piece if special else readable(piece, self._spelling), piece, start, end, word, special)

    def bytes_of(self, id: int) -> bytes:
        """The UTF-8 bytes that a token stands for."""
        return piece_bytes(self._token(id).piece, self._spelling)


def failed(error: BaseException) -> bool:
    """Whether an error is a failure of the library: an `Exception`, or one of its panics, which are none."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


@contextmanager
def _calling(said: Callable[[str], Message]) -> Iterator[None]:
    """Turns an error of the library into a `TokenizerError`, with the message that `said` makes of its reason."""
    try:
        yield
    except TokenizerError:
        raise
    except BaseException as error:
        if not failed(error):
            raise
        raise TokenizerError(said(_printable(error))) from error


def _not_split(reason: str) -> Message:
    return N_(
        "This text cannot be split into tokens ({reason}). Remove unusual characters and try again.", reason=reason
    )


def _too_long(n: int) -> TokenizerError:
    return TokenizerError(
        "This text of {n:,} characters is too long: this tokenizer would make it many times longer. Use a shorter text.",
        n=n,
    )


def _printable(error: BaseException) -> str:
    """The text of an error on one line of printable characters, cut to 200: it may quote a damaged file."""
    text = "".join(character if character.isprintable() else "?" for character in str(error))
    return text if len(text) <= 200 else f"{text[:200]}..."


def _state(part: Any) -> dict[str, Any]:
    """The settings of a tokenizer's part, as its file has them; empty if there is no such part."""
    settings: dict[str, Any] = {} if part is None else json.loads(part.__getstate__())
    return settings


def _spelling(decoder: dict[str, Any]) -> Spelling:
    """How the vocabulary writes spaces and bytes, derived from the decoder."""
    parts = {part["type"] for part in [decoder, *decoder.get("decoders", [])] if "type" in part}
    if "ByteLevel" in parts:
        return "byte-level"
    if "WordPiece" in parts:
        return "wordpiece"
    return "metaspace" if parts & {"Metaspace", "ByteFallback", "Replace"} else "plain"


MOST_QUOTED = 40  # characters of a word that is no token id


class IdTokenizer(Tokenizer):
    """The tokenizer of a model that came without one: it reads "17 4 256" as the ids 17, 4 and 256, without a
    vocabulary.
    """

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
            "This model came without a tokenizer: type token ids from 0 to {last}, separated by spaces. {value} is not "
            "a token id.",
            last=self.vocab_size - 1,
            value=stray,
        )


def _quoted(word: str) -> str:
    """The beginning of a word as it was typed, with unprintable characters escaped."""
    return json.dumps(word[:MOST_QUOTED], ensure_ascii=not word[:MOST_QUOTED].isprintable())
