"""The list of everyday sentences is whole, and its scorer tells good translations from bad ones.  No model is asked here."""

import re

import pytest

from tests.translation.everyday import held, missing, sentences, share_held

DIRECTIONS = ("zh-en", "en-zh")
CHINESE = re.compile(r"[\u4e00-\u9fff]")


def required(text):
    return next(one.required for way in DIRECTIONS for one in sentences(way) if one.text == text)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_three_hundred_different_sentences_each_with_two_to_four_required_items(direction):
    listed = sentences(direction)
    assert len(listed) == len({re.sub(r"\W", "", one.text).lower() for one in listed}) == 300
    for one in listed:
        assert 2 <= len(one.required) <= 4, one
        assert all(word and word == word.strip() for item in one.required for word in item), one


def test_sentences_are_short_and_in_their_language():
    for one in sentences("zh-en"):
        assert CHINESE.search(one.text), one
        assert not CHINESE.search(one.translation + str(one.required)), one
        assert 5 <= len(one.text) <= 24, one
    for one in sentences("en-zh"):
        assert not CHINESE.search(one.text), one
        assert CHINESE.search(one.translation), one
        assert 3 <= len(one.text.split()) <= 16, one
        assert all(CHINESE.search(word) or re.fullmatch(r"[\d,]+", word) for item in one.required for word in item), one


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_the_list_s_own_translations_hold_what_is_required(direction):
    assert [(one, lacks) for one in sentences(direction) if (lacks := missing(one.translation, one.required))] == []
    assert share_held([one.translation for one in sentences(direction)], direction) == 1


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.sample(1)
def test_the_translation_of_another_sentence_does_not_hold_what_is_required(direction):
    listed = sentences(direction)
    mistaken = [
        (one.text, other.translation)
        for one in listed
        for other in listed
        if one is not other and held(other.translation, one.required)
    ]
    assert mistaken == []


GOOD = [
    ("我的妹妹在河边看书。", "My little sister reads a book on the riverbank."),
    ("小明把苹果放在桌上，然后吃掉了它。", "Xiao Ming laid the apple on the desk, then ate it up."),
    ("鱼被猫吃了。", "The cat ate the fish."),
    ("我弟弟还不会走路。", "My younger brother can’t walk yet."),
    ("这道题太难了，我不会做。", "This problem is too hard for me."),
    ("我今年三十五岁。", "I'm thirty-five this year."),
    ("上海比北京热吗？", "is shanghai warmer than beijing?"),
    ("The apple was eaten by the little girl.", "小女孩把苹果吃掉了。"),
    ("Beijing is colder than Shanghai in winter.", "上海的冬天没有北京冷。"),
    ("I was born in the summer of 1998.", "我是1998年夏天出生的。"),
]
BAD = [
    ("我爱中国。", "I love Chinese."),
    ("我爱北京的春天。", "I love spring in Tokyo."),
    ("我的妹妹在河边看书。", "My sister is watching the river."),
    ("鱼被猫吃了。", "The fish ate the cat."),
    ("别怕，这条狗不咬人。", "Don't bite this dog, please."),
    ("老师说的话我一句也听不懂。", "The teacher does not understand what I say."),
    ("上海比北京热吗？", "Is Beijing hotter than Shanghai?"),
    ("我今年三十五岁。", "I am thirty this year."),
    ("她花了三百块钱买了一件大衣。", "She spent 3000 yuan on a coat."),
    ("The apple was eaten by the little girl.", "苹果吃了小女孩。"),
    ("I cannot find my keys.", "我找到了我的钥匙。"),
    ("I was born in the summer of 1998.", ""),
]


@pytest.mark.parametrize(("text", "translation"), GOOD)
def test_another_good_translation_holds_what_is_required(text, translation):
    assert missing(translation, required(text)) == ()


@pytest.mark.parametrize(("text", "translation"), BAD)
def test_a_wrong_translation_does_not(text, translation):
    assert not held(translation, required(text))


def test_the_share_counts_sentences_and_wants_a_translation_of_each():
    translations = [one.translation for one in sentences("zh-en")]
    assert share_held(["", "", "", *translations[3:]], "zh-en") == 0.99
    with pytest.raises(ValueError, match="zip"):
        share_held(translations[1:], "zh-en")
