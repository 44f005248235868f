"""Cached computations of the lesson Masks; settings and texts are the keys, never an array."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link import state

if TYPE_CHECKING:
    from jaxtyping import Bool, UInt8

    from vizformer.analysis.leakage import Leak, Stack
    from vizformer.analysis.mask_mistakes import Outcome
    from vizformer.analysis.masked import Masked, PaddedRun
    from vizformer.model import Mask, Trace
    from vizformer.text import Token

Attention = Literal["encoder", "decoder", "cross"]  # as `vizformer.analysis.Kind`
MaskKind = Literal["causal", "padding", "cross", "prefix", "window", "bigbird"]
KINDS: tuple[MaskKind, ...] = get_args(MaskKind)
Run = Literal["own", "causal", "window", "open"]  # which mask the model runs with in the part on leakage
RUNS: tuple[Run, ...] = get_args(Run)


@dataclass(frozen=True)
class Pattern:
    """Which mask, with its settings (of which a kind uses some)."""

    kind: MaskKind
    prefix: int = 2
    reach: int = 1
    n_global: int = 1
    n_random: int = 1
    seed: int = 0
    causal: bool = False  # a window that does not look ahead either

    def mask(self, n: int) -> "Mask | None":
        """The mask for n tokens; None for padding and cross-attention, where it follows from the batch."""
        from vizformer.model import masks, sparse_masks

        if self.kind == "causal":
            return masks.causal_mask(n)
        if self.kind == "prefix":
            return masks.prefix_mask(n, self.prefix)
        if self.kind == "window":
            return sparse_masks.window_mask(n, self.reach, causal=self.causal)
        if self.kind == "bigbird":
            return sparse_masks.bigbird_mask(n, self.reach, self.n_global, self.n_random, self.seed, causal=self.causal)
        return None

    def kept(self, n: int) -> "UInt8[np.ndarray, 'n n'] | None":
        """Why the cells of a sparse pattern are open."""
        from vizformer.model import sparse_masks

        if self.kind != "bigbird":
            return None
        parts = sparse_masks.bigbird_parts(n, self.reach, self.n_global, self.n_random, self.seed, causal=self.causal)
        found: np.ndarray = parts.numpy()
        return found


@dataclass(frozen=True)
class Laid:
    """A mask laid over a head: the numbers, the tokens of rows and columns, and which of them are padding."""

    masked: "Masked"
    queries: "tuple[Token, ...]"
    keys: "tuple[Token, ...]"
    kept: "UInt8[np.ndarray, 'n_q n_k'] | None"
    unused: tuple[int, ...]


def attentions(subject: Subject) -> tuple[Attention, ...]:
    """The kinds of attention of the model."""
    from vizformer.analysis import kinds

    return kinds(subject.trace)


def looks(subject: Subject, kind: MaskKind) -> Attention | None:
    """The attention on which a kind of mask is shown: where models use it, if this model has that.

    None for the mask of cross-attention where there is none.
    """
    have = attentions(subject)
    if kind == "cross":
        return "cross" if "cross" in have else None
    order: tuple[Attention, ...] = ("decoder", "encoder") if kind in ("causal", "prefix") else ("encoder", "decoder")
    return next(name for name in order if name in have)


def tokens(subject: Subject, attention: Attention) -> "tuple[tuple[Token, ...], tuple[Token, ...]]":
    """The tokens that are queries, and those that are keys."""
    from vizformer.web.words import labels

    rows, columns = labels.stacks(attention)
    found = subject.trace.tokens
    return found[rows], found[columns]


@cached
def laid(subject: Subject, attention: Attention, layer: int, head: int, pattern: Pattern) -> Laid:
    """A mask of one sentence over a head of its trace."""
    from vizformer.analysis import site_name
    from vizformer.analysis.masked import masked_attention

    rows, columns = tokens(subject, attention)
    record = subject.trace[site_name(attention, layer)]
    found = masked_attention(record, head, pattern.mask(len(rows)))
    return Laid(found, rows, columns, pattern.kept(len(rows)), ())


@cached
def batch(subject: Subject, other: str, second: bool) -> "PaddedRun":
    """The sentence and another one in a batch; with `second` the other one is batch item 0, which is shown.

    Raises:
        VizformerError: a text that the model cannot read.
    """
    from vizformer.analysis.masked import padded_run

    own, added = subject.trace, Subject(subject.model, other, "").trace
    return padded_run(model_cache.checkpoint(subject.model), *((added, own) if second else (own, added)))


@cached
def laid_batch(subject: Subject, other: str, second: bool, attention: Attention, layer: int, head: int) -> Laid:
    """The mask of the padded batch over a head, for the sentence that is shown."""
    from vizformer.analysis import site_name
    from vizformer.analysis.masked import masked_attention
    from vizformer.web.words import labels

    run = batch(subject, other, second)
    rows, columns = labels.stacks(attention)
    found = masked_attention(run.trace[site_name(attention, layer)], head)
    unused = tuple(np.flatnonzero(run.padding[rows][0]).tolist())
    return Laid(found, run.tokens[rows], run.tokens[columns], None, unused)


# --- painted by hand --------------------------------------------------------------------------------------------------


def alike(subject: Subject, attention: Attention, layer: int) -> tuple[int, ...]:
    """The layers whose own mask is that of `layer`: all of them, unless some have a sliding window."""
    from vizformer.analysis.masked import own_blocked

    own = own_blocked(subject.trace, attention)
    return tuple(np.flatnonzero((own == own[layer]).all(axis=(1, 2))).tolist())


@cached
def painted(
    subject: Subject, attention: Attention, flips: tuple[tuple[int, int], ...], layers: tuple[int, ...]
) -> "Trace":
    """The model run with these cells of its own mask turned over, in these layers of a kind of attention."""
    from vizformer.analysis.masked import mask_edit, own_blocked, rerun

    own = subject.trace
    blocked = own_blocked(own, attention)
    for query, column in flips:
        blocked[list(layers), query, column] ^= True
    return rerun(model_cache.checkpoint(subject.model), dict(own.tokens), mask_edit(own, attention, blocked))


def painted_head(
    subject: Subject, attention: Attention, flips: tuple[tuple[int, int], ...], layer: int, head: int
) -> "tuple[Masked, UInt8[np.ndarray, 'n_q n_k']]":
    """A head of that run, and the reasons of the model's own mask."""
    from vizformer.analysis import site_name
    from vizformer.analysis.masked import masked_attention

    site = site_name(attention, layer)
    own = subject.trace[site].reason(head).cpu().numpy()
    return masked_attention(painted(subject, attention, flips, alike(subject, attention, layer))[site], head), own


