"""What of a head's weights can reach its output: effective attention beside the weights."""

import numpy as np

from vizformer import figures
from vizformer.analysis import EffectiveAttention, effective_attention, site_name
from vizformer.web.catalogue.subject_functions import of_trace
from vizformer.web.link import state
from vizformer.web.tools.attention.heads_of_kind import Heads
from vizformer.web.widgets import chart, proof_badge
from vizformer.web.widgets.folded_box import folded
from vizformer.web.words import labels
from vizformer.web.words.errors import guarded, plain
from vizformer.web.words.i18n import _, show_markdown, show_note

LONGEST, DRAWN = 512, 64  # tokens: each row is taken apart by itself; a map is read up to so many
computed = of_trace(effective_attention)


def draw_effective(here: Heads) -> None:
    if max(len(here.queries), len(here.keys)) > LONGEST:
        return
    with folded(_("What of these weights reaches the output?"), key="attention.effective") as is_open:
        if is_open:
            guarded()(_draw)(here)


def _draw(here: Heads) -> None:
    view = state.view()
    query = view.query_of(here.queries)
    found = computed(here.subject, site_name(here.kind, view.layer), view.head)
    lost = np.abs(found.weights[query] - found.effective[query])
    key = int(lost.argmax())
    values = {"query": plain(here.queries[query].text), "free": int(found.free[query])}
    if found.free[query]:
        show_markdown(
            "The keys that “{query}” sees are **{free}** more than the values tell apart: so many ways to move its "
            "weights change nothing of what the head puts out. Without them most changes at “{key}”: **{weight}** "
            "becomes **{effective}**.",
            **values,
            key=plain(here.keys[key].text),
            weight=f"{found.weights[query, key]:.3f}",
            effective=f"{found.effective[query, key]:.3f}".replace("-", "−"),
        )
    else:
        show_markdown(
            "Every weight of “{query}” counts: it sees no more keys than their values tell apart, so that no other "
            "weights would give the same output. Longer texts have keys to spare.",
            **values,
        )
    if found.free.any():  # else it is the map above
        _map(here, found, query, key)
    proof_badge.show(found.proof, edited=bool(here.subject.edited))
    show_note(
        "A row of weights is split in two: what is orthogonal to every column of the values, which adds nothing to the "
        "output, and the rest, which is shown (Brunner et al. 2020). It can be below 0, and need not sum to 1. In Python: "
        "vf.analysis.effective_attention."
    )


def _around(at: int, n: int) -> slice:
    """DRAWN of n tokens, with `at` in the middle where both sides have as many."""
    first = min(max(0, at - DRAWN // 2), max(0, n - DRAWN))
    return slice(first, first + DRAWN)


def _map(here: Heads, found: EffectiveAttention, query: int, key: int) -> None:
    """The effective weights, of a long text those around this query and key."""
    view = state.view()
    rows, keys = _around(query, len(here.queries)), _around(key, len(here.keys))
    record = here.subject.trace[site_name(here.kind, view.layer)]
    chart.show(
        figures.attention_heatmap(
            found.effective[rows, keys],
            labels.texts(here.queries)[rows],
            labels.texts(here.keys)[keys],
            reasons=record.reason(view.head).cpu().numpy()[rows, keys],
            kind="effective",
            title=_("Effective attention"),
            words={"weight": _("effective weight")},
        ),
        key="attention.effective.map",
    )
