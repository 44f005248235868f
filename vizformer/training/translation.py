"""The recipe of the bundled translator: data, vocabulary, model, schedule."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from vizformer.checkpoints.checkpoint import Checkpoint
from vizformer.config import ModelConfig
from vizformer.model import Transformer
from vizformer.text import Tokenizer
from vizformer.training.back_translation import back_translate, read_sentences, usable_sentences
from vizformer.training.batches import PairBatch, pair_batches
from vizformer.training.loop import LoopOptions, Progress, fit
from vizformer.training.loss import translation_loss
from vizformer.training.pairs import Pair, Split, read_pairs, split_pairs
from vizformer.training.speed import best_device
from vizformer.training.vocabulary import BOS, EOS, PAD, train_bpe

MAX_TOKENS = 60  # longer pairs are left out of training: they are few and mostly several sentences


@dataclass(frozen=True, kw_only=True)
class TranslationRecipe:
    """Everything that, with the data, decides the trained weights.

    Attributes:
        model: options of `ModelConfig` except the vocabulary and the special ids, which come from the data.
        base: training on the pairs.
        reverse, mixed: with extra sentences of the target language: training of the reverse model, and going on
            from the base weights with `real_copies` of each pair and `n_synthetic` back-translated ones.
        n_valid, n_test: held-out pairs (`vizformer.training.pairs.split_pairs`).
        sources: the data it is meant for, with licences, for the model card.
    """

    name: str
    vocab_size: int
    model: Mapping[str, object]
    base: LoopOptions
    reverse: LoopOptions
    mixed: LoopOptions
    real_copies: int = 2
    n_synthetic: int = 60_000
    tokens_per_batch: int = 4096
    label_smoothing: float = 0.1
    n_valid: int = 400
    n_test: int = 800
    split_seed: int = 20
    sources: tuple[str, ...] = ()


# The paper's own style (post-norm, sinusoidal, ReLU, one scaled table of embeddings), as small as the data asks for.
ZH_EN = TranslationRecipe(
    name="zh-en",
    vocab_size=7000,
    model=dict(
        d_model=256, n_heads=4, d_ff=1024, n_encoder_layers=3, n_decoder_layers=3, dropout=0.3,
        max_positions=512, scaled_embedding=True,
    ),
    base=LoopOptions(epochs=26, warmup=1500),
    reverse=LoopOptions(epochs=20, warmup=1500),
    mixed=LoopOptions(epochs=10, warmup=1000, factor=0.7, average_decay=0.9995),
    sources=(
        "Sentence pairs: Tatoeba, the Mandarin Chinese - English export of manythings.org/anki, CC BY 2.0 FR.",
        "English sentences for back-translation: the English side of the French - English export, same source.",
    ),
)  # fmt: skip


@dataclass
class TranslationData:
    """Held-out split, vocabulary and token ids, all made from the file by the recipe."""

    split: Split
    tokenizer: Tokenizer

    def encode(self, pairs: Sequence[Pair]) -> list[tuple[list[int], list[int]]]:
        return encode_pairs(self.tokenizer, pairs)

    def reversed(self) -> "TranslationData":
        """The other direction, with the same vocabulary and the same pairs held out."""
        train, valid, test = (
            tuple(Pair(pair.target, pair.source) for pair in part)
            for part in (self.split.train, self.split.valid, self.split.test)
        )
        return TranslationData(Split(train, valid, test), self.tokenizer)


def prepare(recipe: TranslationRecipe, data: Path) -> TranslationData:
    pairs = read_pairs(data)
    split = split_pairs(pairs, n_valid=recipe.n_valid, n_test=recipe.n_test, seed=recipe.split_seed)
    texts = [text for pair in split.train for text in (pair.source, pair.target)]
    return TranslationData(split, Tokenizer(train_bpe(texts, recipe.vocab_size)))


def encode_pairs(tokenizer: Tokenizer, pairs: Sequence[Pair]) -> list[tuple[list[int], list[int]]]:
    """Source ids with their end mark; target ids between start and end mark."""
    bos = tokenizer.id_of(BOS)
    assert bos is not None  # train_bpe made it
    encoded = []
    for pair in pairs:
        source = [token.id for token in tokenizer.encode(pair.source)]
        target = [bos, *(token.id for token in tokenizer.encode(pair.target))]
        if max(len(source), len(target)) <= MAX_TOKENS:
            encoded.append((source, target))
    return encoded


def train_translator(
    recipe: TranslationRecipe,
    loop: LoopOptions,
    data: TranslationData,
    work: Path,
    report: Callable[[Progress], None],
    *,
    start: Checkpoint | None = None,
    pairs: Sequence[Pair] | None = None,
) -> Checkpoint:
    """Trains (or goes on training) the recipe's model; `work` holds the state to resume from.

    Args:
        start: weights to begin with instead of random ones.
        pairs: what to learn from instead of the training part of `data`.
    """
    device = best_device()
    ids = {name: data.tokenizer.id_of(piece) for name, piece in dict(pad_id=PAD, bos_id=BOS, eos_id=EOS).items()}
    config = ModelConfig.from_dict({"vocab_size": data.tokenizer.vocab_size, **recipe.model, **ids})
    torch.manual_seed(loop.seed)
    model = Transformer(config).to(device)
    if start is not None:
        model.load_state_dict(start.model.state_dict())
    train, valid = data.encode(data.split.train if pairs is None else pairs), data.encode(data.split.valid)
    assert config.pad_id is not None
    pad_id = config.pad_id

    def batches(epoch: int) -> Iterator[PairBatch]:
        for batch in pair_batches(train, tokens_per_batch=recipe.tokens_per_batch, pad_id=pad_id, seed=epoch):
            yield batch.to(device)

    def validate(averaged: Transformer) -> Mapping[str, float]:
        total, count = 0.0, 0
        for batch in pair_batches(valid, tokens_per_batch=8192, pad_id=pad_id, seed=None):
            loss, tokens = translation_loss(
                averaged, batch.to(device), label_smoothing=0.0, autocast=False, reduction="sum"
            )
            total, count = total + float(loss), count + tokens
        return {"loss": total / count}

    averaged = fit(
        model, loop, batches=batches, validate=validate, state_file=work / "state.pt", report=report,
        loss=lambda model, batch: translation_loss(
            model, batch, label_smoothing=recipe.label_smoothing, autocast=True
        ),
    )  # fmt: skip
    return Checkpoint(name=recipe.name, model=averaged.cpu(), tokenizer=data.tokenizer)


def build(
    recipe: TranslationRecipe,
    data: TranslationData,
    work: Path,
    report: Callable[[str, Progress], None],
    *,
    english: Path | None = None,
) -> Checkpoint:
    """The whole recipe: base training and, given more English sentences, back-translation and mixed training."""

    def stage(name: str) -> Callable[[Progress], None]:
        return lambda progress: report(name, progress)

    base = train_translator(recipe, recipe.base, data, work / "base", stage("base"))
    if english is None:
        return base
    backwards = data.reversed()
    reverse = train_translator(recipe, recipe.reverse, backwards, work / "reverse", stage("reverse"))
    sentences = usable_sentences(read_sentences(english), data.split, count=recipe.n_synthetic, seed=recipe.split_seed)
    synthetic = back_translate(reverse, sentences, work / "back-translated.tsv")
    pairs = [*data.split.train * recipe.real_copies, *synthetic]
    return train_translator(recipe, recipe.mixed, data, work / "mixed", stage("mixed"), start=base, pairs=pairs)
