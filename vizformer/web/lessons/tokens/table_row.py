"""A laboratory of the lesson Tokens and embeddings: a one-hot row times the table, and the row taken out of it."""

import numpy as np
import streamlit as st

from vizformer.analysis.vectors import embeddings
from vizformer.components import lookup, matrix
from vizformer.web.catalogue.subject import Subject
from vizformer.web.catalogue.subject_functions import of_model
from vizformer.web.lessons.tokens.embedding_rows import choose_token, embedding_table, names
from vizformer.web.widgets import lesson
from vizformer.web.widgets.lab import Laboratory

lab = Laboratory("tokens", "lookup")
CODE = """one_hot = F.one_hot(torch.tensor(id), vocab_size).float()
product = one_hot @ E  # vocab_size * d_model products
row = E[id]            # what nn.Embedding does
(product - row).abs().max()"""


looked_up = of_model(embeddings.lookup)
entries = of_model(embeddings.entries)


@lab.draws
def draw_table_row(subject: Subject) -> None:
    at = choose_token(lab, subject)
    token, config = subject.tokens[at], subject.config
    found = looked_up(subject.model, token.id)
    lesson.ask(table_row_question(subject))
    rows, columns = lookup.around(token.id, config.input_vocab_size), lookup.head(config.d_model)
    shown_rows, shown_columns = (tuple(i for i in places if i is not None) for places in (rows, columns))
    read = names(subject.model, shown_rows)
    st.html(matrix.style())
    st.html(
        lookup.to_html(
            np.array([[float(row == token.id) for row in shown_rows]]),
            rows=[at],
            columns=rows,
            column_names=read,
            row_names=[token.text],
            digits=0,
            caption=lab.text("onehot", id=token.id),
            shape=f"1 × {config.input_vocab_size}",
            chosen_column=token.id,
        )
        + lookup.to_html(
            entries(subject.model, shown_rows, shown_columns),
            rows=rows,
            columns=columns,
            row_names=read,
            chosen_row=token.id,
            caption=lab.text("table"),
            shape=f"{config.input_vocab_size} × {config.d_model}",
        )
        + lookup.to_html(
            found.product[list(shown_columns)][None],
            rows=[at],
            columns=columns,
            row_names=[token.text],
            chosen_row=at,
            caption=lab.text("product"),
            shape=f"1 × {config.d_model}",
        )
    )
    if found.difference == 0:
        st.success(lab.text("same", id=token.id))
    else:
        st.error(lab.text("differs", difference=f"{found.difference:.1g}"))
    first = ",\\ ".join(f"{value:.4f}" for value in found.row[:3])
    lesson.formula(
        r"e_i E = \sum_{v=0}^{V-1} [v = i]\, E_v = E_i",
        live=rf"E_{{{token.id}}} = ({first},\ \ldots,\ {found.row[-1]:.4f})",
        code=CODE,
        given={"id": token.id, "vocab_size": config.input_vocab_size, "E": embedding_table(subject.model)},
    )
    lab.say("cost", products=found.products, copies=found.copies)


@lab.asks("products")
def table_row_question(subject: Subject) -> lesson.Number:
    sizes = {"vocab_size": subject.config.input_vocab_size, "d_model": subject.config.d_model}
    products = looked_up(subject.model, subject.tokens[0].id).products
    wrong = {"copy": sizes["d_model"], "ones": sizes["vocab_size"], "none": 0}
    said = lab.asked("products", subject.model, wrong=wrong, **sizes)
    return lesson.Number(answer=products, written="{:,.0f}".format, **said)
