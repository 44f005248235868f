"""A laboratory of the lesson Masks: six kinds of mask, each laid over a head."""

from collections.abc import Sequence

import numpy as np
import streamlit as st

from vizformer.analysis import Kind, site_name
from vizformer.analysis.masks import PaddedRun, padded_run
from vizformer.components import mask, matrix
from vizformer.explain import Masked, latex, masked_attention
from vizformer.explain.snippets import Given
from vizformer.model.masks import KINDS, MaskKind, MaskRecipe
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.masks.masked_head import Laid, causal_on, laid, notes, place, shown_on, table, tokens
from vizformer.web.link import state
from vizformer.web.widgets import head_downloads, lesson, map_words, model_suggestions
from vizformer.web.widgets.chart import take_away
from vizformer.web.widgets.lab import Laboratory, controls
from vizformer.web.widgets.model_input import ask_other_sentence
from vizformer.web.words import counts, labels

lab = Laboratory("masks", "kinds", wide=True)
_PANELS = "masks.panels"
TERMS = 4  # of a sum that are written out
CONDITIONS: dict[MaskKind, str] = {
    "causal": r"j \le i",
    "padding": r"\mathrm{key}_j \ne \mathrm{pad}",
    "cross": r"\mathrm{source}_j \ne \mathrm{pad}",
    "prefix": r"j \le i \;\lor\; j < p",
    "window": r"|i - j| \le w",
    "bigbird": r"|i - j| \le w \;\lor\; i < g \;\lor \\ & j < g \;\lor\; j \in R_i",
}
_PLACES = "i, j = torch.arange(n)[:, None], torch.arange(n)[None, :]\n"
_SOFTMAX = "weights = torch.softmax(scores + M, dim=-1)"
_PADDING = (
    "is_padding = torch.arange(n_k) >= n_real\n"
    "M = torch.zeros(n_q, n_k).masked_fill(is_padding[None, :], -math.inf)\n" + _SOFTMAX
)
CODES: dict[MaskKind, str] = {
    "causal": "M = torch.full((n, n), -math.inf).triu(1)\n" + _SOFTMAX,
    "padding": _PADDING,
    "cross": _PADDING,
    "prefix": _PLACES + "M = torch.zeros(n, n).masked_fill((j > i) & (j >= p), -math.inf)\n" + _SOFTMAX,
    "window": _PLACES + "M = torch.zeros(n, n).masked_fill((j - i).abs() > w, -math.inf)\n" + _SOFTMAX,
    "bigbird": _PLACES + "visible = ((j - i).abs() <= w) | (i < g) | (j < g)\n"
    "generator = torch.Generator().manual_seed(seed)\n"
    "for row in range(g, n):\n"
    "    left = torch.nonzero(~visible[row])[:, 0]\n"
    "    visible[row, left[torch.randperm(len(left), generator=generator)[:r]]] = True\n"
    "M = torch.zeros(n, n).masked_fill(~visible, -math.inf)\n" + _SOFTMAX,
}
"""What computes each mask; run in a test with the names of the formula (and, in a causal model, `CAUSAL_TOO`)."""
CAUSAL_TOO = "M = M + torch.full((n, n), -math.inf).triu(1)\n"


@cached
def batch(subject: Subject, other: str, second: bool) -> PaddedRun:
    """The sentence and another one in a batch; with `second` the other one is batch item 0, which is shown."""
    own, added = subject.trace, Subject(subject.model, other, "").trace
    return padded_run(subject.checkpoint, *((added, own) if second else (own, added)))


@cached
def laid_batch(subject: Subject, other: str, second: bool, attention: Kind, layer: int, head: int) -> Laid:
    """The mask of the padded batch over a head, for the sentence that is shown."""
    run, (rows, columns) = batch(subject, other, second), labels.stacks(attention)
    found = masked_attention(run.trace[site_name(attention, layer)], head)
    return Laid(found, run.tokens[rows], run.tokens[columns], unused=run.unused(rows))


@lab.draws
def draw_six_masks(subject: Subject) -> None:
    with controls():
        kind = lab.buttons("kind", KINDS, "causal", label_visibility="collapsed")
        attention = shown_on(subject, kind)
        if attention is not None:
            why = place(subject, attention)
    if attention is None:
        st.info(lab.text("alone"))
        model_suggestions.offer(model_cache.reads_target, "masks")
        return
    view, config, batched = state.view(), subject.config, kind in ("padding", "cross")
    window = config.sliding_window if attention == "decoder" and view.layer in config.windowed_layers else None
    with controls():
        if batched:
            recipe, (other, second) = MaskRecipe(kind), _batch(subject, attention)
            found = laid_batch(subject, other, second, attention, view.layer, view.head)
        else:
            recipe = _settings(kind, attention, len(tokens(subject, attention)[0]), window)
            found = laid(subject, attention, view.layer, view.head, recipe)
    masked = found.masked
    rows, columns = _named(subject, attention, found), labels.texts(found.keys)
    drawn = mask.MaskView(rows, columns, masked.reasons, masked.scores, masked.weights, found.kept, found.unused)
    mask.mount(drawn, key=_PANELS)
    told = [head_downloads.head_name(attention, view.layer, view.head), lab.text(f"kind.{kind}")]
    take_away(*head_downloads.mask(drawn, " · ".join(told)), key=_PANELS)
    st.caption(" · ".join(filter(None, (lab.text("on", attention=labels.kind_label(attention)), why))))
    notes(lab, subject, attention, masked, own=masked.own)
    if batched:
        both, stack = batch(subject, other, False), labels.stacks(attention)[1]
        places = [str(i) for i in range(len(both.tokens[stack]))]
        pair = [labels.texts(both.tokens[stack]), labels.texts(both.other[stack])]
        st.html(matrix.style() + table(lab.text("batch", n=len(places)), places, ["0", "1"], pair, both.padding[stack]))
        lab.note("alike", difference=f"{batch(subject, other, second).difference:.1g}")
    if kind in ("window", "bigbird"):
        share = f"{masked.n_open / masked.reasons.size:.0%}"
        lab.note("open", visible=masked.n_open, all=masked.reasons.size, percent=share)
    padded = kind == "padding" and attention == "decoder"  # on top of the model's own mask
    lines = code(recipe, recipe.causal or padded, window if padded else None)
    lesson.formula(
        rf"M_{{ij}} = \begin{{cases}} 0 & {CONDITIONS[kind]} \\ -\infty & \text{{{lab.text('otherwise')}}} \end{{cases}}",
        live=live_row(masked, found.unused),
        code=lines,
        given=given(recipe, masked.scores, masked.padding_keys),
    )
    if kind == "causal":
        lesson.ask(six_masks_question(subject))


