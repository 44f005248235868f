"""The two prompts that are compared: which, where their answers are compared, and which two tokens are the answers."""

from dataclasses import dataclass, replace

import streamlit as st
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from vizformer.analysis import Kind, Patched, attribution_patches, patch_of, patch_runs
from vizformer.analysis.causes.patching import What
from vizformer.analysis.causes.prompt_pairs import EXAMPLES, PromptPair
from vizformer.analysis.heads.maps import n_layers
from vizformer.analysis.masks import rerun
from vizformer.analysis.one_forward.predictions import writable
from vizformer.model import Edit
from vizformer.web.catalogue import subject_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.long_work import HEARD
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link import state
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.widgets import lesson, position_choice, watched_work
from vizformer.web.widgets.model_input import ask_other_sentence
from vizformer.web.words import labels
from vizformer.web.words.i18n import _, show_info, show_note, show_text, show_warning

OWN = -1  # the token that the model itself finds most probable
EXAMPLE = "what_if.example"


@dataclass(frozen=True)
class Asked:
    what: What
    kind: Kind
    layer: int | None = None  # of heads one position at a time; None for all layers

    @property
    def layers(self) -> list[int] | None:
        return None if self.layer is None else [self.layer]


@dataclass(frozen=True)
class Said:
    """The predictions of a run at the row where the answers are compared."""

    # answer, other: the logits of the two tokens
    answer: float
    other: float
    best: str  # the most probable token, and its probability
    probability: float

    @property
    def difference(self) -> float:
        return self.answer - self.other


@dataclass(frozen=True)
class Prompts:
    """Two prompts and the place where their answers are compared; hashable, so that it can key caches."""

    # clean, corrupted: what the model reads; of both the decoder reads the same target
    clean: Subject
    corrupted: Subject
    row: int  # of the output
    # answer, other: the two tokens whose logits are compared
    answer: int
    other: int

    @property
    def pair(self) -> PromptPair:
        """The two runs.

        Raises:
            TraceError: they cannot be compared.
        """
        return PromptPair(self.clean.trace, self.corrupted.trace, self.row, self.answer, self.other)


def choose(subject: Subject, corrupted: str) -> Prompts | None:
    """Draws the choices beside the second prompt; None, with the reason, where the two cannot be compared."""
    if not corrupted:
        show_info("Write a second prompt that differs from the sentence above in a word or two, or choose an example.")
        return None
    both = readings(subject, corrupted)
    if not comparable(*both):
        return None
    row = where(*both, given=bool(subject.target.strip()))
    return Prompts(*both, row, *answers(*both, row))


def second(subject: Subject) -> str:
    """The box of the second prompt, and the examples."""
    left, right = st.columns([3, 2])
    source, name = subject.model.source, subject.model.name
    there = (one for one in EXAMPLES if (source, name) == ("bundled", one.model))
    found = next((one for one in there if subject.text in (one.clean, one.corrupted)), None)
    proposed = "" if found is None else found.corrupted if subject.text == found.clean else found.clean
    basis = f"{subject.model} {subject.text}"
    text = ask_other_sentence(
        _("The second, corrupted prompt (the first, clean one is the sentence above)"), "second", proposed, basis, left
    )
    shown = found if found is not None and text == proposed else None
    state.show(EXAMPLE, shown)
    right.selectbox(
        _("Or an example"),
        EXAMPLES,
        index=None,
        format_func=lambda one: f"{one.clean} / {one.corrupted} ({one.model})",
        placeholder=_("Choose two prompts"),
        key=EXAMPLE,
        on_change=_take_example,
    )
    return text


def _take_example() -> None:
    example = st.session_state[EXAMPLE]
    if example is None:
        return
    model = ModelRef("bundled", example.model)
    state.update(model=model, text=example.clean, target=example.target or "", second="", position=None, edits="")


def readings(subject: Subject, corrupted: str) -> tuple[Subject, Subject]:
    """What the model reads: both prompts, before the same target, with no number set by hand."""
    if subject.edited:
        show_note("Numbers set by hand are ignored here: this is the original model.")
    target = subject.target.strip() or subject.unedited.translation or ""
    clean = Subject(subject.model, subject.text, target)
    return clean, replace(clean, text=corrupted)


def comparable(clean: Subject, corrupted: Subject) -> bool:
    """Says what is wrong with two prompts, if something is; else where they differ."""
    runs = clean.trace.tokens, corrupted.trace.tokens
    stack = next(iter(runs[0]))  # the target of the others is the same
    first, other = runs[0][stack], runs[1][stack]
    if len(first) != len(other):
        show_warning(
            "The two prompts must have equally many tokens, since every number replaces the one at its own "
            "position: the clean one has {clean}, the corrupted one {corrupted}. Choose a word with as many "
            "tokens, or an example.",
            clean=len(first),
            corrupted=len(other),
        )
        for title, sequence in ((_("clean"), first), (_("corrupted"), other)):
            st.text(f"{title}: {' | '.join(labels.texts(sequence))}")
        return False
    changed = [
        _("position {position}: “{clean}” and “{corrupted}”", position=at, clean=a.text, corrupted=b.text)
        for at, (a, b) in enumerate(zip(first, other, strict=True))
        if a.id != b.id
    ]
    if not changed:
        show_warning("The two prompts are the same: change a word in the second one.")
        return False
    show_text("They differ at {places}.", places=_("; ").join(changed))
    return True


