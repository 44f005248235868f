"""Special tokens, and those that are added to a vocabulary: what files say of them beside the vocabulary itself."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from tokenizers import AddedToken, models
from tokenizers import Tokenizer as Backend

from vizformer.checkpoints.files.untrusted_folder import Folder, shown
from vizformer.checkpoints.tokenizers.refusals import guarded, raise_refusal
from vizformer.config import ModelConfig
from vizformer.errors import CheckpointError, TokenizerError
from vizformer.messages import N_, Message
from vizformer.text import IdTokenizer, Token, Tokenizer
from vizformer.text.bounds import LONGEST_TOKEN, MOST_ADDED, MOST_IDS

SETTINGS, SPECIAL = "tokenizer_config.json", "special_tokens_map.json"
ADDED, DECODER = "added_tokens.json", "added_tokens_decoder"  # a file; a field of tokenizer_config.json
ROLES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")

_LONGEST = 100_000  # characters; the pages accept no such texts

MOST_NUMBERS = 2**20  # rows; no vocabulary in use has more


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


def settings(folder: Folder) -> dict[str, Any]:
    """What tokenizer_config.json and special_tokens_map.json say, where they are there."""
    found: dict[str, Any] = {}
    for name in (SPECIAL, SETTINGS):
        if folder.has(name):
            found |= folder.object(name)
    return found


def token_text(value: object) -> str | None:
    """A special token as these files write it: a string, or an object with `content`."""
    if isinstance(value, dict):
        value = value.get("content")
    return value if isinstance(value, str) and _is_text(value) else None


def _is_text(value: str) -> bool:
    """Whether it can be written as UTF-8: JSON can hold halves of characters."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def token_ids(folder: Folder, backend: Backend, usual: Mapping[str, str]) -> dict[str, int]:
    """The ids of the special tokens by role ("mask_token"), from the files or else under the family's usual names."""
    said = settings(folder)
    found: dict[str, int] = {}
    for role in ROLES:
        text = token_text(said.get(role)) or usual.get(role)
        id = None if text is None else backend.token_to_id(text)
        if id is not None:
            found[role] = id
    return found


def with_special(folder: Folder, backend: Backend, usual: Mapping[str, str], said: dict[str, Any]) -> Backend:
    """Tells the special tokens from text; only those the files have, so that no id is made up."""
    add_listed(folder, backend)
    more = said.get("additional_special_tokens")
    tokens = {token_text(said.get(role)) or usual.get(role) for role in ROLES}
    tokens |= {token_text(value) for value in more} if isinstance(more, list) else set()
    known = sorted(token for token in tokens if token and backend.token_to_id(token) is not None)
    backend.add_special_tokens(
        [AddedToken(token, normalized=False, special=True, lstrip=token == "<mask>") for token in known]
    )
    return backend


def add_listed(folder: Folder, backend: Backend, *, as_they_stand: bool = False) -> None:
    """The tokens that files name beside the vocabulary: they are matched in a text as a whole.

    Args:
        as_they_stand: they are looked for in the text before anything is done to it, whatever a file says.
    """
    tokens = _listed(folder, as_they_stand)
    known = {id: token for id, token in tokens.items() if backend.token_to_id(token.content) == id}
    behind = [id for id in sorted(tokens) if id not in known]
    first = backend.get_vocab_size(with_added_tokens=True)
    where = ADDED if folder.has(ADDED) else SETTINGS
    if taken := [tokens[id].content for id in behind if backend.token_to_id(tokens[id].content) is not None]:
        raise_refusal(where, f"{shown(taken[0])} has another id already")
    if behind != list(range(first, first + len(behind))):
        raise_refusal(where, f"its ids do not follow the {first} of the vocabulary")
    guarded(where, lambda: backend.add_tokens([tokens[id] for id in (*known, *behind)]))


def _listed(folder: Folder, as_they_stand: bool) -> dict[int, AddedToken]:
    found: dict[int, AddedToken] = {}
    content = folder.object(ADDED) if folder.has(ADDED) else {}
    if not all(type(id) is int and 0 <= id < MOST_IDS for id in content.values()):
        raise_refusal(ADDED, f"an id is no whole number from 0 to {MOST_IDS - 1:,}")
    said = settings(folder).get(DECODER)
    if len(content) + (len(said) if isinstance(said, dict) else 0) > MOST_ADDED:
        raise_refusal(ADDED if content else SETTINGS, f"it adds more than {MOST_ADDED:,} tokens to the vocabulary")
    bounded(content, ADDED)
    for text, id in content.items():
        if not text or not _is_text(text):
            raise_refusal(ADDED, f"{shown(text)} is no token")
        found[id] = AddedToken(text, normalized=False, special=True)
    for key, value in said.items() if isinstance(said, dict) else ():
        token = token_text(value)
        bounded([token or ""], SETTINGS)
        if not key.isdecimal() or not key.isascii() or len(key) > 9 or not token or not isinstance(value, dict):
            raise_refusal(SETTINGS, f"{DECODER} has {shown(key)}: {shown(value)}")
        flags = {name: value.get(name) is True for name in ("lstrip", "rstrip", "single_word", "normalized", "special")}
        found[int(key)] = AddedToken(token, **{**flags, "normalized": flags["normalized"] and not as_they_stand})
    return found


def bounded(tokens: Iterable[str], name: str) -> None:
    """Refuses tokens of more than 2 LONGEST_TOKEN characters."""
    if (longest := max(map(len, tokens), default=0)) > 2 * LONGEST_TOKEN:
        raise_refusal(name, f"a token has {longest:,} characters; at most {LONGEST_TOKEN:,} are read")


# A tokenizer without a token for the unknown: a text with something else than what it knows is refused by name.
def known_only(tokenizer: Tokenizer) -> Tokenizer:
    """The tokenizer itself, or the one that refuses what it does not know, where it looks up whole pieces of a text."""
    backend = tokenizer._backend
    if not isinstance(backend.model, models.WordLevel) or backend.pre_tokenizer is None:
        return tokenizer
    return tokenizer if backend.token_to_id(backend.model.unk_token) is not None else KnownTokens(backend)


# Models that came without a tokenizer: what reads their token ids.
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
