"""Six tokenizers: nothing is lost unseen, and every token stands over its own bytes."""

import pytest

from vizformer import load
from vizformer.text.schemes import LEARNED, SCHEMES, Scheme, cut, pieces, scheme_tokenizer

TEXTS = ("我有一只猫。", "She went to the bank to get some money.", "café 123 你好  world 😀\nnew line", "龘", "a")


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_tokens_stand_over_their_bytes_without_overlap_and_leave_out_only_spaces(scheme: Scheme, text: str) -> None:
    raw, reached, left_out = text.encode(), 0, b""
    for piece in cut(scheme, text):
        assert reached <= piece.start < piece.end <= len(raw)
        left_out += raw[reached : piece.start]
        reached = piece.end
    left_out += raw[reached:]
    assert not left_out.strip(), "only the space between words may be dropped"
    if scheme in ("character", "byte", "bpe", "unigram"):
        assert not left_out, "these keep the spaces"


@pytest.mark.parametrize("text", TEXTS)
def test_bytes_are_the_bytes(text: str) -> None:
    found = cut("byte", text)
    assert len(found) == len(text.encode())
    assert [(p.start, p.end) for p in found] == [(i, i + 1) for i in range(len(text.encode()))]
    assert scheme_tokenizer("byte").vocab_size == 256
    assert not any(p.unknown for p in found)


def test_characters_are_the_characters() -> None:
    found = cut("character", "我有 a cat")
    assert [p.text for p in found] == [*"我有␣a␣cat"]
    assert [p.end - p.start for p in found] == [3, 3, 1, 1, 1, 1, 1, 1]


def test_what_a_vocabulary_lacks_is_unknown_and_how_much_is_lost_depends_on_the_scheme() -> None:
    lost = {scheme: [p.text for p in cut(scheme, "猫龘猫") if p.unknown] for scheme in SCHEMES}
    assert lost["word"] == lost["wordpiece"] == ["猫龘猫"]  # a whole clause for one character
    assert lost["character"] == lost["bpe"] == lost["unigram"] == ["龘"]
    assert lost["byte"] == []


def test_a_clause_of_chinese_is_one_word() -> None:
    assert [p.text for p in cut("word", "我有一只猫。")] == ["我有一只猫", "。"]


def test_wordpiece_takes_the_longest_entry_from_the_left() -> None:
    known = scheme_tokenizer("wordpiece")
    for word in ("unbelievable", "tokenizers", "newest"):
        rest, first = word, True
        expected = []
        while rest:
            prefix = "" if first else "##"
            longest = max(k for k in range(1, len(rest) + 1) if known.id_of(prefix + rest[:k]) is not None)
            expected.append(prefix + rest[:longest])
            rest, first = rest[longest:], False
        assert [p.entry for p in cut("wordpiece", word)] == expected


def test_learned_vocabularies_have_the_sizes_that_their_card_says() -> None:
    sizes = {scheme: scheme_tokenizer(scheme).vocab_size for scheme in LEARNED}
    assert sizes == {"word": 4912, "character": 2400, "bpe": 8000, "wordpiece": 8000, "unigram": 8000}


def test_tokens_that_share_a_character_share_its_bytes() -> None:
    tokenizer = load("stories").tokenizer
    text = "伟大"  # 伟 is rare: two tokens of two bytes and one
    found = pieces(text, tokenizer)
    assert [(p.start, p.end) for p in found] == [(0, 2), (2, 3), (3, 6)]
    assert [p.text for p in found] == ["E4 BC", "9F", "大"]


def test_tokens_show_their_space() -> None:
    assert [p.text for p in cut("bpe", "a cat")] == ["a", "␣cat"]
