"""What can be handed in: names and shapes for the reader's sentence, and the lines that write them into a file."""

import streamlit as st

from vizformer.analysis.own_steps.first_departure import Named
from vizformer.components import table
from vizformer.components.table import Row
from vizformer.web.catalogue.subject import Subject
from vizformer.web.tools.compare import computations
from vizformer.web.words.i18n import _, show_markdown, show_note, translate

LOGITS = "logits"


def steps_wanted(subject: Subject) -> None:
    """The steps of a layer, what the program has to read, and how the file is written."""
    steps = computations.named(subject)
    layers = list(dict.fromkeys(_layer(step.name) for step in steps))
    with st.expander(_("What my program has to read, and what it can hand in")):
        show_markdown("**The ids of your sentence**")
        st.code(_ids(subject), language="python", wrap_lines=True)
        layer = st.selectbox(_("Layer"), layers, format_func=lambda name: _("the end") if name == LOGITS else name)
        shown = [step for step in steps if _layer(step.name) == layer]
        st.html(table.style())
        rows = [Row(step.name, translate(step.title), "\u00a0×\u00a0".join(map(str, step.shape))) for step in shown]
        st.html(table.to_html((_("name"), _("what it is"), _("shape")), rows))
        show_markdown("**These lines write the file**")
        st.code(_snippet(shown), language="python", wrap_lines=True)
        show_note(
            "Hand in as few steps as you like, of any layers. A batch of one in front of the shape does no harm. "
            "examples/transformer_from_scratch.py is a whole program that hands in every step."
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