@lab.asks("count")
def six_masks_question(subject: Subject) -> lesson.Choice:
    n = len(tokens(subject, causal_on(subject))[0])
    right = n * (n - 1) // 2
    wrong = {"diagonal": n * (n + 1) // 2, "all": n * n, "row": max(n - 1, 0)}
    return lab.options("count", right, wrong, subject, tokens=counts.tokens(n), n=n, first=n - 1, right=right)


def _named(subject: Subject, attention: Kind, found: Laid) -> list[str]:
    """The labels of the rows: with what they choose, where they are those of the typed sentence."""
    own = subject.trace.tokens[labels.stacks(attention)[0]]
    same = found.queries[: len(own)] == own  # (a batch may be longer, or show its other sentence)
    return map_words.queries(subject, attention) * same + labels.texts(found.queries[len(own) * same :])


def _settings(kind: MaskKind, attention: Kind, n: int, window: int | None) -> MaskRecipe:
    """The sliders of a kind of mask; the widest window is 8 keys, or the model's own where that is wider."""
    if kind == "causal":
        return MaskRecipe(kind)
    if kind == "prefix":
        return MaskRecipe(kind, prefix=1 if n < 2 else lab.slider("prefix", 0, n, min(2, n)))
    reach, causal = lab.slider("reach", 0, max(8, min(window or 0, n) - 1), 1), attention == "decoder"
    if kind == "window":
        return MaskRecipe(kind, reach=reach, causal=lab.toggle("causal", causal))
    n_global, n_random, seed = lab.slider("global", 0, 4, 1), lab.slider("random", 0, 4, 1), lab.slider("seed", 0, 9, 0)
    return MaskRecipe(kind, 2, reach, n_global, n_random, seed, lab.toggle("causal", causal))


def _batch(subject: Subject, attention: Kind) -> tuple[str, bool]:
    """The second sentence, and whether it is the one that is shown."""
    chinese = any("\u4e00" <= character <= "\u9fff" for character in subject.text)
    example = "今天天气很好，我们去公园。" if chinese else "The cat sat on the chair and looked at me."
    if not model_cache.reads(subject.model, example):  # token ids are typed: those of the sentence twice are longer
        example = f"{subject.text} {subject.text}"
    other = ask_other_sentence(lab.text("other"), "batch", example, example)
    padded = batch(subject, other, False).padding[labels.stacks(attention)[1]]
    return other, lab.buttons("sentence", ("typed", "second"), "second" if padded[1].any() else "typed") == "second"


def live_row(masked: Masked, unused: Sequence[int] = ()) -> str:
    """The softmax of one row with its numbers: what is blocked is missing from the denominator.

    `unused` are queries whose rows nobody reads, those of padding: none of them is worked out.
    """
    if (telling := masked.telling_row(unused)) is None:
        return ""
    i, seen = telling
    terms = [f"e^{{{masked.scores[i, key]:.2f}}}" for key in seen[:TERMS]]
    below = " + ".join([*terms, *[r"\cdots"] * (len(seen) > TERMS)])
    return rf"A_{{{i},{seen[0]}}} = \frac{{{terms[0]}}}{{{below}}} = {latex.number(masked.weights[i, seen[0]])}"


def code(recipe: MaskRecipe, causal: bool, window: int | None = None) -> str:
    """The PyTorch lines of a mask; `causal` where the future is blocked besides, and what a `window` hides."""
    written = CODES[recipe.kind]
    if not causal:
        return written
    if window is not None:
        written = written.replace(_SOFTMAX, f"M = M + torch.full((n, n), -math.inf).tril(-{window})\n" + _SOFTMAX)
    written = written.replace("~visible[row])", "~visible[row, : row + 1])")  # what is drawn is not after the query
    return written.replace(_SOFTMAX, CAUSAL_TOO + _SOFTMAX)


def given(recipe: MaskRecipe, scores: np.ndarray, is_padding: Sequence[bool]) -> dict[str, Given]:
    """The numbers that the code of a mask reads, by its names for them; what is padding comes after all that is not."""
    (n_q, n_k), (p, w, g, r) = scores.shape, (recipe.prefix, recipe.reach, recipe.n_global, recipe.n_random)
    sizes: dict[str, Given] = {"n": n_q, "n_q": n_q, "n_k": n_k, "p": p, "w": w, "g": g, "r": r, "seed": recipe.seed}
    return sizes | {"n_real": n_k - sum(is_padding), "scores": scores}
