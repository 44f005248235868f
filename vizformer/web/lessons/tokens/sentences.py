"""Sentences of the lesson Tokens and embeddings that use one token in two senses, or share tokens with the reader's."""

from dataclasses import dataclass

from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link.model_ref import ModelRef


@dataclass(frozen=True)
class Occasion:
    """Sentences that use one token in two senses: the first and the second differ, the third is as the first."""

    token: str
    first: str
    second: str
    third: str


OCCASIONS = (
    Occasion("花", "我在花园里。", "我花了十元。", "他们在花园里玩。"),
    Occasion("苹", "苹果是一种好吃的水果。", "苹果是一个伟大的品牌。", "苹果是我最喜欢的水果。"),
    Occasion("打", "我打电话给他。", "他打了我。", "她打电话给我。"),
    Occasion(
        "bank",
        "They sat on the bank of the river.",
        "She went to the bank to get some money.",
        "We walked along the bank of the stream.",
    ),
    Occasion("can", "I can swim.", "He opened a can of beans.", "She can sing."),
)
FRAMES = {  # token -> the same sentences in two senses (see `analysis.heads.minimal_pairs`)
    "打": (
        "他[打]了{电话/她}。",
        "我不想[打]{电话/狗}。",
        "你为什么[打]{电话/我}？",
        "她在家[打]{电话/孩子}。",
        "他们不会[打]{电话/人}。",
        "昨天我[打]了{电话/弟弟}。",
    ),
    "苹": (
        "我的[苹]果{很甜/手机坏了}。",
        "他喜欢[苹]果{汁/手机}。",
        "她用[苹]果{做蛋糕/电脑工作}。",
        "桌子上的[苹]果{很好吃/电脑很贵}。",
        "我想买[苹]果{和香蕉/公司的电话}。",
        "新的[苹]果{很红/手机很快}。",
    ),
    "bank": (
        "He went to the [bank] with his {money/boat}.",
        "We walked to the [bank] because we needed {money/water}.",
        "She stood at the [bank] and looked at the {money/river}.",
        "The [bank] near the {office/river} is old.",
        "They sat by the [bank] and talked about the {money/fish}.",
        "The [bank] of the {city/river} is very large.",
    ),
    "play": (
        "She likes to [play] {tennis/music}.",
        "He cannot [play] {football/the piano}.",
        "We [play] {baseball/the guitar} every day.",
        "Do you [play] {tennis/the violin}?",
        "I want to [play] {soccer/the piano} today.",
        "They [play] {football/music} very well.",
    ),
    "light": (
        "This {bag/lamp} is very [light].",
        "The {box/room} is [light].",
        "I need a [light] {coat/lamp}.",
        "Is your {bag/house} [light]?",
        "My {bicycle/window} was [light].",
        "We want a [light] {meal/room}.",
    ),
}
OTHERS = (  # for a sentence of the reader's: the one that shares most with it
    "那只猫在睡觉。",
    "他们在学校里学中文。",
    "我不知道他是谁。",
    "今天的天气很好，我们去公园吧。",
    "她昨天买了一本书。",
    "The old man sat under the tree.",
    "I do not know what you mean.",
    "She opened the door and saw a cat.",
    "We are going to the city by train.",
    "He is not a good friend of mine.",
)


@cached
def occasions(model: ModelRef) -> tuple[Occasion, ...]:
    """The examples that the model can read: not where it takes few tokens, or came without a tokenizer."""
    return tuple(o for o in OCCASIONS if all(model_cache.reads(model, text) for text in (o.first, o.second, o.third)))


def beside(subject: Subject) -> tuple[str, str]:
    """A second and a third sentence to hold against the first: of the examples, or the one that shares most with it."""
    for occasion in occasions(subject.model):
        if occasion.first == subject.text.strip():
            return occasion.second, occasion.third
    return _fitting(subject.model, subject.text), ""


@cached
def _fitting(model: ModelRef, text: str) -> str:
    """The sentence that shares most words with the text; where none can be read, the text's own words turned round.

    Words with which both begin do not count: what a decoder makes of them is the same in both.
    """
    tokenizer = model_cache.checkpoint(model).tokenizer_of("encoder")
    others = [other for other in OTHERS if other != text.strip() and model_cache.reads(model, other)]
    if not others:
        turned = " ".join(reversed(text.split()))
        return turned if turned != text.strip() and model_cache.reads(model, turned) else ""

    def words(sentence: str) -> list[int]:
        return [token.id for token in tokenizer.encode(sentence, special=False) if token.text[:1].isalnum()]

    own = words(text)

    def shared(other: str) -> int:
        theirs = words(other)
        begun = next((i for i, (one, two) in enumerate(zip(own, theirs, strict=False)) if one != two), len(theirs))
        return len(set(own[begun:]) & set(theirs[begun:]))

    return max(others, key=shared)
