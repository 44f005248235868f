"""Sentences whose translation turns on who is meant: each with both orders of its two candidates."""

import re
from collections.abc import Iterator

from recipes.translator.english import article
from recipes.translator.lexicon import Noun, Person, Rule
from recipes.translator.phrases import Speaker

NEAR = (("旁边", "next to"), ("前面", "in front of"), ("后面", "behind"), ("附近", "near"))
PORTABLE = {"small", "fruit", "book", "clothes"}
Candidate = tuple[str, str, str]  # Chinese, English, the pronoun in Chinese
Frame = tuple[str, str]

IT_VERBS: tuple[Frame, ...] = (
    ("{A}在{B}{near}。{who}把{it}{zh}。", "{The_a} is {en_near} {the_b}. {who_en} {en}."),
    ("{who}看见{A}在{B}{near}，就把{it}{zh}。", "{who_en} saw {the_a} {en_near} {the_b} and {en}."),
    ("{who}有{one_A}和{one_B}。昨天{who}把{it}{zh}。", "{who_en} has {a_a} and {a_b}. Yesterday {who_en} {en}."),
)
IT_PUT: tuple[Frame, ...] = (
    *IT_VERBS,
    ("{who}把{A}放在{B}{near}，然后把{it}{zh}。", "{who_en} put {the_a} {en_near} {the_b}, and then {en}."),
    ("{who}把{A}和{B}放在桌子上，然后把{it}{zh}。", "{who_en} put {the_a} and {the_b} on the table, and then {en}."),
)
IT_IS: tuple[Frame, ...] = (
    ("{A}在{B}{near}。{it}{zh}。", "{The_a} is {en_near} {the_b}. It is {en}."),
    ("{who}看了看{A}和{B}。{it}{zh}。", "{who_en} looked at {the_a} and {the_b}. It is {en}."),
    ("{who}没把{A}放在{B}{near}，因为{it}{zh}。", "{who_en} didn't put {the_a} {en_near} {the_b} because it was {en}."),
)
THEY_ARE: tuple[Frame, ...] = (
    ("{A}在{B}{near}。{it}{zh}。", "{The_a} are {en_near} {the_b}. They {en}."),
    ("{who}看见了{A}和{B}。{it}{zh}。", "{who_en} saw {the_a} and {the_b}. They {en}."),
    ("{who}在找{A}和{B}。{it}{zh}。", "{who_en} is looking for {the_a} and {the_b}. They {en}."),
)
THEM: tuple[Frame, ...] = (
    ("{A}在{B}{near}。{who}把{it}{zh}。", "{The_a} are {en_near} {the_b}. {who_en} {en}."),
    ("{who}看见{A}在{B}{near}，就把{it}{zh}。", "{who_en} saw {the_a} {en_near} {the_b} and {en}."),
)
PEOPLE_VERBS = (("邀请了", "invited them"), ("感谢了", "thanked them"), ("拜访了", "visited them"))
EATEN = ("{A}被{B}吃了，因为{it}{zh}。", "{The_a} was eaten by {the_b} because it was {en}.")
EATER = ("{A}把{B}吃了，因为{it}{zh}。", "{The_a} ate {the_b} because it was {en}.")


def thing(noun: Noun) -> Candidate:
    return noun.zh, f"the {noun.plural}", "它们"


def group(person: Person) -> Candidate:
    """Several people, said so that he and she are told apart: 女孩们, 我的阿姨们."""
    kin = "kin" in person.kinds
    whose = ("我的", "my") if kin else ("", "the")
    return f"{whose[0]}{person.zh}们", f"{whose[1]} {person.plural}", "她们" if person.gender == "f" else "他们"


