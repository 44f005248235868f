"""The laboratory One memory: queries from the decoder, keys and values from the end of the encoder, for every layer."""

import streamlit as st

from vizformer.components import table
from vizformer.components.heatmap import Heatmap
from vizformer.components.table import Number, Row
from vizformer.explain.encoder_decoder import add_and_norms, encoder_outputs
from vizformer.explain.site_words import in_words
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import sitemap
from vizformer.web.lessons.cross import computations, links, other_model
from vizformer.web.link import state
from vizformer.web.widgets import lesson, map_downloads, proof_badge, row_names
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import labels
from vizformer.web.words.i18n import _, translate


@laboratory
def memory(subject: Subject) -> None:
    """The way of one decoder layer to the encoder, and what all of them share."""
    if not other_model.meets(subject, "memory"):
        return
    st.html(table.style())
    config, trace = subject.config, subject.trace
    lesson.ask(memory_question(subject))
    state.fit(layer=config.n_decoder_layers, head=config.n_heads)
    st.selectbox(_("Layer"), range(config.n_decoder_layers), **state.bind("layer"))
    st.selectbox(_("Head"), range(config.n_heads), **state.bind("head"))
    outputs = encoder_outputs(trace)
    names = {output: translate(in_words(output)) for output in outputs}
    source = st.selectbox(
        _("Compute K from"),
        range(len(outputs)),
        format_func=lambda i: names[outputs[i]],
        **lesson.setting("cross.source", len(outputs) - 1, range(len(outputs))),
    )
    view = state.view()
    site = f"decoder.{view.layer}.cross"
    readers, record = computations.memory_readers(subject), trace[site]
    columns = (_("decoder layer"), _("K from there, against the model's K"), _("its K against that of layer 0"))
    rows = [
        Row(
            (str(reader.layer), *_apart(reader.distances[outputs[source]]), *_apart(reader.apart)),
            "marked" if reader.layer == view.layer else "",
        )
        for reader in readers
    ]
    st.html(table.to_html(columns, rows, caption=_("Largest difference; the same numbers differ by 0")))
    reader = readers[view.layer]
    if reader.same:
        st.success(
            _(
                "K and V of decoder layer {layer}, computed anew from nothing but the end of the encoder: the same, bit for "
                "bit.",
                layer=view.layer,
            )
        )
    elif subject.edited:
        st.warning(_("Numbers of K or V were set by hand."))
    else:
        st.error(_("K and V of decoder layer {layer} do not come from the end of the encoder alone.", layer=view.layer))
    agrees = _(
        "Q, computed anew from the decoder's rows after their self-attention: differs from the model by at most "
        "{difference}.",
        difference=f"{reader.proof.difference:.1g}",
    )
    proof_badge.show(reader.proof, agrees, edited=bool(subject.edited))
    map_downloads.show(
        Heatmap(
            record.pattern(view.head).float().cpu().numpy(),
            row_names.queries(subject, "cross"),
            labels.texts(trace.tokens["encoder"]),
            scores=record.scores(view.head).float().cpu().numpy(),
            reasons=record.reason(view.head).cpu().numpy(),
            title=_("Scores of layer {layer}, head {head}", layer=view.layer, head=view.head),
        ),
        key="cross.scores",
    )
    lesson.ask(keys_question(subject))
    _mask_and_cache(subject)
    _formula(subject)
    links.to(sitemap.BLOCK, sitemap.LAYER)


def _apart(difference: float) -> tuple[Number]:
    return (Number(difference, "0" if difference == 0 else f"{difference:.3g}"),)


def _mask_and_cache(subject: Subject) -> None:
    """What is blocked, what is computed once, and how often add & norm comes."""
    config, view = subject.config, state.view()
    n_source, n_target = len(subject.trace.tokens["encoder"]), len(subject.trace.tokens["decoder"])
    once = 2 * n_source * config.d_model * config.kv_heads * config.d_head
    st.text(
        _(
            "{cells} cells, none of them in the future: the source is complete before the first word is written. In a batch "
            "the padding of shorter sources is blocked, nothing else.",
            cells=n_source * n_target,
        )
    )
    st.text(
        _(
            "K and V of this layer take {once:,} multiplications, once for the sentence. Computed anew for each of the "
            "{n} tokens written they would take {every:,}.",
            once=once,
            n=n_target,
            every=once * n_target,
        )
    )
    points = [translate(in_words(name)) for name in add_and_norms(subject.trace, view.layer)]
    st.text(
        _("Add & norm comes {count} times in this layer: {points}.", count=len(points), points=_("; ").join(points))
    )


def _formula(subject: Subject) -> None:
    view, trace = state.view(), subject.trace
    record, config = trace[f"decoder.{view.layer}.cross"], subject.config
    n_target, n_source = record.q.shape[1], record.k.shape[1]
    q, k = record.q[view.head], record.k[record.kv_head(view.head)]
    first = float(record.scores(view.head)[0, 0])
    scale = rf"\frac{{Q K^\top}}{{\sqrt{{{config.d_head}}}}}" if config.attention_scale is None else r"c\, Q K^\top"
    reads = r"\mathrm{norm}(X_l)" if config.norm_order in ("pre", "sandwich") else "X_l"
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


def memory_question(subject: Subject) -> lesson.Choice:
    config = subject.config
    first = _("the output of encoder layer 0, which is level with it")
    choices = [
        *([first] if config.n_encoder_layers > 1 else []),
        _("the output of the last encoder layer"),
        _("the decoder's own rows"),
        _("the embeddings of the source"),
    ]
    right = len(choices) - 3
    return lesson.Choice(
        "cross",
        "memory",
        _("Decoder layer 0 works first. From what are its keys and values of cross-attention computed?"),
        choices,
        right,
        _(
            "All {layers} decoder layers read the same {n} rows, those with which the encoder ends. Each has matrices W_K "
            "and W_V of its own, so that their keys differ though the memory does not.",
            layers=config.n_decoder_layers,
            n=len(subject.trace.tokens["encoder"]),
        ),
        about=f"{subject.model} {subject.text}",
    )


def keys_question(subject: Subject) -> lesson.Number:
    n_source, n_target = (len(subject.trace.tokens[stack]) for stack in ("encoder", "decoder"))
    return lesson.Number(
        "cross",
        "keys",
        _(
            "The source has {n_source} tokens, and the decoder goes through {n_target} steps to write the target. How many "
            "keys does a head of cross-attention compute in all these steps together?",
            n_source=n_source,
            n_target=n_target,
        ),
        n_source,
        _(
            "One for each token of the source, before the first step: {n_source}. The memory does not change while the "
            "decoder writes, so nothing would come out differently if they were computed again. Only a new query comes "
            "with every step.",
            n_source=n_source,
        ),
        written="{:,.0f}".format,
        about=f"{subject.model} {subject.text} {subject.target}",
    )
