"""Sentences of the lesson Many heads in which one word decides whom a pronoun means (see `analysis.heads.minimal_pairs`)."""

from typing import Literal

Pronoun = Literal["he", "he_first", "it", "it_noun", "ta_form", "ta_meaning"]

PAIRS: dict[Pronoun, tuple[str, ...]] = {
    "he": (
        "The [boy] saw the [girl] when [{he/she}] came home.",
        "The [woman] waited for the [man] until [{she/he}] came.",
        "My [father] called my [mother] because [{he/she}] was late.",
        "My [sister] helps my [brother] when [{she/he}] is busy.",
        "The [king] asked the [queen] if [{he/she}] was tired.",
        "Her [daughter] told her [son] that [{she/he}] was wrong.",
        "My [uncle] visited my [aunt] because [{he/she}] was ill.",
        "The [girl] called her [father] because [{she/he}] was afraid.",
        "The [father] looked at the [girl] because [{he/she}] was happy.",
        "The [girl] knew the [man] before [{she/he}] came here.",
        "My [brother] met the [woman] when [{he/she}] was young.",
        "[Mary] met [Tom] when [{she/he}] was in Boston.",
    ),
    "he_first": (
        "The [boy] saw the [girl] when [{he/she}] came home.",
        "The [man] waited for the [woman] until [{he/she}] came.",
        "My [father] called my [mother] because [{he/she}] was late.",
        "My [brother] helps my [sister] when [{he/she}] is busy.",
        "The [king] asked the [queen] if [{he/she}] was tired.",
        "His [son] told his [daughter] that [{he/she}] was wrong.",
        "My [uncle] visited my [aunt] because [{he/she}] was ill.",
        "The [boy] called his [mother] because [{he/she}] was afraid.",
        "The [father] looked at the [girl] because [{he/she}] was happy.",
        "The [man] knew the [girl] before [{he/she}] came here.",
        "My [brother] met the [woman] when [{he/she}] was young.",
        "[Tom] met [Mary] when [{he/she}] was in Boston.",
    ),
    "it": (
        "The [cat] did not cross the [street] because [it] was too {tired/wide}.",
        "The [box] did not fit in the [car] because [it] was too {big/small}.",
        "The [dog] ate the [fish] because [it] was {hungry/fresh}.",
        "The [cat] drank the [milk] because [it] was {thirsty/warm}.",
        "The [bird] left the [tree] because [it] was {afraid/dead}.",
        "The [horse] could not cross the [river] because [it] was too {tired/deep}.",
        "The [ball] broke the [window] because [it] was {hard/open}.",
        "The [dog] sleeps on the [bed] because [it] is {tired/soft}.",
        "The [car] could not use the [road] because [it] was too {old/narrow}.",
        "The [book] did not fit in the [bag] because [it] was too {large/small}.",
        "The [cat] did not drink the [water] because [it] was {ill/dirty}.",
        "The [train] left the [station] because [it] was {late/closed}.",
    ),
    "it_noun": (
        "The [monkey] is near the [grape]. [It] is {hungry/ripe}.",
        "The [grape] is behind the [rabbit]. [It] is {ripe/thirsty}.",
        "The [rabbit] is in front of the [magazine]. [It] is {afraid/interesting}.",
        "The [cucumber] is next to the [monkey]. [It] is {fresh/afraid}.",
        "Lily looked at the [monkey] and the [pear]. [It] is {thirsty/ripe}.",
        "Tom looked at the [magazine] and the [rabbit]. [It] is {interesting/hungry}.",
        "Tom saw the [rabbit] next to the [suitcase] and {fed/locked} [it].",
        "Lily saw the [suitcase] behind the [monkey] and {locked/fed} [it].",
        "The [monkey] is behind the [grape]. [It] is {afraid/ripe}.",
        "The [cucumber] is near the [rabbit]. Lily {washed/fed} [it].",
        "The [monkey] is in front of the [suitcase]. Mary {fed/locked} [it].",
        "The [suitcase] is near the [rabbit]. Tom {locked/fed} [it].",
    ),
    "ta_form": (
        "[男孩]看见[女孩]的时候，[{他/她}]很高兴。",
        "[妈妈]给[爸爸]打电话，因为[{她/他}]病了。",
        "[先生]问[太太][{他/她}]累不累。",
        "[姐姐]等[哥哥]，直到[{她/他}]来了。",
        "[弟弟]叫[妹妹]，因为[{他/她}]很怕。",
        "[母亲]看着[父亲]，因为[{她/他}]在哭。",
        "[男人]认识[女人]的时候，[{他/她}]很年轻。",
        "[玛丽]告诉[汤姆]，[{她/他}]很忙。",
        "[儿子]和[女儿]说[{他/她}]错了。",
        "[阿姨]去看[叔叔]，因为[{她/他}]病了。",
    ),
    "ta_meaning": (
        "那只[猫]没有过马[路]，因为[它]太{累/宽}了。",
        "[箱子]放不进[车]里，因为[它]太{大/小}了。",
        "[狗]吃了[鱼]，因为[它]很{饿/新鲜}。",
        "[猫]喝了[牛奶]，因为[它]很{渴/甜}。",
        "[鸟]离开了那棵[树]，因为[它]很{怕/老}。",
        "[马]没有过[河]，因为[它]太{累/深}了。",
        "[狗]睡在[床]上，因为[它]很{累/软}。",
        "[书]放不进[包]里，因为[它]太{厚/小}了。",
        "[猫]没有喝[水]，因为[它]很{困/脏}。",
        "[汽车]没有走那条[路]，因为[它]太{旧/窄}了。",
        "[狗]没有吃那块[肉]，因为[它]{病/坏}了。",
        "[鸟]飞进了[窗户]，因为[它]{饿了/开着}。",
    ),
}
"""The first word in braces means the first noun in brackets, the second word the second noun.

In "it_noun" are nouns that the translator saw in no sentence of this kind (`assets/prompts/reference.zh-en.txt` has the same
sentences).  In "he" and "ta_form" man and woman come first equally often: a head cannot do well by place.  In "he_first" the
man always comes first, which is the mistake that the lesson shows.
"""
