"""The recipe of the bundled translator: data, vocabulary, model, schedule."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from recipes.batches import pair_batches
from recipes.bundled_models.recipe import TextRecipe
from recipes.loop import LoopOptions, Progress, best_device, fit
from recipes.loss import translation_loss
from recipes.pairs import Pair, Split, read_pairs, split_pairs
from recipes.vocabulary import BOS, EOS, PAD, train_bpe
from vizformer.checkpoints.own.checkpoint import Checkpoint
from vizformer.config import ModelConfig
from vizformer.errors import VizformerError
from vizformer.model import Transformer
from vizformer.text import Tokenizer
from vizformer.training.batches import PairBatch

MAX_TOKENS = 60  # longer pairs are left out of training: they are few and mostly several sentences


@dataclass(frozen=True, kw_only=True)
class TranslationRecipe(TextRecipe):
    """Everything that, with the data, decides the trained weights.

    Attributes:
        n_valid, n_test: held-out pairs (`recipes.pairs.split_pairs`).
    """

    label_smoothing: float = 0.1
    n_valid: int = 400
    n_test: int = 800
    split_seed: int = 20


# The paper's own style (post-norm, sinusoidal, ReLU, one scaled table of embeddings), as small as the data asks for.
ZH_EN = TranslationRecipe(
    name="zh-en",
    vocab_size=7000,
    model=dict(
        d_model=256,
        n_heads=4,
        d_ff=1024,
        n_encoder_layers=3,
        n_decoder_layers=3,
        dropout=0.3,
        max_positions=512,
        scaled_embedding=True,
    ),
    loop=LoopOptions(epochs=32, warmup=1500),
    sources=("Sentence pairs: Tatoeba, the Mandarin Chinese - English export of manythings.org/anki, CC BY 2.0 FR.",),
)


@dataclass
class TranslationData:
    """Held-out split, vocabulary and token ids, all made from the file by the recipe."""

    split: Split
    tokenizer: Tokenizer

    def encode(self, pairs: Sequence[Pair]) -> list[tuple[list[int], list[int]]]:
        return encode_pairs(self.tokenizer, pairs)


def prepare(recipe: TranslationRecipe, data: Path) -> TranslationData:
    """Held-out split and vocabulary.

    Raises:
        VizformerError: a file that cannot be read, or with too few pairs.
    """
    pairs = read_pairs(data)
    split = split_pairs(pairs, n_valid=recipe.n_valid, n_test=recipe.n_test, seed=recipe.split_seed)
    if not (split.train and split.valid and split.test):
        raise VizformerError(
            "{path} has {n} sentence pairs: with {held_out} of them held out, nothing is left to learn from. Give a "
            "larger file.",
            path=data.name,
            n=len(pairs),
            held_out=recipe.n_valid + recipe.n_test,
        )
    texts = [text for pair in split.train for text in (pair.source, pair.target)]
    return TranslationData(split, Tokenizer(train_bpe(texts, recipe.vocab_size)))


def encode_pairs(tokenizer: Tokenizer, pairs: Sequence[Pair]) -> list[tuple[list[int], list[int]]]:
    """Source ids with their end mark; target ids between start and end mark."""
    bos, eos = tokenizer.id_of(BOS), tokenizer.id_of(EOS)
    assert bos is not None  # train_bpe made them
    assert eos is not None
    encoded = []
    for pair in pairs:
        source = [token.id for token in tokenizer.encode(pair.source)]
        target = [bos, *(token.id for token in tokenizer.encode_target(pair.target)), eos]
        if max(len(source), len(target)) <= MAX_TOKENS:
            encoded.append((source, target))
    return encoded


def train_translator(
    recipe: TranslationRecipe, data: TranslationData, work: Path, report: Callable[[Progress], None]
) -> Checkpoint:
    """Trains (or goes on training) the recipe's model; `work` holds the state to resume from."""
    device = best_device()
    ids = {name: data.tokenizer.id_of(piece) for name, piece in dict(pad_id=PAD, bos_id=BOS, eos_id=EOS).items()}
    config = ModelConfig.from_dict({"vocab_size": data.tokenizer.vocab_size, **recipe.model, **ids})
    torch.manual_seed(recipe.loop.seed)
    model = Transformer(config).to(device)
    train, valid = data.encode(data.split.train), data.encode(data.split.valid)
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
        model,
        recipe.loop,
        batches=batches,
        validate=validate,
        state_file=work / "state.pt",
        report=report,
        loss=lambda model, batch: translation_loss(model, batch, label_smoothing=recipe.label_smoothing, autocast=True),
    )
    return Checkpoint(name=recipe.name, model=averaged.cpu(), tokenizer=data.tokenizer)
