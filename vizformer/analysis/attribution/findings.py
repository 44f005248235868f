"""What is most remarkable about one prediction: a few findings, each with the picture that shows it.

The shares are those of direct logit attribution against the mean logit (`logit_attribution`): shares of a sum, not effects.
What the answer needs is measured beside (`ablation`): the probability of the token without each head and without each layer.
That may be another story: a head may work through later ones, and two that do the same stand in for each other.
A head copies the answer where it looks at a token that is the answer and, through these keys alone, adds a good part of its
logit: attention times attribution.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from vizformer.analysis.attribution.direct import by_key, logit_attribution
from vizformer.analysis.attribution.lens import LogitLens, logit_lens, predicting_stack
from vizformer.analysis.attribution.predictions import writable
from vizformer.analysis.attribution.terms import LogitAttribution, Term
from vizformer.analysis.causes.ablation import parts_of, sweep, without_layer
from vizformer.analysis.circuits import compositions, predicting_kind
from vizformer.analysis.heads.maps import Kind, kind_of, kinds, site_name
from vizformer.analysis.heads.measures import SINK, sinks
from vizformer.analysis.heads.small_maps import head_overview
from vizformer.checkpoints import Checkpoint
from vizformer.explain.arrays import float64
from vizformer.model import count_parameters
from vizformer.model.input_check import row_at
from vizformer.model.trace import Trace

MOST_WORK = 4e10
"""Multiplications of the runs without each head and each layer, about: above it they are left out, and a finding says so."""
SHARE = 0.1  # a part is named where it adds, or takes off, at least this share of what the logit is above the mean
MOST_PARTS = 3
LOOKS = 0.2  # of the attention of a head that copies is on tokens that are the answer
PREVIOUS = 0.5  # of the attention of a head is on the token before, for one that an induction head reads
MOST_HEADS = 256  # whose compositions are looked for

ROWS = 64  # queries that are looked at together for sinks

What = Literal[
    "predicted",
    "part",
    "layer",
    "needed",
    "needed_layer",
    "unmeasured",
    "settles",
    "lost",
    "never",
    "copies",
    "induction",
    "reads",
    "sink",
]


@dataclass(frozen=True)
class Finding:
    what: What
    values: dict[str, Any] = field(default_factory=dict)
    # kind, layer, head: of the picture that shows it; without a head it is the lens
    kind: Kind | None = None
    layer: int | None = None
    head: int | None = None
    query: int | None = None  # the row there; of the lens the position


def scan(checkpoint: Checkpoint, trace: Trace, position: int | None = None, token: int | None = None) -> list[Finding]:
    """The findings on a token (None: the most probable) at a position (None: the last) of the stack that predicts."""
    position = row_at(-1 if position is None else position, len(trace.logits))
    token = int(writable(checkpoint, trace.logits[position]).argmax()) if token is None else token
    found = logit_attribution(checkpoint, trace, position, token) if checkpoint.model.config.has_plain_stream else None
    lens = logit_lens(checkpoint, trace, [position], targets=[token])
    texts = [one.text for one in trace.tokens[predicting_stack(checkpoint)]]
    answer = checkpoint.tokenizer.tokens([token])[0].text
    said = {"answer": answer, "position": position, "token": texts[position]}
    p, place = float(lens.target_probability[-1, 0]), {"rank": int(lens.rank[-1, 0]), "tied": int(lens.tied[-1, 0])}
    return [
        Finding("predicted", {**said, "probability": p, **place}, query=position),
        _lens(lens, said),
        *([] if found is None else _parts(found, said)),
        *_needed(checkpoint, trace, position, token, said),
        *([] if found is None else _copies(checkpoint, trace, found, said)),
        *_sinks(trace),
    ]


def _lens(lens: LogitLens, said: dict[str, Any]) -> Finding:
    """Where the answer comes to the top of the logit lens; point 0 are the embeddings, point l + 1 follows layer l."""
    appears, settled = lens.appears(0), lens.settled(0)
    if settled is not None:
        p = float(lens.target_probability[settled, 0])
        return Finding(
            "settles", {**said, "point": settled, "probability": p}, layer=settled - 1, query=lens.positions[0]
        )
    if appears is not None:
        return Finding("lost", {**said, "point": appears}, layer=appears - 1, query=lens.positions[0])
    best = int(lens.rank[:, 0].argmin())
    values = {**said, "point": best, "rank": int(lens.rank[best, 0]), "tied": int(lens.tied[best, 0])}
    return Finding("never", values, layer=best - 1, query=lens.positions[0])


def _parts(found: LogitAttribution, said: dict[str, Any]) -> list[Finding]:
    """The heads and networks with the largest terms, and the layer that adds most."""
    large = [term for term in found.sorted if abs(term.value) >= SHARE * abs(found.logit)]
    named = [term for term in large if term.part in ("head", "feedforward")]
    parts = [
        Finding(
            "part",
            {**said, "value": term.value, "logit": found.logit, "network": term.part == "feedforward"},
            kind_of(term.place) if term.part == "head" else None,
            term.layer,
            term.head,
            found.position,
        )
        for term in named[:MOST_PARTS]
    ]
    layers = sorted({term.layer for term in found.terms if term.layer is not None})
    best = max(layers, key=found.of_layer)
    if len(layers) > 1 and found.of_layer(best) >= SHARE * abs(found.logit):
        values = {**said, "value": found.of_layer(best), "logit": found.logit}
        parts.append(Finding("layer", values, layer=best, query=found.position))
    return parts


def _needed(checkpoint: Checkpoint, trace: Trace, position: int, token: int, said: dict[str, Any]) -> list[Finding]:
    """The heads and the layer without which the token loses most of its probability, at least `SHARE` of it."""
    heads = [part for part in parts_of(trace) if part.head is not None]
    stacks = sorted({part.sublayer.rpartition(".")[0] for part in heads})  # encoder.0, ...: the layers
    runs, n = len(heads) + len(stacks), sum(map(len, trace.tokens.values()))
    if runs * n * count_parameters(checkpoint.model.config) > MOST_WORK:
        return [Finding("unmeasured", {"runs": runs}, query=position)]
    p = float(trace.logits[position].double().softmax(-1)[token])
    findings = []
    effects = sweep(checkpoint, trace, position, token, parts=heads, loss=False)
    for one in sorted(effects, key=lambda one: one.probability)[:MOST_PARTS]:
        if -one.probability < SHARE * p:
            break
        stack, layer, _ = one.part.sublayer.split(".")
        kind = kind_of(one.part.sublayer)
        values = {**said, "before": p, "after": p + one.probability}
        query = position if stack == predicting_stack(checkpoint) else None
        findings.append(Finding("needed", values, kind, int(layer), one.part.head, query))
    after = [
        float(without_layer(checkpoint, trace, name).logits[position].double().softmax(-1)[token]) for name in stacks
    ]
    least = int(np.argmin(after))
    if len(stacks) > 1 and p - after[least] >= SHARE * p:
        stack, layer = stacks[least].split(".")
        values = {**said, "before": p, "after": after[least], "stack": stack, "both": len(trace.tokens) == 2}
        findings.append(Finding("needed_layer", values, layer=int(layer), query=position))
    return findings


def _copies(checkpoint: Checkpoint, trace: Trace, found: LogitAttribution, said: dict[str, Any]) -> list[Finding]:
    """The head that looks at the answer and writes it; whether it found it by what stood before; and which head said so."""
    best: tuple[float, Term, int, float] | None = None
    for term in found.terms:
        if term.part != "head" or term.head is None or term.value < SHARE * abs(found.logit):
            continue
        kind = kind_of(term.place)
        keys = trace.tokens["encoder" if kind in ("encoder", "cross") else "decoder"]
        there = np.array([key.id == found.token for key in keys])
        if kind == "cross" and checkpoint.source_tokenizer is not None:  # other tokens by the same ids
            continue
        weights = float64(trace[term.place].pattern(term.head)[found.position])
        added = by_key(checkpoint, trace, found, term.place, term.head)
        if not there.any() or weights[there].sum() < LOOKS or added[there].sum() < SHARE * abs(found.logit):
            continue
        if best is None or added[there].sum() > best[0]:
            best = (
                float(added[there].sum()),
                term,
                int(np.where(there, added, -np.inf).argmax()),
                float(weights[there].sum()),
            )
    if best is None:
        return []
    value, term, key, weight = best
    kind = kind_of(term.place)
    tokens = trace.tokens["decoder" if kind == "decoder" else "encoder"]
    again = kind != "cross" and 0 < key <= found.position and tokens[key - 1].id == tokens[found.position].id
    values = {**said, "key": key, "weight": weight, "value": value, "logit": found.logit}
    findings = [Finding("induction" if again else "copies", values, kind, term.layer, term.head, found.position)]
    return findings + (_read_by(checkpoint, trace, term, key) if again else [])


def _read_by(checkpoint: Checkpoint, trace: Trace, term: Term, key: int) -> list[Finding]:
    """The earlier head that tells an induction head what stood before: it looks there, and its output becomes the key."""
    kind, config = predicting_kind(checkpoint), checkpoint.model.config
    if config.layers_of(kind) * config.n_heads > MOST_HEADS:
        return []
    for first, second, excess in compositions(checkpoint, kind).clear("K"):
        if second != (term.layer, term.head):
            continue
        weight = float(trace[site_name(kind, first[0])].pattern(first[1])[key, key - 1])
        if weight >= PREVIOUS:
            values = {
                "reader_layer": term.layer,
                "reader_head": term.head,
                "key": key,
                "weight": weight,
                "excess": excess,
            }
            return [Finding("reads", values, kind, *first, key)]
    return []


def _sinks(trace: Trace) -> Iterator[Finding]:
    """Of each kind of attention, the key that most heads rest on."""
    for kind in kinds(trace):
        record = trace[site_name(kind, 0)]
        n_q, n_k = record.q.shape[1], record.k.shape[1]
        every = head_overview(trace, kind, np.arange(0, n_q, ROWS), np.array([0])).measures.received
        if not (found := sinks(every)):
            continue
        key, received = found[0], every[:, :, found[0]]
        layer, head = (int(at) for at in np.unravel_index(received.argmax(), received.shape))
        keys = trace.tokens["decoder" if kind == "decoder" else "encoder"]
        share = float((received > max(SINK, 2.0 / n_k)).mean())
        values = {"key": key, "token": keys[key].text, "share": share, "most": float(received[layer, head])}
        yield Finding("sink", values, kind, layer, head)
