"""The form for numbers of the reader's own program, and what was found about them."""

import streamlit as st

from vizformer.analysis.own_steps.first_departure import Named
from vizformer.components import table
from vizformer.components.table import Row
from vizformer.errors import VizformerError
from vizformer.messages import N_
from vizformer.web.catalogue import uploads
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import presses
from vizformer.web.tools.compare import computations, findings
from vizformer.web.widgets import dropzone
from vizformer.web.widgets.choices import BESIDE
from vizformer.web.widgets.laboratories import laboratory
from vizformer.web.words import errors
from vizformer.web.words.i18n import _, language, show_markdown, show_note, translate
from vizformer.web.words.lesson_words import notebook

_CHECKED = "compare.checked"
_ERROR = "compare.error"  # of what was handed in last, until it is shown
_ROUND = "compare.round"  # of uploads: a new one begins with an empty box
LOGITS = "logits"


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
            file.read_bytes,
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
        checked: computations.Checked | None = st.session_state.get(_CHECKED)
        if checked is None:
            show_note(
                "An example, until you submit your own numbers: a program that joins its heads with reshape alone."
            )
        findings.show(checked or computations.named_and_example(subject)[1], current=subject)


def _form(subject: Subject) -> None:
    number = st.session_state.setdefault(_ROUND, 0)
    most, text_most = computations.limits()
    names = [step.name for step in computations.named_and_example(subject)[0]]
    with st.form("compare.form"):
        files = []
        if uploads.is_on():
            st.html(dropzone.style(_("Choose a file")))
            files = st.file_uploader(
                _("A file with named steps: .safetensors, .npz or .json"),
                type=list(computations.suffixes()),
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
            computations.tolerances(),
            index=computations.tolerances().index(computations.usual_tolerance()),
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
        computations.check_size(sum(file.size for file in files))
        given = computations.read([(file.name, file.getvalue()) for file in files], text, name or "")
        if given:
            st.session_state[_CHECKED] = computations.check(subject, given, tolerance)
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
    steps = computations.named_and_example(subject)[0]
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
