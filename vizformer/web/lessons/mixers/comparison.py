"""The laboratory Side by side: every way of mixing tokens for one sentence, with its map, its costs and its proof."""

import streamlit as st

from vizformer import figures
from vizformer.components import table
from vizformer.components.table import Row, numbers
from vizformer.explain import mixers_by_hand
from vizformer.explain.mixers_by_hand import MIXERS, N_HEADS, Mixer, mixer_cost
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.lab import Laboratory, controls
from vizformer.web.words import labels

lab = Laboratory("mixers", "comparison")
MOST = 16  # tokens
LENGTHS = (8, 64, 512, 4096, 32_768)
FORMULAS: dict[Mixer, str] = {
    "softmax": "softmax(Q Kᵀ / √d) V",
    "sink": "softmax([Q Kᵀ / √d, s]) V",
    "grouped": "softmax(Q K₀ᵀ / √d) V₀",
    "latent": "softmax(Q W_UK Cᵀ / √d) C W_UVᵀ",
    "window": "softmax(Q Kᵀ / √d + W) V",
    "delta": "S ← a S + k (β (v − (a S)ᵀ k))ᵀ,  o = Sᵀ q",
    "space": "S ← a S + k (Δ v)ᵀ,  o = Sᵀ q + D v",
}
mixed = cached(mixers_by_hand.mixed)


@lab.draws
def draw_comparison(subject: Subject) -> None:
    """One map at a time, the table of all of them below."""
    with controls():
        mixer = lab.buttons("mixer", MIXERS, "delta")
    picture = st.container()  # above the other controls
    with controls():
        head = lab.box("head", [str(number) for number in range(N_HEADS)], 0)
        n = lab.steps("n", LENGTHS, 4096, "{:,}".format)
    tokens = (tuple(token for token in subject.tokens if not token.special) or subject.tokens)[:MOST]
    ids, names = tuple(token.id for token in tokens), labels.numbered(tokens)
    found = {kind: mixed(kind, ids) for kind in MIXERS}
    title = lab.text("picture", mixer=lab.text(f"mixer.{mixer}"), head=head)
    drawn = figures.attention_heatmap(
        found[mixer][0][head], names, names, kind="scores" if mixer in ("delta", "space") else "weights", title=title
    )
    drawn.update_traces(texttemplate="%{z:.2f}" if len(tokens) <= 8 else None)  # the numbers of M are small
    with picture:
        chart.show(drawn, key="mixers.map", title_above=True)
    rows = []
    for kind, (maps, error) in found.items():
        costs, sums = numbers(",", *mixer_cost(kind, n)), maps.sum(-1)
        between = f"{sums.min():.2f} – {sums.max():.2f}".replace("-", "−")
        name, proof = lab.text(f"mixer.{kind}"), f"{error:.0e}"
        rows.append(Row(name, FORMULAS[kind], *costs, between, proof, kind="marked" if kind == mixer else ""))
    columns = lab.columns("mixer", "formula", "products", "kept", "sums", "proof", n=f"{n:,}")
    st.html(table.style() + table.to_html(columns, rows))
    lab.note("made")
    lesson.ask(grows(subject))


@lab.asks("grows")
def grows(subject: Subject) -> lesson.Choice:
    return lab.choice("grows", ("sink", "grouped", "delta"), "delta")
