"""The page Check your own: the form for numbers of the reader's own program, and what was found about them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis.other_programs import first_departure, submitted_steps
from vizformer.analysis.other_programs.first_departure import (
    LONGEST,
    TOLERANCE,
    TOLERANCES,
    Compared,
    Comparison,
    Named,
    Picture,
    Steps,
    compare,
    expected,
    length,
    picture,
    steps_of,
)
from vizformer.analysis.other_programs.known_mistakes import hints
from vizformer.analysis.other_programs.submitted_steps import MAX_BYTES, MAX_TEXT_BYTES, SUFFIXES, read_file, read_text
from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.errors import VizformerError
from vizformer.messages import N_, Message
from vizformer.web.catalogue import uploads
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import presses
from vizformer.web.turns import in_turn
from vizformer.web.widgets import chart, model_input
from vizformer.web.widgets.choices import BESIDE
from vizformer.web.widgets.laboratories import laboratory
from vizformer.web.words import errors, labels
from vizformer.web.words.errors import plain
from vizformer.web.words.i18n import (
    Markup,
    _,
    language,
    show_info,
    show_markdown,
    show_note,
    show_text,
    show_warning,
    translate,
)
from vizformer.web.words.lesson_words import notebook


@dataclass(frozen=True)
class Checked:
    """The findings about submitted steps; of the numbers themselves they hold one picture at most."""

    subject: Subject
    tolerance: float
    comparison: Comparison
    hints: tuple[Message, ...]
    picture: Picture | None  # its differences; None where the shapes differ, or everything agrees


def check_size(size: int) -> None:
    """Raises TraceError where files of so many bytes together are more than is read."""
    submitted_steps.check_size(size)


def read(files: list[tuple[str, bytes]], text: str, name: str) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    for title, content in files:
        found |= read_file(title, content)
    if text.strip():
        found |= read_text(text, name)
    return found


def check(subject: Subject, given: Mapping[str, np.ndarray], tolerance: float, steps: Steps | None = None) -> Checked:
    checkpoint, trace = subject.checkpoint, subject.trace
    steps = steps or steps_of(checkpoint, trace)
    comparison = compare(checkpoint, trace, given, tolerance, steps)
    first = comparison.first
    if first is None:
        return Checked(subject, tolerance, comparison, (), None)
    values = given[first.name]
    right = expected(checkpoint, trace, first.name, steps)
    drawn = picture(values, right) if right is not None and first.problem != "shape" else None
    said = hints(checkpoint, trace, first.name, values, comparison.agreed, tolerance, steps)
    return Checked(subject, tolerance, comparison, said, drawn)


@cached
def named_and_example(subject: Subject) -> tuple[tuple[Named, ...], Checked]:
    """The steps that can be handed in, and a program with one mistake: it joins the heads of a layer with reshape alone."""
    checkpoint, trace = subject.checkpoint, subject.trace
    steps, layer = steps_of(checkpoint, trace), f"{next(iter(trace.tokens))}.0"
    given: dict[str, np.ndarray] = {}
    for name, *__, value in first_departure.results(steps(layer), layer):
        if name.startswith(f"{layer}.self."):
            given[name] = value
        if name == f"{layer}.self.concat":
            break
    heads = given[f"{layer}.self.z"]  # [n_heads, n, d_head]
    given[f"{layer}.self.concat"] = heads.reshape(heads.shape[1], -1)
    return first_departure.named(checkpoint, trace, steps), check(subject, given, usual_tolerance(), steps)


def too_long(subject: Subject) -> tuple[int, int] | None:
    """How many tokens the text has and how many it may have, where it has more; else None."""
    n = length(subject.trace)
    return (n, LONGEST) if n > LONGEST else None


def tolerances() -> tuple[float, ...]:
    return TOLERANCES


def usual_tolerance() -> float:
    return TOLERANCE


def limits() -> tuple[int, int]:
    """Bytes of a file, and of a text."""
    return MAX_BYTES, MAX_TEXT_BYTES


def suffixes() -> tuple[str, ...]:
    return SUFFIXES


# The form for numbers of the reader's own program, and what was found about them.

_CHECKED = "compare.checked"
_ERROR = "compare.error"  # of what was handed in last, until it is shown
_ROUND = "compare.round"  # of uploads: a new one begins with an empty box
LOGITS = "logits"

UNKNOWN = 8  # names that are listed


@laboratory
def hand_in(subject: Subject) -> None:
    """What was found last in this session, or an example; beside it the form."""
    picture, beside = st.columns(BESIDE, gap="medium")
    with beside:
        show_markdown(
            "Write a Transformer of your own, give it this model's weights and this sentence, and submit its "
            "intermediate results. The page finds the first step that differs and tries known mistakes on it. Or "
            "build it function by function: twelve exercises that your computer checks, as a notebook or, by "
            "`vizformer exercises FOLDER`, as files."
        )
        file = notebook(language())
        st.download_button(
            _("The exercises as a notebook"),
            in_turn(file.read_bytes),
            file.name,
            "application/x-ipynb+json",
            key="compare.exercises",
            on_click="ignore",
        )
        _form(subject)
        steps_wanted(subject)
    with picture:
        if (message := st.session_state.pop(_ERROR, None)) is not None:
            errors.show(message)
        checked: Checked | None = st.session_state.get(_CHECKED)
        if checked is None:
            show_note(
                "An example, until you submit your own numbers: a program that joins its heads with reshape alone."
            )
        show(checked or named_and_example(subject)[1], current=subject)


def _form(subject: Subject) -> None:
    number = st.session_state.setdefault(_ROUND, 0)
    most, text_most = limits()
    names = [step.name for step in named_and_example(subject)[0]]
    with st.form("compare.form"):
        files = []
        if uploads.is_on():
            st.html(model_input.style(_("Choose a file")))
            files = st.file_uploader(
                _("A file with named steps: .safetensors, .npz or .json"),
                type=list(suffixes()),
                accept_multiple_files=True,
                key=f"compare.files.{number}",
                max_upload_size=most // 2**20,
            )
        text = st.text_area(
            _("Or text: a printed tensor, or JSON with names"),
            placeholder="tensor([[ 0.0342, 0.9238], [ 0.1110, 0.8890]])",
            key="compare.text",
        )
        name = st.selectbox(_("Which step a printed tensor is"), names, key="compare.name")
        tolerance = st.selectbox(
            _("Tolerance"),
            tolerances(),
            index=tolerances().index(usual_tolerance()),
            format_func=lambda value: f"{value:g} · max(1, |x|)",
            key="compare.tolerance",
        )
        sent = presses.submit(_("Compare"), key="compare.start", type="primary")
    show_note(
        "Only numbers are read; no program is run here. At most {file} MB of files and {text} MB of text, which are not "
        "kept.",
        file=most // 2**20,
        text=text_most // 2**20,
    )
    if not sent:
        return
    st.session_state.pop(_CHECKED, None)
    try:
        check_size(sum(file.size for file in files))
        given = read([(file.name, file.getvalue()) for file in files], text, name or "")
        if given:
            st.session_state[_CHECKED] = check(subject, given, tolerance)
        else:
            st.session_state[_ERROR] = N_("Choose a file or paste a tensor first.")
    except VizformerError as error:
        st.session_state[_ERROR] = error.message
    finally:
        uploads.forget([file.file_id for file in files])
        st.session_state[_ROUND] = number + 1
    st.rerun()  # with an empty box for files


def steps_wanted(subject: Subject) -> None:
    """The steps of a layer, what the program has to read, and how the file is written."""
    steps = named_and_example(subject)[0]
    layers = list(dict.fromkeys(_layer(step.name) for step in steps))
    with st.expander(_("What my program reads and submits")):
        show_markdown("**The ids of your sentence**")
        st.code(_ids(subject), language="python", wrap_lines=True)
        layer = st.selectbox(_("Layer"), layers, format_func=lambda name: _("the end") if name == LOGITS else name)
        shown = [step for step in steps if _layer(step.name) == layer]
        st.html(table.style())
        rows = [Row(step.name, translate(step.title), "\u00a0×\u00a0".join(map(str, step.shape))) for step in shown]
        st.html(table.to_html((_("name"), _("description"), _("shape")), rows))
        show_markdown("**These lines write the file**")
        st.code(_snippet(shown), language="python", wrap_lines=True)
        show_note(
            "Submit any steps of any layers. A batch dimension of 1 in front is accepted. "
            "examples/transformer_from_scratch.py is a complete program that submits every step."
        )


def _layer(name: str) -> str:
    return name if name == LOGITS else ".".join(name.split(".")[:2])


def _ids(subject: Subject) -> str:
    names = {"encoder": "ids", "decoder": "target_ids"}
    found = subject.trace.tokens
    lines = ["import torch", ""]
    for stack, tokens in found.items():
        name = names[stack] if len(found) > 1 else "ids"
        lines.append(f"{name} = torch.tensor({[token.id for token in tokens]})")
    return "\n".join(lines)


def _snippet(shown: list[Named]) -> str:
    """The lines for the steps of a layer; the variables are the reader's own."""
    lines = [f'steps["{step.name}"] = {_variable(step.name)}  # {list(step.shape)}' for step in shown]
    return "\n".join(
        [
            "from safetensors.torch import save_file",
            "",
            "steps = {}",
            *lines,
            'save_file({name: x.detach().clone().contiguous() for name, x in steps.items()}, "steps.safetensors")',
        ]
    )


