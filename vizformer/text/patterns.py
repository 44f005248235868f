"""The regular expressions of tokenizers that are accepted: those whose backtracking is at most quadratic.

Oniguruma, with which the `tokenizers` library cuts texts, tries every way to match: (a+)+$ takes 2^n steps for n
letters.  So each alternative of a pattern, what stands between two of its bars, must have one of two forms: a few
characters or classes, one repetition, and then nothing that must match (linear: there is no reason to go back); or
something that must (quadratic: the repetition may be gone through from each of its characters).  The alternatives of
published tokenizers that have neither form are listed.

Source: github.com/kkos/oniguruma, doc/RE; Davis et al. 2018, "The Impact of Regular Expression Denial of Service".
"""

import re
from typing import Literal

from vizformer.errors import TokenizerError

Cost = Literal["linear", "quadratic"]

LONGEST = 2000  # characters of a pattern

_ESCAPE = r"\\(?:[pP]\{\^?\w+\}|[sSdDwWhHnrtfv]|u[0-9A-Fa-f]{4}|x\{[0-9A-Fa-f]+\}|[^A-Za-z0-9])"
_INNER = r"\[(?!:|\^\])(?:\\.|[^\[\]\\])+\]"  # a class in a class; [:names:] have rules of their own
_CLASS = rf"\[(?!\^\])(?:\\.|[^\[\]\\]|{_INNER})+\]"
_ONE = rf"(?:{_ESCAPE}|{_CLASS}|[^\\\[\](){{}}*+?|^$])"  # matches one character
_WORDS = rf"\((?:\?i?:)?{_ONE}{{1,8}}(?:\|{_ONE}{{1,8}}){{0,15}}\)"
_FEW = rf"(?:{_ONE}\?\+?)?{_ONE}{{0,64}}(?:{_WORDS})?"
_RUN = rf"{_ONE}(?:[*+]\+?|\{{(?:\d{{1,2}}(?:,\d{{0,4}})?|,\d{{1,4}})\}})"
_LINEAR = re.compile(rf"\^?{_FEW}\$?|{_FEW}{_RUN}(?:{_ONE}[*?]\+?){{0,4}}(?:{_WORDS}\?)?", re.DOTALL)
_QUADRATIC = re.compile(rf"\^?{_FEW}{_RUN}{_ONE}{{0,64}}\$?", re.DOTALL)
_ALTERNATIVE = re.compile(rf"((?:{_CLASS}|\\.|\((?:{_CLASS}|\\.|[^()\[\\])*\)|[^|\[\\(])+)(?:\||\Z)", re.DOTALL)

_UPPER, _LOWER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
_PUBLISHED = frozenset(  # of GPT-2, GPT-4, GPT-4o, Kimi: runs that a later alternative of the same pattern takes whole
    {r"\s+(?!\S)", r"\s*[\r\n]+", r"\s*[\r\n]", r"(\s+)"}
    | {
        rf"[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}{but}]{first}[{_LOWER}{but}]{then}{end}"
        for but in ("", r"&&[^\p{Han}]")
        for first, then in ("*+", "+*")
        for end in ("", "(?i:'s|'t|'re|'ve|'m|'ll|'d)?")
    }
)


class PatternError(TokenizerError):
    """A pattern of a tokenizer that may backtrack for too long."""


def cost(pattern: str) -> Cost:
    """How the steps of matching grow with the length of the text: linearly or quadratically.

    Raises:
        PatternError: they grow faster than quadratically, or the growth is not known.
    """
    place = 0
    found: Cost = "linear"
    while len(pattern) <= LONGEST and (alternative := _ALTERNATIVE.match(pattern, place)):
        text = alternative[1]
        if text not in _PUBLISHED and not _LINEAR.fullmatch(text):
            if not _QUADRATIC.fullmatch(text):
                break
            found = "quadratic"
        place = alternative.end()
        if place == len(pattern) and alternative[0] == text:  # no further alternative
            return found
    raise PatternError(
        "the pattern {pattern} may take for ever: what is read has {most} characters at most and, between two bars, one "
        "repetition of a character or class, or an alternative of GPT-2, GPT-4, GPT-4o or Kimi. Where the tokenizer's files "
        "are taken away, token ids are read instead",
        pattern="".join(one if one.isprintable() else "\ufffd" for one in pattern[place : place + 60]),
        most=f"{LONGEST:,}",
    )
