"""Tokenizer files read into the `tokenizers` library: tokenizer.json, or the vocabularies of older models."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as Backend

from vizformer.assets import asset
from vizformer.checkpoints.files.untrusted_folder import Folder, first_line, shown
from vizformer.checkpoints.tokenizers.token_ids import NumberReader
from vizformer.errors import CheckpointError, VizformerError
from vizformer.messages import N_, Message
from vizformer.text import Tokenizer, trial
from vizformer.text.bounds import LONGEST_TOKEN, MOST_ADDED, MOST_ENTRIES, MOST_IDS
from vizformer.text.tokenizer import failed

TOKENIZER, SETTINGS, SPECIAL = "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"
SOURCES = "source_tokenizer.json"  # ours, and beside bare weights: where the source has another vocabulary
ADDED, DECODER = "added_tokens.json", "added_tokens_decoder"  # a file; a field of tokenizer_config.json
T = TypeVar("T")
TRIAL = "Hello, world! 你好 1"  # every tokenizer must be able to split this
# How Qwen cuts a text into words before its bytes are merged: English endings, letters with at most one other character
# in front, single digits, signs with the line ends behind them, line ends, spaces (the last goes with the next word).
QWEN_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
ROLES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")


@dataclass(frozen=True)
class Vocabularies:
    """What splits texts; what splits translations, where that is something else; and what there is to note about it.

    `apart` says that the two have different ids: then those of `targets` are what the model predicts.
    """

    texts: Backend
    targets: Backend | None = None
    notes: tuple[Message, ...] = ()
    apart: bool = False

    @property
    def predicted(self) -> Backend:
        """The one whose ids the logits are of."""
        return self.targets if self.apart and self.targets is not None else self.texts


def read_tokenizer(folder: Folder, name: str = TOKENIZER, rows: int | None = None) -> Backend:
    """tokenizer.json as it stands, without the cutting and filling that some files carry along for batches.

    `rows` are those of the largest table among the weights: a vocabulary that cannot be theirs is not read.

    Raises:
        CheckpointError: a file that is damaged, or asks for too much (`vizformer.text.trial`).
    """
    content = folder.text(name)
    if not folder.path.is_relative_to(asset()):
        try:
            trial.examine(content, rows)
        except trial.TrialError as error:
            refusal = _refusal(name, error.message)
            refusal.passing = isinstance(error, trial.BusyError)
            raise refusal from error
    backend = guarded(name, lambda: Backend.from_str(content))
    backend.no_truncation()
    backend.no_padding()
    highest = max(guarded(name, lambda: backend.get_vocab(with_added_tokens=True)).values(), default=0)
    if highest >= MOST_IDS:
        refuse(name, f"a token has the id {highest:,}; they go up to {MOST_IDS - 1:,} at most")
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
    vocabulary = {piece: id for id, piece in enumerate(_lines(folder, name))}
    said = settings(folder)
    marks = {
        role: token_text(said.get(role)) or mark
        for role, mark in {"cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]"}.items()
    }
    if absent := [mark for mark in marks.values() if mark not in vocabulary]:
        refuse(name, f"it lacks {', '.join(map(shown, absent))}")

    def build() -> Backend:
        backend = Backend(models.WordPiece(vocabulary, unk_token=marks["unk_token"], max_input_chars_per_word=100))
        lowercase, accents = said.get("do_lower_case", True), said.get("strip_accents")
        backend.normalizer = normalizers.BertNormalizer(
            lowercase=bool(lowercase),
            strip_accents=accents if isinstance(accents, bool) else None,
            handle_chinese_chars=bool(said.get("tokenize_chinese_chars", True)),
        )
        backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        cls, sep = marks["cls_token"], marks["sep_token"]
        backend.post_processor = processors.BertProcessing((sep, vocabulary[sep]), (cls, vocabulary[cls]))
        backend.decoder = decoders.WordPiece()
        return _with_special(folder, backend, {"pad_token": "[PAD]", "mask_token": "[MASK]", **marks}, said)

    return guarded(name, build)


def _lines(folder: Folder, name: str) -> list[str]:
    """The lines of a vocabulary; a token may be what Unicode calls a line's end."""
    content = folder.text(name).removesuffix("\n")
    if content.count("\n") >= MOST_ENTRIES:
        refuse(name, f"more than {MOST_ENTRIES:,} lines")
    lines = content.split("\n")
    bounded(lines, name)
    return lines


