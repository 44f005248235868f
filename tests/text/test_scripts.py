"""The scripts of a vocabulary."""

import pytest

from vizformer import load
from vizformer.text.pieces import called, scripts_of
from vizformer.text.tokenizer import IdTokenizer


def test_a_vocabulary_of_two_languages_holds_both() -> None:
    tokenizer = load("zh-en").tokenizer
    found = scripts_of(tokenizer)
    every = {"LATIN": 0, "CJK": 0}
    for id in range(tokenizer.vocab_size):
        text = tokenizer.decode([id])
        if any("\u4e00" <= sign <= "\u9fff" for sign in text):
            every["CJK"] += 1
        elif any(sign.isascii() and sign.isalpha() for sign in text):
            every["LATIN"] += 1
    share = every["CJK"] / sum(every.values())
    assert found["CJK"] == pytest.approx(share, abs=0.06)  # 500 tokens: two standard errors are 0.04
    assert sum(found.values()) == pytest.approx(1)
    assert list(found.values()) == sorted(found.values(), reverse=True)


def test_token_ids_are_in_no_script() -> None:
    assert scripts_of(IdTokenizer(600)) == {}
    assert [called(name) for name in ("CJK", "LATIN")] == ["Han", "Latin"]
