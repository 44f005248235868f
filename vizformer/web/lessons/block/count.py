"""The laboratory Counting: formulas with numbers, beside what a model really has."""

import streamlit as st

from vizformer.analysis.costs.parameter_count import BASE, RATIOS, Counted, Sizes
from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.block import computations
from vizformer.web.widgets import lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words.i18n import _

WIDTHS = (64, 128, 256, 512, 768, 1024)
VOCABULARIES = (1000, 6000, 7000, 8000, 10_000, 30_000, 37_000, 50_000)
LAYERS = range(13)


@laboratory
def count(subject: Subject) -> None:
    """The paper's base model from formulas, any other one, and the one that is loaded."""
    st.html(table.style())
    d = st.select_slider("d_model", WIDTHS, **lesson.setting("block.d", BASE.d, WIDTHS))
    ratio = st.select_slider("d_ff ÷ d_model", RATIOS, **lesson.setting("block.ratio", 4, RATIOS))
    vocabulary = st.select_slider(
        _("Vocabulary"), VOCABULARIES, **lesson.setting("block.vocabulary", BASE.vocabulary, VOCABULARIES)
    )
    encoder = st.slider(_("Encoder layers"), 0, 12, **lesson.setting("block.encoder", BASE.encoder_layers, LAYERS))
    decoder = st.slider(_("Decoder layers"), 0, 12, **lesson.setting("block.decoder", BASE.decoder_layers, LAYERS))
    sizes = Sizes(d, ratio * d, encoder, decoder, vocabulary)
    if not encoder and not decoder:
        st.info(_("A model needs a layer: move one of the two sliders."))
        return
    found = computations.counted(sizes)
    _table(sizes, found, paper=sizes == BASE)
    _formula(sizes, found)
    lesson.ask(count_question())
    _ratios(subject)
    _loaded(subject)


def _table(sizes: Sizes, found: Counted, paper: bool) -> None:
    """Part by part, beside the numbers of the table that is copied from page to page."""
    copied = {"encoder": "18.9 M", "decoder": "24.5 M", "embedding": "19 M", "total": "65 M"} if paper else {}
    rows = [
        (_("one attention"), found.attention, ""),
        (_("one feed-forward"), found.feedforward, ""),
        (_("one norm"), found.norm, ""),
        (_("encoder, {n} layers", n=sizes.encoder_layers), found.encoder, copied.get("encoder", "")),
        (_("decoder, {n} layers", n=sizes.decoder_layers), found.decoder, copied.get("decoder", "")),
        (_("embedding"), found.embedding, copied.get("embedding", "")),
        (_("together"), found.total, copied.get("total", "")),
    ]
    columns = ["", _("from the formulas"), *([_("in a table that is often copied")] if paper else [])]
    st.html(
        table.to_html(
            columns,
            [
                Row(
                    (name, Number(value, f"{value:,}"), *([text] if paper else [])),
                    "sum" if value is found.total else "",
                )
                for name, value, text in rows
            ],
        )
    )
    if paper:
        st.caption(
            _(
                "The copied table is wrong in two places: its decoder forgets something, since 6 layers with two "
                "attentions, a feed-forward and three norms make 25.2 M; and its own rows sum to 62.4 M, not 65 M. The "
                "paper itself says 65 M for the base model, and does not say how it counts."
            )
        )
    st.success(
        _("Counted on a real model of these sizes: {n} parameters.", n=f"{found.model:,}")
        if found.model == found.total
        else _("Counted on a real model: {n} parameters. That is not the same.", n=f"{found.model:,}")
    )


