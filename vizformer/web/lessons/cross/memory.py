"""The laboratory Encoder output (memory): queries from the decoder, keys and values from the encoder."""

import streamlit as st

from vizformer.components import table
from vizformer.components.heatmap import Heatmap
from vizformer.components.table import Number, Row
from vizformer.explain import encoder_decoder
from vizformer.explain.encoder_decoder import add_and_norms, encoder_outputs
from vizformer.explain.sublayer import in_words
from vizformer.web.catalogue.subject import Subject
from vizformer.web.catalogue.subject_functions import of_run
from vizformer.web.frame import sitemap
from vizformer.web.lessons.cross.surroundings import has_two_stacks, meets, see_also
from vizformer.web.link import state
from vizformer.web.widgets import attention_selector, head_downloads, lesson, map_words, proof_badge
from vizformer.web.widgets.lab import Laboratory, aside, controls
from vizformer.web.words import labels
from vizformer.web.words.i18n import _, translate

lab = Laboratory("cross", "memory")


memory_readers = of_run(encoder_decoder.memory_readers)


@lab.draws
def draw_memory(subject: Subject) -> None:
    if not meets(lab, subject):
        return
    st.html(table.style())
    config, trace, outputs = subject.config, subject.trace, encoder_outputs(subject.trace)
    state.fit(layer=config.n_decoder_layers, head=config.n_heads)
    why = attention_selector.open_on_a_head(subject, "cross")
    with controls():
        st.selectbox(_("Layer"), range(config.n_decoder_layers), width=80, **state.bind("layer"))
        st.selectbox(_("Head"), range(config.n_heads), width=80, **state.bind("head"))
        source = lab.box("source", [translate(in_words(output)) for output in outputs], len(outputs) - 1)
        lesson.ask(memory_question(subject), folded=True)
    view, readers = state.view(), memory_readers(subject)
    record, reader = trace[f"decoder.{view.layer}.cross"], readers[view.layer]
    head_downloads.show(
        Heatmap(
            record.pattern(view.head).float().cpu().numpy(),
            map_words.queries(subject, "cross"),
            labels.texts(trace.tokens["encoder"]),
            scores=record.scores(view.head).float().cpu().numpy(),
            reasons=record.reason(view.head).cpu().numpy(),
            title=lab.text("scores", layer=view.layer, head=view.head),
        ),
        key="cross.scores",
    )
    aside(why)
    rows = [
        Row(
            str(one.layer),
            _apart(one.distances[outputs[source]]),
            _apart(one.apart),
            kind="marked" if one.layer == view.layer else "",
        )
        for one in readers
    ]
    columns = lab.columns("layer", "away", "apart")
    st.html(table.to_html(columns, rows, caption=lab.text("largest")))
    if reader.same:
        st.success(lab.text("same", layer=view.layer))
    elif subject.edited:
        st.warning(lab.text("edited"))
    else:
        st.error(lab.text("otherwise", layer=view.layer))
    agrees = lab.text("queries", difference=f"{reader.proof.difference:.1g}")
    proof_badge.show(reader.proof, agrees, edited=bool(subject.edited))
    lesson.ask(keys_question(subject))
    config, view = subject.config, state.view()
    n_source, n_target = len(trace.tokens["encoder"]), len(trace.tokens["decoder"])
    once = 2 * n_source * config.d_model * config.kv_heads * config.d_head
    lab.say("cells", cells=n_source * n_target)
    lab.say("once", once=once, n=n_target, every=once * n_target)
    points = [translate(in_words(name)) for name in add_and_norms(trace, view.layer)]
    lab.say("norms", count=len(points), points=lab.text("between").join(points))
    _formula(subject)
    see_also(lab, sitemap.BLOCK, sitemap.LAYER)


@lab.asks("memory")
def memory_question(subject: Subject) -> lesson.Choice | None:
    if not has_two_stacks(subject.model):
        return None
    names = ("first", "last", "own", "source") if subject.config.n_encoder_layers > 1 else ("last", "own", "source")
    n = len(subject.trace.tokens["encoder"])
    return lab.choice("memory", names, "last", subject, layers=subject.config.n_decoder_layers, n=n)


@lab.asks("keys")
def keys_question(subject: Subject) -> lesson.Number | None:
    if not has_two_stacks(subject.model):
        return None
    n_source, n_target = (len(subject.trace.tokens[stack]) for stack in ("encoder", "decoder"))
    wrong = {"steps": n_source * n_target, "target": n_target, "both": n_source + n_target}
    said = lab.asked("keys", subject, wrong=wrong, n_source=n_source, n_target=n_target)
    return lesson.Number(answer=n_source, written="{:,.0f}".format, **said)


def _apart(difference: float) -> Number:
    return Number(difference, "0" if difference == 0 else f"{difference:.3g}")


def _formula(subject: Subject) -> None:
    view, trace = state.view(), subject.trace
    record, config = trace[f"decoder.{view.layer}.cross"], subject.config
    n_target, n_source = record.q.shape[1], record.k.shape[1]
    q, k = record.q[view.head], record.k[record.kv_head(view.head)]
    first = float(record.scores(view.head)[0, 0])
    scale = rf"\frac{{Q K^\top}}{{\sqrt{{{config.d_head}}}}}" if config.attention_scale is None else r"c\, Q K^\top"
    reads = r"\mathrm{norm}(X_l)" if config.norm_order == "pre" else "X_l"
    width, layers = config.kv_heads * config.d_head, config.n_decoder_layers
    lesson.formula(
        rf"\begin{{aligned}} Q_l &= {reads}\,W_Q^{{l}}, & K_l &= M\,W_K^{{l}} \\ S_l &= {scale}, & V_l &= M\,W_V^{{l}} "
        r"\end{aligned}",
        live=rf"\begin{{gathered}} [{n_target} \times {config.d_head}] \cdot [{n_source} \times {config.d_head}]^\top = "
        rf"[{n_target} \times {n_source}] \\ S_{{0,0}} = {first:.4f} \end{{gathered}}",
        code=f"M = torch.randn({n_source}, {config.d_model})  # what the encoder ends with\n"
        f"W_K = torch.randn({layers}, {config.d_model}, {width})  # a matrix for each decoder layer\n"
        "K = M @ W_K  # one memory, and keys of its own for every layer\n"
        f"S = q @ k.T * {record.scale!r}  # queries and keys of layer {view.layer}, head {view.head}",
        given={"q": q, "k": k},
    )
