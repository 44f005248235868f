"""Sentences by the patterns of lexicon/patterns.tsv: one sentence in both languages, whose slots are filled alike.

A slot is {name form}. The same name is the same choice in both languages; a digit or letter at its end makes it another
choice (who2, fruit2, 1-9b). A name is one of

- who (anybody), you (not the speaker), he (one person, third person), they (several), third (neither
  speaker nor hearer), kin, job, name;
- 2-90 or 20-90/10, a number in that range;
- a list of choices.tsv or deeds.tsv, a kind of times.tsv, city, country, language;
- place.public and so on, a place of that kind; trait and mood, adjectives of people;
- the kinds of a noun: clothes or clothes|footwear.
"""

import re
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from recipes.translator.english import EnglishVerb, article, be, compared, number, ordinal, plural, with_s
from recipes.translator.lexicon import Adjective, Name, Noun, Place, Words, rows
from recipes.translator.phrases import DIGITS, MINE, PRONOUNS, Phrase, Speaker, chinese_number

SLOT = re.compile(r"\{([^{} ]+) ?([^{}]*)\}")
RANGE = re.compile(r"(\d+)-(\d+)(?:/(\d+))?")
PHRASES = {"one", "many", "some", "this", "these", "own", "the", "all"}
UNCOUNTED = {"one", "some", "many", "all", "the"}
"""The forms of a noun in which what is not counted may stand, too."""
WEIGHT = 0.5
"""How often each pattern is drawn, beside the weights of `sentences.KINDS`."""
PEOPLE = ("who", "you", "he", "they", "third", "kin", "job", "name")
THEY = {"m": ("他", "he", "him"), "f": ("她", "she", "her"), "p": ("他们", "they", "them")}
Pair = tuple[str, str]
Scope = dict[str, Any]


class UnfilledError(Exception):
    """No word of the lexicon fits a slot beside those already chosen."""


@dataclass(frozen=True)
class Deed:
    """Something one does: in Chinese `,` stands where 了 and 过 go, `;` where only 过 does (了 follows the object)."""

    zh: str
    en: EnglishVerb

    def chinese(self, particle: str) -> str:
        plain = re.sub("[,;]", "", self.zh)
        if not particle:
            return plain
        if "," in self.zh or (";" in self.zh and particle != "了"):
            return re.sub("[,;]", particle, self.zh)
        return plain + particle

    def english(self, form: str, subject: Phrase) -> str:
        verb = self.en
        said = {"base": verb.base, "past": verb.past, "pp": verb.participle, "ing": verb.ing}.get(form)
        if form == "past" and verb.base == "be":
            said = be(subject.person, past=True)
        if said is None:
            said = agreeing(verb.base, subject.person)
        rest = verb.rest
        if "one's" in rest:
            if not subject.whose:  # of my friend, neither his nor her is right
                raise UnfilledError(rest)
            rest = rest.replace("one's", subject.whose)
        return f"{said} {rest}".strip()


@cache
def table(name: str) -> dict[str, list[tuple[str, str]]]:
    """The lines of a file whose first column names a list."""
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for lists, zh, en, *_ in rows(name):
        for one in lists.split():
            found[one].append((zh, en))
    return dict(found)


def agreeing(verb: str, person: str) -> str:
    """The form of the verb, or of a denied auxiliary, with such a subject."""
    third = person == "3s"
    if verb == "be" or verb == "was":
        return be(person, verb == "was")
    if verb == "aren't":
        return {"1s": "am not", "3s": "isn't"}.get(person, verb)
    if verb == "weren't":
        return "wasn't" if person in ("1s", "3s") else verb
    if verb in ("don't", "haven't", "have"):
        return {"don't": "doesn't", "haven't": "hasn't", "have": "has"}[verb] if third else verb
    return with_s(verb) if third else verb


