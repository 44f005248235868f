"""A laboratory of the lesson Training: a classifier on top of an encoder, trained while one waits, frozen and fine-tuned."""

import json
import shutil
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis.side_by_side.heads import HeadPair, head_divergences, head_pair
from vizformer.analysis.side_by_side.runs import TwoRuns, two_runs
from vizformer.assets import asset
from vizformer.checkpoints import Checkpoint, load
from vizformer.components import table
from vizformer.components.table import Row, numbers
from vizformer.explain import latex
from vizformer.jobs.queue import Job, JobQueue
from vizformer.training.classifier import (
    BODIES,
    EPOCHS,
    LONGEST,
    MODEL,
    SECONDS,
    TOPICS,
    TUNED,
    Body,
    Epoch,
    interval,
    probabilities,
    read,
    sentences,
)
from vizformer.web.catalogue import model_cache, session_folders
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import presses
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.lab import Laboratory, controls
from vizformer.web.words import labels
from vizformer.web.words.errors import guarded
from vizformer.web.words.i18n import language as reader_language

# The classifiers that readers have trained on this server: one for each language, kept once it is trained.

# Work that is done once for all readers of a worker, by one process at a time; what comes of it is kept.
GRACE = 30.0  # seconds that a process may take beyond its time
SETTINGS = "settings.json"
Found = TypeVar("Found")


@dataclass(frozen=True)
class RunState(Generic[Found]):
    """The state of a job: what it has `found` so far, or what the last job found, and how that one ended."""

    found: tuple[Found, ...]
    running: bool
    ending: str  # "done", "time", "stopped", "abandoned" or "failed"; empty while it goes on, or if there was none


class SharedRun(JobQueue[None], Generic[Found]):
    """Starts, looks at and stops the processes, whose job is told by settings.json in their folder."""

    @abstractmethod
    def read(self, folder: Path) -> tuple[list[Found], str]:
        """What a process has come to so far, and how it ended ("" while it goes on)."""

    def begin(self, name: str, settings: Mapping[str, Any]) -> None:
        """Starts the job, unless it is under way, or has ended well and is kept (`good`)."""

        def write(folder: Path) -> None:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            (folder / SETTINGS).write_text(json.dumps(settings), encoding="utf-8")

        self.add(name, write, "")

    def look(self, name: str) -> RunState[Found]:
        """The state of the job.  A reader who stops asking counts as gone; without readers it ends after a minute."""
        if (now := self.standing(name, "")) is None:
            return RunState((), False, "")
        return RunState(tuple(self.read(self.root / name)[0]), now.phase != "over", now.ending)

    def ending(self, job: Job[None], status: int, cut_off: bool) -> str:
        return self.read(job.folder)[1] or ("stopped" if job.told_to_stop else "failed")


class ClassifierRun(SharedRun[Epoch]):
    """The training of the classifier: one job for each language."""

    module = "vizformer.training.classifier"
    good = ("done",)
    longest = SECONDS + GRACE

    def start(self, language: str) -> None:
        """Begins to train, unless it is trained already: the same sentences give the same weights."""
        self.begin(language, {"language": language})

    def read(self, folder: Path) -> tuple[list[Epoch], str]:
        return read(folder)


classifier_run = session_folders.OfTheServer(lambda: ClassifierRun(session_folders.new_folder()), ClassifierRun.close)
"""The classifier training of this server."""


@cached
def tuned(language: str) -> Checkpoint:
    """The encoder after its training."""
    return load(classifier_run().root / language / TUNED)


@cached
def answers(language: str, text: str) -> dict[Body, list[float]]:
    """The probability of each topic, for each way of training."""
    return probabilities(classifier_run().root / language, text)


lab = Laboratory("training", "classifier")
LANGUAGES = {"en": "English", "zh_CN": "简体中文"}
ENCODER = ModelRef("bundled", MODEL)
POLL = 1.0  # seconds between two looks at a training that goes on
ENDINGS = ("time", "stopped", "abandoned", "failed", "full")  # that are told
CODE = """rows = torch.randn({n}, {d})  # stands in for what leaves the last layer, a row for each token
head = torch.nn.Linear({d}, {topics})  # W and b; untrained here
p = torch.softmax(head(rows.mean(0)), -1)
right, n, z = {right}, {questions}, 1.96
share, wide = right / n, 1 + z**2 / n
half = z * (share * (1 - share) / n + z**2 / (4 * n**2)) ** 0.5
low, high = (share + z**2 / (2 * n) - half) / wide, (share + z**2 / (2 * n) + half) / wide"""


@cached
def recorded(language: str) -> tuple[Epoch, ...]:
    """What is shown until somebody has it trained here: see `recipes.classifier`."""
    said = json.loads(asset("lessons", "training", "classifier.json").read_text(encoding="utf-8"))
    return tuple(Epoch(**one) for one in said[language])


@cached
def before_and_after(language: str, text: str) -> tuple[TwoRuns, np.ndarray]:
    """The encoder's run as it was bundled and after it was tuned, and how far each head has moved, in bits."""
    first, second = model_cache.checkpoint(ENCODER), tuned(language)
    ids = [token.id for token in first.encode(text)[:LONGEST]]
    runs = two_runs(first, first.trace(ids=ids), second, second.trace(ids=ids))
    return runs, head_divergences(runs, "encoder")


