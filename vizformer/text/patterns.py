"""Which regular expressions of a tokenizer are harmless: they never go back over a text more often than once.

Oniguruma, with which the `tokenizers` library cuts texts, tries every way to match: (a+)+$ takes 2^n steps for n
letters.  A pattern is taken apart into its alternatives.  An alternative is linear if nothing behind its first
repetition can fail, so that there is no reason to go back; quadratic if it has one repetition with something behind it
that can.  The alternatives of published tokenizers that are neither are listed.

Source: github.com/kkos/oniguruma, doc/RE; Davis et al. 2018, "The Impact of Regular Expression Denial of Service".
"""

import math
from dataclasses import dataclass
from typing import Literal

from vizformer.errors import TokenizerError

Cost = Literal["linear", "quadratic"]

LONGEST = 2000  # characters of a pattern
_MOST_WAYS = 64  # to match what stands before the first repetition
_SHORT = 8  # repetitions up to so many count as that many letters
_ENDINGS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_BIG, _SMALL = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
# Of GPT-2, GPT-4, GPT-4o and what was made after them: runs that a later alternative of the same pattern takes whole.
_PUBLISHED = frozenset(
    {r"\s+(?!\S)", r"\s*[\r\n]+", r"\s*[\r\n]"}
    | {rf"[^\r\n\p{{L}}\p{{N}}]?{_BIG}*{_SMALL}+{end}" for end in ("", _ENDINGS)}
    | {rf"[^\r\n\p{{L}}\p{{N}}]?{_BIG}+{_SMALL}*{end}" for end in ("", _ENDINGS)}
)


class PatternError(TokenizerError):
    """A pattern that may take for ever, or that is not understood."""


@dataclass(frozen=True)
class _Item:
    """One thing after the other in an alternative: in how many ways it can match, and whether it must match."""

    ways: int
    repeats: bool
    can_fail: bool
    often: bool = False  # it, or something in it, may stand there more than once


def cost(pattern: str) -> Cost:
    """How the steps grow with the length of the text.

    Raises:
        PatternError: faster than with its square, or nobody knows.
    """
    if len(pattern) > LONGEST:
        raise PatternError("{n} characters; at most {most} are read", n=f"{len(pattern):,}", most=f"{LONGEST:,}")
    found: Cost = "linear"
    for alternative in _alternatives(pattern):
        if alternative not in _PUBLISHED and _cost(_Reader(alternative).sequence()) == "quadratic":
            found = "quadratic"
    return found


def _cost(items: list[_Item]) -> Cost:
    ways, loops, fails = 1, 0, False
    for item in items:
        if loops:
            fails = fails or item.can_fail
        loops += item.repeats
        ways *= item.ways
    if ways > _MOST_WAYS:
        raise PatternError("too many ways to match")
    if not fails:
        return "linear"
    if loops > 1:
        raise PatternError("something can fail after two repetitions")
    return "quadratic"


def _alternatives(pattern: str) -> list[str]:
    """The parts between the bars that stand in no group and no class."""
    parts, start, reader = [], 0, _Reader(pattern)
    depth = 0
    while reader.place < len(pattern):
        character = pattern[reader.place]
        if character == "\\":
            reader.place += 2
        elif character == "[":
            reader.character_class()
        else:
            depth += (character == "(") - (character == ")")
            if character == "|" and not depth:
                parts.append(pattern[start : reader.place])
                start = reader.place + 1
            reader.place += 1
    return [*parts, pattern[start:]]


