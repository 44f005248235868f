"""Sentence pairs: reading them, and a held-out part that training has not seen from either side."""

import random
from pathlib import Path

import pytest

from recipes.pairs import MAX_GROUP, Pair, read_pairs, sentence_key, split_pairs
from vizformer.errors import VizformerError


def test_reading(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text(
        "Hi.\t嗨。\tCC-BY\nHi.\t嗨。\tsomebody else\n  Run! \t 快跑！\t\nEmpty\t\tx\n\tleer\ty\nHi.\t你好。\tz\n",
        encoding="utf-8",
    )
    assert read_pairs(path) == [Pair("嗨。", "Hi."), Pair("快跑！", "Run!"), Pair("你好。", "Hi.")]
    assert read_pairs(path, source_column=0, target_column=1)[0] == Pair("Hi.", "嗨。")


def test_reading_windows_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_bytes("Hi.\t嗨。\r\nRun!\t快跑！\r\n".encode())
    assert read_pairs(path) == [Pair("嗨。", "Hi."), Pair("快跑！", "Run!")]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(VizformerError, match=r"no file .*nothing.tsv. Give the path of a tab-separated file"):
        read_pairs(tmp_path / "nothing.tsv")
    (tmp_path / "pairs.tsv").write_text("Hi.\t嗨。\nno tab here\n", encoding="utf-8")
    with pytest.raises(VizformerError, match=r"pairs.tsv, line 2: 1 columns where at least 2 are needed"):
        read_pairs(tmp_path / "pairs.tsv")


def test_the_same_sentence_written_otherwise() -> None:
    for other in ("i have a cat", "I have a cat!", " I  have_a cat. ", "Ｉ ｈａｖｅ ａ ｃａｔ．", "I HAVE A CAT?!"):
        assert sentence_key(other) == sentence_key("I have a cat.")
    assert sentence_key("我有一只猫。") == sentence_key("我有一只猫！")
    assert sentence_key("我有一只猫。") != sentence_key("我有一只狗。")
    assert sentence_key("I have a cat.") != sentence_key("I have cats.")


def many_pairs(n: int = 400) -> list[Pair]:
    """Sentences with several translations, and spellings that differ only in case and punctuation."""
    rng = random.Random(3)
    pairs = []
    for _ in range(n):
        source, target = f"句{rng.randrange(n)}", f"sentence {rng.randrange(n)}"
        pairs.append(Pair(source + rng.choice("。！"), rng.choice([target, target.upper()]) + rng.choice(".!")))
    return list(dict.fromkeys(pairs))


@pytest.mark.parametrize("seed", range(5))
def test_held_out_sentences_do_not_occur_in_training(seed: int) -> None:
    pairs = many_pairs()
    split = split_pairs(pairs, n_valid=30, n_test=50, seed=seed)
    parts = (split.train, split.valid, split.test)
    for side in ("source", "target"):
        train, valid, test = ({sentence_key(getattr(pair, side)) for pair in part} for part in parts)
        assert not train & valid
        assert not train & test
        assert not valid & test
    assert sorted(map(repr, pairs)) == sorted(map(repr, (*split.train, *split.valid, *split.test)))
    assert 50 <= len(split.test) < 50 + MAX_GROUP
    assert 30 <= len(split.valid) < 30 + MAX_GROUP
    assert len(split.train) > 200


def test_the_split_is_the_same_every_time() -> None:
    split = split_pairs(many_pairs(), n_valid=30, n_test=50, seed=1)
    assert split_pairs(many_pairs(), n_valid=30, n_test=50, seed=1) == split
    assert split_pairs(many_pairs(), n_valid=30, n_test=50, seed=2).test != split.test


def test_translations_of_translations_stay_together() -> None:
    """a-1, b-1, b-2, c-2: a and 2 never meet in a pair, and still belong together."""
    chain = [Pair("a", "1"), Pair("b", "1"), Pair("b", "2"), Pair("c", "2")]
    alone = [Pair(f"s{i}", f"t{i}") for i in range(20)]
    for seed in range(20):
        split = split_pairs(chain + alone, n_valid=3, n_test=3, seed=seed)
        assert sum(bool(set(chain) & set(part)) for part in (split.train, split.valid, split.test)) == 1


def test_a_large_web_of_translations_stays_in_training() -> None:
    web = [Pair(f"s{i // 2}", f"t{(i + 1) // 2}") for i in range(MAX_GROUP + 1)]
    alone = [Pair(f"x{i}", f"y{i}") for i in range(20)]
    for seed in range(20):
        assert set(web) <= set(split_pairs(web + alone, n_valid=5, n_test=5, seed=seed).train)
