"""Trains the translator of both directions by blocks of time: `python -m recipes.translator.train SET WORK`."""

import json
import random
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import click
import torch

from recipes.batches import pair_batches
from recipes.bundled_models.zh_en import ZH_EN, encode_pairs
from recipes.loop import LoopOptions, Progress, best_device, fit
from recipes.loss import translation_loss
from recipes.pairs import Pair
from recipes.translator.training_set import Line, read_lines
from recipes.vocabulary import BOS, EOS, PAD, train_bpe
from vizformer.checkpoints import Checkpoint, save
from vizformer.config import ModelConfig
from vizformer.model import Transformer
from vizformer.text import Tokenizer
from vizformer.training.loss import PairBatch

FIRST_TOKENS = {"CJK": "<2en>", "LATIN": "<2zh>"}
"""The first token of a text, by its script: the language it is to be translated into."""
SIZES: Mapping[str, Mapping[str, int]] = {
    "full": dict(d_model=256, n_heads=4, d_ff=1024, n_encoder_layers=3, n_decoder_layers=3),
    "small": dict(d_model=128, n_heads=4, d_ff=512, n_encoder_layers=2, n_decoder_layers=2),
}
WARMUP, AVERAGE_DECAY = {"full": 1500, "small": 500}, {"full": 0.999, "small": 0.9}
"""By size; the small model is for comparisons of a few hundred updates, of which an average over a thousand says nothing."""
EVERY: Mapping[str, int] = {"grammar": 2, "dictionary": 2}
EVERY_LATER: Mapping[str, int] = {"grammar": 2, "dictionary": 4, "senses": 4, "coreference": 2, "names": 2}
"""In how many turns over the lines those of a source come once; the others come in each."""
LATER = 160
"""The slice from which EVERY_LATER holds: by then the made sentences are learned, those that people wrote are not."""
SLICE = 8_000  # lines between two states on disk: about 47 updates
N_CHECKED = 50  # held-out lines of a source and direction that are measured after a slice
STATE, TOKENIZER, OPTIONS, LOG, MODEL = "state.pt", "tokenizer.json", "options.json", "log.jsonl", "model"


class BlockIsOverError(Exception):
    """Raised after a state was written."""


def pairs_of(lines: Sequence[Line]) -> list[Pair]:
    return [Pair(line.text, line.translation) for line in lines]


def learn_vocabulary(lines: Sequence[Line], vocab_size: int) -> Tokenizer:
    """One vocabulary of both languages; its last tokens are the first ones of texts."""
    texts = dict.fromkeys(text for line in lines for text in (line.text, line.translation))
    backend = train_bpe(texts, vocab_size - len(FIRST_TOKENS))
    backend.add_special_tokens(list(FIRST_TOKENS.values()))
    return Tokenizer(backend)


def read_vocabulary(work: Path) -> Tokenizer:
    return Tokenizer.from_file(work / TOKENIZER).with_first_tokens(FIRST_TOKENS)


