"""SentencePiece files (`.model`, `.spm`), read by the library `sentencepiece` and made tokenizers of `tokenizers`.

A file holds pieces with scores, how they were trained, how a text is made ready.  Unigram (Kudo 2018) takes the split
with the highest sum of scores, BPE (Sennrich et al. 2016) merges the pair whose piece scores highest.

Where the two libraries differ: SentencePiece ranks merges by the piece they make, `tokenizers` by the pair, so that of
two overlapping pairs that make the same piece ("a" + "aa" and "aa" + "a") the other one may be merged.  A special token
typed into a text is that token here, as in `transformers`, and text there; what follows it begins like a text of its
own, with a space in front and without extra ones.

Source: sentencepiece_model.proto, unigram_model.cc, bpe_model.cc and normalizer.cc of github.com/google/sentencepiece;
Kudo & Richardson 2018.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as Backend

from vizformer.checkpoints.files.untrusted_folder import MEGABYTE, Folder, damaged
from vizformer.checkpoints.tokenizers.refusals import guarded, no_tokenizer, raise_refusal
from vizformer.checkpoints.tokenizers.special_tokens import add_listed, settings
from vizformer.errors import CheckpointError

SUFFIXES = (".model", ".spm")
LIMIT = 32 * MEGABYTE  # the largest in use have 18
MOST_PIECES, LONGEST_PIECE, MOST_CUTS = 2**20, 512, 2**22  # pieces; bytes; places at which BPE may have merged
_PIECE = b"\n"  # the byte with which each piece begins, and the text in it
SPACE = "▁"
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
_KINDS = {1: "unigram", 2: "bpe", 3: "word", 4: "char"}


class OddError(ValueError):
    """A file that asks for what is not done here; says what."""


class Piece(NamedTuple):
    text: str
    score: float
    type: int


@dataclass(frozen=True)
class SentencePiece:
    """The content of a SentencePiece model file; the names are the format's."""

    pieces: tuple[Piece, ...]
    kind: str
    byte_fallback: bool
    treat_whitespace_as_suffix: bool
    precompiled_charsmap: bytes
    bos_id: int
    eos_id: int
    add_dummy_prefix: bool
    remove_extra_whitespaces: bool
    escape_whitespaces: bool

    def ids(self, *types: int) -> list[int]:
        return [id for id, piece in enumerate(self.pieces) if piece.type in types]


def find(folder: Folder) -> str | None:
    """The file of a folder that may be one of these; the usual names come first."""
    for name in ("tokenizer.model", "spiece.model"):
        if folder.has(name):
            return name
    found = [name for name in folder.names() if name.endswith(SUFFIXES)]
    return found[0] if len(found) == 1 else None


def sentencepiece_or_refuse(folder: Folder) -> Backend:
    """The tokenizer of a decoder (LLaMA, Gemma) that has no tokenizer.json: a text begins with the start mark."""
    name = find(folder)
    if name is None:
        no_tokenizer(folder, "tokenizer.json or tokenizer.model")
    return sentencepiece(folder, name, begun=True)


def sentencepiece(folder: Folder, name: str, *, begun: bool = False, ended: bool = False) -> Backend:
    """The tokenizer in a file, with what added_tokens.json adds.

    `begun` and `ended` say whether the start mark stands before a text and the end mark behind it, where
    tokenizer_config.json (add_bos_token, add_eos_token) says neither.
    """
    said, told = read(folder, name), settings(folder)
    backend = guarded(name, lambda: build(said))
    add_listed(folder, backend, as_they_stand=True)
    begun, ended = bool(told.get("add_bos_token", begun)), bool(told.get("add_eos_token", ended))
    mark(name, backend, said, begun=begun, ended=ended)
    return backend


