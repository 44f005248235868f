"""A set of prompts: what every part of a model does for them, the mean with its interval, and what goes against it."""

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from vizformer.analysis import Kind, PromptSet, SetEffects, bundled_set, bundled_sets, kinds, read_prompt_set
from vizformer.analysis.causes.ablation import Part, by_head
from vizformer.analysis.causes.prompt_sets import LARGEST, MOST
from vizformer.analysis.causes.set_effects import PAIRED, Measure, over_prompts
from vizformer.analysis.corpus_heads import Corpus
from vizformer.analysis.heads.maps import site_name
from vizformer.checkpoints.any_checkpoint import check_characters
from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.long_work import HEARD
from vizformer.web.catalogue.subject import Subject
from vizformer.web.pages.what_if import computations
from vizformer.web.pages.what_if.circuit_edges import cost, draw_circuit, has_edges
from vizformer.web.pages.what_if.share_map import chosen_cell, one_map, window
from vizformer.web.widgets import in_python, strongest_parts, watched_work
from vizformer.web.widgets.choices import BESIDE, box, kind_of_the_largest, more
from vizformer.web.words.i18n import _, show_info, show_markdown, show_note, show_text, show_warning, translate, words
from vizformer.web.words.part_names import signed
from vizformer.word_tables import words_of

LISTED = 10

_WORDS = words_of(__file__)
SET, OWN = "whatif.set", "own"
EXAMPLE = (
    "clean, corrupted, answer, wrong\nThe boy lost, The girl lost, his, her\nThe king lost, The queen lost, his, her"
)


@cached
def effects(model: Subject, prompts: PromptSet, measure: Measure, texts: Corpus | None) -> SetEffects:
    """The effects of every part for a set of prompts; of the subject `model` only its model is used."""
    others = computations.others(model, texts) if measure in ("mean", "resample") else []
    return over_prompts(model.checkpoint, prompts, measure, texts=others, heard=HEARD.get())


def draw_set_of_prompts(subject: Subject, settings: DeltaGenerator) -> None:
    """The set, what is measured, the map of the heads, the strongest parts, and the prompts one by one."""
    model = Subject(subject.model, "", "")
    with settings:
        name = chosen_name(subject)
        measure = what_is_measured(subject)
    prompts = own_set() if name == OWN else bundled_set(name)
    if prompts is None:
        return
    first = prompts.rows[0]
    show_note(
        "{n} prompts, such as “{clean}”; the answer: {answer}, the wrong one: {wrong}.",
        n=len(prompts.rows),
        clean=first.clean,
        answer=shortened(first.answer),
        wrong=shortened(first.wrong),
    )
    texts = None
    if measure in ("mean", "resample"):
        with settings, more():
            texts = computations.choose(subject)
    if measure == "circuit":
        draw_circuit(subject, model, prompts)
    else:
        found = measured(subject, model, prompts, measure, texts)  # type: ignore[arg-type]  # (one of MEASURES)
        if found is not None:
            draw_effects(subject, found, settings)
    in_python.show(code(subject, prompts, measure, texts))


def draw_effects(subject: Subject, found: SetEffects, settings: DeltaGenerator) -> None:
    picture, beside = st.columns(BESIDE, gap="medium")
    with settings:
        kind = kind_of_the_largest(kinds(subject.trace), lambda kind: np.abs(head_map(found, kind)))
    with picture:
        part = heads(found, kind)
    with beside:
        said(found)
    strongest_parts.show(found, LISTED)
    row_by_row(found, part)


def shortened(answers: str) -> str:
    """The first of several answers."""
    words = answers.split("|")
    return (" | ".join(words[:3]) + (" | …" if len(words) > 3 else "")) or "–"


