"""Learning the lesson's tokenizers, on texts small enough to check."""

import itertools
import json
import math
from pathlib import Path

import pytest

from recipes.schemes import count_merges, train_scheme, write_schemes
from recipes.unigram import best_cut, learn_pieces
from vizformer.text.schemes import LEARNED, Scheme, learn, words_of

TEXTS = ["low low low lower lower newest newest newest newest widest widest", "我有一只猫。", "我有两只猫。"] * 2


@pytest.mark.parametrize("scheme", LEARNED)
def test_a_tokenizer_knows_what_it_was_learned_from(scheme: Scheme) -> None:
    tokenizer = train_scheme(scheme, TEXTS, 60)
    assert tokenizer.get_vocab_size() <= 60
    unknown = tokenizer.token_to_id("[UNK]")
    for text in TEXTS:
        assert unknown not in tokenizer.encode(text, add_special_tokens=False).ids
    assert unknown in tokenizer.encode("猫龘", add_special_tokens=False).ids


def test_counts_are_those_of_learning_step_by_step() -> None:
    words = {word: sum(w == word for t in TEXTS for w in words_of(t)) for t in TEXTS for word in words_of(t)}
    steps = learn(words, 12)
    counts = count_merges(TEXTS, [step.pair for step in steps])
    assert counts == [step.counts[0][1] for step in steps]


def test_everything_is_written(tmp_path: Path) -> None:
    pairs = tmp_path / "cmn.txt"
    pairs.write_text("I have a cat.\t我有一只猫。\nI have two cats.\t我有两只猫。\n", encoding="utf-8")
    write_schemes(pairs, tmp_path / "out")
    merges = json.loads((tmp_path / "out" / "bpe.json").read_text(encoding="utf-8"))["model"]["merges"]
    assert len(json.loads((tmp_path / "out" / "bpe-counts.json").read_text(encoding="utf-8"))) == len(merges) > 0
    assert {p.name for p in (tmp_path / "out").iterdir()} == {f"{s}.json" for s in LEARNED} | {"bpe-counts.json"}


def test_unigram_keeps_the_frequent_word_that_no_other_word_contains() -> None:
    pieces = learn_pieces({"money": 50, "lower": 8, "low": 20, "slow": 8, "er": 5}, 14)
    assert "money" in pieces
    assert set("moneylwrs") <= set(pieces)
    assert sum(math.exp(value) for value in pieces.values()) == pytest.approx(1.0, abs=0.05)
    assert best_cut("money", pieces)[0] == ["money"]


def test_the_best_cut_is_the_most_probable_of_all_cuts() -> None:
    pieces = {"a": -2.0, "b": -2.2, "c": -2.1, "ab": -3.0, "bc": -3.1, "abc": -6.0, "ca": -4.5}
    word = "abcab"
    best = -math.inf
    for cuts in itertools.product((False, True), repeat=len(word) - 1):
        parts, start = [], 0
        for place, cut in enumerate((*cuts, True), start=1):
            if cut:
                parts.append(word[start:place])
                start = place
        if all(part in pieces for part in parts):
            best = max(best, sum(pieces[part] for part in parts))
    cut_found, found = best_cut(word, pieces)
    assert found == pytest.approx(best)
    assert "".join(cut_found) == word
    assert best_cut("ab", pieces, without="ab")[0] == ["a", "b"]
