"""Tokenizer files read into the `tokenizers` library: tokenizer.json, or the vocabularies of older models."""

from collections.abc import Mapping
from dataclasses import dataclass

from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as Backend

from vizformer.assets import asset
from vizformer.checkpoints.files.untrusted_folder import Folder, shown
from vizformer.checkpoints.tokenizers.refusals import guarded, no_tokenizer, raise_refusal, refusal
from vizformer.checkpoints.tokenizers.special_tokens import (
    KnownTokens,
    bounded,
    known_only,
    settings,
    token_text,
    with_special,
)
from vizformer.messages import Message
from vizformer.text import IdTokenizer, Tokenizer, trial
from vizformer.text.bounds import MOST_ENTRIES, MOST_IDS

TOKENIZER = "tokenizer.json"
SOURCES = "source_tokenizer.json"  # ours, and beside bare weights: where the source has another vocabulary
TRIAL = "Hello, world! 你好 1"  # every tokenizer must be able to split this
# How Qwen cuts a text into words before its bytes are merged: English endings, letters with at most one other character
# in front, single digits, signs with the line ends behind them, line ends, spaces (the last goes with the next word).
QWEN_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)


@dataclass(frozen=True)
class Vocabularies:
    """The tokenizer of texts, that of translations where it is another one, and notes about them.

    `apart` says that the two have different ids: then those of `targets` are what the model predicts.
    """

    texts: Backend
    targets: Backend | None = None
    notes: tuple[Message, ...] = ()
    apart: bool = False

    @property
    def predicted(self) -> Backend:
        """The tokenizer whose ids the logits refer to."""
        return self.targets if self.apart and self.targets is not None else self.texts


def read_tokenizer(folder: Folder, name: str = TOKENIZER, rows: int | None = None) -> Backend:
    """tokenizer.json as it stands, without the cutting and filling that some files carry along for batches.

    `rows` are those of the largest table among the weights: a vocabulary that cannot be theirs is not read.
    """
    content = folder.text(name)
    if not folder.path.is_relative_to(asset()):
        try:
            trial.examine(content, rows)
        except trial.TrialError as error:
            refused = refusal(name, error.message)
            refused.passing = isinstance(error, trial.BusyError)
            raise refused from error
    backend = guarded(name, lambda: Backend.from_str(content))
    backend.no_truncation()
    backend.no_padding()
    highest = max(guarded(name, lambda: backend.get_vocab(with_added_tokens=True)).values(), default=0)
    if highest >= MOST_IDS:
        raise_refusal(name, f"a token has the id {highest:,}; they go up to {MOST_IDS - 1:,} at most")
    return backend


WORDPIECE_MARKS: Mapping[str, str] = {
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "unk_token": "[UNK]",
    "pad_token": "[PAD]",
    "mask_token": "[MASK]",
}


ROBERTA_MARKS: Mapping[str, str] = {
    "bos_token": "<s>",
    "eos_token": "</s>",
    "cls_token": "<s>",
    "sep_token": "</s>",
    "pad_token": "<pad>",
    "unk_token": "<unk>",
    "mask_token": "<mask>",
}


def wordpiece_or_refuse(folder: Folder, usual: Mapping[str, str] = WORDPIECE_MARKS) -> Backend:
    """The tokenizer of BERT and its relatives, where there is no tokenizer.json."""
    return wordpiece(folder, usual) if folder.has("vocab.txt") else no_tokenizer(folder, "tokenizer.json, or vocab.txt")


def wordpiece(folder: Folder, usual: Mapping[str, str] = WORDPIECE_MARKS) -> Backend:
    """vocab.txt: BERT's cleaning, words, and pieces of words that begin with "##"; `usual` are a family's marks."""
    name = "vocab.txt"
    vocabulary = {piece: id for id, piece in enumerate(_lines(folder, name))}
    said = settings(folder)
    marks = {role: token_text(said.get(role)) or usual[role] for role in ("cls_token", "sep_token", "unk_token")}
    if absent := [mark for mark in marks.values() if mark not in vocabulary]:
        raise_refusal(name, f"it lacks {', '.join(map(shown, absent))}")

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
        return with_special(folder, backend, {**usual, **marks}, said)

    return guarded(name, build)


def _lines(folder: Folder, name: str) -> list[str]:
    """The lines of a vocabulary; a token may be what Unicode calls a line's end."""
    content = folder.text(name).removesuffix("\n")
    if content.count("\n") >= MOST_ENTRIES:
        raise_refusal(name, f"more than {MOST_ENTRIES:,} lines")
    lines = content.split("\n")
    bounded(lines, name)
    return lines


def byte_level(
    folder: Folder,
    usual: Mapping[str, str],
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
    """
    name = "vocab.json"
    if not (folder.has(name) and folder.has("merges.txt")):
        no_tokenizer(folder, "tokenizer.json, or vocab.json and merges.txt")
    vocabulary = folder.object(name)
    if not all(type(id) is int and 0 <= id < MOST_IDS for id in vocabulary.values()):
        raise_refusal(name, f"an id is no whole number from 0 to {MOST_IDS - 1:,}")
    bounded(vocabulary, name)
    lines = [line for line in _lines(folder, "merges.txt") if line and not line.startswith("#version")]
    if wrong := [line for line in lines if line.count(" ") != 1]:
        raise_refusal("merges.txt", f"{shown(wrong[0])} is no pair")
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
        return with_special(folder, backend, usual, said)

    return guarded(name, build)


def gpt_2(folder: Folder) -> Backend:
    """vocab.json and merges.txt of GPT-2, with one mark for beginning, end and what is unknown."""
    return byte_level(folder, dict.fromkeys(("bos_token", "eos_token", "unk_token"), "<|endoftext|>"))


def gpt_neox(folder: Folder) -> Backend:
    """The tokenizer of GPT-NeoX: as `gpt_2`, with text in Unicode NFC and a padding token."""
    marks = {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>", "pad_token": "<|padding|>"}
    return byte_level(folder, marks, composed=True)


def qwen(folder: Folder) -> Backend:
    """vocab.json and merges.txt of Qwen2, 2.5 and 3: words cut its own way, no marks around a text.

    Source: the pattern published with the models (tokenization_qwen2.py).
    """
    usual = dict.fromkeys(("eos_token", "pad_token", "unk_token"), "<|endoftext|>")
    return byte_level(folder, usual, words=QWEN_WORDS, composed=True)


def tried(tokenizer: Tokenizer) -> Tokenizer:
    """The tokenizer, after one text has gone there and back: some damage shows only then, as a panic."""
    if isinstance(tokenizer, IdTokenizer):
        return tokenizer
    if not isinstance(tokenizer := known_only(tokenizer), KnownTokens):
        guarded(TOKENIZER, lambda: tokenizer.decode([token.id for token in tokenizer.encode(TRIAL)]))
        guarded(TOKENIZER, lambda: tokenizer.encode_target(TRIAL))
    return tokenizer
