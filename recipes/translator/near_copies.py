"""Whether a sentence is nearly one of those by which the translator is judged: such a one may not be trained on."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

UNITS = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]|[a-z0-9]+")
LEFT_OUT = {"的", "正", "a", "an", "the"}
SHORT_FORMS = (("n't", " not"), ("'s", " is"), ("'m", " am"), ("'re", " are"), ("'ll", " will"), ("'ve", " have"))
UNITS_PER_CHANGE = 5


def units(text: str) -> tuple[str, ...]:
    """Chinese characters and English words, without articles, 的 and 正; isn't is read as is not."""
    text = text.casefold().replace("’", "'")
    for short, whole in SHORT_FORMS:
        text = text.replace(short, whole)
    return tuple(unit for unit in UNITS.findall(text) if unit not in LEFT_OUT)


def within(a: Sequence[str], b: Sequence[str], most: int) -> bool:
    """Whether at most so many insertions, deletions and replacements turn one into the other."""
    row = list(range(len(b) + 1))
    for i, left in enumerate(a, 1):
        above, row = row, [i]
        for j, right in enumerate(b, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (left != right)))
        if min(row) > most:
            return False
    return row[-1] <= most


class NearCopies:
    """Sentences, and what differs from one of them in at most every fifth character or word.

    Of a sentence cut into one more piece than changes are allowed, every near copy holds a piece unchanged: only those
    that do are compared.
    """

    def __init__(self, listed: Iterable[str]) -> None:
        self._pieces: dict[tuple[str, ...], list[tuple[int, tuple[str, ...], int]]] = defaultdict(list)
        for sentence in set(map(units, listed)) - {()}:
            most = len(sentence) // UNITS_PER_CHANGE
            ends = [len(sentence) * i // (most + 1) for i in range(most + 2)]
            for start, end in pairwise(ends):
                self._pieces[sentence[start:end]].append((start, sentence, most))
        self._lengths = sorted({len(piece) for piece in self._pieces})

    def __contains__(self, text: str) -> bool:
        read = units(text)
        for length in self._lengths:
            for start in range(len(read) - length + 1):
                for place, sentence, most in self._pieces.get(read[start : start + length], ()):
                    near = abs(place - start) <= most and abs(len(sentence) - len(read)) <= most
                    if near and within(read, sentence, most):
                        return True
        return False
