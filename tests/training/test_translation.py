"""The recipe of the bundled translator, at the size of a toy."""

import random
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests import tiny
from vizformer.checkpoints import Checkpoint, load, save
from vizformer.errors import VizformerError
from vizformer.generation import greedy_steps
from vizformer.training import back_translation
from vizformer.training.back_translation import back_translate, read_sentences, usable_sentences
from vizformer.training.loop import LoopOptions, Progress
from vizformer.training.pairs import Pair, Split, sentence_key
from vizformer.training.translate import translate_all
from vizformer.training.translation import (
    MAX_TOKENS,
    ZH_EN,
    TranslationRecipe,
    build,
    encode_pairs,
    prepare,
    train_translator,
)

WORDS = {"猫": "cat", "狗": "dog", "鱼": "fish", "鸟": "bird", "马": "horse", "牛": "cow"}
LOOP = LoopOptions(epochs=2, warmup=20, average_decay=0.9)
RECIPE = TranslationRecipe(
    name="toy", vocab_size=300, tokens_per_batch=200, n_valid=12, n_test=16, base=LOOP, reverse=LOOP, mixed=LOOP,
    real_copies=2, n_synthetic=6,
    model=dict(d_model=16, n_heads=2, d_ff=32, n_encoder_layers=1, n_decoder_layers=1, dropout=0.1, max_positions=64,
               scaled_embedding=True),
)  # fmt: skip


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


def test_the_other_direction_holds_out_the_same_pairs(data: Path) -> None:
    prepared = prepare(RECIPE, data)
    backwards = prepared.reversed()
    assert backwards.tokenizer is prepared.tokenizer
    for part in ("train", "valid", "test"):
        swapped = [Pair(pair.target, pair.source) for pair in getattr(prepared.split, part)]
        assert list(getattr(backwards.split, part)) == swapped


def test_training_gives_a_model_that_can_be_saved_and_used(data: Path, tmp_path: Path) -> None:
    prepared, reports = prepare(RECIPE, data), list[Progress]()
    checkpoint = train_translator(RECIPE, replace(LOOP, epochs=3), prepared, tmp_path / "work", reports.append)
    config = checkpoint.model.config
    assert (config.pad_id, config.bos_id, config.eos_id) == (0, 1, 2)
    assert (config.d_model, config.dropout, config.vocab_size) == (16, 0.1, prepared.tokenizer.vocab_size)
    finished = [report for report in reports if report.validation]
    assert [report.epoch for report in finished] == [0, 1, 2]
    assert finished[-1].loss < finished[0].loss
    assert finished[-1].validation["loss"] < finished[0].validation["loss"]
    save(checkpoint, tmp_path / "toy")
    assert load(tmp_path / "toy").generate("猫狗。").ids
    assert checkpoint.trace("猫狗。").logits.isfinite().all()


def test_training_begins_where_it_is_told_to(data: Path, tmp_path: Path) -> None:
    prepared = prepare(RECIPE, data)
    start = train_translator(RECIPE, LOOP, prepared, tmp_path / "first", lambda progress: None)
    weights = {name: tensor.clone() for name, tensor in start.model.state_dict().items()}
    none = replace(LOOP, epochs=0)
    again = train_translator(RECIPE, none, prepared, tmp_path / "second", lambda progress: None, start=start)
    assert again.key == start.key
    fresh = train_translator(RECIPE, none, prepared, tmp_path / "third", lambda progress: None)
    assert fresh.key != start.key
    further = train_translator(RECIPE, LOOP, prepared, tmp_path / "fourth", lambda p: None, start=start)
    assert further.key != start.key
    assert all(torch.equal(tensor, weights[name]) for name, tensor in start.model.state_dict().items())


def test_the_whole_recipe(data: Path, tmp_path: Path) -> None:
    prepared, stages = prepare(RECIPE, data), list[str]()
    english = tmp_path / "english.txt"
    # One that training knows, one that is held out, and new ones.
    known = [prepared.split.train[0].target, prepared.split.test[0].target]
    english.write_text("\n".join([*known, "two new cats", "a new dog\tein Hund"]), encoding="utf-8")
    checkpoint = build(
        RECIPE, prepared, tmp_path / "work", lambda stage, progress: stages.append(stage), english=english
    )
    assert list(dict.fromkeys(stages)) == ["base", "reverse", "mixed"]
    cached = (tmp_path / "work" / "back-translated.tsv").read_text(encoding="utf-8").splitlines()
    assert {line.split("\t")[0] for line in cached} <= {"two new cats", "a new dog"}
    base = build(RECIPE, prepared, tmp_path / "work", lambda *_: None)
    assert base.key != checkpoint.key


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


def test_sentences_for_back_translation(tmp_path: Path) -> None:
    path = tmp_path / "english.txt"
    path.write_text("Go.\tVa !\nGo.\tAllez !\n\nRun!\n", encoding="utf-8")
    assert read_sentences(path) == ["Go.", "Run!"]
    with pytest.raises(VizformerError, match=r"no file .*nothing.txt. Give the path of a text file"):
        read_sentences(tmp_path / "nothing.txt")
    split = Split((Pair("去", "Go."),), (Pair("跑", "Run!"),), (Pair("停", "Stop it."),))
    offered = ["go", "RUN", "stop it", "Sit down.", "word " * 15, "Stand up."]
    assert sorted(usable_sentences(offered, split, count=9, seed=0)) == ["Sit down.", "Stand up."]
    assert len(usable_sentences(offered, split, count=1, seed=0)) == 1
    many = [f"sentence {i}" for i in range(50)]
    assert usable_sentences(many, split, count=9, seed=1) == usable_sentences(many, split, count=9, seed=1)
    assert usable_sentences(many, split, count=9, seed=1) != usable_sentences(many, split, count=9, seed=2)


def test_back_translation_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def translate(checkpoint: Checkpoint, sources: list[str], **options: int) -> list[str]:
        asked.extend(sources)
        return ["" if source == "nothing" else f"译 {source}" for source in sources]

    monkeypatch.setattr(back_translation, "translate_all", translate)
    cache, checkpoint = tmp_path / "work" / "back.tsv", tiny.checkpoint()
    assert back_translate(checkpoint, ["one", "two"], cache) == [Pair("译 one", "one"), Pair("译 two", "two")]
    with cache.open("a", encoding="utf-8") as file:
        file.write("thr")  # killed while writing
    pairs = back_translate(checkpoint, ["two", "three", "nothing"], cache)
    assert pairs == [Pair("译 two", "two"), Pair("译 three", "three")]  # "one" is not wanted any more, "" is no source
    assert asked == ["one", "two", "three", "nothing"]
    assert cache.read_text(encoding="utf-8") == "one\t译 one\ntwo\t译 two\nthree\t译 three\n"


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