def read(folder: Folder, name: str) -> SentencePiece:
    """Reads a SentencePiece model file.

    Raises:
        CheckpointError: it is too large, damaged, of another kind, or the library is not installed.
    """
    try:
        from google.protobuf.message import DecodeError
        from sentencepiece.sentencepiece_model_pb2 import ModelProto
    except ImportError as error:
        raise CheckpointError(
            "{file} is a vocabulary of SentencePiece, which the library `sentencepiece` reads: pip install "
            "vizformer[sentencepiece]. Or open the tokenizer with the `transformers` library and write it again with "
            "save_pretrained: that makes tokenizer.json.",
            file=name,
        ) from error
    path = folder.file(name)
    if (size := path.stat().st_size) > LIMIT:
        raise_refusal(name, f"{size:,} bytes; at most {LIMIT:,} are read")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise damaged(name, error) from error
    if content.count(_PIECE) > 3 * MOST_PIECES:  # before anything of that size is made
        raise_refusal(name, f"more than {MOST_PIECES:,} pieces")
    try:
        model = ModelProto.FromString(content)
        pieces = tuple(Piece(piece.piece, piece.score, piece.type) for piece in model.pieces)
        if any(isinstance(piece.text, bytes) for piece in pieces):  # (as the library gives what is no UTF-8)
            raise DecodeError
    except (DecodeError, UnicodeDecodeError) as error:
        raise CheckpointError(
            "{file} is no file of SentencePiece, or damaged. LLaMA 3's tokenizer.model, of tiktoken, is not read. Copy "
            "it again, or open the tokenizer with the `transformers` library and write it again with save_pretrained: "
            "that makes tokenizer.json.",
            file=name,
        ) from error
    trained, ready = model.trainer_spec, model.normalizer_spec
    said = SentencePiece(
        pieces,
        _KINDS[trained.model_type],
        trained.byte_fallback,
        trained.treat_whitespace_as_suffix,
        ready.precompiled_charsmap,
        trained.bos_id,
        trained.eos_id,
        ready.add_dummy_prefix,
        ready.remove_extra_whitespaces,
        ready.escape_whitespaces,
    )
    try:
        check(said)
    except OddError as error:
        raise_refusal(name, str(error), error)
    return said


def check(said: SentencePiece) -> None:
    """Checks that the `tokenizers` library can do what the file asks for.

    Raises:
        OddError: says what.
    """
    if len(said.pieces) > MOST_PIECES:
        raise OddError(f"more than {MOST_PIECES:,} pieces")
    if said.kind not in ("unigram", "bpe"):
        raise OddError(f"a vocabulary of the kind {said.kind}; supported are unigram and bpe")
    if said.treat_whitespace_as_suffix:
        raise OddError("it counts a space to the word before it (treat_whitespace_as_suffix)")
    if not said.escape_whitespaces:
        raise OddError("it leaves spaces as they are (escape_whitespaces is false)")
    if said.kind == "bpe" and (cuts := sum(len(piece.text) for piece in said.pieces)) > MOST_CUTS:
        raise OddError(f"its pieces have {cuts:,} characters together; at most {MOST_CUTS:,} are read")
    if wrong := [n for piece in said.pieces if not 0 < (n := len(piece.text.encode())) <= LONGEST_PIECE]:
        raise OddError(f"a piece of {wrong[0]} bytes")
    texts = {piece.text for piece in said.pieces}
    if len(texts) != len(said.pieces):
        raise OddError("a piece stands there twice")
    if odd := [
        p for p in said.pieces if not NORMAL <= p.type <= BYTE or (p.type == UNUSED and _is_made(said, p, texts))
    ]:
        raise OddError(f"the piece {odd[0].text[:16]!r} is of type {odd[0].type}")
    if lost := [p for p in said.pieces if not math.isfinite(p.score) or abs(p.score) > 1e6]:
        raise OddError(f"the piece {lost[0].text[:16]!r} has the score {lost[0].score}")
    if len(said.ids(UNKNOWN)) != 1:
        raise OddError(f"{len(said.ids(UNKNOWN))} pieces stand for unknown characters instead of one")
    if not said.ids(NORMAL):
        raise OddError("it has no pieces")


