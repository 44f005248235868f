"""Which of two tables is the source's and which the target's: their names say it, or the output layer does."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from vizformer.checkpoints.bare.layout import same_numbers
from vizformer.checkpoints.files.untrusted_folder import shown
from vizformer.checkpoints.files.weights import Weights
from vizformer.messages import N_, Message

SOURCE = re.compile(r"src|source|enc(?!oding)", re.IGNORECASE)
TARGET = re.compile(r"tgt|trg|target|dec", re.IGNORECASE)


class Sides(NamedTuple):
    """The encoder's table and the decoder's, by name, and why they are taken for that."""

    source: str
    target: str
    why: Message


def by_name(first: str, second: str) -> tuple[str, str] | None:
    """(the source's, the target's); None where the names do not say.

    What they have in common ("encoder_decoder.") says nothing.
    """
    sides = [bool(TARGET.search(name)) - bool(SOURCE.search(name)) for name in _differing(first, second)]
    if sides[0] == sides[1]:
        return None
    return (first, second) if sides[0] < sides[1] else (second, first)


def _differing(first: str, second: str) -> tuple[str, str]:
    """Two names without what they begin with and end in alike."""
    one, other = first.split("."), second.split(".")
    while one and other and one[0] == other[0]:
        one, other = one[1:], other[1:]
    while one and other and one[-1] == other[-1]:
        one, other = one[:-1], other[:-1]
    return ".".join(one), ".".join(other)


def find_sides(weights: Weights, first: str, second: str, outputs: Sequence[str]) -> Sides | None:
    """Which is which of two tables of tokens; None where neither names nor `outputs` (the output layers) say."""
    if named := by_name(first, second):
        return Sides(
            *named,
            N_(
                "by their names {source} is the source's table of embeddings and {target} the target's",
                source=shown(named[0]),
                target=shown(named[1]),
            ),
        )
    for pair in ((first, second), (second, first)):
        for output in outputs:
            source, target = pair
            values = dict(source=shown(source), target=shown(target), output=shown(output))
            if same_numbers(weights, target, output):
                return Sides(
                    *pair,
                    N_(
                        "{target} is the target's table of embeddings, as {output} holds the same "
                        "numbers; {source} is the source's",
                        **values,
                    ),
                )
            rows = [weights.tensors[name].shape[0] for name in (source, target, output)]
            if len(outputs) == 1 and rows[0] != rows[1] == rows[2]:
                return Sides(
                    *pair,
                    N_(
                        "{target} is the target's table of embeddings, as {output} has as many rows; "
                        "{source} is the source's",
                        **values,
                    ),
                )
    return None
