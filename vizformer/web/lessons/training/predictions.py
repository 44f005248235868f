"""The predictions of the reader's text that have a loss: rows of a decoder, or tokens that are hidden from an encoder."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from vizformer.analysis import hide
from vizformer.analysis.training.gradient import MOST_TOKENS
from vizformer.assets import asset
from vizformer.components import table
from vizformer.components.table import Row, numbers
from vizformer.explain import loss_parts
from vizformer.explain.loss_parts import Losses, LossNumbers
from vizformer.model import Trace
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.widgets import lesson, model_suggestions
from vizformer.web.widgets.lab import Laboratory

MASKED_EVERY = 7  # tokens, of which one is hidden: about 15 in 100, as BERT was trained
AFFORDABLE = 30_000_000  # parameters: the gradient of a larger model takes too long while somebody waits


@dataclass(frozen=True)
class Place:
    """A prediction, by its index among the rows that are asked, or the position that an encoder fills (`hidden`)."""

    hidden: int | None
    index: int


def _ordinary(subject: Subject) -> list[int]:
    return [i for i, token in enumerate(subject.tokens) if not token.special]


def _hidden_with(subject: Subject, position: int) -> tuple[int, ...]:
    """The positions that an encoder has hidden along with this one: every seventh token that is no mark."""
    ordinary = _ordinary(subject)
    return tuple(ordinary[ordinary.index(position) % MASKED_EVERY :: MASKED_EVERY])


@cached
def prediction(subject: Subject, hidden: int | None) -> Trace:
    """The forward whose logits are asked: of a decoder the usual one, of an encoder one with tokens hidden."""
    if hidden is None:
        return subject.trace
    return hide(subject.checkpoint, subject.tokens, _hidden_with(subject, hidden))


@cached
def losses(subject: Subject, hidden: int | None) -> Losses:
    trace = prediction(subject, hidden)
    rows = loss_parts.asked_rows(subject.checkpoint, trace, () if hidden is None else subject.tokens)
    return loss_parts.losses(trace, rows)


@cached
def loss_numbers(subject: Subject, place: Place, eps: float) -> LossNumbers:
    asked = losses(subject, place.hidden).asked[place.index]
    return loss_parts.loss_numbers(subject.checkpoint, prediction(subject, place.hidden), asked, eps)


def affordable(subject: Subject) -> bool:
    """Whether the model and the text are small enough for a backward pass."""
    n_tokens = sum(map(len, subject.trace.tokens.values()))
    return model_cache.n_parameters(subject.model) <= AFFORDABLE and n_tokens <= MOST_TOKENS


def _can_be_asked(model: ModelRef) -> bool:
    return model_suggestions.writes(model) or model_suggestions.fills_blanks(model)


def predicts(subject: Subject) -> bool:
    """Whether the model predicts and the text has something to predict."""
    return _can_be_asked(subject.model) and _enough(subject)


def _enough(subject: Subject) -> bool:
    match subject.config.architecture:
        case "encoder-only":
            return bool(_ordinary(subject))
        case "encoder-decoder":
            return True
        case _:
            return len(subject.trace.tokens["decoder"]) > 1


def say_unless_predicts(lab: Laboratory, subject: Subject) -> bool:
    """Whether there is something to predict; where not, says why."""
    if not _can_be_asked(subject.model):
        st.info(lab.text("headless"))
        model_suggestions.offer(_can_be_asked, "training")
    elif not _enough(subject):
        st.info(lab.text("alone"))
    return predicts(subject)


def choose(lab: Laboratory, subject: Subject) -> Place:
    if subject.config.architecture == "encoder-only":
        ordinary = _ordinary(subject)
        names = {i: f"{i} · {subject.tokens[i].text}" for i in ordinary}
        hidden = lab.box("hidden", names, ordinary[len(ordinary) // 2])
        return Place(hidden, _hidden_with(subject, hidden).index(hidden))
    asked = losses(subject, None).asked
    rows = [f"{i} · {one.read.text} → {one.right.text}" for i, one in enumerate(asked)]
    return Place(None, lab.box("row", rows, min(1, len(asked) - 1)))


def hidden_now(subject: Subject) -> int | None:
    """The hidden position of an encoder: the chosen one, by default the token in the middle; None for a decoder."""
    if subject.config.architecture != "encoder-only":
        return None
    ordinary = _ordinary(subject)
    return int(lesson.value("training.hidden", ordinary[len(ordinary) // 2], ordinary))


# The bundled measurements of the lesson Training: see assets/lessons/training/README.md.
@cached
def notes(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(asset("lessons", "training", f"{name}.json").read_text(encoding="utf-8"))
    return found


def paper_table(lab: Laboratory, symbol: str, rows: Sequence[tuple[float, float, float]]) -> str:
    """What the paper measured (Table 3) for several values of a setting: its value, perplexity, BLEU."""
    cells = [
        Row(f"{symbol} = {value:g}", *numbers(".2f", perplexity), *numbers(".1f", bleu))
        for value, perplexity, bleu in rows
    ]
    return table.to_html((lab.text("paper"), lab.text("perplexity"), "BLEU"), cells)
