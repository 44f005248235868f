"""The first page as one HTML file without a server: every head, every bar of a next token, the proofs, in every language.

html([Subject(...), ...], every=True, writes=True)   # the page that `vizformer page` makes
html([subject])                                      # what a reader looks at, saved
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from vizformer.analysis import Kind
from vizformer.analysis.one_forward.box_numbers import Box
from vizformer.analysis.one_forward.picture_numbers import Attention, ForwardPicture, Lane
from vizformer.components import saved_runs
from vizformer.components.saved_runs import Run, Said
from vizformer.components.whole_model_picture import Picture
from vizformer.context_value import held
from vizformer.web.catalogue import head_files, subject_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link.languages import LANGUAGES, SOURCE
from vizformer.web.widgets import model_suggestions
from vizformer.web.widgets.whole_model import picture
from vizformer.web.words import labels
from vizformer.web.words.i18n import SPEAKING

DIGITS = 3  # of numbers that are drawn as colours and not written
_AFTER: tuple[Box, ...] = ("feedforward", "last_norm")
MOST_BOXES = 250  # rows of boxes that are worked out for a page: a few ms each


def html(subjects: Sequence[Subject], *, every: bool = False, writes: bool = False, first: str = SOURCE) -> str:
    """The page.

    Args:
        every: whether all heads of all layers are drawn, not those of the first page alone.
        writes: whether each token that the bars offer can be written, once.
        first: the language where the reader's browser asks for none of ours.
    """
    with held(SPEAKING, SOURCE):
        runs = [_run(subject, every=every, writes=writes) for subject in subjects]
    languages: dict[str, Said] = {}
    for code, name in LANGUAGES.items():
        with held(SPEAKING, code):
            positions = [labels.places(subject.config) for subject in subjects]
            languages[code] = Said(name, positions, [_glosses(subject) for subject in subjects])
    return saved_runs.to_html(runs, languages, first=first)


def _run(subject: Subject, *, every: bool, writes: bool) -> Run:
    found = picture.numbers(subject, every=every)
    own: dict[str, str] = {one.kind: one.kind for lane in found.lanes for one in lane.attention}
    pictures = {"": replace(picture.drawn(subject, every=every), addresses=own)}
    if writes:
        pictures |= _written(subject, pictures[""], every=every)
    return Run(subject.title, subject.text, pictures, {**dict(_heads(subject, found)), **_boxes(subject, found)})


def _written(subject: Subject, own: Picture, *, every: bool) -> dict[str, Picture]:
    """What the run becomes with each token that its bars offer, where the tokens before it stay those of the run."""
    stack, pictures = own.lanes[-1].stack, {}
    tokens = [token.id for token in subject.trace.tokens[stack]]
    for row, candidates in enumerate(own.candidates):
        for one in candidates:
            changes: dict[str, Any] = {**picture.written(subject, row, one.id)}
            other = replace(subject, **changes)
            ids = [] if one.special else [token.id for token in other.trace.tokens[stack]]
            if ids == [*tokens[: row + 1], one.id]:
                kept = {"encoder": "encoder"} if len(own.lanes) > 1 else {}  # (the decoder's numbers are others)
                pictures[f"{row}/{one.id}"] = replace(picture.drawn(other, every=every), addresses=kept)
    return pictures


def _glosses(subject: Subject) -> Mapping[str, str]:
    if subject.text not in model_suggestions.PROPOSED:
        return {}
    texts = [text for tokens in subject.trace.tokens.values() for text in labels.texts(tokens)]
    return {text: said for text, said in zip(texts, model_suggestions.glosses(texts), strict=False) if said}


def _heads(subject: Subject, found: ForwardPicture) -> Iterator[tuple[str, bytes]]:
    """Queries and keys of every head that is drawn, of the tokens that are drawn."""
    drawn: dict[str, int] = {lane.stack: len(lane.tokens) for lane in found.lanes}
    return (
        (
            f"{one.kind}/{one.layer}/{head}",
            _head(subject, one, head, *(drawn[stack] for stack in labels.stacks(one.kind))),
        )
        for lane in found.lanes
        for one in lane.attention
        for head in one.heads
    )


def _head(subject: Subject, one: Attention, head: int, n_q: int, n_k: int) -> bytes:
    found = subject_cache.numbers(subject, one.kind).operands(one.layer, head)
    if found is None:  # its weights do not follow from queries and keys alone
        return head_files.tensor_file({"weights": np.zeros(1, np.float32)})
    return head_files.tensor_file({"q": found.q[:n_q].ravel(), "k": found.k[:n_k].ravel()})


def _boxes(subject: Subject, found: ForwardPicture) -> dict[str, dict[str, Any]]:
    """What each box does with each row that is drawn; nothing where that would take long."""
    places = [place for lane in found.lanes for place in _places(lane, found)]
    if len(places) > MOST_BOXES:
        return {}
    return {
        f"{kind}/{box}/{layer}/{row}": _rounded(head_files.box_content(subject, box, kind, layer, row))
        for kind, box, layer, row in places
    }


def _places(lane: Lane, found: ForwardPicture) -> Iterator[tuple[Kind, Box, int, int]]:
    """Kind of attention, box, layer and row of all that is drawn of a stack but its heads (`js/box_places.js`)."""
    boxes: list[tuple[Kind, Box, int]] = [(lane.stack, "embedding", 0)]
    boxes += [(lane.stack, "positions", 0)] if lane.added is not None else []
    boxes += [(one.kind, "norm", one.layer) for one in lane.attention]
    layers = {one.layer for one in lane.attention}
    boxes += [(lane.stack, box, layer) for layer in layers for box in _AFTER]
    boxes += [(lane.stack, "output", 0)] if found.candidates and lane is found.lanes[-1] else []
    return ((*box, row) for box in boxes for row in range(len(lane.tokens)))


def _rounded(content: dict[str, Any]) -> dict[str, Any]:
    for one in content["vectors"]:
        one["cells"] = [round(value, DIGITS) for value in one["cells"]]
    return content
