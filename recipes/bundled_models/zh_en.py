"""Tatoeba's sentence pairs as the translator and the small trainings of the lessons learn them: split, vocabulary, shape."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from recipes.bundled_models.recipe import TextRecipe
from recipes.loop import LoopOptions
from recipes.pairs import Pair, Split, read_pairs, split_pairs
from recipes.vocabulary import BOS, EOS, train_bpe
from vizformer.errors import VizformerError
from vizformer.text import Tokenizer

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