@dataclass(frozen=True)
class Expected:
    """What the model expects at a position, before and after painting: the first choice and its probability."""

    before: "Token"
    before_probability: float
    after: "Token"
    after_probability: float
    moved: float  # largest |difference| of the logits


@cached
def expectations(
    subject: Subject, attention: Attention, flips: tuple[tuple[int, int], ...], layers: tuple[int, ...]
) -> tuple[Expected, ...]:
    """The predictions at every position of the last stack, before and after cells were turned over in these layers."""
    tokenizer = model_cache.checkpoint(subject.model).tokenizer
    before, after = subject.trace.logits, painted(subject, attention, flips, layers).logits
    moved = (after - before).abs().amax(dim=-1).tolist()
    sides = []
    for logits in (before, after):
        best = logits.double().softmax(dim=-1).max(dim=-1)
        sides.append((tokenizer.tokens(best.indices.tolist()), best.values.tolist()))
    (first, p), (second, r) = sides
    return tuple(Expected(*row) for row in zip(first, p, second, r, moved, strict=True))


# --- conventions and mistakes -----------------------------------------------------------------------------------------


def causal_head(subject: Subject, layer: int, head: int) -> "tuple[Masked, tuple[Token, ...]]":
    """A head of the self-attention with the causal mask, whether it has one of its own or not."""
    attention = looks(subject, "causal")
    assert attention is not None  # every model has self-attention
    found = laid(subject, attention, layer, head, Pattern("causal"))
    return found.masked, found.queries


@cached
def conventions(subject: Subject, layer: int, head: int) -> dict[str, float]:
    """By how much the z that each notation gives with its own call differs from the arithmetic in float64."""
    from vizformer.analysis import site_name
    from vizformer.analysis.mask_mistakes import agreement

    attention = looks(subject, "causal")
    assert attention is not None  # every model has self-attention
    record = subject.trace[site_name(attention, layer)]
    return agreement(record, head, causal_head(subject, layer, head)[0].reasons > 0)


