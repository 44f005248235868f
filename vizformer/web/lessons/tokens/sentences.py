"""Sentences of the lesson Tokens and embeddings that use one token in two senses, or share tokens with the reader's."""

from dataclasses import dataclass


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