def _is_made(said: SentencePiece, piece: Piece, texts: Collection[str]) -> bool:
    """Whether a text could be split into an unused piece: BPE makes it only of two others."""
    text = piece.text
    return (
        said.kind != "bpe"
        or len(text) == 1
        or any(text[:n] in texts and text[n:] in texts for n in range(1, len(text)))
    )


def build(said: SentencePiece) -> Backend:
    """The tokenizer of the `tokenizers` library that does what the file says."""
    (unknown,) = said.ids(UNKNOWN)
    if said.kind == "unigram":
        vocabulary = [(piece.text, piece.score) for piece in said.pieces]
        backend = Backend(models.Unigram(vocabulary, unk_id=unknown, byte_fallback=said.byte_fallback))
    else:
        ids = {piece.text: id for id, piece in enumerate(said.pieces)}
        backend = Backend(
            models.BPE(
                ids, merges(said), unk_token=said.pieces[unknown].text, fuse_unk=True, byte_fallback=said.byte_fallback
            )
        )
    dress(backend, said)
    backend.add_special_tokens(
        [AddedToken(said.pieces[id].text, normalized=False, special=True) for id in said.ids(UNKNOWN, CONTROL)]
    )
    backend.add_tokens(
        [AddedToken(said.pieces[id].text, normalized=False, special=False) for id in said.ids(USER_DEFINED)]
    )
    return backend


def dress(backend: Backend, said: SentencePiece) -> None:
    """Sets the normalizer, which prepares a text before it is split, and the decoder of the backend."""
    _make_ready(backend, said)
    ends = [decoders.Strip(" ", 1, 0)] if said.add_dummy_prefix else []
    backend.decoder = decoders.Sequence([decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), *ends])


def _make_ready(backend: Backend, said: SentencePiece) -> None:
    """Sets the normalizer: it replaces characters and makes spaces visible."""
    table = said.precompiled_charsmap
    steps: list[normalizers.Normalizer] = [normalizers.Precompiled(table)] if table else []
    if said.remove_extra_whitespaces:
        steps += [normalizers.Replace(Regex(" {2,}"), " "), normalizers.Replace(Regex("^ | $"), "")]
        if not any(SPACE in said.pieces[id].text[1:] for id in said.ids(NORMAL)):
            # No piece reaches into a next word: words one by one give the same tokens, and say which word they are of.
            backend.pre_tokenizer = pre_tokenizers.Metaspace(SPACE, prepend_scheme="never")
    if said.add_dummy_prefix:  # (Metaspace's own way of doing it misses texts whose first space was dropped)
        steps.append(normalizers.Prepend(SPACE))
    backend.normalizer = normalizers.Sequence([*steps, normalizers.Replace(" ", SPACE)])


def merges(said: SentencePiece) -> list[tuple[str, str]]:
    """Every pair of pieces that makes a piece, the pair of the highest score first."""
    scores = {said.pieces[id].text: (-said.pieces[id].score, id) for id in said.ids(NORMAL)}
    pairs = [
        (scores[text], scores[text[:cut]], (text[:cut], text[cut:]))
        for text in scores
        for cut in range(1, len(text))
        if text[:cut] in scores and text[cut:] in scores
    ]
    return [pair for __, __, pair in sorted(pairs)]


def mark(name: str, backend: Backend, said: SentencePiece, *, begun: bool, ended: bool) -> None:
    """Puts the marks around a text: the start mark where it is `begun`, the end mark where it is `ended`."""
    known = {id: said.pieces[id].text for id in said.ids(CONTROL)}
    before = [said.bos_id] if begun and said.bos_id in known else []
    after = [said.eos_id] if ended and said.eos_id in known else []
    if before or after:
        template = [*(known[id] for id in before), "$A", *(known[id] for id in after)]
        marks = [(known[id], id) for id in (*before, *after)]
        backend.post_processor = guarded(
            name, lambda: processors.TemplateProcessing(single=template, special_tokens=marks)
        )