@cached
def blind_output(subject: Subject, layer: int, head: int, row: int) -> float:
    """Largest |z| that the fused call gives for a query of which every key is blocked; NaN if it gives NaN."""
    from vizformer.analysis import site_name
    from vizformer.analysis.mask_mistakes import results

    attention = looks(subject, "causal")
    assert attention is not None  # every model has self-attention
    blocked = causal_head(subject, layer, head)[0].reasons > 0
    blocked[row] = True
    z = results(subject.trace[site_name(attention, layer)], head, blocked)["additive"]
    return float(np.abs(z[row]).max())


@cached
def precisions(subject: Subject, layer: int, head: int, row: int) -> "tuple[Outcome, ...]":
    """What big negative numbers do to a row of scores, for every precision and way."""
    from vizformer.analysis.mask_mistakes import PRECISIONS, How, in_precision

    masked = causal_head(subject, layer, head)[0]
    scores, blocked = masked.scores[row], masked.reasons[row] > 0
    ways: tuple[tuple[How, float | None], ...] = (
        ("fill", -1e9),
        ("add", -1e9),
        ("fill", -1e4),
        ("fill", None),
        ("fill", -np.inf),
    )
    return tuple(in_precision(scores, blocked, name, how, value) for how, value in ways for name in PRECISIONS)


# --- leakage ----------------------------------------------------------------------------------------------------------


@cached
def replacements(subject: Subject, stack: "Stack", position: int, count: int = 5) -> "tuple[Token, ...]":
    """Tokens to put in place of one: those with the most similar embeddings, then others of the sentence."""
    checkpoint, row = model_cache.checkpoint(subject.model), subject.trace.tokens[stack]
    own, table = row[position].id, checkpoint.model.token_table(stack).weight
    similar = (table @ table[own]) / (table.norm(dim=-1) * table[own].norm()).clamp(min=1e-9)
    near = checkpoint.reader(stack).tokens(similar.topk(min(4 * count, len(table))).indices.tolist())
    found: dict[int, Token] = {}
    for token in (*[t for t in near if t.text.strip()][: count + 1], *row):
        if token.id != own and not token.special:
            found.setdefault(token.id, token)
    return tuple(found.values())


@cached
def leakage(subject: Subject, stack: "Stack", position: int, token_id: int, run: Run, reach: int) -> "Leak":
    """How far the outputs of a stack move when one of its tokens is replaced, with a mask of choice in all layers."""
    from vizformer.analysis.leakage import leak
    from vizformer.analysis.masked import mask_edit, own_blocked, rerun

    checkpoint, own = model_cache.checkpoint(subject.model), subject.trace
    n = len(own.tokens[stack])
    edit = mask_edit(own, stack, blocked_by(run, own_blocked(own, stack), n, reach))
    changed = dict(own.tokens)
    row = list(changed[stack])
    row[position] = checkpoint.reader(stack).tokens([token_id])[0]
    changed[stack] = tuple(row)
    return leak(rerun(checkpoint, dict(own.tokens), edit), rerun(checkpoint, changed, edit), stack)


def blocked_by(
    run: Run, own: "Bool[np.ndarray, 'n_layers n n']", n: int, reach: int
) -> "Bool[np.ndarray, '*n_layers n n']":
    """What is blocked when the model runs with this mask: in all layers, or in each."""
    if run == "open":
        return np.zeros((n, n), dtype=bool)
    if run == "own":
        return own
    mask = Pattern("causal" if run == "causal" else "window", reach=reach).mask(n)
    assert mask is not None
    found: np.ndarray = mask.reason[0, 0].numpy() > 0
    return found | own if run == "window" else found


# --- settings ---------------------------------------------------------------------------------------------------------


def place(subject: Subject, attention: Attention) -> tuple[int, int]:
    """The layer and the head of the view, held within what the model has."""
    from vizformer.analysis import n_layers

    config = model_cache.checkpoint(subject.model).model.config
    view = state.fit(layer=n_layers(subject.trace, attention), head=config.n_heads)
    return view.layer, view.head
