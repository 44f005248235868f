"""Tokenizer files read into the `tokenizers` library: tokenizer.json, or the vocabularies of older models."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as Backend

from vizformer.checkpoints.numbers import NumberReader
from vizformer.checkpoints.reading import Folder, first_line, shown
from vizformer.errors import CheckpointError, VizformerError
from vizformer.messages import N_, Message
from vizformer.text import Tokenizer

TOKENIZER, SETTINGS, SPECIAL = "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"
T = TypeVar("T")
TRIAL = "Hello, world! 你好 1"  # every tokenizer must be able to split this
ROLES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")


@dataclass(frozen=True)
class Vocabularies:
    """What splits texts; what splits translations, where that is something else; and what there is to note about it."""

    texts: Backend
    targets: Backend | None = None
    notes: tuple[Message, ...] = ()


def read_tokenizer(folder: Folder) -> Backend:
    """tokenizer.json as it stands, without the cutting and filling that some files carry along for batches."""
    content = folder.text(TOKENIZER)
    backend = guarded(TOKENIZER, lambda: Backend.from_str(content))
    backend.no_truncation()
    backend.no_padding()
    return backend


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


def token_ids(folder: Folder, backend: Backend, usual: dict[str, str]) -> dict[str, int]:
    """The ids of the special tokens by role ("mask_token"), from the files or else under the family's usual names."""
    said = settings(folder)
    found: dict[str, int] = {}
    for role in ROLES:
        text = token_text(said.get(role)) or usual.get(role)
        id = None if text is None else backend.token_to_id(text)
        if id is not None:
            found[role] = id
    return found


def wordpiece(folder: Folder) -> Backend:
    """vocab.txt: BERT's cleaning, words, and pieces of words that begin with "##"."""
    name = "vocab.txt"
    pieces = folder.text(name).splitlines()
    vocabulary = {piece: id for id, piece in enumerate(pieces)}
    said = settings(folder)
    marks = {role: token_text(said.get(role)) or mark for role, mark in
             {"cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]"}.items()}  # fmt: skip
    if absent := [mark for mark in marks.values() if mark not in vocabulary]:
        refuse(name, f"it lacks {', '.join(map(shown, absent))}")

    def build() -> Backend:
        backend = Backend(models.WordPiece(vocabulary, unk_token=marks["unk_token"], max_input_chars_per_word=100))
        lowercase, accents = said.get("do_lower_case", True), said.get("strip_accents")
        backend.normalizer = normalizers.BertNormalizer(
            lowercase=bool(lowercase), strip_accents=accents if isinstance(accents, bool) else None,
            handle_chinese_chars=bool(said.get("tokenize_chinese_chars", True)),
        )  # fmt: skip
        backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        cls, sep = marks["cls_token"], marks["sep_token"]
        backend.post_processor = processors.BertProcessing((sep, vocabulary[sep]), (cls, vocabulary[cls]))
        backend.decoder = decoders.WordPiece()
        return _with_special(backend, {"pad_token": "[PAD]", "mask_token": "[MASK]", **marks}, said)

    return guarded(name, build)


def byte_level(folder: Folder, usual: dict[str, str], *, around: tuple[str, str] | None = None) -> Backend:
    """vocab.json and merges.txt: byte-level BPE, with the marks of `around` before and after a text (RoBERTa)."""
    name = "vocab.json"
    vocabulary = folder.object(name)
    if not all(type(id) is int and 0 <= id < 2**31 for id in vocabulary.values()):
        refuse(name, "an id is no whole number")
    lines = [line for line in folder.text("merges.txt").split("\n") if line and not line.startswith("#version")]
    if wrong := [line for line in lines if line.count(" ") != 1]:
        refuse("merges.txt", f"{shown(wrong[0])} is no pair")
    merges = [(first, second) for first, __, second in (line.rstrip("\r").partition(" ") for line in lines)]
    said = settings(folder)
    first_space = bool(said.get("add_prefix_space", False))

    def build() -> Backend:
        backend = Backend(models.BPE(vocabulary, merges))
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=first_space)
        backend.decoder = decoders.ByteLevel()
        if around is None:
            backend.post_processor = processors.ByteLevel(trim_offsets=False)
        else:
            cls, sep = around
            backend.post_processor = processors.RobertaProcessing(
                (sep, vocabulary[sep]), (cls, vocabulary[cls]), trim_offsets=True, add_prefix_space=first_space
            )
        return _with_special(backend, usual, said)

    return guarded(name, build)


def _with_special(backend: Backend, usual: dict[str, str], said: dict[str, Any]) -> Backend:
    """Tells the special tokens from text; only those the vocabulary has, so that no id is made up."""
    tokens = {token_text(said.get(role)) or usual.get(role) for role in ROLES}
    known = sorted(token for token in tokens if token and backend.token_to_id(token) is not None)
    backend.add_special_tokens(
        [AddedToken(token, normalized=False, special=True, lstrip=token == "<mask>") for token in known]
    )
    return backend


def guarded(name: str, build: Callable[[], T]) -> T:
    """The library raises bare exceptions and, on some damaged files, what is no `Exception` at all (a Rust panic)."""
    try:
        return build()
    except (KeyboardInterrupt, SystemExit, VizformerError):
        raise
    except BaseException as error:
        refuse(name, first_line(error), error)


def tried(tokenizer: Tokenizer) -> Tokenizer:
    """The tokenizer, after one text has gone there and back: some damage shows only then, as a panic."""
    if not isinstance(tokenizer, NumberReader):
        guarded(TOKENIZER, lambda: tokenizer.decode([token.id for token in tokenizer.encode(TRIAL)]))
        guarded(TOKENIZER, lambda: tokenizer.encode_target(TRIAL))
    return tokenizer


def refuse(name: str, reason: str, cause: BaseException | None = None) -> NoReturn:
    raise CheckpointError(
        N_("{file} cannot be used as a tokenizer ({reason}). Copy it again from the model's source.", file=name,
           reason=reason)
    ) from cause  # fmt: skip


def no_tokenizer(folder: Folder, wanted: str) -> NoReturn:
    """Says what is missing, and what to do with a format that is not read for this family."""
    for name in folder.names():
        if name.endswith((".model", ".spm")):
            raise CheckpointError(
                N_("{folder} has its tokenizer only as {file}, which is not read; {wanted} is needed. Open the "
                   "tokenizer with the `transformers` library and write it again with save_pretrained.",
                   folder=folder.name, file=shown(name), wanted=wanted)
            )  # fmt: skip
    raise CheckpointError(
        N_("{folder} lacks a tokenizer ({wanted}). Copy it from the model's source.", folder=folder.name, wanted=wanted)
    )