class Patterns:
    """Fills patterns with the words of a speaker's lexicon."""

    def __init__(self, speaker: Speaker) -> None:
        self.s = speaker

    def filled_somehow(self, patterns: list[Pair]) -> Pair:
        """A sentence of one of the patterns; drawn again where the words drawn don't fit one another."""
        for _ in range(1000):
            with suppress(UnfilledError):
                return self.filled(*self.s.one(patterns), {})
        raise ValueError(f"No words of the lexicon fill {patterns[0]}.")

    def filled(self, zh: str, en: str, scope: Scope) -> Pair:
        forms: dict[str, set[str]] = defaultdict(set)
        for name, form in [*SLOT.findall(zh), *SLOT.findall(en)]:
            forms[name].add(form)
        for name in forms:
            scope[name] = self.choice(name, forms[name], scope)
        said: dict[tuple[str, str], Pair] = {}

        def put(match: re.Match[str], language: int) -> str:
            slot = (match[1], match[2])
            if slot not in said:
                said[slot] = self.said(scope, *slot)
            return said[slot][language]

        zh, en = SLOT.sub(partial(put, language=0), zh), SLOT.sub(partial(put, language=1), en)
        en = re.sub(r"(?<![\w'])an? (?=(\w+))", lambda match: article(match[1])[: -len(match[1])], en)
        return zh, re.sub(r"(?<=[?!] )[a-z]", lambda match: match[0].upper(), en)

    def person(self, base: str, scope: Scope) -> Phrase:
        s = self.s
        others = [found for found in scope.values() if isinstance(found, Phrase)]
        for _ in range(40):
            if base == "you":
                found = s.one([p for p in PRONOUNS if p.zh[0] != "我"]) if s.chance(0.6) else s.somebody()
            elif base == "he":
                found = s.one(PRONOUNS[2:4]) if s.chance(0.35) else s.name("m f") if s.chance(0.5) else s.kin()
            elif base == "they":
                found = s.one(PRONOUNS[4:]) if s.chance(0.8) else s.stranger("person", many=True)
            elif base in ("who", "third"):
                found = s.other_than(others[0]) if others else s.somebody()
            else:
                found = s.kin() if base == "kin" else s.stranger("job", many=False) if base == "job" else s.name("m f")
            alike = [other for other in others if other.zh[0] == found.zh[0] or other.own == found.own]
            wrong = {"you": found.zh[0] == "我", "he": found.person != "3s", "third": found in PRONOUNS[:2] + PRONOUNS[4:6],
                "they": found.person[-1] == "s"}  # fmt: skip
            if not alike and not wrong.get(base):
                return found
        raise UnfilledError(base)

    def choice(self, name: str, forms: set[str], scope: Scope) -> Any:
        s = self.s
        ranged = RANGE.match(name)
        if ranged:
            low, high, step = (int(text) if text else 1 for text in ranged.groups())
            return low + step * s.rng.randrange((high - low) // step + 1)
        base = name.rstrip("0123456789")
        taken = list(scope.values())

        def free(options: list[Any]) -> Any:
            left = [option for option in options if option not in taken]
            if not left:
                raise UnfilledError(name)
            return s.one(left)

        if base in PEOPLE:
            return self.person(base, scope)
        for _ in range(20 if base in table("deeds") or base in table("choices") else 0):
            found = self.listed(base)
            if all(found.zh != getattr(other, "zh", "") for other in taken):
                return found
        if base in ("city", "country"):
            return free([n for n in s.lexicon.names if n.kind == base])
        if base == "language":
            return free([n for n in s.lexicon.names if n.language])
        if base.startswith("place."):
            kinds = base.removeprefix("place.").split("|")
            return free([place for place in s.lexicon.places if not place.kinds.isdisjoint(kinds)])
        if base in ("trait", "mood"):
            flag = "rise" if base == "trait" else "feeling"
            return free([a for a in s.lexicon.adjectives if "person" in a.kinds and flag in a.flags])
        times = [t for t in s.lexicon.times if base in t.kinds]
        if times:
            return free(times)
        every = s.nouns(base.split("|"))
        plain = [n for n in every if forms <= UNCOUNTED or not (n.mass or n.always_plural)] or every
        needs = {form.rstrip("2") for form in forms}
        if not every:
            raise ValueError(f"{{{name}}} is neither a list nor a kind of noun of the lexicon.")
        fits = [n for n in plain if all(self.adjectives(n, form) for form in needs)]
        return free(fits)

    def listed(self, base: str) -> Deed | Words:
        """An entry of that list of deeds.tsv or choices.tsv, with its own slots filled."""
        if base in table("choices"):
            return Words(*self.filled(*self.s.one(table("choices")[base]), {}))
        zh, en = self.s.one(table("deeds")[base])
        verb = EnglishVerb.parse(en)
        zh, rest = self.filled(zh, verb.rest, {})
        return Deed(zh, EnglishVerb(verb.base, verb.past, verb.participle, rest))

    def adjectives(self, noun: Noun, form: str) -> list[Adjective]:
        """The adjectives that may stand beside the noun in that form; any, where the form has no adjective."""
        found = [a for a in self.s.lexicon.adjectives if not a.kinds.isdisjoint(noun.kinds)]
        if form in ("er", "est"):
            return [a for a in found if "rise" in a.flags]
        if form in ("adj", "how"):
            return [a for a in found if "color" not in a.flags]
        return found if form == "att" else self.s.lexicon.adjectives

    def subject(self, scope: Scope, name: str = "") -> Phrase | None:
        """The person of that name, or the first one without a number (else the first one)."""
        people = {key: one for key, one in scope.items() if isinstance(one, Phrase)}
        plain = [one for key, one in people.items() if not key[-1].isdigit()]
        return people.get(name) or next(iter([*plain, *people.values()]), None)

    def said(self, scope: Scope, name: str, form: str) -> Pair:
        """What the slot is in Chinese and in English."""
        found = scope[name]
        if isinstance(found, int):
            if form in ("year", "code"):
                return "".join(DIGITS[int(digit)] for digit in str(found)), str(found)
            said = {"th": ordinal(found), "digits": str(found), "next": number(found % 12 + 1)}
            return chinese_number(found, form == "m"), said.get(form) or number(found)
        if isinstance(found, Phrase):
            if form.startswith("pron") and found not in PRONOUNS:
                if found.gender not in THEY:
                    raise UnfilledError(name)
                zh, they, them = THEY[found.gender]
                return zh, them if form == "pronobj" else they
            if form == "his" and not found.whose:
                raise UnfilledError(name)
            en = {"obj": found.object, "own": found.own, "his": found.whose, "": found.en, "pronobj": found.object,
                "pron": found.en, "pronzh": found.en, "mine": MINE.get(found.own, found.own)}.get(form)  # fmt: skip
            return found.zh, agreeing(form, found.person) if en is None else en
        if isinstance(found, Deed):
            shape, _, whose = form.partition(" ")
            subject = self.subject(scope, whose) or PRONOUNS[1]
            return found.chinese(shape if shape in ("了", "过") else ""), found.english(shape, subject)
        if isinstance(found, Name):
            return (found.language, found.nationality) if form == "tongue" or name.startswith("language") else (
                found.zh, found.nationality if form == "people" else found.en
            )  # fmt: skip
        if isinstance(found, Place):
            return {"where": (found.where, found.en_where), "to": (found.zh, found.en_to)}.get(
                form, (found.zh, found.en)
            )
        if isinstance(found, Adjective):
            return found.zh, {"er": found.more, "est": found.most}.get(form, found.en)
        if isinstance(found, Noun):
            return self.said_of_noun(scope, found, name, form)
        if form == "bare":
            return found.zh, re.sub("^(at|for) ", "", found.en)
        if form == "s":
            return found.zh, plural(found.en)
        if form in ("er", "est"):
            known = {a.en: (a.more, a.most) for a in self.s.lexicon.adjectives}
            return found.zh, (known.get(found.en) or compared(found.en))[form == "est"]
        return found.zh, found.en

    def said_of_noun(self, scope: Scope, noun: Noun, name: str, form: str) -> Pair:
        s = self.s
        if form in PHRASES:
            phrase = s.thing(noun, form, self.subject(scope), described=s.chance(0.5))
            return phrase.zh, phrase.en
        if form == "m":
            return noun.measure, noun.measure
        if form == "s":
            return noun.zh, noun.plural
        if not form:
            return noun.zh, noun.en
        key = f"{name} adjective{form[-1] if form[-1] == '2' else ''}"
        if key not in scope:
            wanted = self.adjectives(noun, form.rstrip("2"))
            chosen = [other for other in scope.values() if isinstance(other, Adjective)]
            left = [a for a in wanted if a not in chosen and not any(a.bars(other) for other in chosen)]
            if not left:
                raise UnfilledError(name)
            scope[key] = s.one(left)
        adjective = scope[key]
        zh = adjective.zh
        if form.startswith("how"):
            zh += "的"
        if form.startswith("att"):
            zh += "色的" if "color" in adjective.flags else "" if "short" in adjective.flags else "的"
        return zh, {"er": adjective.more, "est": adjective.most}.get(form, adjective.en)


def kinds() -> dict[str, tuple[Callable[[Speaker], Pair], float]]:
    """Each name of patterns.tsv as a kind of sentence, drawn in proportion to its patterns."""

    def one(name: str) -> Callable[[Speaker], Pair]:
        return lambda speaker: Patterns(speaker).filled_somehow(table("patterns")[name])

    return {name: (one(name), WEIGHT * len(found)) for name, found in table("patterns").items()}