def bounded(tokens: Iterable[str], name: str) -> None:
    """Refuses tokens that nobody could show."""
    if (longest := max(map(len, tokens), default=0)) > 2 * LONGEST_TOKEN:
        refuse(name, f"a token has {longest:,} characters; at most {LONGEST_TOKEN:,} are read")


def byte_level(
    folder: Folder,
    usual: dict[str, str],
    *,
    around: tuple[str, str] | None = None,
    words: str = "",
    composed: bool = False,
) -> Backend:
    """vocab.json and merges.txt: byte-level BPE.

    Args:
        usual: the special tokens by role, where no file says them.
        around: marks before and after a text (RoBERTa).
        words: pattern by which a text is cut into words; GPT-2's without it.
        composed: whether a letter and its accents are first put together where there is one character for them (NFC).

    Raises:
        CheckpointError: files that are missing or damaged.
    """
    name = "vocab.json"
    if not (folder.has(name) and folder.has("merges.txt")):
        no_tokenizer(folder, "tokenizer.json, or vocab.json and merges.txt")
    vocabulary = folder.object(name)
    if not all(type(id) is int and 0 <= id < MOST_IDS for id in vocabulary.values()):
        refuse(name, f"an id is no whole number from 0 to {MOST_IDS - 1:,}")
    bounded(vocabulary, name)
    lines = [line for line in _lines(folder, "merges.txt") if line and not line.startswith("#version")]
    if wrong := [line for line in lines if line.count(" ") != 1]:
        refuse("merges.txt", f"{shown(wrong[0])} is no pair")
    merges = [(first, second) for first, __, second in (line.rstrip("\r").partition(" ") for line in lines)]
    said = settings(folder)
    first_space = bool(said.get("add_prefix_space", False))

    def build() -> Backend:
        backend = Backend(models.BPE(vocabulary, merges))
        if composed:
            backend.normalizer = normalizers.NFC()
        into_bytes = pre_tokenizers.ByteLevel(add_prefix_space=first_space, use_regex=not words)
        cut = [pre_tokenizers.Split(Regex(words), "isolated")] if words else []
        backend.pre_tokenizer = pre_tokenizers.Sequence([*cut, into_bytes]) if cut else into_bytes
        backend.decoder = decoders.ByteLevel()
        if around is None:
            offsets, start = processors.ByteLevel(trim_offsets=False), token_text(said.get("bos_token"))
            backend.post_processor = offsets
            start = start or usual.get("bos_token", "")
            if said.get("add_bos_token") is True and start in vocabulary:
                template = processors.TemplateProcessing(
                    single=[start, "$A"], special_tokens=[(start, vocabulary[start])]
                )
                backend.post_processor = processors.Sequence([offsets, template])
        else:
            cls, sep = around
            backend.post_processor = processors.RobertaProcessing(
                (sep, vocabulary[sep]), (cls, vocabulary[cls]), trim_offsets=True, add_prefix_space=first_space
            )
        return _with_special(folder, backend, usual, said)

    return guarded(name, build)


def _with_special(folder: Folder, backend: Backend, usual: dict[str, str], said: dict[str, Any]) -> Backend:
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


def qwen(folder: Folder) -> Backend:
    """vocab.json and merges.txt of Qwen2, 2.5 and 3: words cut its own way, no marks around a text.

    Source: the pattern published with the models (tokenization_qwen2.py).
    """
    usual = dict.fromkeys(("eos_token", "pad_token", "unk_token"), "<|endoftext|>")
    return byte_level(folder, usual, words=QWEN_WORDS, composed=True)


