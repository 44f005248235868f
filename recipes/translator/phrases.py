"""Noun phrases and verb phrases, each in both languages at once."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from recipes.translator.english import article, conjugate, number, plural
from recipes.translator.lexicon import Adjective, Lexicon, Modal, Noun, Place, Verb

T = TypeVar("T")
DIGITS = "零一二三四五六七八九"
NOT_ONES_OWN = [
    "借",
    "买",
    "偷",
    "收到",
    "买到",
    "做",
    "送",
    "寄",
    "等",
    "抓住",
    "救",
    "看见",
    "唱",
    "听",
    "参加",
    "扔",
    "种",
    "画",
    "解决",
]
PARTICLES = ("up", "away")


def chinese_number(n: int, counting: bool = False) -> str:
    """A number below ten thousand; before a measure word two is 两."""
    if counting and n == 2:
        return "两"
    if n < 10:
        return DIGITS[n]
    if n < 100:
        tens = "" if n < 20 else DIGITS[n // 10]
        return tens + "十" + (DIGITS[n % 10] if n % 10 else "")
    if n >= 1000:
        below = n % 1000
        between = "零" if 0 < below < 100 else ""
        return chinese_number(n // 1000, True) + "千" + between + (tens_said(below) if below else "")
    rest = "" if n % 100 == 0 else ("零" if n % 100 < 10 else "") + tens_said(n % 100)
    return DIGITS[n // 100] + "百" + rest


def tens_said(n: int) -> str:
    """A number within a greater one: there ten is 一十."""
    return ("一" if 10 <= n < 20 else "") + chinese_number(n)


@dataclass(frozen=True)
class Phrase:
    """A noun phrase: `person` is 1s, 2, 3s, 1p or 3p; `them` its form as an object, `own` as an owner."""

    zh: str
    en: str
    person: str = "3s"
    them: str = ""
    own: str = ""
    gender: str = ""
    noun: Noun | None = None
    forms: str = ""

    @property
    def object(self) -> str:
        return self.them or self.en

    @property
    def whose(self) -> str:
        """The English determiner that points back to it: his, their; "" where that is unknown."""
        return {"m": "his", "f": "her", "p": "their"}.get(self.gender, self.own if self.gender == "i" else "")


PRONOUNS = (
    Phrase("我", "I", "1s", "me", "my", "i"),
    Phrase("你", "you", "2", "you", "your", "i"),
    Phrase("他", "he", "3s", "him", "his", "m"),
    Phrase("她", "she", "3s", "her", "her", "f"),
    Phrase("我们", "we", "1p", "us", "our", "i"),
    Phrase("你们", "you", "2", "you", "your", "i"),
    Phrase("他们", "they", "3p", "them", "their", "p"),
    Phrase("她们", "they", "3p", "them", "their", "p"),
)
MINE = {"my": "mine", "your": "yours", "his": "his", "her": "hers", "our": "ours", "their": "theirs"}


@dataclass(frozen=True)
class Action:
    """A verb with its object: `bare` is an object without number or owner, which 了 follows."""

    verb: Verb
    zh_object: str = ""
    en_object: str = ""
    bare: bool = True
    pronoun: bool = False

    def english(self, form: str, subject: Phrase | None = None) -> str:
        """The form of the verb, its object and what belongs to it: wakes Tom up, looks for a key."""
        rest = self.verb.en.rest.replace("one's", (subject.whose if subject else "") or "the")
        split = rest in PARTICLES and self.en_object
        words = [form, self.en_object, rest] if split else [form, rest, self.en_object]
        return " ".join(word for word in words if word)


class Speaker:
    """Chooses words and makes phrases of them; every draw comes from one seeded generator."""

    def __init__(self, lexicon: Lexicon, rng: random.Random) -> None:
        self.lexicon, self.rng = lexicon, rng

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def one(self, options: Sequence[T]) -> T:
        return options[int(self.rng.random() * len(options))]

    def nouns(self, kinds: Iterable[str]) -> list[Noun]:
        return [noun for noun in self.lexicon.nouns if not noun.kinds.isdisjoint(kinds)]

    def name(self, kinds: str) -> Phrase:
        name = self.one([name for name in self.lexicon.names if name.kind in kinds.split()])
        return Phrase(name.zh, name.en, own=f"{name.en}'s", gender=name.kind if name.kind in "mf" else "")

    def kin(self, owner: Phrase | None = None) -> Phrase:
        """Somebody's relative or friend: 我妈妈, my mother."""
        owner = owner or (self.one(PRONOUNS) if self.chance(0.85) else self.name("m f"))
        single = owner.person == "3s" or owner.zh in ("我", "你")
        husband = [] if owner.gender != "f" and owner.zh not in ("我", "你") else ["丈夫"]
        wife = [] if owner.gender != "m" and owner.zh not in ("我", "你") else ["妻子"]
        relatives = [p for p in self.lexicon.people if not p.kinds.isdisjoint({"kin", "kin_too"})]
        married = [
            p for p in relatives if "one" not in p.kinds or p.zh == "老板" or (single and p.zh in husband + wife)
        ]
        person = self.one(married)
        en = person.en
        if en.endswith("brother") or en.endswith("sister"):
            en = en if self.chance(0.6) else en.split()[-1]
        joint = "的" if self.chance(0.5) or owner not in PRONOUNS else ""
        many = "plural" in person.kinds
        own = f"{owner.own} {en}'" if many else f"{owner.own} {en}'s"
        gender = "p" if many else person.gender
        return Phrase(f"{owner.zh}{joint}{person.zh}", f"{owner.own} {en}", "3p" if many else "3s", "", own, gender)

    def stranger(self, kinds: str = "job person", many: bool | None = None) -> Phrase:
        """Somebody by what he or she is: 那个老师, that teacher; 孩子们, the children."""
        person = self.one([p for p in self.lexicon.people if not p.kinds.isdisjoint(kinds.split())])
        if "many" in person.kinds and (self.chance(0.25) if many is None else many):
            if person.zh in ("婴儿", "小偷"):
                return Phrase(f"那些{person.zh}", f"those {person.plural}", "3p", "", f"those {person.plural}'", "p")
            whose = f"the {person.plural}'" if person.plural.endswith("s") else f"the {person.plural}'s"
            return Phrase(f"{person.zh}们", f"the {person.plural}", "3p", "", whose, "p")
        measure = "位" if "job" in person.kinds and person.zh not in ("学生", "士兵") else "个"
        zh, en = self.one([("", "the"), (f"那{measure}", "that"), (f"这{measure}", "this"), ("", "the")])
        if not zh and "person" in person.kinds:
            zh = "那个"
            en = "the" if self.chance(0.5) else "that"
        return Phrase(zh + person.zh, f"{en} {person.en}", "3s", "", f"{en} {person.en}'s", person.gender)

    def somebody(self, *, plain: bool = False) -> Phrase:
        """Who does it: pronouns most often."""
        draw = self.rng.random()
        if draw < 0.5:
            return self.one(PRONOUNS)
        if draw < 0.72 or plain:
            return self.name("m f")
        return self.kin() if draw < 0.88 else self.stranger()

    def other_than(self, subject: Phrase) -> Phrase:
        """Somebody else, of whom nobody thinks that it is the subject."""
        found = self.one(PRONOUNS) if self.chance(0.35) else self.somebody()
        one, other = subject.zh or "谁", found.zh
        own = {subject.own.split(" ")[0], found.own.split(" ")[0]}
        if one in other or other in one or one[0] == other[0] or (subject.person, own) == (found.person, {subject.own}):
            return self.stranger("person job", many=False)
        return found

    def adjective(self, noun: Noun) -> Adjective | None:
        fitting = [a for a in self.lexicon.adjectives if not a.kinds.isdisjoint(noun.kinds)]
        return self.one(fitting) if fitting else None

    def described(self, noun: Noun) -> tuple[str, str, str]:
        """The noun with or without an adjective: 红裙子, red skirt, red skirts."""
        adjective = self.adjective(noun) if self.chance(0.3) else None
        if adjective is None:
            return noun.zh, noun.en, noun.plural
        joint = "" if "short" in adjective.flags else "的"
        return f"{adjective.zh}{joint}{noun.zh}", f"{adjective.en} {noun.en}", f"{adjective.en} {noun.plural}"

    def thing(self, noun: Noun, forms: str, owner: Phrase | None = None, described: bool = True) -> Phrase:
        """A noun phrase in one of the forms: one, many, some, this, these, own, all (in general), the."""
        form = self.one(forms.split())
        described = described and form not in ("all", "own", "the")
        zh, en, several = self.described(noun) if described else (noun.zh, noun.en, noun.plural)
        measure, plain = noun.measure, noun.mass or noun.always_plural
        person = "3p" if noun.always_plural else "3s"
        if noun.container == "" and noun.mass and form in ("one", "many", "some", "this"):
            form = "all"  # a meal or what else is neither counted nor measured
        if form == "own" and (owner is None or not owner.whose):
            form = "this"
        if form in ("many", "these") and (noun.mass and form == "these"):
            form = "this"
        if form == "one":
            return Phrase(
                f"一{measure}{zh}", article(f"{noun.container} of {en}" if plain else en), noun=noun, forms=form
            )
        if form == "many":
            n = self.one((2, 2, 2, 3, 3, 4, 5, 6, 8, 10))
            words = f"{plural(noun.container)} of {en}" if plain else several
            return Phrase(
                f"{chinese_number(n, True)}{measure}{zh}", f"{number(n)} {words}", "3p", noun=noun, forms=form
            )
        if form == "some":
            if plain or self.chance(0.5):
                return Phrase(f"一些{zh}", f"some {several}", "3s" if noun.mass else "3p", noun=noun, forms=form)
            return Phrase(f"几{measure}{zh}", f"a few {several}", "3p", noun=noun, forms=form)
        if form == "this":
            zh_this, en_this = self.one((("这", "this"), ("那", "that")))
            words = f"{noun.container} of {en}" if noun.always_plural else en
            return Phrase(f"{zh_this}{measure}{zh}", f"{en_this} {words}", noun=noun, forms=form)
        if form == "these":
            zh_this, en_this = self.one((("这些", "these"), ("那些", "those")))
            return Phrase(zh_this + zh, f"{en_this} {several}", "3p", noun=noun, forms=form)
        if form == "own" and owner is not None:
            zh_own = owner.zh if owner in PRONOUNS else "自己"
            return Phrase(f"{zh_own}的{zh}", f"{owner.whose} {en}", person, noun=noun, forms=form)
        if form == "the":
            return Phrase(zh, f"the {en}", person, noun=noun, forms=form)
        return Phrase(zh, several, "3s" if noun.mass else "3p", noun=noun, forms="all")

    def object_of(self, verb: Verb, forms: str, subject: Phrase, described: bool = True) -> Phrase:
        """What the verb does it to: a thing of the verb's kinds, a person or a language."""
        kinds = sorted(verb.objects)
        kind = self.one(kinds)
        if kind == "people":
            return self.other_than(subject)
        if kind == "language":
            name = self.one([n for n in self.lexicon.names if n.language])
            return Phrase(name.language, name.nationality, forms="all")
        noun = self.one(self.nouns([kind]))
        if verb.zh in NOT_ONES_OWN and verb.en.base != "do":
            forms = forms.replace("own", "this")
        if kind == "instrument" and verb.zh in ("学", "教"):
            return Phrase(noun.zh, f"the {noun.en}", forms="all")
        if "wearing" in verb.flags:
            forms = forms.replace("some", "one").replace("many", "one")
        return self.thing(noun, forms, subject, described)

    def act(self, verb: Verb, forms: str, subject: Phrase, described: bool = True) -> Action:
        if "activity" in verb.flags:
            short = verb.zh_object == "书" and self.chance(0.5)  # 看书 is to read as well as to read books
            return Action(replace(verb, en=replace(verb.en, rest="")) if short else verb, verb.zh_object)
        found = self.object_of(verb, forms, subject, described)
        return Action(verb, found.zh, found.object, found.forms == "all", found in PRONOUNS)

    def place_for(self, verb: Verb) -> Place | None:
        fitting = [place for place in self.lexicon.places if not place.kinds.isdisjoint(verb.places)]
        return self.one(fitting) if fitting else None


