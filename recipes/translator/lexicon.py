"""The lexicon as typed entries: one line of a file of lexicon/ each."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from recipes.translator.english import EnglishVerb, compared, plural

FOLDER = Path(__file__).resolve().parent / "lexicon"


def rows(name: str) -> Iterator[list[str]]:
    """The fields of every line that is no comment, filled up with empty ones."""
    for line in (FOLDER / f"{name}.tsv").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            fields = line.split("\t")
            yield fields + [""] * (8 - len(fields))


@dataclass(frozen=True)
class Noun:
    """`container` is the English for the measure word of what is not counted: 一杯水, a glass of water."""

    zh: str
    en: str
    measure: str
    kinds: frozenset[str]
    plural: str
    container: str = ""
    mass: bool = False
    always_plural: bool = False

    @classmethod
    def of(cls, zh: str, en: str, measure: str, kinds: str, irregular: str, *_: str) -> "Noun":
        word, __, container = measure.partition("=")
        several = en if irregular in ("-", "+") else irregular or plural(en)
        return cls(zh, en, word, frozenset(kinds.split()), several, container, irregular == "-", irregular == "+")


@dataclass(frozen=True)
class Person:
    zh: str
    en: str
    kinds: frozenset[str]
    plural: str

    @property
    def gender(self) -> str:
        return next(kind for kind in "mfx" if kind in self.kinds)


@dataclass(frozen=True)
class Name:
    zh: str
    en: str
    kind: str
    nationality: str = ""
    language: str = ""


@dataclass(frozen=True)
class Place:
    zh: str
    where: str
    en: str
    en_where: str
    en_to: str
    kinds: frozenset[str]


@dataclass(frozen=True)
class Verb:
    """`objects` are the kinds of its objects; of an activity, the object is fixed (`zh_object`, in English `en.rest`)."""

    zh: str
    en: EnglishVerb
    objects: frozenset[str]
    flags: frozenset[str]
    places: frozenset[str]
    zh_object: str = ""
    done: str = ""

    @classmethod
    def of(cls, zh: str, en: str, objects: str, flags: str, places: str, *_: str) -> "Verb":
        words = flags.split()
        done = "".join(word.removeprefix("done=") for word in words if word.startswith("done="))
        split = [frozenset(text.split()) for text in (objects, flags, places)]
        return cls(zh, EnglishVerb.parse(en), split[0], split[1], split[2], "", done)

    @classmethod
    def activity(cls, zh: str, en: str, places: str, flags: str, *_: str) -> "Verb":
        verb, __, fixed = zh.partition(",")
        kinds, marks = frozenset(places.split()), frozenset([*flags.split(), "activity"])
        return cls(verb, EnglishVerb.parse(en), frozenset(), marks, kinds, "" if fixed == "+" else fixed)


@dataclass(frozen=True)
class Adjective:
    zh: str
    en: str
    more: str
    most: str
    kinds: frozenset[str]
    flags: frozenset[str]

    @classmethod
    def of(cls, zh: str, en: str, kinds: str, flags: str, *_: str) -> "Adjective":
        word, *given = en.split(" ")
        return cls(zh, word, *compared(word, *given), frozenset(kinds.split()), frozenset(flags.split()))

    def bars(self, other: "Adjective") -> bool:
        """Whether nothing is said to be both: two colors, thick and thin."""
        colors = "color" in self.flags and "color" in other.flags
        return colors or any({self.zh, other.zh} <= sort for sort in opposites())


@cache
def opposites() -> list[frozenset[str]]:
    return [frozenset(line[0].split()) for line in rows("opposites")]


@dataclass(frozen=True)
class Modal:
    """A verb before a verb: `en` is an auxiliary where nothing follows it (`follows` is "", to or ing)."""

    zh: str
    zh_denied: str
    en: EnglishVerb
    follows: str
    flags: frozenset[str]


@dataclass(frozen=True)
class Words:
    """Anything else: what is said in both languages, and its kinds."""

    zh: str
    en: str
    kinds: frozenset[str] = field(default_factory=frozenset)


@dataclass(frozen=True)
class Rule:
    """What only one of two candidates can be, do or suffer: `kinds` of it, and `others` of which it is never true."""

    zh: str
    en: str
    kinds: frozenset[str]
    others: frozenset[str]
    what: str


@dataclass(frozen=True)
class Reason:
    """Why somebody does what, and leaves out what: verbs with their objects."""

    zh: str
    en: EnglishVerb
    then: frozenset[str]
    not_then: frozenset[str]


@dataclass(frozen=True)
class Frame:
    """A sentence with slots that shows one sense of a word."""

    word: str
    sense: str
    zh: str
    en: str


@dataclass(frozen=True)
class Lexicon:
    nouns: list[Noun]
    people: list[Person]
    names: list[Name]
    places: list[Place]
    verbs: list[Verb]
    activities: list[Verb]
    adjectives: list[Adjective]
    modals: list[Modal]
    times: list[Words]
    weather: list[Words]
    coreference: list[Rule]
    reasons: list[Reason]
    senses: list[Frame]
    phrases: list[Words]


def reason(en: str) -> EnglishVerb:
    """be tired as a verb, whose first word is conjugated."""
    head, _, rest = en.partition(" ")
    forms = {"be": "", "have": " had had", "get": " got gotten"}.get(head, "")
    return EnglishVerb.parse(f"{head}={rest.replace(' ', '~')}{forms}")


@cache
def lexicon() -> Lexicon:
    """Every entry of lexicon/."""

    def words(name: str) -> list[Words]:
        return [Words(zh, en, frozenset(kinds.split())) for zh, en, kinds, *_ in rows(name)]

    return Lexicon(
        nouns=[Noun.of(*row) for row in rows("nouns")],
        people=[Person(a, b, frozenset(c.split()), d or plural(b)) for a, b, c, d, *_ in rows("people")],
        names=[Name(*row[:5]) for row in rows("names")],
        places=[Place(row[0], row[1], row[2], row[3], row[4], frozenset(row[5].split())) for row in rows("places")],
        verbs=[Verb.of(*row) for row in rows("verbs")],
        activities=[Verb.activity(*row) for row in rows("activities")],
        adjectives=[Adjective.of(*row) for row in rows("adjectives")],
        modals=[Modal(a, b, EnglishVerb.parse(c), d, frozenset(e.split())) for a, b, c, d, e, *_ in rows("modals")],
        times=words("times"),
        weather=words("weather"),
        coreference=[
            Rule(a, b, frozenset(c.split()), frozenset(d.split()), e) for a, b, c, d, e, *_ in rows("coreference")
        ],
        reasons=[
            Reason(a, reason(b), frozenset(c.split()), frozenset(d.split())) for a, b, c, d, *_ in rows("reasons")
        ],
        senses=[Frame(*row[:4]) for row in rows("senses")],
        phrases=words("phrases"),
    )
