"""The two runs that are compared: the sentence and model of the page, and what is chosen beside them."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

import streamlit as st
from jaxtyping import Float
from numpy import ndarray

from vizformer.analysis import (
    Kind,
    TwoRuns,
    head_divergences,
    head_pair,
    moved_weights,
    side_by_side,
    stream_cosines,
    two_answers,
    two_runs,
)
from vizformer.analysis.causes.prompt_pairs import EXAMPLES
from vizformer.analysis.side_by_side import MovedWeights
from vizformer.web.catalogue import model_cache, model_list, sources, training_steps, trainings
from vizformer.web.catalogue.bounded_cache import Cached, cached
from vizformer.web.catalogue.long_work import HEARD
from vizformer.web.catalogue.subject import Subject
from vizformer.web.catalogue.subject_functions import asked_of
from vizformer.web.link import beginnings, state
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.widgets import model_suggestions
from vizformer.web.widgets.model_input import ask_other_sentence, readable
from vizformer.web.words.i18n import _, show_info, show_note

MODEL, EXAMPLE = "side_by_side.model", "side_by_side.example"
SAME, OWN = "", "own"  # in the place of a second model
_ASKED = "side_by_side.asked"

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Pair:
    """The two subjects that are compared, with the same target where the models read one; hashable, as a cache key."""

    first: Subject
    second: Subject

    @property
    def runs(self) -> TwoRuns:
        """Both runs; a TraceError where they cannot be compared."""
        first, second = self.first, self.second
        return two_runs(first.checkpoint, first.trace, second.checkpoint, second.trace)

    @property
    def two_models(self) -> bool:
        return self.first.model != self.second.model

    @property
    def names(self) -> tuple[str, str]:
        """The names that tell the two runs apart: of the models, the texts, or both."""
        titles = (self.first.title, self.second.title)
        texts = tuple(" ".join(one.text.split()) for one in (self.first, self.second))
        short = tuple(text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…" for text in texts)
        if not self.two_models:
            return short[0], short[1]
        if texts[0] == texts[1]:
            return titles
        return f"{titles[0]}: {short[0]}", f"{titles[1]}: {short[1]}"


_WORDS = re.compile(r"\[[A-Z]+\]|[\u3400-\u9fff]|[^\W\u3400-\u9fff]+(?:['’][^\W\u3400-\u9fff]+)*")  # 猫 is one
_LONGEST = 40  # characters of a text in a title


class Example(NamedTuple):
    model: ModelRef
    text: str
    other: ModelRef | None
    second: str


def choose(subject: Subject) -> Pair | None:
    """The boxes; None, with the reason, where there is nothing to compare."""
    model, text = boxes(subject)
    if model is not None:
        model_suggestions.line(model)
    text = text or (subject.text if model is not None else "")
    if not text or (model in (None, state.view().model) and text == subject.text.strip()):
        show_info("Choose a second model, write a second sentence, or take an example.")
        return None
    if subject.edited:
        show_note("Numbers set by hand are ignored here: this is the original model.")
    first = subject.unedited
    if first.shape.architecture == "encoder-decoder":
        first = replace(first, target=first.target.strip() or first.translation or "")
    beside = first.model if model is None else sources.stamped(model)
    if beside != first.model:
        sources.folder(beside)  # or says that it is not there
    second = Subject(beside, text, first.target)
    model_cache.want(first.model, beside)
    if not readable(first) or not readable(second, nothing_beside):
        return None
    return Pair(first, second)


def boxes(subject: Subject) -> tuple[ModelRef | None, str]:
    """The model beside, None for the same one, and the sentence beside."""
    left, middle, right = st.columns([5, 7, 6], vertical_alignment="bottom")
    model = model_box(left)
    proposed = subject.text if model is not None else proposal(subject)
    # It stays with any other first sentence: whoever corrects that one has not given up the second.
    text = ask_other_sentence(_("Second sentence"), "second", proposed, basis="", on=middle)
    example_box(right)
    return model, text


def model_box(on: Any) -> ModelRef | None:
    models, model = model_list.beside(), state.view().model
    chosen = None if state.view().other == model else state.view().other
    options = [SAME, OWN, *(one for one in models if one != model)]
    # made now: the widget asks outside of a run too
    names: dict[object, str] = {SAME: _("the same model"), OWN: _("open your own …")}
    names.update((one, title) for one, title in model_suggestions.described(models).items())
    state.show(MODEL, OWN if _is_asked() else SAME if chosen is None else chosen)
    on.selectbox(
        _("Second model"),
        options,
        format_func=names.__getitem__,
        key=MODEL,
        on_change=_take_model,
        persist_state="session",
    )
    return chosen


def _take_model() -> None:
    model, view = st.session_state[MODEL], state.view()
    st.session_state[_ASKED] = (view.model, view.other) if model == OWN else None
    if model == SAME or isinstance(model, ModelRef):  # a run that was cut short knows none
        state.update(other=None if model == SAME else model)


def _is_asked() -> bool:
    return bool(st.session_state.get(_ASKED) == (state.view().model, state.view().other))


def asks_for_second(subject: Subject) -> bool:
    """Whether the page has the box that opens models: asked for, or nothing stands beside a model of the reader's."""
    view = state.view()
    alone = view.other is None and not view.second.strip() and not proposal(subject)
    return _is_asked() or (view.model.is_from_elsewhere and alone)


