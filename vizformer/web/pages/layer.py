"""The page Layer: which layer is worked out, and the lectures' toy, whose numbers can be set by hand."""

import streamlit as st

from vizformer.components import table
from vizformer.components.table import Row
from vizformer.errors import VizformerError
from vizformer.explain import Step
from vizformer.web.catalogue import subject_cache, subject_functions
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link import state
from vizformer.web.widgets import attention_selector, map_words
from vizformer.web.widgets.choices import line
from vizformer.web.widgets.lab import aside
from vizformer.web.widgets.laboratories import laboratory
from vizformer.web.widgets.number_editor import set_by_hand, toy_editor, what_changed
from vizformer.web.widgets.step_view import overview, walk
from vizformer.web.words import errors, labels
from vizformer.web.words.errors import guarded
from vizformer.web.words.i18n import _, show_markdown, show_note
from vizformer.word_tables import data_of


def stack_of_site() -> str:
    return "encoder" if state.view().kind == "encoder" else "decoder"


def choose_stack(known: list[str]) -> str:
    """Encoder or decoder; the link keeps it as the kind of attention of the other pages."""
    titles = {"encoder": _("Encoder"), "decoder": _("Decoder")}
    if stack_of_site() not in known:
        state.update(kind=known[0])
    state.show("layer.stack", stack_of_site())
    if len(known) > 1:
        st.segmented_control(
            _("Stack"),
            known,
            format_func=titles.__getitem__,
            required=True,
            label_visibility="collapsed",
            key="layer.stack",
            on_change=_take_stack,
        )
    return stack_of_site()


def _take_stack() -> None:
    state.unsay("layer", "head")
    state.update(kind=st.session_state["layer.stack"], step=0)


@guarded()
def choose_layer(subject: Subject) -> None:
    """Which layer of which stack, and why the page opens on it, if nobody chose it."""
    with line():
        stack = choose_stack([name for name in ("encoder", "decoder") if name in subject.trace.tokens])
        n_layers = subject.shape.layers_of(stack)
        state.fit(layer=n_layers)
        why = attention_selector.open_on_a_layer(subject, "encoder" if stack == "encoder" else "decoder")
        names = [_("layer {layer}", layer=layer) for layer in range(n_layers)]
        st.selectbox(
            _("Layer"),
            range(n_layers),
            format_func=names.__getitem__,
            label_visibility="collapsed",
            width=160,
            **state.bind("layer"),
        )
        aside(why)


@laboratory
def draw_sentence(subject: Subject) -> None:
    """The chosen layer for the typed sentence; after the last one, the prediction."""
    stack, layer = stack_of_site(), state.view().layer
    if not subject.checkpoint.is_own:
        _draw_row(subject, stack, layer)
        return
    steps, candidates = subject_cache.layer(subject, stack, layer)
    tokens = {name: labels.texts(found) for name, found in subject.trace.tokens.items()}
    queries = map_words.queries(subject, stack)

    def names(step: Step) -> dict[str, list[str]]:
        keys = tokens["encoder"] if step.key.startswith("cross.") else tokens[stack]
        return {"queries": queries, "keys": keys, "candidates": candidates}

    what_changed(subject)
    before = subject_cache.layer(subject.unedited, stack, layer)[0] if subject.edited else None
    walk(steps, names, before)


def _draw_row(subject: Subject, stack: str, layer: int) -> None:
    """Draws one row of a recorded model's layer by the calls of the model's own code."""
    attention_selector.choose_query(subject, stack, _("Row"))
    queries = map_words.queries(subject, stack)
    row = state.view().query_of(subject.trace.tokens[stack])
    show_note(
        "One row of this layer, call by call of the model's own code. For the calls of its attention see Step by step."
    )
    walk(subject_cache.recorded_layer(subject, stack, layer, row), lambda step: {"queries": queries})


# The lectures' toy: a whole layer of 3 rows of 4 numbers, all of which can be set by hand.

NAMES = (  # the tensor of a layer of d_model = 4 and dim_feedforward = 8, its shape, and what it holds
    ("self_attn.in_proj_weight", "12 × 4", "W_Qᵀ, W_Kᵀ, W_Vᵀ"),
    ("self_attn.in_proj_bias", "12", "b_Q, b_K, b_V"),
    ("self_attn.out_proj.weight", "4 × 4", "W_Oᵀ"),
    ("linear1.weight", "8 × 4", "W_1ᵀ"),
    ("linear2.weight", "4 × 8", "W_2ᵀ"),
    ("norm1.weight, norm1.bias", "4", "γ, β"),
    ("norm2.weight, norm2.bias", "4", "γ, β"),
)
CODE: str = data_of(__file__)["code"]


def draw_interface() -> None:
    """Folded away until someone wants to find the picture's numbers in PyTorch's own layer."""
    with st.expander(_("The names and conventions of nn.Transformer")):
        st.html(table.style())
        rows = [Row(name, shape, ours) for name, shape, ours in NAMES]
        st.html(table.to_html((_("tensor of PyTorch"), _("shape"), _("holds")), rows))
        show_markdown(
            "- A linear layer keeps its matrix **transposed**, one row for each number that comes out. The three of "
            "attention lie in one tensor, one below the other.\n"
            "- **batch_first** is False unless it is said: the input is then (T, B, d), tokens, sentences, numbers. The toy "
            "has (3, 1, 4). For the heads q, k and v become (T, B · h, d / h), and, with the first two axes exchanged, "
            "(B · h, T, d / h): here (2, 3, 2).\n"
            "- **Masks have two opposite meanings.** In nn.MultiheadAttention and nn.Transformer True means *may not be "
            "seen*. In F.scaled_dot_product_attention True means *may be seen*. Numbers are added to the scores in "
            "both.\n"
            "- **Rows of padding.** A stack in eval(), without gradients and with batch_first, takes a quick way that "
            "leaves padding out, and writes zeros where it stood. In train() the same rows hold numbers. Neither is a "
            "result: nobody should read them."
        )
        st.code(CODE, language="python", wrap_lines=True)


@laboratory
def draw_toy() -> None:
    """The toy's encoder or decoder layer, on one screen and step by step."""
    stack = choose_stack(["encoder", "decoder"])
    edited = state.view().toy
    set_by_hand("toy")  # first: whatever is wrong with the numbers, the way back is on the page
    try:
        steps = subject_functions.toy_layer(stack, edited)
    except VizformerError as error:
        errors.show(error.message)
        show_note("The numbers set by hand do not fit here and are ignored. Undo or reset them.")
        edited = ""
        steps = subject_functions.toy_layer(stack)
    overview(steps, lambda step: {})
    show_note(
        "What torch.manual_seed(42), torch.randn(3, 1, 4) and nn.TransformerEncoderLayer(d_model=4, nhead=2, "
        "dim_feedforward=8, dropout=0.0) give; the decoder layer follows from the same random numbers."
    )
    toy_editor(stack)
    walk(steps, lambda step: {}, subject_functions.toy_layer(stack) if edited else None)
    if stack == "encoder":
        draw_interface()