def with_capital(text: str) -> str:
    return text[0].upper() + text[1:]


@dataclass(frozen=True)
class Clause:
    """Who does what, when, where and with whom; `aspect` is a key of `ASPECTS`.

    Chinese puts time, companion and place before the verb, English after the object.
    """

    subject: Phrase
    action: Action
    aspect: str
    time: tuple[str, str] = ("", "")
    often: tuple[str, str] = ("", "")
    place: tuple[str, str] = ("", "")
    companion: tuple[str, str] = ("", "")
    negative: bool = False
    modal: Modal | None = None
    plain: bool = False  # 在 in place of 正在

    def chinese(self, question: bool = False, final: bool = True) -> str:
        """The clause without its end mark."""
        action, aspect = self.action, self.aspect
        verb, thing, last = action.verb.zh, action.zh_object, ""
        before = "" if self.modal is None else self.modal.zh_denied if self.negative else self.modal.zh
        place = f"在{self.place[0]}" if self.place[0] else ""
        if self.modal is not None:
            pass
        elif aspect == "past":
            if self.negative:
                before = "没有" if thing and len(thing) > 3 else "没"
            elif action.pronoun and not question:
                verb += "了"
            elif action.bare and (thing or place):
                last = "" if place and self.time[0] and not question else "了"
            else:
                verb += "了"
            if question and not verb.endswith("了") and not last:
                last = "了"
        elif aspect == "perfect":
            before, verb = ("没有" if self.negative else ""), verb + "过"
        elif aspect == "progressive":
            before = "没在" if self.negative else "在" if self.plain else "正在"
            if place and self.negative:
                before = "没"
            place = place.removeprefix("在") if before.endswith("在") else place
        elif aspect == "will":
            before = ("不" if self.negative else "要") if self.time[0] else "不会" if self.negative else "会"
        elif aspect == "present" and not before and self.negative:
            before = "不"
        words = [self.subject.zh, self.time[0], self.often[0], before, self.companion[0], place, verb, thing, last]
        return "".join(words if final else words[:-1])

    def english_words(self, inverted: bool) -> tuple[str, str, str]:
        """Auxiliary, subject, and the rest."""
        verb, modal, tense = self.action.verb.en, self.modal, self.aspect
        if modal is not None and modal.follows:
            auxiliary, form = conjugate(modal.en, tense, self.subject.person, self.negative, inverted)
            to = "to " if modal.follows == "to" else ""
            second = self.action.english(verb.base if to else verb.ing, self.subject)
            said = " ".join(word for word in (form, modal.en.rest, to + second) if word)
        else:
            tense = modal.en.base if modal is not None else tense
            auxiliary, form = conjugate(verb, tense, self.subject.person, self.negative, inverted)
            said = self.action.english(form, self.subject)
        after = [said, self.companion[1], self.place[1], self.time[1]]
        adverb = self.often[1]
        rest = " ".join(word for word in [adverb, *after] if word)
        if inverted and auxiliary == "am not":
            return "am", self.subject.en, f"not {rest}"
        return auxiliary, self.subject.en, rest

    def english(self) -> str:
        auxiliary, subject, rest = self.english_words(inverted=False)
        return " ".join(word for word in (subject, auxiliary, rest) if word)

    def asked(self, word: str = "") -> str:
        """The English question without its end mark."""
        auxiliary, subject, rest = self.english_words(inverted=True)
        return " ".join(part for part in (word, auxiliary, subject, rest) if part)

    def but(self, **changes: object) -> "Clause":
        return replace(self, **changes)  # type: ignore[arg-type]