def measured(
    subject: Subject, model: Subject, prompts: PromptSet, measure: Measure, texts: Corpus | None
) -> SetEffects | None:
    """The effects; None until they are wanted, or where they take too long."""
    of_row = 6 if measure == "attribution" else len(computations.parts(subject)) * (5 if measure == "resample" else 1)
    runs = len(prompts.rows) * of_row
    return watched_work.bounded(
        effects,
        (model, prompts, measure, texts),
        cost=cost(model, prompts, of_row // 2),  # a run begins at its part: half of it on average
        too_long=_(
            "That takes too long here ({n} runs): give fewer prompts, or choose a smaller model. In Python: "
            "vf.analysis.over_prompts.",
            n=f"{runs:,}",
        ),
        runs=1000 * len(prompts.rows),
        begin=_("Measure it for every prompt"),
        key="what_if.set",
        said=lambda done, n: _("{done} of {n} prompts", done=f"{done // 1000:,}", n=f"{n // 1000:,}"),
        takes=_("That takes {n} runs of the model. You can stop them.", n=f"{runs:,}"),
    )


def head_map(found: SetEffects, kind: Kind) -> np.ndarray:
    """The mean of every head of one kind of attention [layers, heads]."""
    means = zip(found.parts, found.mean.tolist(), strict=True)
    return by_head({part: mean for part, mean in means if isinstance(part, Part)}, kind)


def heads(found: SetEffects, kind: Kind) -> int:
    """The map of the means; the place (in `parts`) of the head that is chosen."""
    values = head_map(found, kind)
    first, key = window(values.shape), f"set.{found.measure}.{kind}"
    names = (
        [_("L{layer}", layer=layer) for layer in range(values.shape[0])],
        [_("H{head}", head=head) for head in range(values.shape[1])],
    )
    cell = chosen_cell(values, first, key)
    title = _("Mean over {n} prompts: {unit}, of each head", n=len(found.rows), unit=strongest_parts.unit(found))
    one_map(values, title, names, cell, first, f"what_if.measured.{key}")
    return found.parts.index(Part(site_name(kind, cell[0]), cell[1]))


def said(found: SetEffects) -> None:
    """Whether the model does the task, what the largest effect is, and which prompts were left out."""
    right = int((found.odds > 0).sum())
    show_text(
        "The model prefers the answer to the wrong one in {right} of {n} prompts (mean log odds {odds}).",
        right=right,
        n=len(found.rows),
        odds=signed(float(found.odds.mean()), 2),
    )
    at = found.strongest()[0]
    low, high = found.interval()[:, at]
    given = dict(
        part=strongest_parts.part_name(found, at),
        mean=signed(float(found.mean[at])),
        against=len(found.against(at)),
        n=len(found.rows),
    )
    if np.isnan(low):
        show_markdown(
            "**{part}** has the largest mean: {mean}; {against} of {n} prompts have the opposite sign. "
            "There is only one distinct prompt: give several.",
            **given,
        )
    else:
        show_markdown(
            "**{part}** has the largest mean: {mean} (95% bootstrap interval {low} to {high}); {against} of {n} "
            "prompts have the opposite sign.",
            low=signed(float(low)),
            high=signed(float(high)),
            **given,
        )
    drawn_again(found)
    if found.refused:
        number, why = found.refused[0]
        show_warning(
            "Prompts that are not used: {n}. The first is in row {row}: {why}",
            n=len(found.refused),
            row=number + 1,
            why=translate(why),
        )


def drawn_again(found: SetEffects) -> None:
    """Draws the number of distinct prompts that the interval is computed from."""
    clean, *corrupted = found.distinct
    if corrupted:
        show_note(
            "Distinct among {n} pairs: {clean} clean and {corrupted} corrupted prompts. The bootstrap "
            "draws these, since pairs with a common prompt are not independent.",
            n=len(found.rows),
            clean=clean,
            corrupted=corrupted[0],
        )
    else:
        show_note(
            "Distinct prompts: {clean} of {n}. The bootstrap draws these, since rows with the same "
            "prompt are not independent.",
            n=len(found.rows),
            clean=clean,
        )


def row_by_row(found: SetEffects, part: int) -> None:
    """The effect of the chosen head in each prompt, those first that go against its mean."""
    against = found.against(part)
    order = [*against, *(at for at in np.argsort(-np.abs(found.values[:, part])).tolist() if at not in set(against))]
    rows = [
        Row(
            found.rows[at].clean + (f" / {found.rows[at].corrupted}" if found.measure in PAIRED else ""),
            shortened(found.rows[at].answer),
            Number(float(found.odds[at]), signed(float(found.odds[at]), 2)),
            Number(float(found.values[at, part]), signed(float(found.values[at, part]))),
            _("against the mean") if at in against else "",
            kind="marked" if at in against else "",
        )
        for at in order[: 2 * LISTED]
    ]
    columns = (_("prompt"), _("answer"), _("log odds"), strongest_parts.unit(found), "")
    st.html(
        table.to_html(columns, rows, caption=_("Prompt by prompt: {part}", part=strongest_parts.part_name(found, part)))
    )


def code(subject: Subject, prompts: PromptSet, measure: str, texts: Corpus | None) -> list[str]:
    given = f"bundled_set({prompts.name!r})" if prompts.name != OWN else 'read_prompt_set(Path("your_prompts.csv"))'
    imports, more_given, lines = in_python.imports(subject.model), "", list[str]()
    if prompts.name == OWN:
        imports.insert(0, "from pathlib import Path")
    if measure in ("mean", "resample"):
        others, made = computations.in_python(subject, texts, computations.MEAN_TEXTS)
        imports += [one for one in others if one not in imports]
        lines, more_given = [f"texts = {made}"], ", texts=texts"
    calls = {
        "circuit": [
            "scores = vf.analysis.edge_scores(checkpoint, prompts)",
            "print(scores.to_frame())",
            "print(vf.analysis.faithfulness(checkpoint, prompts, scores).to_frame())",
        ],
    }
    call = f"found = vf.analysis.over_prompts(checkpoint, prompts, {measure!r}{more_given})"
    return [
        *imports,
        "",
        f"checkpoint = {in_python.loaded(subject.model)}",
        f"prompts = vf.analysis.{given}",
        *lines,
        *calls.get(measure, [call, "print(found.to_frame())"]),
    ]


# Which set of prompts is asked, a bundled one or the reader's own, and what is measured of it.
@cached(refusals=lambda text: True)
def read(text: str) -> PromptSet:
    """Reads a set of prompts that somebody has written or pasted."""
    return read_prompt_set(text, OWN)


def chosen_name(subject: Subject) -> str:
    """One of the bundled sets that fit the model, or OWN."""
    names = {name: set_name(name, subject) for name in (*bundled_sets(subject.checkpoint), OWN)}
    return box(_("Set of prompts"), SET, names, labelled=False)


def own_set() -> PromptSet | None:
    """What the reader has written or pasted; None where there is nothing yet."""
    written = st.text_area(
        _(
            "A table (CSV or JSON) with the columns clean, corrupted, answer, wrong and target, or a template with words"
        ),
        key="what_if.set.own",
        placeholder=EXAMPLE,
        persist_state="session",
    )
    check_characters(written or "", LARGEST // 4)
    if not (written or "").strip():
        show_info(
            "Paste 2 to {most} prompts. Only the column clean is needed. A template has a line “clean: The {{who}} "
            "lost” and a line “who: boy, king, man” with the words for it.",
            most=MOST,
        )
        return None
    return read(written)


def set_name(name: str, subject: Subject) -> str:
    """What a set is called; with the model for which it is written where that is another one."""
    if name == OWN:
        return _("My own prompts")
    task, model = name.split(".")
    called = words(_WORDS["sets"])[task]
    return called if model == subject.checkpoint.name else f"{called} ({model})"


def what_is_measured(subject: Subject) -> str:
    names = words(_WORDS["measures"])
    if not subject.checkpoint.is_own:
        names.pop("attribution", None)
    elif has_edges(subject):
        names["circuit"] = _("a circuit: edges by gradients")
    return box(_("What is measured"), "whatif.over", names, "patching", labelled=False)