def nothing_beside() -> None:
    state.update(other=None, second="")


def proposal(subject: Subject) -> str:
    """The second sentence of an example where the first one is on the page; else the same words in another order."""
    found = (one.second for one in examples() if one.other is None and is_first_of(one, subject))
    return next(found, in_another_order(subject.text) if subject.model.source == "bundled" else "")


def in_another_order(text: str) -> str:
    """A text whose last word has changed places with an earlier, another one, from the second on; nothing without one."""
    words = list(_WORDS.finditer(text))
    one = next((word for word in [*words[1:], *words[:1]] if word[0] != words[-1][0]), None)
    if one is None:
        return ""
    last = words[-1]
    return f"{text[: one.start()]}{last[0]}{text[one.end() : last.start()]}{one[0]}{text[last.end() :]}"


def is_first_of(example: Example, subject: Subject) -> bool:
    return (subject.model.base, subject.text) == (example.model, example.text)


def examples() -> tuple[Example, ...]:
    """Prompts that come with VizFormer, and the beginning and the end of the training that does."""
    found = [Example(ModelRef("bundled", one.model), one.clean, None, one.corrupted) for one in EXAMPLES]
    found.append(
        Example(beginnings.CONTINUED.model, beginnings.CONTINUED.text, None, "The dog was hungry, so it went to")
    )
    name = trainings.example().name
    plan = trainings.run(name).plan
    text = plan.on.text(plan.on.read(plan.on.example), plan.architecture)
    steps = training_steps.kept_steps(name)
    found.append(Example(ModelRef("training", name, str(steps[0])), text, ModelRef("training", name), ""))
    return tuple(found)


def example_box(on: Any) -> None:
    """The examples; to choose one sets both runs."""
    known = examples()
    names = {one: example_name(one) for one in known}  # in the reader's language, also where the widget asks later
    view = state.view()
    shown = next(
        (
            one
            for one in known
            if (view.model, view.text, view.other) == (one.model, one.text, one.other)
            and view.second in ("", one.second)
        ),
        None,
    )
    state.show(EXAMPLE, shown)
    on.selectbox(
        _("Or an example"),
        known,
        index=None,
        format_func=names.__getitem__,
        placeholder=_("Choose two runs"),
        key=EXAMPLE,
        on_change=_take_example,
    )


def example_name(example: Example) -> str:
    if example.other is None:
        return f"{example.text} / {example.second} ({sources.title(example.model)})"
    return f"{sources.title(example.model)} / {sources.title(example.other)}"


def _take_example() -> None:
    example = st.session_state[EXAMPLE]
    if isinstance(example, Example):
        state.update(
            model=example.model, text=example.text, target="", other=example.other, second="", edits="", position=None
        )
        state.unsay("layer", "head")


# Cached computations of the page Side by side.
def of_runs(function: Callable[Concatenate[TwoRuns, P], R]) -> Cached[Concatenate[Pair, P], R]:
    kept: Cached[Concatenate[Pair, P], R] = asked_of("pair", lambda pair: (pair.runs,), function)
    return kept


@cached
def divergences(pair: Pair, kind: Kind) -> Float[ndarray, "n_layers n_heads"]:
    return head_divergences(pair.runs, kind, heard=HEARD.get())


@cached
def elsewhere(pair: Pair, kind: Kind) -> Float[ndarray, "n_layers n_heads"]:
    """The total variation distance between the attention of each head in the two runs, averaged over rows."""
    return head_divergences(pair.runs, kind, measure=side_by_side.total_variation)


head = of_runs(head_pair)
cosines = of_runs(stream_cosines)
answers = of_runs(two_answers)
differing_rows = of_runs(side_by_side.differing_rows)


@cached
def moved(first: ModelRef, second: ModelRef, singular: bool = False) -> MovedWeights:
    """How far the weights of the second model are from those of the first."""
    one, two = (model_cache.checkpoint(model) for model in (first, second))
    return moved_weights(one, two, singular=singular, heard=HEARD.get())


def bits(value: float) -> str:
    """A divergence with three digits; one that would round to 0 with its first digit."""
    text = f"{value:.3f}"
    return text if float(text) or not value else f"{value:.0e}".replace("-", "−")
