"""Tokens and embeddings: six ways to cut a sentence, and what becomes of the pieces before and inside the layers."""

import math

import streamlit as st

from vizformer import figures
from vizformer.components import lookup, matrix
from vizformer.messages import N_
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import sitemap
from vizformer.web.lessons.tokens import computed, contexts, tokenizers
from vizformer.web.tools.model_report import report_words
from vizformer.web.widgets import lesson
from vizformer.web.words import labels
from vizformer.web.words.errors import guarded
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _

CHART = {"displayModeBar": False}


def page() -> None:
    lesson.show(
        sitemap.TOKENS,
        [
            lesson.Part("pieces", N_("Six ways to cut"), tokenizers.pieces, wide=True),
            lesson.Part("merges", N_("BPE, merge by merge"), tokenizers.merges),
            lesson.Part("lookup", N_("A row of a table"), look_up),
            lesson.Part("neighbours", N_("Neighbours"), neighbours, wide=True),
            lesson.Part("context", N_("Static and contextual"), contexts.context),
            lesson.Part("norms", N_("Lengths"), norms),
        ],
        terms=(
            "token",
            "vocabulary",
            "token-id",
            "subword",
            "bpe",
            "wordpiece",
            "unigram",
            "unknown-token",
            "one-hot",
            "embedding",
            "cosine",
            "contextual",
        ),
    )


# --- a row of a table -------------------------------------------------------------------------------------------------


def choose_token(subject: Subject, label: str) -> int:
    """A position of the sentence."""
    tokens = computed.read(subject)
    named = labels.numbered(tokens)
    places = range(len(tokens))
    # To begin with: the rarest word, which was learned last and so has the largest id.
    first = max(places, key=lambda i: (not tokens[i].special, tokens[i].text[:1].isalnum(), tokens[i].id))
    st.selectbox(label, places, format_func=named.__getitem__, **lesson.dial("tokens.at", first, places))
    return lesson.value("tokens.at", first, places)