def add_listed(folder: Folder, backend: Backend, *, as_they_stand: bool = False) -> None:
    """The tokens that files name beside the vocabulary: they are matched in a text as a whole.

    Args:
        as_they_stand: they are looked for in the text before anything is done to it, whatever a file says.

    Raises:
        CheckpointError: ids that do not follow those of the vocabulary, or are another token's.
    """
    tokens = _listed(folder, as_they_stand)
    known = {id: token for id, token in tokens.items() if backend.token_to_id(token.content) == id}
    behind = [id for id in sorted(tokens) if id not in known]
    first = backend.get_vocab_size(with_added_tokens=True)
    where = ADDED if folder.has(ADDED) else SETTINGS
    if taken := [tokens[id].content for id in behind if backend.token_to_id(tokens[id].content) is not None]:
        refuse(where, f"{shown(taken[0])} has another id already")
    if behind != list(range(first, first + len(behind))):
        refuse(where, f"its ids do not follow the {first} of the vocabulary")
    guarded(where, lambda: backend.add_tokens([tokens[id] for id in (*known, *behind)]))


def _listed(folder: Folder, as_they_stand: bool) -> dict[int, AddedToken]:
    found: dict[int, AddedToken] = {}
    content = folder.object(ADDED) if folder.has(ADDED) else {}
    if not all(type(id) is int and 0 <= id < MOST_IDS for id in content.values()):
        refuse(ADDED, f"an id is no whole number from 0 to {MOST_IDS - 1:,}")
    said = settings(folder).get(DECODER)
    if len(content) + (len(said) if isinstance(said, dict) else 0) > MOST_ADDED:
        refuse(ADDED if content else SETTINGS, f"it adds more than {MOST_ADDED:,} tokens to the vocabulary")
    bounded(content, ADDED)
    for text, id in content.items():
        if not text or not _is_text(text):
            refuse(ADDED, f"{shown(text)} is no token")
        found[id] = AddedToken(text, normalized=False, special=True)
    for key, value in said.items() if isinstance(said, dict) else ():
        token = token_text(value)
        bounded([token or ""], SETTINGS)
        if not key.isdecimal() or not key.isascii() or len(key) > 9 or not token or not isinstance(value, dict):
            refuse(SETTINGS, f"{DECODER} has {shown(key)}: {shown(value)}")
        flags = {name: value.get(name) is True for name in ("lstrip", "rstrip", "single_word", "normalized", "special")}
        found[int(key)] = AddedToken(token, **{**flags, "normalized": flags["normalized"] and not as_they_stand})
    return found


def guarded(name: str, build: Callable[[], T]) -> T:
    """The library raises bare exceptions and, on some damaged files, what is no `Exception` at all (a Rust panic)."""
    try:
        return build()
    except VizformerError:
        raise
    except BaseException as error:
        if not failed(error):
            raise
        refuse(name, first_line(error), error)


def tried(tokenizer: Tokenizer) -> Tokenizer:
    """The tokenizer, after one text has gone there and back: some damage shows only then, as a panic."""
    if not isinstance(tokenizer, NumberReader):
        guarded(TOKENIZER, lambda: tokenizer.decode([token.id for token in tokenizer.encode(TRIAL)]))
        guarded(TOKENIZER, lambda: tokenizer.encode_target(TRIAL))
    return tokenizer


def refuse(name: str, reason: str, cause: BaseException | None = None) -> NoReturn:
    raise _refusal(name, reason) from cause


def _refusal(name: str, reason: Message | str) -> CheckpointError:
    return CheckpointError(
        N_(
            "{file} cannot be used as a tokenizer ({reason}). Copy it again from the model's source.",
            file=name,
            reason=reason,
        )
    )


def no_tokenizer(folder: Folder, wanted: str) -> NoReturn:
    """Says what is missing, and what to do with a format that is not read for this family."""
    for name in folder.names():
        if name.endswith((".model", ".spm")):
            raise CheckpointError(
                N_(
                    "{folder} has its tokenizer only as {file}, which is not read; {wanted} is needed. Open the "
                    "tokenizer with the `transformers` library and write it again with save_pretrained.",
                    folder=folder.name,
                    file=shown(name),
                    wanted=wanted,
                )
            )
    raise CheckpointError(
        N_(
            "{folder} lacks a tokenizer ({wanted}). Copy it from the model's source, or take away what there is of it, "
            "and token ids are read instead.",
            folder=folder.name,
            wanted=wanted,
        )
    )
