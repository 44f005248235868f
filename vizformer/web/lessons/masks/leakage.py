"""A laboratory of the lesson Masks: one token replaced, and which outputs move."""

import numpy as np

from vizformer import figures
from vizformer.analysis import masks as leaks
from vizformer.analysis.masks import Leak, RunMask, Stack
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.catalogue.subject_functions import of_run
from vizformer.web.widgets import chart, lesson, map_words
from vizformer.web.widgets.lab import Laboratory, controls
from vizformer.web.words import counts, labels

lab = Laboratory("masks", "leak", wide=True)
RUNS: dict[Stack, tuple[RunMask, ...]] = {"encoder": ("own", "causal", "window"), "decoder": ("own", "window", "open")}


replacements = of_run(leaks.replacements)


@cached
def measured(subject: Subject, stack: Stack, position: int, token_id: int, run: RunMask, reach: int) -> Leak:
    """How far the outputs of a stack move when one of its tokens is replaced, with a mask of choice in all layers."""
    blocked = leaks.run_blocked(subject.trace, stack, run, reach)
    return leaks.leak_of(subject.checkpoint, subject.trace, stack, position, token_id, blocked)


def _stacks(subject: Subject) -> list[Stack]:
    return [stack for stack in RUNS if stack in subject.trace.tokens]


@lab.draws
def draw_leakage(subject: Subject) -> None:
    stacks = _stacks(subject)
    with controls():
        stack = lab.buttons("stack", stacks, stacks[-1])
        run = lab.buttons("run", RUNS[stack])
        row = subject.trace.tokens[stack]
        position = lab.box("at", labels.numbered(row), len(row) // 2)
        offered = replacements(subject, stack, position)
        names = dict(zip((token.id for token in offered), labels.told_apart(offered), strict=True))
        token_id = lab.box("by", names, offered[0].id)
        reach = lab.slider("reach", 0, 8, 1) if run == "window" else 1
    found = measured(subject, stack, position, token_id, run, reach)
    outputs = map_words.queries(subject, stack)
    bars, spread = lab.text("bars"), lab.text("spread")
    moved = figures.change_bars(found.outputs.astype(np.float32), outputs, position, title=bars)
    chart.show(moved, key="masks.bars")
    before, after = sum(i < position for i in found.moved), sum(i > position for i in found.moved)
    lab.say("moved", moved=len(found.moved), n=len(row), before=before, after=after)
    spreading = figures.change_map(found.stream.astype(np.float32), outputs, title=spread)
    chart.show(spreading, key="masks.spread", title_above=True)
    lesson.ask(leakage_question(subject))


@lab.asks("leak")
def leakage_question(subject: Subject) -> lesson.Choice:
    stack = _stacks(subject)[-1]
    n = len(subject.trace.tokens[stack])
    found = measured(subject, stack, n - 1, replacements(subject, stack, n - 1)[0].id, "own", 1)
    moved = len(found.moved)
    wrong = {"none": 0, "own": 1, "others": n - 1, "all": n}
    return lab.options("leak", moved, wrong, subject, form=stack, tokens=counts.tokens(n), moved=moved, n=n)
