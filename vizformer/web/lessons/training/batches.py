"""A laboratory of the lesson Training: how much of a batch is padding, mixed and by length."""

import streamlit as st

from vizformer.analysis import read_alignments
from vizformer.analysis.masks.padding import Batches, Order, batches_of
from vizformer.assets import asset
from vizformer.components import table
from vizformer.components.table import Row, numbers
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.training.measurements import notes
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.widgets import lesson
from vizformer.web.widgets.lab import Laboratory, controls
from vizformer.web.words.plain_text import Markup

lab = Laboratory("training", "batches")
SIZES = (2, 3, 4, 5, 6, 8, 10, 15)
ORDERS: tuple[Order, ...] = ("mixed", "length")
LARGEST_LINE = 48  # cells that are drawn of a sentence
DRAWN = 3  # batches


@cached
def sentence_lengths(model: ModelRef) -> tuple[int, ...]:
    """Tokens of the bundled sentences that the model reads; of pairs, those of the first."""
    pairs = read_alignments(asset("models", "zh-en", "alignment.tsv"))
    both = model_cache.options(model).architecture != "encoder-decoder"
    texts = [text for pair in pairs for text in ((pair.source, pair.target) if both else (pair.source,))]
    checkpoint = model_cache.checkpoint(model)
    return tuple(len(checkpoint.encode(text)) for text in texts if model_cache.reads(model, text))


@lab.draws
def draw(subject: Subject) -> None:
    lengths = sentence_lengths(subject.model)
    if not lengths:
        st.info(lab.text("unread"))
        return
    with controls():
        size = lab.steps("size", SIZES, 5)
        order = lab.buttons("order", ORDERS)
    st.html(table.style())
    orders = (order, *(other for other in ORDERS if other != order))
    found = {one: batches_of(lengths, size, one, 0) for one in orders}
    now = found[order]
    counts = {one: (batches.cells, batches.tokens) for one, batches in found.items()}
    _table(counts, lab.text("bundled", n=len(lengths)))
    _picture(now)
    lesson.formula(
        r"\text{padding} = 1 - \frac{\sum \text{lengths}}{\sum_\text{batches} (\text{sentences} \cdot \text{longest})}",
        live=rf"1 - \frac{{{now.tokens}}}{{{now.cells}}} = {now.waste:.4f}",
        code="lengths = torch.tensor(measured)\n"
        f"lengths = lengths[torch.randperm(len(lengths))]  # or: lengths.sort().values\n"
        f"batches = lengths.split({size})\n"
        "cells = sum(len(batch) * batch.max() for batch in batches)\n"
        "padding = 1 - lengths.sum() / cells",
        given={"measured": list(lengths)},
    )
    lesson.ask(cells(subject))
    st.markdown(lab.text("whole"))
    corpus = notes("padding")
    counts = {one: (corpus[one]["cells"], corpus[one]["tokens"]) for one in ORDERS}
    _table(counts, lab.text("corpus", n=f"{corpus['pairs']:,}", batches=corpus["length"]["batches"]))
    lab.note("again", command=Markup("`python -m recipes.padding_waste cmn.txt padding.json`"))
    lesson.ask(order_question(subject))


@lab.asks("cells")
def cells(subject: Subject) -> lesson.Number:
    lengths = (2, 5, 4, 12)
    cells, used = len(lengths) * max(lengths), sum(lengths)
    wrong = {"all": cells, "tokens": used, "mean": cells // 2}
    left = cells - used
    return lesson.Number(answer=left, **lab.asked("cells", wrong=wrong, cells=cells, used=used, left=left))


@lab.asks("order")
def order_question(subject: Subject) -> lesson.Choice:
    return lab.choice("order", ("nothing", "batches", "tokens"), "batches")


def _table(counts: dict[Order, tuple[int, int]], caption: str) -> None:
    """The cells and the tokens of each order, and the share of padding."""
    rows = [
        Row(lab.text(f"order.{order}"), *numbers(",", cells, tokens), *numbers(".1%", 1 - tokens / cells))
        for order, (cells, tokens) in counts.items()
    ]
    columns = lab.columns("order", "cells", "tokens", "padding")
    st.html(table.to_html(columns, rows, bar=3, caption=caption))


def _picture(found: Batches) -> None:
    """A line for each sentence of the first batches: squares for tokens, dots for padding."""
    batches = [
        "\n".join("■" * min(n, LARGEST_LINE) + "·" * (min(batch.longest, LARGEST_LINE) - n) for n in batch.lengths)
        for batch in found.batches[:DRAWN]
    ]
    lab.note("lines")
    st.code("\n\n".join(batches), language=None)
