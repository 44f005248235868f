"""A vocabulary in which every Chinese character stands alone and every text can be written."""

import unicodedata

import pytest

from recipes.vocabulary import BOS, EOS, PAD, train_bpe
from tests import tiny
from vizformer.text import Tokenizer

TEXTS = [
    "我有一只猫。",
    "I have a cat.",
    "The cat sat on the mat; the dog barked.",
    "今天天气很好，我们去公园吧！",
    "🐱🐶 👩‍👩‍👧",
    "naïve café",
    "鑫龘",
    "mixed 中文 and English混合text",
    "  spaces\tand\nlines  ",
    "1234567890",
    "שלום",
    "\x00\x1f",
    "（括号）「引号」…——",
]


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_there_and_back(text: str) -> None:
    tokenizer = tiny.tokenizer()
    assert tokenizer.decode([token.id for token in tokenizer.encode(text)]) == unicodedata.normalize("NFC", text)


def test_composed_and_decomposed_letters_are_the_same() -> None:
    tokenizer = tiny.tokenizer()
    assert [t.id for t in tokenizer.encode("cafe\u0301")] == [t.id for t in tokenizer.encode("café")]


def test_chinese_characters_are_never_merged_with_anything() -> None:
    """Even where two always come together: attention is read off character by character."""
    backend = train_bpe(["我们我们，我们。 we的cat猫猫（猫）"] * 50, 400)
    pieces = [Tokenizer(backend).bytes_of(id) for id in range(3, backend.get_vocab_size())]
    for piece in pieces:
        text = piece.decode(errors="ignore")
        assert len(text) <= 1 or not any(ord(char) > 0x2E80 for char in text), text
    assert "我".encode() in pieces
    assert "猫".encode() in pieces
    assert b" we" in pieces or b"we" in pieces  # English does get merged
    shown = [token.text for token in Tokenizer(backend).encode("我们猫", special=False)]
    assert shown == ["我", "们", "猫"]


def test_every_byte_is_in_it() -> None:
    tokenizer = Tokenizer(train_bpe(["a"], 300))
    single = {tokenizer.bytes_of(id) for id in range(3, tokenizer.vocab_size)}
    assert {bytes([byte]) for byte in range(256)} <= single


def test_special_tokens_come_first_and_the_end_mark_last() -> None:
    tokenizer = Tokenizer(train_bpe(["a cat"], 300))
    assert [tokenizer.id_of(piece) for piece in (PAD, BOS, EOS)] == [0, 1, 2]
    assert all(tokenizer.is_special(id) for id in range(3))
    tokens = tokenizer.encode("a cat")
    assert tokens[-1].id == 2
    assert not any(token.special for token in tokens[:-1])
    assert tokenizer.vocab_size <= 300


def test_the_same_texts_give_the_same_vocabulary() -> None:
    assert train_bpe(tiny.TEXTS * 3, 320).to_str() == train_bpe(tiny.TEXTS * 3, 320).to_str()