def slice_of(lines: Sequence[Line], index: int, seed: int) -> list[Line]:
    """The lines of a slice: all lines of a turn come once, in an order of its own, before any comes again."""
    turns_of, index = (EVERY, index) if index < LATER else (EVERY_LATER, index - LATER)
    every = [turns_of.get(line.source.split()[0], 1) for line in lines]
    n_slices = max(1, round(sum(1 / turns for turns in every) / SLICE))
    turn, place = divmod(index, n_slices)
    order = [i for i, turns in enumerate(every) if (i // 2 + turn) % turns == 0]  # both ways of a pair in the same turn
    random.Random(seed * 1_000_003 + turn).shuffle(order)
    return [lines[i] for i in order[place::n_slices]]


def checked(folder: Path) -> dict[str, list[Line]]:
    """Held-out lines by source and direction, as many of each."""
    groups: dict[str, list[Line]] = defaultdict(list)
    for part in ("valid", "held_out_nouns"):
        for line in read_lines(folder / f"{part}.tsv"):
            groups[f"{line.source.split()[0]} {line.direction}"].append(line)
    return {name: lines[:N_CHECKED] for name, lines in groups.items()}


def build_model(tokenizer: Tokenizer, size: str, seed: int) -> Transformer:
    ids = {name: tokenizer.id_of(piece) for name, piece in dict(pad_id=PAD, bos_id=BOS, eos_id=EOS).items()}
    options: dict[str, Any] = {**ZH_EN.model, **SIZES[size], "dropout": 0.2 if size == "full" else 0.1, **ids}
    torch.manual_seed(seed)
    return Transformer(ModelConfig.from_dict({"vocab_size": tokenizer.vocab_size, **options}))


def train(
    folder: Path,
    work: Path,
    *,
    minutes: float,
    updates: int,
    size: str,
    vocab_size: int,
    without: Sequence[str],
    seed: int,
    bfloat16: bool,
    another_set: bool,
) -> None:
    """Trains for a block of time, or goes on with what `work` holds; writes the averaged model in the end.

    The block ends with the last slice that fits into it, or with the one in which so many updates are reached. What is
    measured is cross-entropy in nats per character of the translation, which does not depend on the vocabulary.

    Raises:
        click.ClickException: `work` was begun with other options or another training set.
    """
    begun = time.monotonic()
    work.mkdir(parents=True, exist_ok=True)
    lines = [line for line in read_lines(folder / "train.tsv") if line.source.split()[0] not in without]
    digest = blake2b(repr(lines).encode(), digest_size=8).hexdigest()
    options = dict(
        size=size, vocabulary=vocab_size, without=sorted(without), seed=seed, lines=len(lines), digest=digest
    )
    before = json.loads((work / OPTIONS).read_text(encoding="utf-8")) if (work / OPTIONS).is_file() else None
    if another_set and before is not None:
        before.update(lines=len(lines), digest=digest)
    if before not in (None, options):
        raise click.ClickException(
            f"{work} was begun with other options or another training set: choose another folder, or say --another-set."
        )
    if before is None:
        learn_vocabulary(lines, vocab_size).save(work / TOKENIZER)
    if before is None or another_set:
        (work / OPTIONS).with_suffix(".new").write_text(json.dumps(options) + "\n", encoding="utf-8")
        (work / OPTIONS).with_suffix(".new").replace(work / OPTIONS)
    tokenizer, device = read_vocabulary(work), best_device()
    held_out = {
        name: [(pair, len(line.translation)) for line in group for pair in encode_pairs(tokenizer, pairs_of([line]))]
        for name, group in checked(folder).items()
    }
    longest = 0.0
    slice_begun = time.monotonic()

    def batches(index: int) -> Iterator[PairBatch]:
        pairs = encode_pairs(tokenizer, pairs_of(slice_of(lines, index, seed)))
        for batch in pair_batches(pairs, tokens_per_batch=ZH_EN.tokens_per_batch, pad_id=pad_id, seed=index):
            yield batch.to(device)

    def validate(averaged: Transformer) -> Mapping[str, float]:
        losses = {}
        for name, group in held_out.items():
            total, pairs = 0.0, [pair for pair, _ in group]
            for batch in pair_batches(pairs, tokens_per_batch=8192, pad_id=pad_id, seed=None):
                total += float(
                    translation_loss(averaged, batch.to(device), label_smoothing=0.0, autocast=False, reduction="sum")[
                        0
                    ]
                )
            losses[name] = round(total / sum(length for _, length in group), 4)
        return losses

    def report(progress: Progress) -> None:
        nonlocal longest, slice_begun
        if not progress.validation:
            return
        entry = dict(
            slice=progress.epoch + 1,
            updates=progress.step,
            loss=round(progress.loss, 4),
            minutes=round(progress.seconds / 60, 1),
            tokens_per_second=round(progress.tokens_per_second),
            held_out=progress.validation,
        )
        with (work / LOG).open("a", encoding="utf-8") as log:
            log.write(json.dumps(entry) + "\n")
        click.echo(json.dumps(entry))
        now = time.monotonic()
        longest, slice_begun = max(longest, now - slice_begun), now
        if now - begun + longest > minutes * 60 or progress.step >= updates:
            raise BlockIsOverError

    model = build_model(tokenizer, size, seed).to(device)
    assert model.config.pad_id is not None
    pad_id = model.config.pad_id
    try:
        fit(
            model,
            LoopOptions(epochs=1_000_000, warmup=WARMUP[size], average_decay=AVERAGE_DECAY[size], seed=seed),
            batches=batches,
            loss=lambda model, batch: translation_loss(
                model, batch, label_smoothing=ZH_EN.label_smoothing, autocast=bfloat16
            ),
            validate=validate,
            state_file=work / STATE,
            report=report,
        )
    except BlockIsOverError:
        save(averaged(work), work / MODEL)


def averaged(work: Path) -> Checkpoint:
    """The averaged model of the state on disk, also of a training that was killed."""
    state = torch.load(work / STATE, map_location="cpu", weights_only=True)
    model = Transformer(ModelConfig.from_dict(state["config"]))
    model.load_state_dict(
        {name.removeprefix("module."): value for name, value in state["average"].items() if name != "n_averaged"}
    )
    return Checkpoint(name="zh-en", model=model, tokenizer=read_vocabulary(work))


@click.command()
@click.argument("folder", metavar="SET", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("work", type=click.Path(file_okay=False, path_type=Path))
@click.option("--minutes", default=150.0, show_default=True, help="How long this block takes at most.")
@click.option("--updates", default=1_000_000, show_default=True, help="After how many the training is over.")
@click.option("--size", type=click.Choice(list(SIZES)), default="full", show_default=True)
@click.option("--vocabulary", "vocab_size", default=8000, show_default=True)
@click.option("--without", multiple=True, help="A source that is left out: tatoeba, grammar, coreference, senses, ...")
@click.option("--seed", default=0, show_default=True)
@click.option("--another-set", is_flag=True, help="Go on with the lines of SET, although WORK was begun with others.")
@click.option("--threads", type=click.IntRange(1), default=1, show_default=True, help="Processor threads.")
@click.option("--bfloat16", is_flag=True, help="Faster on a processor that has it, ten times slower on others.")
def main(folder: Path, work: Path, threads: int, **options: Any) -> None:
    """Train on the folder SET that training_set wrote, and keep the state in the folder WORK.

    Stopped by Ctrl-C or a kill it loses the running slice, a few minutes; the same command goes on. WORK/log.jsonl says how
    it goes, WORK/model is the model at the end of the last whole block.
    """
    torch.set_num_threads(threads)
    train(folder, work, **options)


if __name__ == "__main__":
    main()
