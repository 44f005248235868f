"""Tensors that do not fit a layout of bare weights, one message for all layers: other names, too many or too few."""

from collections.abc import Iterable
from difflib import SequenceMatcher

from vizformer.checkpoints.bare.likeness import by_kind
from vizformer.checkpoints.files.untrusted_folder import shown
from vizformer.checkpoints.tensors.matching import Match
from vizformer.checkpoints.tensors.report import TensorFate
from vizformer.messages import N_, Message

_ALIKE = 0.6  # of two names, as `difflib` counts


def in_kinds(matched: Match) -> list[Message]:
    """The problems of a match, one for all tensors whose names differ only in numbers.

    A tensor that is missing, and one without a place that has its shape and almost its name, are said together.
    """
    problems = [fate for fate in matched.fates if fate.fate in ("missing", "wrong shape")]
    problems += [fate for fate in matched.fates if fate.fate == "unused" and fate.note in matched.problems]
    notes = {fate.name: fate.note for fate in problems}
    missing = _kinds(fate for fate in problems if fate.fate == "missing")
    left = _kinds(fate for fate in problems if fate.fate == "unused")
    said: list[Message] = []
    for (kind, shape), names in missing.items():
        others = [other for other, found in left if found == shape and len(left[other, found]) == len(names)]
        best = max(others, key=lambda other: _alike(kind, other), default=None)
        if best is not None and _alike(kind, best) >= _ALIKE:
            other = left.pop((best, shape))
            said.append(
                N_(
                    "{name} is not there by this name, but {other} is, with its shape {shape}",
                    name=_all(names),
                    other=_all(other),
                    shape=list(shape),
                )
            )
        else:
            said.append(N_("{name} is missing", name=_all(names)))
    for names in left.values():
        first, weight = names[0], names[0].removesuffix("bias") + "weight"
        if first.endswith("bias") and weight in notes and [weight] in [n[:1] for n in left.values()]:
            continue  # said of its matrix
        note = notes[first] or N_("{name} has no place", name=shown(first))
        said.append(N_("{note} (and {n} more like it)", note=note, n=len(names) - 1) if len(names) > 1 else note)
    said += [fate.note for fate in problems if fate.fate == "wrong shape" and fate.note is not None]
    return said


def _kinds(fates: Iterable[TensorFate]) -> dict[tuple[str, tuple[int, ...]], list[str]]:
    return by_kind({fate.name: fate.shape for fate in fates})


def _alike(one: str, other: str) -> float:
    if one.rpartition(".")[2] != other.rpartition(".")[2]:  # a weight for a bias
        return 0.0
    return SequenceMatcher(None, one, other).ratio()


def _all(names: list[str]) -> Message | str:
    if len(names) == 1:
        return shown(names[0])
    return N_("{name} (and {n} more like it)", name=shown(names[0]), n=len(names) - 1)
