"""A row of a table, in the lesson Tokens and embeddings: a one-hot row times the table, and the row taken out of it."""

import numpy as np
import streamlit as st

from vizformer.components import lookup, matrix
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.tokens import computations
from vizformer.web.lessons.tokens.token_choice import choose_token
from vizformer.web.widgets import lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words.i18n import _

CODE = """one_hot = F.one_hot(torch.tensor(id), vocab_size).float()
product = one_hot @ E  # vocab_size * d_model products
row = E[id]            # what nn.Embedding does
(product - row).abs().max()"""


@laboratory
def look_up(subject: Subject) -> None:
    """A one-hot row times the table, and the row taken out of it."""
    at = choose_token(subject, _("Token"))
    token = subject.tokens[at]
    config = subject.config
    vocab_size = config.input_vocab_size
    found = computations.lookup(subject.model, token.id)
    lesson.ask(products_question(subject))
    st.html(matrix.style())
    rows, columns = lookup.around(token.id, vocab_size), lookup.head(config.d_embedding)
    shown_rows, shown_columns = [r for r in rows if r is not None], [c for c in columns if c is not None]
    values = computations.table(subject.model, tuple(shown_rows), tuple(shown_columns))
    entries = computations.names(subject.model, tuple(shown_rows))
    st.html(
        lookup.to_html(
            np.array([[float(row == token.id) for row in shown_rows]]),
            rows=[at],
            columns=rows,
            column_names=entries,
            row_names=[token.text],
            digits=0,
            caption=_("One-hot row of id {id}", id=token.id),
            shape=f"1 × {vocab_size}",
            chosen_column=token.id,
        )
        + lookup.to_html(
            values,
            rows=rows,
            columns=columns,
            row_names=entries,
            chosen_row=token.id,
            caption=_("Embedding table E"),
            shape=f"{vocab_size} × {config.d_embedding}",
        )
        + lookup.to_html(
            found.product[shown_columns][None],
            rows=[at],
            columns=columns,
            row_names=[token.text],
            chosen_row=at,
            caption=_("Their product"),
            shape=f"1 × {config.d_embedding}",
        )
    )
    if found.difference == 0:
        st.success(_("The product is row {id} of the table: the largest difference is 0.", id=token.id))
    else:
        st.error(_("Differs from the row by up to {difference}.", difference=f"{found.difference:.1g}"))
    first = ",\\ ".join(f"{value:.4f}" for value in found.row[:3])
    lesson.formula(
        r"e_i E = \sum_{v=0}^{V-1} [v = i]\, E_v = E_i",
        live=rf"E_{{{token.id}}} = ({first},\ \ldots,\ {found.row[-1]:.4f})",
        code=CODE,
        given={"id": token.id, "vocab_size": vocab_size, "E": computations.embedding_table(subject.model)},
    )
    st.text(
        _(
            "The product: {products:,} multiplications for one token. The look-up: {copies} numbers copied.",
            products=found.products,
            copies=found.copies,
        )
    )


def products_question(subject: Subject) -> lesson.Number:
    """What would the product with a one-hot row cost?"""
    vocab_size, d_model = subject.config.input_vocab_size, subject.config.d_embedding
    products = computations.lookup(subject.model, subject.tokens[0].id).products
    return lesson.Number(
        "tokens",
        "products",
        _(
            "The table E has {vocab_size:,} rows of {d_model} numbers. How many multiplications does the product of one "
            "one-hot row with E take, if every one is carried out?",
            vocab_size=vocab_size,
            d_model=d_model,
        ),
        products,
        _(
            "{vocab_size:,} · {d_model}: each of the {d_model} results is a sum of {vocab_size:,} products, and all but one "
            "of these are 0. The result is a row of the table, so programs take that row out: {d_model} numbers copied, "
            "nothing multiplied.",
            vocab_size=vocab_size,
            d_model=d_model,
        ),
        written="{:,.0f}".format,
        about=f"{subject.model}",
    )