@lab.draws
def draw_classifier(subject: Subject) -> None:
    """The button, the curves and the accuracies; after a training here also the reader's sentence."""
    st.html(table.style())
    with controls():
        language = lab.buttons("language", LANGUAGES, reader_language() if reader_language() in LANGUAGES else "en")
        curve = lab.buttons("curve", ("right", "loss", "held_out"))
    now = classifier_run().look(language)
    st.fragment(guarded()(_watch), run_every=POLL if now.running else None)(language, curve, was_running=now.running)
    lesson.ask(classifier_question(subject), folded=True)
    if now.ending == "done":
        _sentence(subject.text, language)
    last, n = _last(recorded(language))["tuned"], len(sentences(language, held_out=True))
    low, high = interval(last.right, n)
    lesson.formula(
        r"\begin{aligned} m &= \tfrac{1}{n} \textstyle\sum_{i=1}^{n} x_i \\ p &= \mathrm{softmax}(W m + b) \end{aligned}",
        live=rf"\frac{{{last.right}}}{{{n}}} = {latex.number(last.right / n)}, \qquad 95\,\%: \;"
        rf" {latex.number(low)} \text{{ … }} {latex.number(high)}",
        code=CODE.format(
            n=len(subject.tokens),
            d=model_cache.options(ENCODER).d_model,
            topics=len(TOPICS),
            right=last.right,
            questions=n,
        ),
    )


@lab.asks("interval")
def classifier_question(subject: Subject) -> lesson.Choice:
    last, n = _last(recorded("en")), len(sentences("en", held_out=True))
    (low, __), (__, high) = interval(last["frozen"].right, n), interval(last["words"].right, n)
    said = {"n": n, "words": last["words"].right, "frozen": last["frozen"].right}
    right, ranges = "open" if low < high else "sure", {"low": f"{low:.0%}", "high": f"{high:.0%}"}
    return lab.choice("interval", ("sure", "open", "none"), right, **said, **ranges)


def _last(found: tuple[Epoch, ...]) -> dict[str, Epoch]:
    """The last epoch of each way of training."""
    return {one.body: one for one in found}


def _watch(language: str, curve: str, was_running: bool) -> None:
    """Draws the progress of the training, again every second while it runs."""
    run = classifier_run()
    now = run.look(language)
    if now.running != was_running:
        st.rerun()  # the whole page: it asks again, or no more
    if now.running:
        done, of = len(now.found), len(BODIES) * (EPOCHS + 1)
        st.progress(min(1.0, done / of), text=lab.text("done", done=done, of=of))
        if presses.button(lab.text("stop"), key="training.classifier.stop"):
            run.stop(language)
    _results(language, curve, now.found or recorded(language))
    if not now.found:
        lab.note("recorded", n=len(sentences(language, held_out=False)))
    if now.running or now.ending == "done":
        return
    if now.ending in ENDINGS:
        st.info(lab.text(f"ending.{now.ending}"))
    if presses.button(lab.text("begin"), type="primary", key="training.classifier.start"):
        run.start(language)
        st.rerun()


def _results(language: str, curve: str, found: tuple[Epoch, ...]) -> None:
    """The curves of the three ways, and how many of the held-out sentences each gets right in the end."""
    n, names = len(sentences(language, held_out=True)), lab.texts("way", BODIES)
    values = {
        names[body]: np.array([getattr(one, curve) for one in found if one.body == body], dtype=np.float32)
        for body in BODIES
    }
    figure = figures.line_curves(
        np.arange(EPOCHS + 1),
        {name: 100 * values[name] / n if curve == "right" else values[name] for name in values if len(values[name])},
        place_title=lab.text("epoch"),
        value_title=lab.text(f"value.{curve}"),
        hover=lab.text("hover"),
        value_range=(0.0, 100.0) if curve == "right" else None,
        title=lab.text(f"curve.{curve}"),
    )
    chart.show(figure.update_traces(mode="lines+markers"), key="training.classifier")
    config = model_cache.options(ENCODER)
    sizes = {"words": config.vocab_size, "frozen": config.d_model, "tuned": config.d_model}
    body = model_cache.n_parameters(ENCODER)
    rows = []
    for name, one in _last(found).items():
        trained = len(TOPICS) * (sizes[name] + 1) + (body if name == "tuned" else 0)
        low, high = interval(one.right, n)
        share = f"{low:.0%} – {high:.0%}"
        rows.append(
            Row(names[name], *numbers(",", trained), f"{one.right} / {n}", *numbers(".0%", one.right / n), share)
        )
    st.html(table.to_html(lab.columns("way", "trained", "right", "share", "interval"), rows))
    lab.note("how", n=len(sentences(language, held_out=False)), epochs=EPOCHS)


def _sentence(text: str, language: str) -> None:
    """The reader's sentence: its topic by each way, and one head before and after."""
    topics, names = lab.texts("topic", TOPICS), lab.texts("way", BODIES)
    rows = [Row(names[body], *numbers(".0%", *values)) for body, values in answers(language, text).items()]
    st.html(table.to_html((lab.text("columns.way"), *topics.values()), rows, caption=lab.text("sentence", text=text)))
    runs, moved = before_and_after(language, text)
    most = int(np.nanargmax(moved)) if np.isfinite(moved).any() else 0
    n_heads = moved.shape[1]
    heads = {index: lab.text("head", layer=index // n_heads, head=index % n_heads) for index in range(moved.size)}
    index = lab.box("moved", heads, most)
    pair: HeadPair = head_pair(runs, "encoder", *divmod(index, n_heads))
    tokens = labels.texts(runs.trace.tokens["encoder"])
    for name, pattern, column in zip(("before", "after"), (pair.first, pair.second), st.columns(2), strict=True):
        title = lab.text(f"map.{name}")
        figure = figures.attention_heatmap(pattern, tokens, tokens, title=title)
        chart.show(figure.update_layout(height=380), key=f"training.classifier.{name}", on=column)
    lab.note("far", bits=f"{moved.flat[index]:.3f}", most=heads[most], mean=f"{np.nanmean(moved):.3f}")
