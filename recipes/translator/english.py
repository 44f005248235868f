"""English word forms: plurals, verbs, comparisons, articles, numbers."""

from dataclasses import dataclass

VOWELS = "aeiou"
SMALL = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
TENS = ["zero", "ten", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
ORDINALS = {"one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth",
    "twelve": "twelfth"}  # fmt: skip
DENIED = {"am": "am not", "can": "can't", "must": "must not", "will": "won't"}


def syllables(word: str) -> int:
    """How many groups of vowels stand in a word, a mute e at its end apart."""
    word = word.removesuffix("e") if word not in ("be", "see") else word
    return sum(a in VOWELS + "y" and b not in VOWELS + "y" for a, b in zip(word, word[1:] + "_", strict=True))


def doubled(word: str) -> str:
    """The word before -ed, -ing or -er: its last letter is doubled in stop, plan, big."""
    if word == "forget":  # two syllables, the second one stressed
        return "forgett"
    short = len(word) > 2 and syllables(word) == 1 and word[-1] not in VOWELS + "wxy"
    return word + word[-1] if short and word[-2] in VOWELS and word[-3] not in VOWELS else word


def with_s(word: str) -> str:
    """A noun's plural or a verb's third person, where it is regular."""
    if word.endswith(("s", "x", "ch", "sh", "o")):
        return word + "es"
    if word.endswith("y") and word[-2] not in VOWELS:
        return word[:-1] + "ies"
    return word + "s"


def plural(noun: str) -> str:
    """The regular plural of a noun that may be several words; photo, kilo and piano take a plain s."""
    return noun + "s" if noun in ("photo", "piano") else with_s(noun)


def article(phrase: str) -> str:
    """a or an, and the phrase."""
    silent, spoken = ("hour", "honest"), ("uni", "one", "use")
    an = phrase.startswith(silent) or (phrase[0].lower() in VOWELS and not phrase.startswith(spoken))
    return ("an " if an else "a ") + phrase


def number(n: int) -> str:
    """A number below ten thousand in words."""
    if n < 20:
        return SMALL[n]
    if n < 100:
        return TENS[n // 10] + (f"-{SMALL[n % 10]}" if n % 10 else "")
    if n < 1000:
        return f"{SMALL[n // 100]} hundred" + (f" and {number(n % 100)}" if n % 100 else "")
    rest = n % 1000
    return f"{SMALL[n // 1000]} thousand" + (f"{' and' if rest < 100 else ''} {number(rest)}" if rest else "")


def ordinal(n: int) -> str:
    """The n-th in words: first, twenty-third."""
    head, mark, last = number(n).rpartition("-")
    if not mark:
        head, mark, last = number(n).rpartition(" ")
    last = ORDINALS.get(last) or (last[:-1] + "ieth" if last.endswith("y") else last + "th")
    return head + mark + last


@dataclass(frozen=True)
class EnglishVerb:
    """A verb by its forms; `rest` follows its object or stands in the place of one: up, to the store, TV."""

    base: str
    past: str
    participle: str
    rest: str = ""

    @classmethod
    def parse(cls, text: str) -> "EnglishVerb":
        """Of `wake=up woke woken`: the forms of a regular verb are derived; ~ is a space."""
        head, *forms = text.split()
        base, _, rest = head.partition("=")
        if base == "be":
            forms = ["was", "been"]
        elif not forms:
            stem = base[:-1] + "i" if base.endswith("y") and base[-2] not in VOWELS else doubled(base)
            forms = [stem.removesuffix("e") + "ed"] if base.endswith("e") else [stem + "ed"]
        return cls(base, forms[0], forms[-1], rest.replace("~", " "))

    @property
    def third(self) -> str:
        return {"be": "is", "have": "has"}.get(self.base) or with_s(self.base)

    @property
    def ing(self) -> str:
        if self.base.endswith("e") and not self.base.endswith(("ee", "be")):
            return self.base[:-1] + "ing"
        return doubled(self.base) + "ing"


def be(person: str, past: bool = False) -> str:
    """The form of be: person is 1s, 2, 3s, 1p or 3p."""
    if past:
        return "was" if person in ("1s", "3s") else "were"
    return {"1s": "am", "3s": "is"}.get(person, "are")


def denied(auxiliary: str) -> str:
    return DENIED.get(auxiliary) or auxiliary + "n't"


def conjugate(
    verb: EnglishVerb, tense: str, person: str, negative: bool = False, inverted: bool = False
) -> tuple[str, str]:
    """The auxiliary (or "") and the form of the verb after it.

    Args:
        tense: present, past, progressive, past progressive, perfect, or an auxiliary (will, can, should, must).
        inverted: as in a question.
    """
    if tense in ("present", "past") and verb.base == "be":
        auxiliary, form = be(person, tense == "past"), ""
    elif tense in ("present", "past"):
        do = "did" if tense == "past" else "does" if person == "3s" else "do"
        auxiliary, form = (do, verb.base) if negative or inverted else ("", verb.past)
        if not auxiliary and tense == "present":
            form = verb.third if person == "3s" else verb.base
    elif tense.endswith("progressive"):
        auxiliary, form = be(person, tense.startswith("past")), verb.ing
    elif tense == "perfect":
        auxiliary, form = "has" if person == "3s" else "have", verb.participle
    else:
        auxiliary, form = tense, verb.base
    return (denied(auxiliary) if negative else auxiliary), form


def compared(adjective: str, given: str | None = None) -> tuple[str, str]:
    """The comparative and the superlative."""
    if given:
        return given, given[:-1] + "st"
    if adjective in ("honest", "tired", "famous", "boring") or syllables(adjective) > 1:
        return f"more {adjective}", f"most {adjective}"
    stem = adjective.removesuffix("e")
    return stem + "er", stem + "est"