@st.fragment
@guarded()
def look_up(subject: Subject) -> None:
    """A one-hot row times the table, and the row taken out of it."""
    at = choose_token(subject, _("Token"))
    token = computed.read(subject)[at]
    config = model_cache.options(subject.model)
    vocab_size = config.input_vocab_size
    found = computed.lookup(subject.model, token.id)
    st.html(matrix.style())
    rows, columns = lookup.around(token.id, vocab_size), lookup.head(config.d_model)
    shown_rows, shown_columns = [r for r in rows if r is not None], [c for c in columns if c is not None]
    values = computed.table(subject.model, tuple(shown_rows), tuple(shown_columns))
    entries = computed.names(subject.model, tuple(shown_rows))
    one_hot = (values[:, :1] * 0 + 0.0).T
    one_hot[0, shown_rows.index(token.id)] = 1.0
    st.html(
        lookup.to_html(
            one_hot,
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
            shape=f"{vocab_size} × {config.d_model}",
        )
        + lookup.to_html(
            found.product[shown_columns][None],
            rows=[at],
            columns=columns,
            row_names=[token.text],
            chosen_row=at,
            caption=_("Their product"),
            shape=f"1 × {config.d_model}",
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
        code=computed.LOOKUP,
        given={"id": token.id, "vocab_size": vocab_size, "E": computed.embedding_table(subject.model)},
    )
    st.text(
        _(
            "The product: {products:,} multiplications for one token. The look-up: {copies} numbers copied.",
            products=found.products,
            copies=found.copies,
        )
    )


# --- neighbours -------------------------------------------------------------------------------------------------------


@st.fragment
@guarded()
def neighbours(subject: Subject) -> None:
    """The nearest rows of the table, and the sentence with its neighbours on a plane."""
    from vizformer.figures.neighbours import ENGLISH  # loads plotly, which the frame does not wait for

    choose, centre = st.columns([2, 3], vertical_alignment="bottom")
    with choose:
        at = choose_token(subject, _("Token"))
    centre.toggle(_("Take the mean of all rows off first"), **lesson.dial("tokens.centred", False))
    centred = lesson.value("tokens.centred", False)
    tokens = computed.read(subject)
    chosen = tokens[at]
    nearest = computed.neighbours(subject.model, chosen.id, centred)
    average = computed.average_cosine(subject.model, centred)
    shown, plane = computed.near(subject.model, tuple(token.id for token in tokens), chosen.id, centred)
    named = computed.names(subject.model, shown)
    own = {token.id for token in tokens}
    kinds = [0 if id in own else 1 if id in nearest.ids else 2 for id in shown]
    said = words(ENGLISH)
    left, right = st.columns([2, 3])
    left.plotly_chart(
        figures.neighbour_bars(
            computed.names(subject.model, nearest.ids, beside=(chosen.id,)),
            nearest.cosines,
            average,
            title=_("Nearest to “{token}”", token=chosen.text),
            words=said,
        ),
        config=CHART,
        key="tokens.bars",
    )
    right.plotly_chart(
        figures.embedding_map(
            plane.points,
            named,
            kinds,
            (float(plane.explained[0]), float(plane.explained[1])),
            chosen=shown.index(chosen.id),
            title=_("The sentence and its neighbours, on a plane"),
            words=said,
        ),
        config=CHART,
        key="tokens.map",
    )
    st.caption(
        _(
            "Searched: all {count:,} rows. The plane keeps {percent} of the variance of these {shown} directions; what "
            "looks close on it may be far apart.",
            count=model_cache.options(subject.model).input_vocab_size,
            percent=labels.percent(float(plane.explained.sum())),
            shown=len(shown),
        )
    )
    lesson.formula(
        r"\cos(E_a, E_b) = \frac{E_a \cdot E_b}{\lVert E_a \rVert\, \lVert E_b \rVert}",
        live=rf"\cos(E_{{{chosen.id}}}, E_{{{nearest.ids[0]}}}) = {nearest.cosines[0]:.4f}",
        code=computed.COSINE,
        given={"id": chosen.id, "E": computed.embedding_table(subject.model)},
    )


# --- lengths ----------------------------------------------------------------------------------------------------------


@st.fragment
@guarded()
def norms(subject: Subject) -> None:
    """How long the token and the position vectors are, with and without the factor sqrt(d_model)."""
    from vizformer.figures.embeddings import ENGLISH  # as above

    config = model_cache.options(subject.model)
    tokens = computed.read(subject)
    found = computed.norms(subject.model, tuple(token.id for token in tokens))
    st.toggle(
        _("Multiply the token vectors by {factor}", factor=r"$\sqrt{d_\text{model}}$"),
        **lesson.dial("tokens.scale", found.scaled),
    )
    scaled = lesson.value("tokens.scale", found.scaled)
    lengths = found.tokens * (found.factor if scaled else 1.0)
    st.caption(
        _("This model was trained with the factor.")
        if found.scaled
        else _("This model was trained without the factor.")
    )
    st.plotly_chart(
        figures.norm_bars(
            labels.texts(tokens),
            lengths,
            found.positions,
            title=_("What is added up before layer 0"),
            words=words(ENGLISH),
        ),
        config=CHART,
        key="tokens.norms",
    )
    mean = float(lengths.mean())
    if found.positions is None:
        st.info(
            _(
                "This model adds no position vectors (it uses {positions}): there is nothing that the token vectors "
                "could be too short for. zh-en adds waves, cloze a learned table.",
                positions=report_words.positions(config.positions),
            )
        )
    else:
        share = float((found.positions**2).sum() / ((found.positions**2).sum() + (lengths**2).sum()))
        st.text(
            _(
                "Average length: tokens {token}, positions {position}. Positions make up {share} of the squared length.",
                token=f"{mean:.2f}",
                position=f"{found.positions.mean():.2f}",
                share=labels.percent(share),
            )
        )
    if scaled != found.scaled and config.architecture != "encoder-only" and model_cache.predicts(subject.model):
        both = {flag: computed.written(subject.model, subject.text, flag) for flag in (found.scaled, not found.scaled)}
        with st.container(border=True):
            st.caption(_("What the trained model writes as it was trained"))
            st.text(both[found.scaled])
            st.caption(_("and with the factor switched, all weights as they are"))
            st.text(both[not found.scaled])
    formula_of_lengths(config.positions, config.d_model, scaled)
    if config.n_segments or config.embedding_norm:
        st.caption(
            _("In this model a segment vector, the same for the whole sentence, is added as well, and a norm follows.")
        )


def formula_of_lengths(positions: str, d_model: int, scaled: bool) -> None:
    """What enters the first layer, as this model computes it with the factor as it is switched."""
    root = math.sqrt(d_model)
    symbols, live = r"x_0 = ", []
    if scaled:
        symbols += r"\sqrt{d_\text{model}}\; "
        live.append(rf"\sqrt{{{d_model}}} = {root:.2f}")
    symbols += r"E_\text{id}"
    if positions in ("sinusoidal", "learned"):
        symbols += r" + P_\text{pos}"
    if positions == "sinusoidal":
        symbols += r" \\ \lVert P_\text{pos} \rVert = \sqrt{d_\text{model} / 2}"
        live.append(rf"\sqrt{{{d_model} / 2}} = {root / math.sqrt(2):.2f}")
    symbols = rf"\begin{{gathered}} {symbols} \end{{gathered}}"  # one below the other: both fit a phone
    lesson.formula(symbols, live=r",\quad ".join(live), code=computed.input_code(positions, scaled))


page()
