"""What is known of a model that runs by its own code: its modules, what was found in them, and the checks of it."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import streamlit as st

from vizformer.checkpoints.recorded.checkpoint import RecordedCheckpoint
from vizformer.checkpoints.tensors.memory import size
from vizformer.recorder.recorded_trace import RecordedTrace
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.pages.model_report import report_words, summary
from vizformer.web.pages.model_report.summary import MOST, ROW
from vizformer.web.widgets import data_table, watched_work
from vizformer.web.words.errors import guarded, plain
from vizformer.web.words.i18n import _, show_note, show_text, translate
from vizformer.web.words.model_words import ARCHITECTURES

RUNS, RUN = 24, 12  # of the model, about, that the checks of it take, and the tokens of each


def draw_recorded_code(model: ModelRef, text: str) -> None:
    """All of it; what is found is found for a sentence."""
    components(model)
    guarded()(draw_summary)(model)
    guarded()(draw_found)(model, text)
    guarded()(draw_checks)(model)
    guarded()(draw_tensors)(model)


def _open(model: ModelRef) -> RecordedCheckpoint:
    loaded: Any = model_cache.checkpoint(model)
    assert isinstance(loaded, RecordedCheckpoint)
    return loaded


def components(model: ModelRef) -> None:
    st.subheader(_("Parameters by part"), anchor=False)
    st.html(report_words.parts_table(list(parts(model))))


def parts(model: ModelRef) -> Iterator[tuple[str, int, float]]:
    """Name, numbers and share of the modules that the model is made of, the largest first; shared ones count once."""
    total, found = model_cache.n_parameters(model), Counter[str]()
    for name, one in _open(model).module.named_parameters():
        found[part_of(name)] += one.numel()
    for name, n in found.most_common():
        yield name, n, n / max(total, 1)


def part_of(parameter: str) -> str:
    """The module that a parameter counts to: those of one name in all the blocks of a list are one part.

    >>> part_of("transformer.wte.weight"), part_of("transformer.h.11.attn.c_attn.bias"), part_of("scale")
    ('transformer.wte', 'transformer.h.*.attn', 'scale')
    >>> part_of("encoder.block.0.layer.1.DenseReluDense.wi.weight"), part_of("blocks.0.mlp.2.weight")
    ('encoder.block.*.layer.*.DenseReluDense', 'blocks.*.mlp')
    """
    path = ["*" if name.isdigit() else name for name in parameter.split(".")]
    modules, numbered = path[:-1] or path, False
    for end, name in enumerate(modules, 1):
        if numbered and name != "*" and modules[end : end + 1] != ["*"]:
            return ".".join(modules[:end])
        numbered |= name == "*"
    return ".".join(modules).removesuffix(".*")


def example(title: str, model: ModelRef) -> None:
    """A model that is open, in short."""
    summary.show_parts(title, model_cache.n_parameters(model), list(parts(model)))


def draw_summary(model: ModelRef) -> None:
    loaded = _open(model)
    shape, tensors = loaded.shape, list(loaded.module.parameters())
    st.subheader(_("The model"), anchor=False)
    with st.container(horizontal=True):
        st.metric(_("Parameters"), f"{model_cache.n_parameters(model):,}", width="content")
        st.metric(_("Weights in memory"), size(sum(one.nbytes for one in tensors)), width="content")
    depth = " + ".join(str(n) for n in (shape.n_encoder_layers, shape.n_decoder_layers) if n)
    facts = [
        (_("Python class"), type(loaded.module).__name__),
        (_("Architecture"), translate(ARCHITECTURES[shape.architecture])),
        (
            _("Computed by"),
            _("its own code, on {device} in {dtype}", device=loaded.device, dtype=str(loaded.dtype)[6:]),
        ),
        (_("Layers"), depth),
        (_("Width"), f"{shape.d_model:,}"),
        (_("Heads"), _("{n} of width {width}", n=shape.n_heads, width=shape.d_head)),
        (_("Longest text"), _("{n} tokens", n=f"{shape.max_positions:,}")),
        (_("Vocabulary"), _("{n} tokens", n=f"{shape.vocab_size:,}")),
        (_("Predicts tokens"), _("yes") if loaded.has_head else _("no: it returns no logits")),
    ]
    st.html(report_words.facts_table(facts))


@cached
def recorded(model: ModelRef, text: str) -> RecordedTrace:
    """A run over a text, by the modules' own names."""
    loaded = _open(model)
    return loaded.recorded(*(loaded.tensor(tokens) for tokens in loaded.trace(text).tokens.values()))


def draw_found(model: ModelRef, text: str) -> None:
    """Where attention was seen, by the names of the modules and by those of the pages."""
    st.subheader(_("Attention that was found"), anchor=False)
    found = recorded(model, text)
    rows = list(zip(found.attention, found.as_trace().sites, strict=True))
    show_text(
        "Modules that computed attention while the model read your sentence: {n}.",
        n=len(rows),
    )
    columns: dict[str, list[Any]] = {
        _("Module"): [one.site for one, __ in rows],
        _("On the pages"): [site for __, site in rows],
        _("Heads"): [one.n_heads for one, __ in rows],
        _("Queries"): [one.n_q for one, __ in rows],
        _("Keys"): [one.n_k for one, __ in rows],
    }
    data_table.show(columns, hide_index=True, height=ROW * (1 + min(len(rows), MOST)) + 2)
    if found.escaped:
        st.warning("  \n".join(translate(one, plain) for one in found.escaped))


def draw_checks(model: ModelRef) -> None:
    """Whether the recording is all there is to say, or what is not."""
    st.subheader(_("Is the recording complete?"), anchor=False)
    found = watched_work.watched(
        model_cache.checks,
        (model,),
        quick=float(RUNS) * RUN * model_cache.n_parameters(model) < watched_work.AT_ONCE,
        runs=RUNS,
        begin=_("Run the checks"),
        key="report.checks",
        said=lambda *__: _("Running the model …"),
    )
    if found is None:
        return
    names = {
        _("exact: z, recomputed from q, k and v, equals the model's at every site"): found.exact,
        _("complete: without attention no token changes another"): found.whole,
        _("token by token: each query, key and value is computed from the row of its own token alone"): found.tokenwise,
    }
    st.markdown("\n".join(f"- {'✓' if holds else '✗'} {plain(name)}" for name, holds in names.items()))
    if found.said:
        st.warning("  \n".join(translate(one, plain) for one in found.said))
    else:
        show_note("All three hold: the attention on the pages is all that moves numbers between tokens.")


def draw_tensors(model: ModelRef) -> None:
    """Every parameter by its name."""
    st.subheader(_("Every tensor"), anchor=False)
    rows = list(_open(model).module.named_parameters())
    columns = {
        _("Parameter"): [name for name, __ in rows],
        _("Shape"): [" × ".join(map(str, one.shape)) or "1" for __, one in rows],
        _("Type"): [str(one.dtype)[6:] for __, one in rows],
    }
    data_table.show(columns, hide_index=True, height=ROW * (1 + min(len(rows), MOST)) + 2)