def _variable(name: str) -> str:
    """What a program is likely to call the result of a step."""
    last = name.rpartition(".")[2]
    return {"input": "x", "norm": "x", "concat": "joined", "add": "added", "narrow": "out", "activation": "active"}.get(
        last, last
    )


def show(checked: Checked, current: Subject) -> None:
    """All of it, for the sentence with which it was compared."""
    if checked.subject != current:
        show_info(
            "This result is for “{text}” in {model}, not for the current choice.",
            text=checked.subject.text,
            model=checked.subject.title,
        )
    comparison = checked.comparison
    if comparison.unknown:
        names = ", ".join(comparison.unknown[:UNKNOWN])
        dots = " …" if len(comparison.unknown) > UNKNOWN else ""
        show_warning("There are no steps of these names: {names}", names=names + dots)
    if not comparison.steps:
        return
    first = comparison.first
    _table(checked, first)
    if first is None:
        st.success(
            _(
                "All submitted steps agree with the model within {tolerance} (steps compared: {n}).",
                tolerance=f"{checked.tolerance:g}",
                n=len(comparison.steps),
            )
        )
    else:
        _first(first, checked)


def _first(first: Compared, checked: Checked) -> None:
    show_warning(
        "The first step that differs: **{name}** · {title}",
        name=first.name,
        title=Markup(translate(first.title, plain)),
    )
    if first.problem == "shape":
        show_text(
            "Its shape should be {shape}; yours is {given}.",
            shape=" × ".join(map(str, first.shape)),
            given=" × ".join(map(str, first.given)) or "1",
        )
    elif first.problem == "nan":
        show_text("Some of its numbers are NaN or infinite, but not in the model.")
    if checked.hints:
        show_markdown("**Mistakes that give exactly these numbers**")
        for hint in checked.hints:
            st.markdown("- " + translate(hint, plain))
        if len(checked.hints) > 1:
            show_text("Each of these mistakes gives exactly these numbers; yours is one of them.")
        show_note(
            "VizFormer tried each known mistake at this step and at those after the last step that agrees; "
            "these give your numbers."
        )
    else:
        show_text(
            "No known mistake gives these numbers. Submit the steps before this one too, back to one that agrees."
        )
    if checked.picture is not None:
        _picture(first, checked.picture, checked.subject)