class _Reader:
    """Goes through a pattern from left to right."""

    def __init__(self, pattern: str) -> None:
        self.pattern, self.place, self.depth = pattern, 0, 0

    def sequence(self) -> list[_Item]:
        """Items up to a bar, the end of a group or of the pattern."""
        items = []
        while self.place < len(self.pattern) and self.pattern[self.place] not in "|)":
            items.append(self._item())
        if self.place < len(self.pattern) and not self.depth:
            raise PatternError("a bracket without its other half")
        return items

    def _item(self) -> _Item:
        character = self.pattern[self.place]
        inner: _Item | None = None
        zero_width = False
        if character == "(":
            inner, zero_width = self._group()
        elif character == "[":
            self.character_class()
        elif character == "\\":
            zero_width = self._escape()
        else:
            if character in "*+?":
                raise PatternError("a repetition of nothing")
            zero_width = character in "^$"
            self.place += 1
        least, most = self._quantifier()
        if inner is None:
            ways = 1
        elif (inner.repeats and most != 1) or (inner.often and most > 1):
            raise PatternError("a repetition inside a repetition")
        elif inner.ways > 1 and most > 1:
            raise PatternError("a repetition of alternatives")
        else:
            ways = inner.ways
        repeats = most > _SHORT or (inner is not None and inner.repeats)
        if zero_width and most > 1:
            raise PatternError("a repetition of nothing")
        choices = 1 if most > _SHORT else most - least + 1
        can_fail = least > 0 and (inner is None or inner.can_fail)
        return _Item(ways * choices, repeats, can_fail, most > 1 or (inner is not None and inner.often))

    def _quantifier(self) -> tuple[int, int]:
        """How often at least and at most; a sign for reluctant or possessive may follow."""
        endless = 1 << 30
        rest = self.pattern[self.place :]
        least, most = 1, 1
        if rest[:1] in ("*", "+", "?") and rest:
            least, most = {"*": (0, endless), "+": (1, endless), "?": (0, 1)}[rest[0]]
            self.place += 1
        elif rest[:1] == "{":
            inside, closed, __ = rest[1:].partition("}")
            low, comma, high = inside.partition(",")
            numbers = [part for part in (low, high) if part]
            if not closed or not numbers or not all(n.isascii() and n.isdigit() and len(n) < 6 for n in numbers):
                raise PatternError("a number of repetitions that is none")
            least = int(low or 0)
            most = int(high) if high else endless if comma else least
            self.place += len(inside) + 2
            if most < least or self.pattern[self.place : self.place + 1] == "+":  # (that repeats it once more)
                raise PatternError("a number of repetitions that is none")
        else:
            return least, most
        if self.pattern[self.place : self.place + 1] in ("?", "+"):
            self.place += 1
        if self.pattern[self.place : self.place + 1] in ("*", "+", "?", "{"):
            raise PatternError("a repetition of a repetition")
        return least, most

    def _group(self) -> tuple[_Item, bool]:
        """A group as one item, and whether it only looks around."""
        start = self.place + 1
        looks = False
        for opening in ("?:", "?i:", "?i-:", "?=", "?!", "?<=", "?<!", "?>"):
            if self.pattern.startswith(opening, start):
                start += len(opening)
                looks = opening in ("?=", "?!", "?<=", "?<!")
                break
        else:
            if self.pattern.startswith(("?", "*"), start):
                raise PatternError("a group of a kind that is not known")
        self.place, self.depth = start, self.depth + 1
        if self.depth > 16:
            raise PatternError("groups deep inside each other")
        ways, repeats, can_fail, often, nullable = 0, False, False, False, False
        while True:
            items = self.sequence()
            if _cost(items) == "quadratic" and len(items) > 1:
                repeats = can_fail = True
            ways += max(1, math.prod(item.ways for item in items))
            repeats = repeats or any(item.repeats for item in items)
            often = often or any(item.often for item in items)
            nullable = nullable or not any(item.can_fail for item in items)
            if self.place >= len(self.pattern):
                raise PatternError("a bracket without its other half")
            self.place += 1
            if self.pattern[self.place - 1] == ")":
                break
        self.depth -= 1
        can_fail = looks or can_fail or not nullable
        if looks and repeats:
            raise PatternError("a repetition inside what only looks around")
        return _Item(ways, repeats, can_fail, often), looks

    def character_class(self) -> None:
        """Steps over [...], with classes inside it."""
        depth, first = 0, self.place
        while self.place < len(self.pattern):
            character = self.pattern[self.place]
            if character == "\\":
                self.place += 1
            elif character == "[":
                depth += 1
                first = self.place
            elif character == "]" and self.place > first + 1 + (self.pattern[first + 1 : first + 2] == "^"):
                depth -= 1
                if not depth:
                    self.place += 1
                    return
            self.place += 1
        raise PatternError("a class that does not end")

    def _escape(self) -> bool:
        """Steps over what a backslash begins; whether it matches a place instead of a character."""
        following = self.pattern[self.place + 1 : self.place + 2]
        if not following or following in "123456789gkKGXR":
            raise PatternError("a reference to what was matched before")
        self.place += 2
        if following in "pPxuo" and self.pattern.startswith("{", self.place):
            end = self.pattern.find("}", self.place)
            if end < 0:
                raise PatternError("a name that does not end")
            self.place = end + 1
        elif following == "x":
            self.place += 2
        elif following == "u":
            self.place += 4
        return following in "bBAzZ"
