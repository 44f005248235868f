"""A laboratory of the lesson Masks: one mask in four notations, and two of them mixed up."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis import masks
from vizformer.components import matrix
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.masks.masked_head import causal_head, causal_on, place, record, table, tokens
from vizformer.web.link import state
from vizformer.web.widgets import chart, lesson, map_words
from vizformer.web.widgets.lab import Laboratory, aside, controls
from vizformer.web.words import labels

lab = Laboratory("masks", "conventions", wide=True)
SHOWN = 10  # rows and columns of the tables: True and False of so many fit beside each other
NOTATIONS: dict[str, str] = {
    "tutorial": "mask = torch.ones(n, n, dtype=torch.long).tril()",
    "module": "mask = torch.ones(n, n, dtype=torch.bool).triu(1)",
    "fused": "mask = torch.ones(n, n, dtype=torch.bool).tril()",
    "additive": "mask = torch.full((n, n), -math.inf).triu(1)",
}
"""The causal mask of n tokens as each notation writes it."""
_CALLS = """# {tutorial}
{tutorial_mask}
weights = torch.softmax(scores.masked_fill(mask == 0, -math.inf), dim=-1)

# {identity}
q, k, v = scores * n**0.5, torch.eye(n), torch.eye(n)

# {module}
{module_mask}
attention = torch.nn.MultiheadAttention(n, 1, bias=False)
with torch.no_grad():  # {matrices}
    attention.in_proj_weight.copy_(torch.eye(n).repeat(3, 1))
    attention.out_proj.weight.copy_(torch.eye(n))
    by_module, _ = attention(q, k, v, attn_mask=mask)

# {fused}
{fused_mask}
by_fused = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

# {additive}
{additive_mask}
by_additive = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)"""
"""Every notation with the call that reads it so, for the `scores` [n, n] of a head: four times the same weights.

PyTorch's calls take q, k and v, which would be long to write out.  With q = scores * sqrt(n) and k = v = I they
give softmax(scores + mask), the weights that the page shows.
"""


@cached
def agreement(subject: Subject, layer: int, head: int) -> dict[str, float]:
    """The difference between z by each notation's own call and z computed in float64."""
    attention = record(subject, causal_on(subject), layer)
    return masks.agreement(attention, head, causal_head(subject, layer, head).blocked)


@lab.draws
def draw_notations(subject: Subject) -> None:
    attention = causal_on(subject)
    with controls():
        why = place(subject, attention)
        mixed = lab.toggle("mixed")
    view = state.view()
    masked, agreed = causal_head(subject, view.layer, view.head), agreement(subject, view.layer, view.head)
    n, names = len(masked.scores), lab.texts("name", list(NOTATIONS))
    queries = map_words.queries(subject, attention)[:SHOWN]
    keys = labels.texts(tokens(subject, attention)[1])[:SHOWN]
    shown = masked.blocked[:SHOWN, :SHOWN]
    st.html(matrix.style())
    if mixed:
        weights = masks.mixed_up(masked.scores, masked.blocked)
        cells = [[matrix.number(value, 2) for value in row] for row in weights[:SHOWN, :SHOWN]]
        st.html(table(lab.text("weights"), keys, queries, cells, shown))
        st.error(lab.text("reversed", rows=masks.nan_rows(weights), n=n))
    halves = [column for __ in range(2) for column in st.columns(2)]
    for half, (name, mask) in zip(halves, masks.notations(masked.blocked).items(), strict=True):
        part = mask[:SHOWN, :SHOWN]
        values = np.maximum(part.astype(np.float32), -1.0)
        picture = figures.matrix_heatmap(values, queries, keys, title=names[name])
        cells = [[str(value).replace("-inf", "−∞").replace("0.0", "0") for value in row] for row in part.tolist()]
        with half:
            chart.show(picture.update_traces(text=cells, texttemplate="%{text}", showscale=False), key=f"masks.{name}")
            lab.note("checked", difference=f"{agreed[name]:.1g}")
    if n > SHOWN:
        lab.note("tables", shown=SHOWN, n=n)
    aside(why)
    lesson.ask(notations_question(subject))
    lines = {f"{name}_mask": line for name, line in NOTATIONS.items()}
    calls = _CALLS.format(**lab.texts("code", ("identity", "matrices")), **names, **lines)
    lesson.formula(code=calls, given={"scores": masked.scores, "n": n})


@lab.asks("notation")
def notations_question(subject: Subject) -> lesson.Choice:
    masked = causal_head(subject, 0, 0)
    last = len(masked.scores) - 1
    weights = masks.mixed_up(masked.scores, masked.blocked)[last]
    seen = "none" if np.isnan(weights).all() else "itself" if np.flatnonzero(weights).tolist() == [last] else "others"
    query = map_words.numbered(subject, causal_on(subject))[last]
    return lab.choice("notation", ("all", "itself", "others", "none"), seen, subject, query=query, n=last + 1)