def _formula(sizes: Sizes, found: Counted) -> None:
    d, f = sizes.d, sizes.d_ff
    cross = 2 if sizes.encoder_layers else 1
    lesson.formula(
        r"\begin{aligned} A &= 4 d^2 + 4 d, \quad F = 2\, d\, d_\mathrm{ff} + d_\mathrm{ff} + d, \quad N = 2 d \\"
        r" P_\mathrm{enc} &= L\,(A + F + 2 N) \\ P_\mathrm{dec} &= "
        + (r"L\,(2 A + F + 3 N)" if cross == 2 else r"L\,(A + F + 2 N)")
        + r", \quad E = V d \end{aligned}",
        live=r"\begin{aligned} "
        rf"{sizes.encoder_layers} \cdot ({found.attention} + {found.feedforward} + 2 \cdot {found.norm}) "
        rf"&= {found.encoder} \\"
        rf"{sizes.decoder_layers} \cdot ({cross} \cdot {found.attention} + {found.feedforward} + {cross + 1} \cdot "
        rf"{found.norm}) &= {found.decoder} \\ {sizes.vocabulary} \cdot {d} &= {found.embedding} \end{{aligned}}",
        code=f"d, d_ff, vocabulary = {d}, {f}, {sizes.vocabulary}\n"
        "size = lambda module: sum(p.numel() for p in module.parameters())\n"
        "encoder_layer = torch.nn.TransformerEncoderLayer(d, 1, d_ff)\n"
        "decoder_layer = torch.nn.TransformerDecoderLayer(d, 1, d_ff)"
        + ("\n" if cross == 2 else "  # with cross-attention\n")
        + f"encoder = {sizes.encoder_layers} * size(encoder_layer)\n"
        f"decoder = {sizes.decoder_layers} * size({'decoder' if cross == 2 else 'encoder'}_layer)\n"
        "embedding = vocabulary * d\ntotal = encoder + decoder + embedding",
    )


def count_question() -> lesson.Number:
    sizes = Sizes(256, 1024, 0, 1, 1000)
    found = computations.counted(sizes)
    return lesson.Number(
        "block",
        "count",
        _("How many parameters has a feed-forward with d = {d} and d_ff = {d_ff}, with both biases?", d=256, d_ff=1024),
        found.feedforward,
        _("2 · 256 · 1024 for the matrices, 1024 for the first bias and 256 for the second."),
        written="{:,.0f}".format,
    )


def _ratios(subject: Subject) -> None:
    """The width of the feed-forward against the parameters of this page's model."""
    st.markdown(_("**How wide should the feed-forward be?**"))
    config = subject.config
    rows = [
        Row(
            (
                Number(one.ratio, str(one.ratio)),
                Number(one.d_ff, f"{one.d_ff:,}"),
                Number(one.feedforward, f"{one.feedforward:,}"),
                Number(one.share, f"{one.share:.0%}"),
                Number(one.model, f"{one.model:,}"),
            ),
            "marked" if one.d_ff == config.d_ff else "",
        )
        for one in computations.width_ratios(subject.model)
    ]
    columns = ("d_ff ÷ d_model", "d_ff", _("one feed-forward"), _("of the layers"), _("parameters of the model"))
    caption = _(
        "This page's model, {name}, with other widths; its own is {own:g} times d_model",
        name=subject.title,
        own=config.d_ff / config.d_model,
    )
    st.html(table.to_html(columns, rows, bar=3, caption=caption))


def _loaded(subject: Subject) -> None:
    """The loaded model, part by part."""
    parts = computations.model_parts(subject.model)
    total = sum(parts.values())
    names = {
        "embedding": _("embedding"),
        "unembedding": _("unembedding"),
        "attention": _("attention"),
        "cross": _("cross-attention"),
        "feedforward": _("feed-forward"),
        "norm": _("norms"),
    }
    stacks = {"encoder": _("encoder"), "decoder": _("decoder"), "prediction": _("prediction")}

    def name_of(part: str) -> str:
        section, __, kind = part.rpartition(".")
        named = names.get(kind, _("other tables"))
        return _("{stack}: {part}", stack=stacks[section], part=named) if section else named

    rows = [
        Row((name_of(part), Number(value, f"{value:,}"), Number(value / total, f"{value / total:.1%}")))
        for part, value in parts.items()
    ]
    rows.append(Row((_("together"), Number(total, f"{total:,}"), Number(1.0, "100%")), "sum"))
    st.html(
        table.to_html(
            ("", _("parameters"), _("share")),
            rows,
            bar=2,
            caption=_("The loaded model, {name}", name=subject.title),
        )
    )
