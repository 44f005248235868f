"""A laboratory of the lesson Add & norm, feed-forward: parameters by formulas."""

import streamlit as st

from vizformer.analysis.costs import parameter_count
from vizformer.analysis.costs.parameter_count import BASE, RATIOS, Counted, Sizes
from vizformer.components import table
from vizformer.components.table import Number, Row, numbers
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import sitemap
from vizformer.web.widgets import lesson
from vizformer.web.widgets.lab import Laboratory, wrong_line

lab = Laboratory("block", "count")
WIDTHS = (64, 128, 256, 512, 768, 1024)
VOCABULARIES = (1000, 6000, 7000, 8000, 10_000, 30_000, 37_000, 50_000)
COPIED = {"encoder": "18.9 M", "decoder": "24.5 M", "embedding": "19 M", "total": "65 M"}
"""Numbers of the base model in a table that is copied from page to page."""
counted = cached(parameter_count.count)


@lab.draws
def draw_parameter_count(subject: Subject) -> None:
    st.html(table.style())
    d, ratio = lab.steps("d", WIDTHS, BASE.d), lab.steps("ratio", RATIOS, 4)
    vocabulary = lab.steps("vocabulary", VOCABULARIES, BASE.vocabulary)
    encoder, decoder = (
        lab.slider("encoder", 0, 12, BASE.encoder_layers),
        lab.slider("decoder", 0, 12, BASE.decoder_layers),
    )
    if not encoder and not decoder:
        st.info(lab.text("nothing"))
        return
    sizes = Sizes(d, ratio * d, encoder, decoder, vocabulary)
    found = counted(sizes)
    _table(sizes, found, COPIED if sizes == BASE else {})
    _formula(sizes, found)
    lesson.ask(parameter_count_question(subject))
    st.page_link(sitemap.REPORT.file, label=lab.text("loaded", name=subject.title))
    lesson.ask(line(subject), folded=True)


@lab.asks("count")
def parameter_count_question(subject: Subject) -> lesson.Number:
    sizes = Sizes(256, 1024, 0, 1, 1000)
    d, d_ff = sizes.d, sizes.d_ff
    wrong = {"bare": 2 * d * d_ff, "one": d * d_ff, "square": 4 * d * d + 4 * d}
    said = lab.asked("count", wrong=wrong, d=d, d_ff=d_ff)
    return lesson.Number(answer=counted(sizes).feedforward, written="{:,.0f}".format, **said)


@lab.asks("line")
def line(subject: Subject) -> lesson.Choice:
    return wrong_line(lab, "count")


def _table(sizes: Sizes, found: Counted, copied: dict[str, str]) -> None:
    """Part by part, beside the numbers of the table that is copied from page to page."""
    layers = {"encoder": sizes.encoder_layers, "decoder": sizes.decoder_layers}
    rows = []
    for name in ("attention", "feedforward", "norm", *COPIED):
        cells: tuple[str | Number, ...] = (
            lab.text(f"counted.{name}", n=layers.get(name)),
            *numbers(",", getattr(found, name)),
        )
        rows.append(Row(*cells, *((copied.get(name, ""),) if copied else ()), kind="sum" if name == "total" else ""))
    columns = ["", lab.text("columns.formulas"), *([lab.text("columns.copied")] if copied else [])]
    st.html(table.to_html(columns, rows))
    if copied:
        lab.note("wrong_table")
    st.success(lab.text("real", form="same" if found.model == found.total else "other", n=f"{found.model:,}"))


def _formula(sizes: Sizes, found: Counted) -> None:
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
        rf"{found.norm}) &= {found.decoder} \\ {sizes.vocabulary} \cdot {sizes.d} &= {found.embedding} \end{{aligned}}",
        code=f"d, d_ff, vocabulary = {sizes.d}, {sizes.d_ff}, {sizes.vocabulary}\n"
        "size = lambda module: sum(p.numel() for p in module.parameters())\n"
        "encoder_layer = torch.nn.TransformerEncoderLayer(d, 1, d_ff)\n"
        "decoder_layer = torch.nn.TransformerDecoderLayer(d, 1, d_ff)"
        + ("\n" if cross == 2 else "  # with cross-attention\n")
        + f"encoder = {sizes.encoder_layers} * size(encoder_layer)\n"
        f"decoder = {sizes.decoder_layers} * size({'decoder' if cross == 2 else 'encoder'}_layer)\n"
        "embedding = vocabulary * d\ntotal = encoder + decoder + embedding",
    )
