"""The scripts that a text and a vocabulary are in, as Unicode calls them."""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vizformer.text.tokenizer import Tokenizer

HAN, LATIN = "CJK", "LATIN"
LOOKED_AT = 2000  # characters of a text, which take 5 ms
SAMPLED = 500  # tokens of a vocabulary, which take 10 ms
_SIGN_BY_SIGN = (HAN, "HIRAGANA", "KATAKANA", "HANGUL")  # scripts without words between spaces, or of syllables
_NAME = re.compile(r"(?:(?:FULL|HALF)WIDTH )?(?!MODIFIER)([A-Z]+)[ -](?:.* )?(?:LETTER|SYLLABLE|IDEOGRAPH|CHARACTER)\b")
"""Unicode's name of a letter, which begins with the script."""


def script(text: str) -> str:
    """The script that most of a text's beginning is in, as Unicode calls it; empty where two are as frequent, or none is.

    A Chinese character or a syllable counts as much as a word of letters.
    """
    found: Counter[str] = Counter()
    before = ""
    for sign in text[:LOOKED_AT]:
        if unicodedata.category(sign).startswith("M"):  # an accent or a vowel, which belongs to the letter before it
            continue
        letter = _NAME.match(unicodedata.name(sign, "")) if sign.isalpha() else None
        now = letter[1] if letter else ""
        if now and (now != before or now in _SIGN_BY_SIGN):
            found[now] += 1
        before = now
    ((first, most), (_second, less)) = [*found.most_common(2), ("", 0), ("", 0)][:2]
    return first if most > less else ""


def scripts_of(vocabulary: "Tokenizer") -> Mapping[str, float]:
    """The share of each script among the tokens that hold a letter, the largest first; estimated from every n-th token.

    Nothing where no token holds a letter, as where texts are token ids.
    """
    step = max(1, vocabulary.vocab_size // SAMPLED)
    found = Counter(filter(None, (script(vocabulary.decode([id])) for id in range(0, vocabulary.vocab_size, step))))
    return {name: n / found.total() for name, n in found.most_common()}


def called(name: str) -> str:
    """The name of a script for readers: "Han" for CJK, any other in title case."""
    return "Han" if name == HAN else name.title()
