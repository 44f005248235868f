"""The laboratory Left out: the same small training without warm-up, without scaling, without the sums."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import sitemap
from vizformer.web.lessons.training import computations
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words.i18n import _


@laboratory
def left_out(subject: Subject) -> None:
    """Bundled curves, seed by seed in the table."""
    st.html(table.style())
    notes, curves = computations.notes("left_out"), computations.left_out_curves()
    recipe, guessing = notes["recipe"], notes["guessing"]
    names = {
        "nothing": _("nothing left out"),
        "warm-up": _("no warm-up"),
        "scaling": _("no √d"),
        "residual": _("no residual connection"),
    }
    lesson.ask(without_question())
    seeds = tuple(recipe["seeds"])
    seed = st.segmented_control(_("Seed"), seeds, required=True, **lesson.setting("training.of", seeds[0], seeds))
    row = seeds.index(seeds[0] if seed is None else seed)
    chart.show(
        figures.line_curves(
            np.array(notes["updates"]),
            {names[name]: curve.curves[row] for name, curve in curves.items()},
            place_title=_("update"),
            value_title=_("loss (nats per symbol)"),
            hover=_("{name}, update {place}: {value}"),
            value_range=(0.0, 1.4 * guessing),
            height=360,
            title=_("Saying symbols in reverse, seed {seed}", seed=seeds[row]),
        ),
        key="training.left_out",
    )
    rows = [
        Row(
            (
                names[name],
                *(Number(float(value), f"{value:.3f}") for value in curve.last),
                Number(curve.learned, _("{n} of {of}", n=curve.learned, of=len(seeds))),
            )
        )
        for name, curve in curves.items()
    ]
    columns = (_("left out"), *(_("loss, seed {seed}", seed=one) for one in seeds), _("learned it"))
    caption = _("After {n} updates; guessing has {loss}", n=recipe["updates"], loss=f"{guessing:.2f}")
    st.html(table.to_html(columns, rows, caption=caption))
    st.caption(
        _(
            "Letters drawn blindly by somebody who knows where the answer ends would have a loss of {blind}. Without the "
            "sums the model gets below that, but far from the order of the letters. Without warm-up it is a matter of luck.",
            blind=f"{notes['blind']:.2f}",
        )
    )
    st.caption(
        _(
            "Encoder-decoder, post-norm, {layers} + {layers} layers, d = {d}, warm-up {warmup}. Measured once and bundled; "
            "in a checkout this makes them again: {command}",
            layers=recipe["n_layers"],
            d=recipe["d_model"],
            warmup=recipe["warmup"],
            command="`python -m recipes.omissions left_out.json`",
        )
    )
    peak = recipe["factor"] * (recipe["d_model"] * recipe["warmup"]) ** -0.5
    lesson.formula(
        r"\begin{aligned} \eta_t &= c\, d^{-0.5} \min(t^{-0.5},\, t\, w^{-1.5}) \\ "
        r"\text{no warm-up: } t &\leftarrow \max(t, w) \end{aligned}",
        live=rf"{recipe['factor']} \cdot ({recipe['d_model']} \cdot {recipe['warmup']})^{{-0.5}} = {peak:.4f}",
        code=f"d, warmup = {recipe['d_model']}, {recipe['warmup']}\n"
        f"usual = lambda t: {recipe['factor']} * d**-0.5 * min(t**-0.5, t * warmup**-1.5)\n"
        "first, without_warmup = usual(1), usual(max(1, warmup))\n"
        "times = without_warmup / first  # so many times as large is the first step",
    )
    lesson.ask(times_question())
    st.page_link(
        sitemap.BLOCK.file, query_params={"part": "order"}, label=_("Post-norm against pre-norm, trained: lesson 7")
    )
    st.page_link(sitemap.TRAIN.file, label=_("Train one yourself, with your own learning rate: the page Train"))


def times_question() -> lesson.Number:
    """How much larger is the first step without warm-up?"""
    recipe = computations.notes("left_out")["recipe"]
    return lesson.Number(
        "training",
        "times",
        _(
            "Without warm-up the first step is taken at the peak. How many times as large is its learning rate as with {n} "
            "steps of warm-up?",
            n=recipe["warmup"],
        ),
        recipe["warmup"],
        _(
            "The rate grows in a straight line up to step {n}, so the first step has one part in {n} of it.",
            n=recipe["warmup"],
        ),
    )


def without_question() -> lesson.Choice:
    """Without which one does the small model learn all the same?"""
    notes, curves = computations.notes("left_out"), computations.left_out_curves()
    count = len(notes["recipe"]["seeds"])
    return lesson.Choice(
        "training",
        "without",
        _(
            "One thing is left out of the training each time. Without which one does this small model learn all the same, "
            "whatever the seed?"
        ),
        [_("without the warm-up"), _("without √d"), _("without the residual connection")],
        next(i for i, name in enumerate(("warm-up", "scaling", "residual")) if curves[name].learned == count),
        _(
            "Here it learns even faster: saying symbols in reverse is a task about positions, and without √d the tokens' "
            "rows are small beside those of the positions. The paper gives no reason for the factor. It makes up for the "
            "small numbers that the table needs where it is used for the logits too."
        ),
    )