class Coreference:
    """Draws candidates among the training nouns, or, for tests, so that the one meant is held out."""

    def __init__(self, speaker: Speaker, held_out: bool = False) -> None:
        self.s, self.held_out = speaker, held_out
        self.nouns = [n for n in speaker.lexicon.nouns if not n.mass and not n.always_plural]
        self.people = [p for p in speaker.lexicon.people if "they" in p.kinds]

    def meant(self, word: Noun | Person) -> bool:
        return ("held" in word.kinds) == self.held_out

    def one_thing(self, kinds: frozenset[str], but: frozenset[str], meant: bool) -> Noun | None:
        fit = [n for n in self.nouns if n.kinds & kinds and not n.kinds & but]
        fit = [n for n in fit if (self.meant(n) if meant else self.held_out or "held" not in n.kinds)]
        return self.s.one(fit) if fit else None

    def one_person(self, kinds: frozenset[str], meant: bool) -> Person | None:
        fit = [p for p in self.people if p.kinds & kinds]
        fit = [p for p in fit if (self.meant(p) if meant else self.held_out or "held" not in p.kinds)]
        return self.s.one(fit) if fit else None

    def orders(self, frames: tuple[Frame, ...], it: Candidate, other: Candidate, rule: tuple[str, str], what: str,
               nouns: tuple[Noun, Noun] | None = None) -> Iterator[tuple[str, str, str]]:  # fmt: skip
        """The sentence with the one that is meant first, and with it second."""
        frame = self.s.one(frames)
        near, who, eaten = self.s.one(NEAR), self.s.name("m f"), self.s.chance(0.6)
        for place, (a, b) in enumerate(((it, other), (other, it)), 1):
            fields = dict(
                A=a[0], B=b[0], near=near[0], en_near=near[1], who=who.zh, who_en=who.en, zh=rule[0], en=rule[1]
            )
            fields |= dict(it=it[2], the_a=a[1], the_b=b[1], The_a=a[1][0].upper() + a[1][1:])
            if nouns:
                first, second = nouns if place == 1 else nouns[::-1]
                fields |= dict(one_A=f"一{first.measure}{first.zh}", one_B=f"一{second.measure}{second.zh}")
                fields |= dict(a_a=article(first.en), a_b=article(second.en))
            zh, en = frame
            if nouns and {"land_animal", "fruit"} <= nouns[0].kinds | nouns[1].kinds and rule[1] != "sick" and eaten:
                zh, en = EATEN if "fruit" in (nouns if place == 1 else nouns[::-1])[0].kinds else EATER
            yield zh.format(**fields), en.format(**fields), f"coreference {what} {place}"

    def pairs(self) -> Iterator[tuple[str, str, str]]:
        """Two sentences, or none where the words drawn do not fit."""
        s = self.s
        rule: Rule = s.one(s.lexicon.coreference)
        if rule.what == "gender":
            one, other = self.one_person(rule.kinds, True), self.one_person(rule.others, False)
            if one and other and one.kinds.isdisjoint({"x"}) and other.kinds.isdisjoint({"x"}):
                yield from self.orders(THEY_ARE, group(one), group(other), (rule.zh, rule.en), "they")
        elif rule.what == "are" or s.chance(0.1):
            person = self.one_person(rule.kinds if rule.what == "are" else frozenset("mfx"), True)
            others = rule.others if rule.what == "are" else frozenset({"book", "vehicle", "furniture", "toy"})
            noun = self.one_thing(others, frozenset(), False)
            if person and noun and rule.what == "are":
                yield from self.orders(THEY_ARE, group(person), thing(noun), (rule.zh, rule.en), "they")
            elif person and noun:
                zh, en = s.one(PEOPLE_VERBS)
                frames = tuple((f[0].replace("把{it}{zh}", "{zh}{it}"), f[1]) for f in THEM)
                yield from self.orders(frames, group(person), thing(noun), (zh, en), "them")
        else:
            yield from self.of_things(rule)

    def of_things(self, rule: Rule) -> Iterator[tuple[str, str, str]]:
        """it as a repeated noun; they and them as 它们, beside people or other things."""
        s, verb = self.s, rule.what == "verb"
        noun, other = self.one_thing(rule.kinds, frozenset(), True), self.one_thing(rule.others, rule.kinds, False)
        if noun is None or other is None:
            return
        if s.chance(0.6):
            it, that = (noun.zh, f"the {noun.en}", noun.zh), (other.zh, f"the {other.en}", other.zh)
            small = noun.kinds & PORTABLE and other.kinds & PORTABLE
            frames = (IT_PUT if small else IT_VERBS) if verb else IT_IS if small else IT_IS[:2]
            yield from self.orders(frames, it, that, (rule.zh, rule.en), "it", (noun, other))
            return
        person = self.one_person(frozenset("mfx"), False)
        if person is None or rule.en in ("hungry", "thirsty", "tired", "sleepy", "afraid", "sick"):
            return
        words = (rule.zh, re.sub(r"\bit\b", "them", rule.en) if verb else f"are {rule.en}")
        yield from self.orders(
            THEM if verb else THEY_ARE, thing(noun), group(person), words, "them" if verb else "they"
        )