def _picture(first: Compared, picture: Picture, subject: Subject) -> None:
    n_rows, n_columns = picture.values.shape
    stack = first.name.split(".")[0]
    tokens = labels.texts(subject.trace.tokens.get(stack, ()))
    rows = [f"{row} {tokens[row]}" if n_rows == len(tokens) else str(row) for row in range(n_rows)]
    columns = [str(picture.first_column + column) for column in range(n_columns)]
    title = _("yours − model")
    if picture.head is not None:
        title += " · " + _("head {head}", head=picture.head)
    chart.show(
        figures.matrix_heatmap(
            picture.values, rows, columns, row_title=_("row"), column_title=_("column"), title=title
        ),
        key="compare.picture",
    )
    show_note("The largest difference is in row {row}, column {column}.", row=picture.worst[0], column=picture.worst[1])


def _table(checked: Checked, first: Compared | None) -> None:
    past = False
    rows = []
    for step in checked.comparison.steps:
        said = _("differs") if step.departs else _("agrees")
        shown = "" if step.problem else f"{step.difference:.1e}"
        kind: Literal["", "marked", "faint"] = "marked" if step is first else "faint" if past else ""
        past = past or step is first
        difference = Number(step.difference, shown) if shown else "–"
        rows.append(
            Row(
                step.name,
                translate(step.title),
                "\u00a0×\u00a0".join(map(str, step.given)),
                difference,
                said,
                kind=kind,
            )
        )
    st.html(table.style())
    columns = (_("step"), _("description"), _("shape"), _("max |difference|"), "")
    st.html(table.to_html(columns, rows, caption=_("In the order in which a forward computes them")))
