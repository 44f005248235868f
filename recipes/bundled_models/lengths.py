"""The recipe of six tiny language models that differ only in how they are told positions.

All learn from the same windows of 64 bytes, in the same order, from the same seed; `vizformer.training.lengths` then has
them read windows of 256.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, pre_tokenizers

from recipes.bundled_models.lengths_card import write_card
from recipes.corpus import BOOKS, CHINESE, TEST_BOOK, VALID_BOOK, find_file, read_books
from recipes.loop import LoopOptions, Progress, fit
from recipes.loss import token_loss
from recipes.notes import machine, save_notes
from recipes.pairs import read_pairs, sentence_key
from vizformer.checkpoints import Checkpoint, save
from vizformer.config import ModelConfig
from vizformer.errors import VizformerError
from vizformer.model import Transformer
from vizformer.options import Positions
from vizformer.text import Tokenizer
from vizformer.training.lengths import LONGEST, MEASURED, SCHEMES, byte_ids, losses, measured
from vizformer.training.loss import RowBatch

TRAINED = 64  # bytes that are read at a time, in training
_STRIDE = TRAINED  # of the held-out windows: position p + 64 of one is position p of the next, so the same bytes
_HELD_OUT_EVERY = 40  # Chinese sentences


@dataclass(frozen=True, kw_only=True)
class LengthsRecipe:
    """Everything that, with the data, decides the trained weights of all schemes.

    Attributes:
        model: options of `ModelConfig` except the positions, how many there are, and the vocabulary of 256 bytes.
        updates: per epoch; an epoch is only how often the state is kept.
        books, chinese: windows of each in a batch.
    """

    model: Mapping[str, object]
    loop: LoopOptions
    updates: int = 250
    books: int = 48
    chinese: int = 16


LENGTHS = LengthsRecipe(
    model=dict(
        d_model=64,
        n_heads=4,
        d_ff=256,
        n_decoder_layers=3,
        norm_order="pre",
        final_norm=True,
        activation="gelu",
        scaled_embedding=True,
        dropout=0.0,
    ),
    loop=LoopOptions(epochs=12, warmup=300),
)


def config_of(scheme: Positions, recipe: LengthsRecipe = LENGTHS) -> ModelConfig:
    """The options of one model; a learned table has as many rows as training uses, the others have no such end."""
    longest = TRAINED if scheme == "learned" else LONGEST
    options = {"vocab_size": 256, **recipe.model, "positions": scheme, "max_positions": longest}
    return ModelConfig.from_dict(options)


def byte_tokenizer() -> Tokenizer:
    """A token is a byte of UTF-8, and its id the byte's value."""
    spelled = {byte: _spelling(byte) for byte in range(256)}
    backend = Backend(models.BPE(vocab={piece: byte for byte, piece in spelled.items()}, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    return Tokenizer(backend)


def _spelling(byte: int) -> str:
    """How byte-level vocabularies write a byte: as itself where it prints, else shifted to 256 and on (GPT-2)."""
    prints = [*range(33, 127), *range(161, 173), *range(174, 256)]
    if byte in prints:
        return chr(byte)
    return chr(256 + [other for other in range(256) if other not in prints].index(byte))


@dataclass(frozen=True)
class Texts:
    """UTF-8: what is learned from, and by name what is held out."""

    books: bytes
    chinese: bytes
    held_out: Mapping[str, bytes]


def read_texts(data: Path) -> Texts:
    """Reads books.txt and cmn.txt; a book and every 40th distinct Chinese sentence are held out.

    Raises:
        VizformerError: a file is missing or not UTF-8.
    """
    books = read_books(find_file(data, BOOKS))
    held_out = books.pop(TEST_BOOK, None)
    books.pop(VALID_BOOK, None)  # held out from the other bundled models, so from these too
    if held_out is None:
        held_out = books.pop(sorted(books)[0])
    distinct = {sentence_key(pair.source): pair.source for pair in read_pairs(find_file(data, CHINESE))}
    sentences = list(distinct.values())
    kept_back = sentences[::_HELD_OUT_EVERY]
    sentences = [sentence for index, sentence in enumerate(sentences) if index % _HELD_OUT_EVERY]
    for part in (sentences, kept_back):
        random.Random(0).shuffle(part)  # the file is sorted by length
    return Texts(
        _joined([paragraph for book in books.values() for paragraph in book]),
        _joined(sentences),
        {"book": _joined(held_out), "chinese": _joined(kept_back)},
    )


def _joined(parts: Sequence[str]) -> bytes:
    return "\n".join(parts).encode()


def window_batches(texts: Texts, recipe: LengthsRecipe, epoch: int) -> Iterator[RowBatch]:
    """Windows of 65 bytes from anywhere in the texts; always the same for the same epoch, whatever the scheme."""
    rng = torch.Generator().manual_seed(recipe.loop.seed * 1_000_003 + epoch)
    streams = [(byte_ids(texts.books), recipe.books), (byte_ids(texts.chinese), recipe.chinese)]
    offsets = torch.arange(TRAINED + 1)
    for _ in range(recipe.updates):
        rows = []
        for stream, count in streams:
            starts = torch.randint(len(stream) - TRAINED, (count, 1), generator=rng)
            rows.append(stream[starts + offsets])  # [count, 65]
        ids = torch.cat(rows)
        inputs = ids[:, :-1].contiguous()
        nothing = torch.zeros_like(inputs)
        yield RowBatch(inputs, ids[:, 1:].contiguous(), nothing, nothing.bool())


def loss_by_position(model: Transformer, text: bytes, stride: int = _STRIDE) -> list[float]:
    """Mean loss at positions 0..255 (0..63 where the table ends there) over the windows of a held-out text.

    Raises:
        VizformerError: a text that is shorter than a window.
    """
    if len(text) <= LONGEST:
        raise VizformerError(
            "The held-out text has {n} bytes; {needed} are needed to measure it.", n=len(text), needed=LONGEST + 1
        )
    windows = byte_ids(text).unfold(0, LONGEST + 1, stride)  # [windows, 257]
    parts = (windows[first : first + 64] for first in range(0, len(windows), 64))
    total = torch.stack([losses(model, part).double().sum(0) for part in parts]).sum(0)  # [length]
    return [round(value, 5) for value in (total / len(windows)).tolist()]


def train_scheme(
    scheme: Positions, texts: Texts, work: Path, report: Callable[[Progress], None], recipe: LengthsRecipe = LENGTHS
) -> Checkpoint:
    """Trains one of the models, or goes on with it; `work` holds its state."""
    torch.manual_seed(recipe.loop.seed)
    model = Transformer(config_of(scheme, recipe))
    valid = next(window_batches(texts, recipe, epoch=-1))
    averaged = fit(
        model,
        recipe.loop,
        batches=lambda epoch: window_batches(texts, recipe, epoch),
        loss=lambda model, batch: token_loss(model, batch, autocast=True),
        validate=lambda averaged: {"loss": float(token_loss(averaged, valid, autocast=False)[0])},
        state_file=work / scheme / "state.pt",
        report=report,
    )
    return Checkpoint(name=scheme, model=averaged, tokenizer=byte_tokenizer())


def train_lengths(
    data: Path,
    out: Path,
    work: Path,
    say: Callable[[str], None],
    schemes: Sequence[Positions] = SCHEMES,
    recipe: LengthsRecipe = LENGTHS,
) -> None:
    """Trains the models one after the other into folders of `out`, and measures each on the held-out texts."""
    texts = read_texts(data)
    out.mkdir(parents=True, exist_ok=True)
    for scheme in schemes:
        seconds = 0.0

        def report(progress: Progress, scheme: str = scheme) -> None:
            nonlocal seconds
            seconds = progress.seconds
            said = "".join(f", {name} {value:.3f}" for name, value in progress.validation.items())
            say(f"{scheme}: update {progress.step}, training {progress.loss:.3f}{said}, {progress.seconds:.0f} s")

        checkpoint = train_scheme(scheme, texts, work, report, recipe)
        save(checkpoint, out / scheme)
        curves = {name: loss_by_position(checkpoint.model, text) for name, text in texts.held_out.items()}
        save_notes(out / scheme, MEASURED, {"seconds": round(seconds), "machine": machine(), "loss": curves})
    notes = {
        "trained": TRAINED,
        "recipe": asdict(recipe),
        "windows": {k: (len(v) - LONGEST - 1) // _STRIDE + 1 for k, v in texts.held_out.items()},
        # The beginning of each held-out text, to follow what a reader types.
        "passages": {k: v[: LONGEST + 4].decode(errors="ignore") for k, v in texts.held_out.items()},
    }
    save_notes(out, MEASURED, notes)
    write_card(out, measured(out), longest=LONGEST, stride=_STRIDE, every=_HELD_OUT_EVERY)
    say(f"The models are in {out}.")
