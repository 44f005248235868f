"""Gates over heads, learned on a text set: which heads help, hinder or do not matter, beside the plain ablation."""

from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from vizformer import figures
from vizformer.analysis import kinds
from vizformer.analysis.causes.head_gates import MOST_TOKENS, TEXTS_AT_ONCE, HeadGates, Role, runs, table_of
from vizformer.analysis.corpus_heads import Corpus
from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.web.catalogue.bounded_cache import Cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.tools.what_if import computations, other_texts
from vizformer.web.widgets import chart, in_python, watched_work
from vizformer.web.widgets.choices import BESIDE, kind_of_attention, more, one_of
from vizformer.web.words import ablated_parts, labels
from vizformer.web.words.i18n import _, show_note, show_text

PUSHES = (0.001, 0.003, 0.01, 0.03, 0.1)
SEEDS = (1, 2, 3, 5)
LISTED = 20
ROLE_NAMES = ("facilitating", "interfering", "irrelevant")


def draw_learned_gates(subject: Subject, settings: DeltaGenerator) -> None:
    """The text set, the push, the seeds; then the roles as a picture and as a table."""
    model = Subject(subject.model, "", "")
    with settings:
        shown = st.container(horizontal=True)
        with more():
            on = text_set(subject)
            push = one_of(_("Push on the gates, nats per token"), "whatif.push", PUSHES, 0.01)
            seeds = one_of(_("Seeds"), "whatif.seeds", SEEDS, 3)
    picture, beside = st.columns(BESIDE, gap="medium")
    with picture:
        found = learned(subject, seeds, computations.gates, (model, on, push, seeds), "what_if.gates")
        if found is not None:
            with shown:
                names = role_names()
                role: Role = one_of(_("Shown"), "whatif.role", names, labelled=False)  # type: ignore[assignment]
                kind = kind_of_attention(kinds(subject.trace))
            chart.show(
                figures.measure_of_heads(
                    table_of(found, role, kind),
                    measure=_("score"),
                    title=_("{role}, {kind}", role=names[role], kind=labels.kind_label(kind)),
                ),
                key="what_if.gates.map",
                title_above=True,
            )
    beside.caption(
        _(
            "Causal head gating (Nam et al. 2025): what each head puts out is multiplied by a gate between 0 and 1, and the "
            "gates alone are learned, so that the model predicts a set of texts well; once while every gate is pushed open, "
            "once while it is pushed shut."
        )
    )
    if found is not None:
        roles(found)
    in_python.show(code(subject, on, push, seeds))


def text_set(subject: Subject) -> computations.GateTexts | Corpus:
    names = {"corpus": _("texts of the bundled collection"), "own": _("My own texts")}
    if subject.config.architecture == "decoder-only":
        names["repeated"] = _("random tokens that come twice")
    chosen = one_of(_("Learned on"), "whatif.gatetexts", names)
    if chosen == "repeated":
        return "repeated"
    own = other_texts.box() if chosen == "own" else None
    other_texts.notes(subject, own, computations.GATE_TEXTS)
    show_note("Only the first {n} tokens of each text are read.", n=MOST_TOKENS)
    return own or "corpus"


def learned(
    subject: Subject, seeds: int, work: Cached[..., HeadGates], call: tuple[Any, ...], key: str
) -> HeadGates | None:
    """The gates that `work(*call)` learns; None until they are wanted."""
    steps = runs(sum(part.head is not None for part in computations.parts(subject)), seeds)
    cost = 3 * watched_work.cost(subject, steps, MOST_TOKENS * TEXTS_AT_ONCE)  # a gradient takes three runs
    return watched_work.watched(
        work, call, quick=cost < watched_work.AT_ONCE, runs=steps, begin=_("Learn the gates"), key=key
    )


def role_names() -> dict[str, str]:
    return {"facilitating": _("facilitating"), "interfering": _("interfering"), "irrelevant": _("irrelevant")}


def roles(found: HeadGates) -> None:
    """The heads, those first that help most, and the losses."""
    names, scores = role_names(), {role: found.scores(role) for role in ROLE_NAMES}  # type: ignore[arg-type]
    means = {role: each.mean(0) for role, each in scores.items()}
    said = found.roles()
    order = sorted(
        range(len(found.heads)),
        key=lambda at: (said[at] is not None and means["irrelevant"][at], -means["facilitating"][at]),
    )
    rows = [
        Row(
            ablated_parts.name(found.heads[at]),
            *(
                Number(float(means[role][at]), f"{means[role][at]:.2f} ± {scores[role][:, at].std():.2f}")
                for role in ROLE_NAMES
            ),
            names.get(str(said[at]), "–"),
            *(
                Number(float(loss[at]), ablated_parts.signed(float(loss[at]), 4))
                for loss in (found.at_closed, found.without)
            ),
            kind="marked" if said[at] in (None, "interfering") else "",
        )
        for at in order[:LISTED]
    ]
    columns = (
        _("head"),
        *(names[role] for role in ROLE_NAMES),
        _("role"),
        _("loss with its gate alone pushed shut, nats per token"),
        _("loss without it alone, nats per token"),
    )
    st.html(table.to_html(columns, rows, caption=_("What the heads do for these texts")))
    show_text(
        "Heads that facilitate: {a}; that interfere: {b}; that are irrelevant: {c}; without a role: {d}.",
        a=said.count("facilitating"),
        b=said.count("interfering"),
        c=said.count("irrelevant"),
        d=said.count(None),
    )
    show_text(
        "Loss of these texts with all gates open: {open} nats per token; with the gates learned while pushed open: "
        "{opened}; while pushed shut: {closed}.",
        open=f"{found.loss:.3f}",
        opened=f"{found.loss_opened.mean():.3f}",
        closed=f"{found.loss_closed.mean():.3f}",
    )
    show_note(
        "A score is the mean over the seeds, with its standard deviation. All gates are learned together: of two heads "
        "that do the same, one may be given up, another one with each seed, and of two heads that mislead together it "
        "is enough to shut one. The last two columns change one head while all others stay: its gate is set to where "
        "the push shut it, or to 0. A head has no role (–) where its gates say another thing than the loss without "
        "it: one that seems irrelevant, for example, though the loss rises without it by more than the push. Where "
        "the loss hardly rises with the gate pushed shut, but rises without the head, what reads the head is "
        "saturated: a part of what it puts out is enough."
    )


def code(subject: Subject, on: computations.GateTexts | Corpus, push: float, seeds: int) -> list[str]:
    imports = ["import vizformer as vf", "from vizformer.analysis.causes.head_gates import fit_gates"]
    if on == "repeated":
        imports.append("from vizformer.analysis.causes.other_texts import read_repeated_tokens")
        lines = [f"texts, prompts = read_repeated_tokens(checkpoint, {computations.GATE_TEXTS})"]
    else:
        more, texts = other_texts.in_python(subject, None if on == "corpus" else on, computations.GATE_TEXTS)
        imports += more
        lines = [f"texts, prompts = {texts}, None"]
    lines += [
        f"found = fit_gates(checkpoint, texts, prompts=prompts, push={push}, seeds=range({seeds}))",
        "for part, role in zip(found.heads, found.roles(), strict=True):",
        "    print(part, role)",
    ]
    return [*imports, "", f"checkpoint = {in_python.loaded(subject.model)}", *lines]