def where(clean: Subject, corrupted: Subject, *, given: bool) -> int:
    """The strip of tokens after which the answers are compared."""
    usual = usual_row(clean, corrupted, given=given)
    return position_choice.choose(clean, key="what_if.patch.row", usual=usual, compared=True)


def usual_row(clean: Subject, corrupted: Subject, *, given: bool) -> int:
    """After a text or a target that was given; else at the first [MASK], or where the two answers first differ."""
    asked, last = position_choice.asked_position(clean), len(clean.trace.logits) - 1
    one, other = (writable(clean.checkpoint, subject.trace.logits).argmax(-1) for subject in (clean, corrupted))
    differs = (one != other).nonzero()[:, 0].tolist()
    if asked is not None:
        return asked
    if given and last in differs:
        return last
    return int(differs[0]) if differs else last


def answers(clean: Subject, corrupted: Subject, row: int) -> tuple[int, int]:
    """The boxes of the two tokens: the answer to the clean prompt, and that to the corrupted one."""
    best = [subject_cache.predictions(one, row) for one in (clean, corrupted)]
    tokens = list({one.token.id: one.token for run in best for one in run}.values())
    known = dict(zip([token.id for token in tokens], labels.told_apart(tokens), strict=True))
    chosen = list[int]()
    asked = (("whatif.answer", _("Answer to the clean prompt")), ("whatif.other", _("Answer to the corrupted prompt")))
    for column, (name, label), run in zip(st.columns(2), asked, best, strict=True):
        own = _("the model's own: “{token}”, {p}", token=known[run[0].token.id], p=labels.percent(run[0].probability))
        names = {OWN: own, **{id: f"“{text}”" for id, text in known.items()}}
        column.selectbox(label, list(names), format_func=names.__getitem__, **lesson.setting(name, OWN, list(names)))
        token = lesson.value(name, OWN, list(names))
        chosen.append(run[0].token.id if token == OWN else token)
    return chosen[0], chosen[1]


# Cached computations of the patches between two prompts.
@cached
def measured(prompts: Prompts, asked: Asked) -> Patched:
    return patch_runs(
        prompts.clean.checkpoint, prompts.pair, asked.what, asked.kind, layers=asked.layers, heard=HEARD.get()
    )


@cached
def estimated(prompts: Prompts, asked: Asked) -> Float[ndarray, "*shape"]:
    return attribution_patches(prompts.clean.checkpoint, prompts.pair, asked.what, asked.kind, layers=asked.layers)


def is_estimated(prompts: Prompts) -> bool:
    """Whether there is a gradient, as there is none of recorded code, and it takes no long time."""
    checkpoint = prompts.clean.checkpoint
    return checkpoint.is_own and watched_work.cost(prompts.clean, 3) < watched_work.AT_ONCE  # it takes three runs


@cached
def said(prompts: Prompts, asked: Asked, cell: tuple[int, ...]) -> tuple[Said, Said, Said]:
    """The corrupted run, the same with the patch of one cell of the whole table, and the clean run."""
    checkpoint, pair = prompts.clean.checkpoint, prompts.pair
    edit = Edit(patches=(patch_of(pair, asked.what, asked.kind, cell),))
    patched = rerun(checkpoint, pair.corrupted.tokens, edit)
    first, second, third = (_say(prompts, one.logits) for one in (pair.corrupted, patched, pair.clean))
    return first, second, third


def _say(prompts: Prompts, logits: Tensor) -> Said:
    """The predictions in these logits at the row where the answers are compared."""
    row = logits[prompts.row]
    best = int(writable(prompts.clean.checkpoint, row).argmax())
    probability = float(row.double().softmax(-1)[best])
    return Said(float(row[prompts.answer]), float(row[prompts.other]), text_of(prompts, best), probability)


def text_of(prompts: Prompts, token: int) -> str:
    """How a token of the vocabulary reads."""
    return prompts.clean.checkpoint.tokenizer.tokens([token])[0].text


def runs(subject: Subject, asked: Asked) -> int:
    """How many cells the table has: one run of the model for each."""
    trace = subject.trace
    n = len(trace.tokens["encoder" if asked.kind == "encoder" else "decoder"])
    layers, heads = n_layers(trace, asked.kind), subject.shape.n_heads
    return {"stream": (layers + 1) * n, "heads_by_position": heads * n}.get(asked.what, layers * heads)
