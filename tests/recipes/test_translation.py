"""The recipe of the bundled translator, at the size of a toy."""

import random
from pathlib import Path

import pytest

from recipes.bundled_models.zh_en import (
    MAX_TOKENS,
    ZH_EN,
    TranslationRecipe,
    encode_pairs,
    prepare,
)
from recipes.loop import LoopOptions
from recipes.pairs import Pair, sentence_key
from recipes.translate import translate_all
from tests import tiny
from tests.greedy import greedy_steps
from vizformer.errors import VizformerError

WORDS = {"猫": "cat", "狗": "dog", "鱼": "fish", "鸟": "bird", "马": "horse", "牛": "cow"}
LOOP = LoopOptions(epochs=2, warmup=20, average_decay=0.9)
RECIPE = TranslationRecipe(
    name="toy",
    vocab_size=300,
    tokens_per_batch=200,
    n_valid=12,
    n_test=16,
    loop=LOOP,
    model=dict(
        d_model=16,
        n_heads=2,
        d_ff=32,
        n_encoder_layers=1,
        n_decoder_layers=1,
        dropout=0.1,
        max_positions=64,
        scaled_embedding=True,
    ),
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Three animals in a row; every sentence once."""
    rng = random.Random(0)
    rows = {tuple(rng.choice(list(WORDS)) for _ in range(rng.randint(2, 4))) for _ in range(160)}
    path = tmp_path / "animals.tsv"
    lines = sorted(f"{' '.join(WORDS[word] for word in row)}.\t{''.join(row)}。\tmade up" for row in rows)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_data_and_vocabulary(data: Path) -> None:
    prepared = prepare(RECIPE, data)
    split = prepared.split
    assert len(split.test) >= 16
    assert len(split.valid) >= 12
    assert len(split.train) > 60
    held_out = {sentence_key(side) for pair in (*split.valid, *split.test) for side in (pair.source, pair.target)}
    assert not held_out & {sentence_key(side) for pair in split.train for side in (pair.source, pair.target)}
    assert prepare(RECIPE, data).split == split
    assert split.train[0].source.endswith("。")  # Chinese is the source


def test_a_file_that_is_too_small(data: Path) -> None:
    lines = data.read_text(encoding="utf-8").splitlines()
    for n in (1, 10, 20):
        data.write_text("\n".join(lines[:n]) + "\n", encoding="utf-8")
        with pytest.raises(VizformerError, match=rf"animals.tsv has {n} sentence pairs: with 28 .* Give a larger file"):
            prepare(RECIPE, data)


def test_nothing_of_the_held_out_part_shapes_the_vocabulary(data: Path) -> None:
    prepared = prepare(RECIPE, data)
    before = prepared.tokenizer.to_json()
    held_out = {pair.target for pair in (*prepared.split.valid, *prepared.split.test)}
    lines = data.read_text(encoding="utf-8").splitlines()
    data.write_text(
        "\n".join(line.replace("cat", "caterpillar") if line.split("\t")[0] in held_out else line for line in lines)
        + "\n",
        encoding="utf-8",
    )
    assert prepare(RECIPE, data).tokenizer.to_json() == before


def test_what_encoder_and_decoder_read(data: Path) -> None:
    prepared = prepare(RECIPE, data)
    pair = Pair("猫狗。", "cat dog.")
    ((source, target),) = prepared.encode([pair])
    tokenizer = prepared.tokenizer
    assert (source[-1], target[0], target[-1]) == (2, 1, 2)
    assert tokenizer.decode(source[:-1]) == pair.source
    assert tokenizer.decode(target[1:-1]) == pair.target
    assert 0 not in source + target
    long = Pair("猫" * MAX_TOKENS, "cat")  # with its end mark one too long
    assert encode_pairs(tokenizer, [long, pair, Pair("cat", "猫" * (MAX_TOKENS - 1))]) == [(source, target)]
    assert len(encode_pairs(tokenizer, [Pair("猫" * (MAX_TOKENS - 1), "猫" * (MAX_TOKENS - 2))])) == 1


def test_translations_come_in_the_order_of_the_sources() -> None:
    """Batches are sorted by length inside; each source gets what it gets alone."""
    checkpoint = tiny.checkpoint(max_positions=64, tied_unembedding=False, norm_order="pre")
    sources = ["猫和狗和猫和狗", "cat", "我有一只猫。", "猫", "two dogs and cats", "cat"]
    together = translate_all(checkpoint, sources, max_new=6, batch=2)
    for source, translation in zip(sources, together, strict=True):
        ids = [token.id for token in checkpoint.tokenizer.encode(source)]
        alone = [step.id for step in greedy_steps(checkpoint.model, ids, (1,), max_new=6)]
        assert translation == checkpoint.tokenizer.decode(alone).strip()
    assert len(set(together)) > 2


def test_the_bundled_recipe_is_legal() -> None:
    """The paper's own style, within the size that was promised: 3 to 8 million parameters."""
    from vizformer.config import ModelConfig
    from vizformer.model import count_parameters

    config = ModelConfig.from_dict(
        {"vocab_size": ZH_EN.vocab_size, "pad_id": 0, "bos_id": 1, "eos_id": 2, **ZH_EN.model}
    )
    assert (config.norm_order, config.positions, config.activation) == ("post", "sinusoidal", "relu")
    assert config.tied_unembedding
    assert config.scaled_embedding
    assert 3_000_000 <= count_parameters(config) <= 8_000_000
    assert ZH_EN.label_smoothing == 0.1
