"""Below All heads: what the heads of the translator carry, by what is lost without each of them (`recipes.head_roles`)."""

import json

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis.causes.ablation import Part
from vizformer.analysis.causes.head_roles import ASKED, KINDS, MODEL, HeadRoles, roles_of_heads
from vizformer.analysis.corpus_heads.report_file import digest
from vizformer.assets import asset
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import sitemap
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.widgets import chart
from vizformer.web.widgets.lab import Laboratory
from vizformer.web.words import ablated_parts, labels
from vizformer.web.words.i18n import translate


@cached
def roles() -> HeadRoles | None:
    """What was measured; None where it was measured with other weights."""
    said = json.loads(asset("lessons", "heads", "roles.json").read_text(encoding="utf-8"))
    if said["weights"] != digest(asset("models", MODEL)):
        return None
    effects = {kind: (np.array(one["values"]), np.array(one["odds"])) for kind, one in said["kinds"].items()}
    return roles_of_heads(effects, [Part(sublayer, head) for sublayer, head in said["heads"]])


def draw(lab: Laboratory, subject: Subject) -> None:
    """The shares of the heads of cross-attention, and for each kind whether a head carries it as its own."""
    found = roles() if subject.model == ModelRef("bundled", MODEL) else None
    if found is None:
        return
    crossing = [at for at, part in enumerate(found.heads) if part.sublayer.endswith("cross")]
    names = lab.texts("carries", KINDS)
    figure = figures.matrix_heatmap(
        np.round(100 * found.shares[:, crossing], 1) + 0.0,  # (no minus before a 0)
        [names[kind] for kind in KINDS],
        [f"{found.heads[at].sublayer.split('.')[1]}.{found.heads[at].head}" for at in crossing],
        column_title=lab.text("crossing"),
        title=lab.text("lost"),
    )
    chart.show(figure, key="heads.carried", title_above=True)
    st.markdown("\n".join(f"- {_said(lab, found, kind, names)}" for kind in ASKED))
    typical = labels.percent(float(np.median(found.shares.max(0))))
    lab.note("baseline", n=found.rows[0], heads=len(found.heads), typical=typical)
    st.page_link(
        sitemap.WHAT_IF.file,
        label=lab.text("sets", page=translate(sitemap.WHAT_IF.title)),
        query_params={"dials": f"whatif.way:set~whatif.set:negation.{MODEL}"},
    )


def _said(lab: Laboratory, found: HeadRoles, kind: str, names: dict[str, str]) -> str:
    at, head = found.kinds.index(kind), found.strongest(kind)
    other = found.most_of_others(kind, head)
    share, low, high, most = (
        labels.percent(float(one))
        for one in (found.shares[at, head], found.low[at, head], found.high[at, head], found.shares[other, head])
    )
    n = int(found.own[at].sum())
    return lab.text(
        "role",
        form=("none", "one")[n] if n < 2 else "several",
        n=n,
        kind=names[kind],
        head=ablated_parts.name(found.heads[head]),
        share=share,
        low=low,
        high=high,
        most=most,
        other=names[found.kinds[other]],
    )
