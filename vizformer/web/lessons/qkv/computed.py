"""Cached computations of the lesson Query, key, value, and its questions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached

if TYPE_CHECKING:
    from vizformer.analysis import Kind
    from vizformer.config import ModelConfig
    from vizformer.explain.bilinear import Asymmetry, Bilinear, ScoreForms
    from vizformer.explain.lookup import HeadLookUp
    from vizformer.explain.scaling import Saturation, ScoreScale
    from vizformer.text import Token
    from vizformer.web.catalogue.subject import Subject

MOST_ROWS = 12  # of a table of keys; of longer sentences the keys with the largest weights are shown
MOST_CHOICES = 5


def scores_formula(config: "ModelConfig") -> str:
    """The scores of a head over all pairs of rows, with the model's biases, rotation or factor; LaTeX."""
    b_Q, b_K = (" + b_Q", " + b_K") if config.qkv_bias else ("", "")
    own = config.attention_scale
    start, end = (r"\frac{", r"}{\sqrt{d_\mathrm{head}}}") if own is None else (r"c\,", "")
    last = "" if own is None else rf", \quad c = {own:g}"
    if config.positions == "rope":  # R(i)^T R(j) is one rotation, by the distance
        lines = [rf"S_{{ij}} &= {start}(x_i W_Q{b_Q})\,R_{{j-i}}\,(x_j W_K{b_K})^\top{end}{last}"]
    else:
        lines = [rf"S &= {start}(X W_Q{b_Q})(X W_K{b_K})^\top{end}"]
        alone = r" + X W_Q\,b_K^\top + b_Q\,(X W_K)^\top + b_Q b_K^\top" if config.qkv_bias else ""
        lines.append(rf"&= {start}X\,(W_Q W_K^\top)\,X^\top{alone}{end}{last}")
    same = "W_Q = W_K" + (r",\ b_Q = b_K" if config.qkv_bias else "")
    lines.append(rf"{same} \;&\Rightarrow\; S_{{ij}} = S_{{ji}}")
    return r"\begin{aligned} " + r" \\ ".join(lines) + r" \end{aligned}"


def shown_rows(weights: Float[ndarray, " n"]) -> list[int]:
    """The keys that a table has room for, in the order of the sentence."""
    if len(weights) <= MOST_ROWS:
        return list(range(len(weights)))
    return sorted(int(key) for key in np.argsort(-weights, kind="stable")[:MOST_ROWS])


@cached
def look_up(subject: "Subject", site: str, head: int, query: int, temperature: float) -> "HeadLookUp":
    from vizformer.explain.lookup import head_look_up

    return head_look_up(subject.trace, site, head, query, temperature=temperature)


@cached
def forms(subject: "Subject", site: str, head: int) -> "ScoreForms":
    from vizformer.explain.bilinear import score_forms

    return score_forms(model_cache.checkpoint(subject.model), subject.trace, site, head)


@cached
def asymmetries(subject: "Subject", site: str) -> "list[tuple[Asymmetry, Asymmetry, Asymmetry]]":
    """(identity, shared, learned) for every head of a site."""
    from vizformer.explain.bilinear import asymmetry

    n_heads = subject.trace[site].n_heads
    found = [forms(subject, site, head) for head in range(n_heads)]
    return [(asymmetry(f.identity), asymmetry(f.shared), asymmetry(f.learned)) for f in found]


@cached
def bilinear(subject: "Subject", site: str, head: int) -> "Bilinear":
    from vizformer.explain.bilinear import bilinear

    return bilinear(model_cache.checkpoint(subject.model), subject.trace, site, head)


@cached
def variances(seed: int) -> Float[ndarray, " widths"]:
    from vizformer.explain.scaling import variances

    return variances(seed)


@cached
def saturation(seed: int) -> "Saturation":
    from vizformer.explain.scaling import saturation

    return saturation(seed)


@cached
def score_scale(subject: "Subject", site: str, head: int) -> "ScoreScale":
    from vizformer.explain.scaling import score_scale

    return score_scale(subject.trace, site, head)


# --- questions --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WhereQuestion:
    """Where does a query look most? `keys` are the choices, `weights` those of all keys."""

    layer: int
    head: int
    query: int
    keys: tuple[int, ...]
    best: int
    weights: tuple[float, ...]


@cached
def where_question(subject: "Subject", kind: "Kind") -> WhereQuestion | None:
    """A query with a clear answer: the largest lead of a key over the next one, away from the query itself if possible.

    None where no query has two keys to choose from.
    """
    from vizformer.analysis import head_maps
    from vizformer.web.words.labels import stacks

    trace = subject.trace
    maps = head_maps(trace, kind)
    queries = trace.tokens[stacks(kind)[0]]
    sees = maps.reasons == 0  # [n_layers, n_q, n_k]
    if maps.weights.shape[-1] < 2 or (sees.sum(-1) < 2).all():
        return None
    top = np.sort(maps.weights, -1)
    lead = top[..., -1] - top[..., -2]  # [n_layers, n_heads, n_q]
    best = maps.weights.argmax(-1)
    lead = lead - 1.0 * _dull(queries, sees)[:, None]
    lead = lead - (0.5 * (best == np.arange(best.shape[-1])) if kind != "cross" else 0.0)
    layer, head, query = (int(i) for i in np.unravel_index(int(lead.argmax()), lead.shape))
    answer, n_k = int(best[layer, head, query]), maps.weights.shape[-1]
    near = [answer, query, query - 1, 0, query + 1, n_k - 1, *range(n_k)]
    usable = [key for key in dict.fromkeys(near) if 0 <= key < n_k and sees[layer, query, key]]
    weights = tuple(float(w) for w in maps.weights[layer, head, query])
    return WhereQuestion(layer, head, query, tuple(sorted(usable[:MOST_CHOICES])), answer, weights)


def _dull(tokens: "Sequence[Token]", sees: ndarray) -> ndarray:
    """[n_layers, n_q] Queries that make no good question: marks, and those that have little to choose from."""
    special = np.array([token.special for token in tokens], dtype=np.bool_)
    dull: ndarray = special | (sees.sum(-1) < min(3, sees.shape[-1]))
    return dull


@dataclass(frozen=True)
class ScaleQuestion:
    """A query's largest weight with the division (`divided`) and without it; `even` is 1 / the keys it sees."""

    layer: int
    head: int
    query: int
    key: int
    divisor: float
    divided: float
    undivided: float
    even: float


@cached
def scale_question(subject: "Subject", kind: "Kind") -> ScaleQuestion | None:
    """The query whose largest weight grows most when the division is forgotten; None where none has a choice."""
    from vizformer.analysis import head_maps, n_layers, site_name
    from vizformer.web.words.labels import stacks

    trace = subject.trace
    maps = head_maps(trace, kind)
    sees = (maps.reasons == 0).sum(-1)  # [n_layers, n_q]
    if (sees < 2).all():
        return None
    found: list[tuple[float, ScaleQuestion]] = []
    dull = _dull(trace.tokens[stacks(kind)[0]], maps.reasons == 0)
    for layer in range(n_layers(trace, kind)):
        for head in range(maps.weights.shape[1]):
            scale = score_scale(subject, site_name(kind, layer), head)
            gain = scale.largest_undivided - scale.largest - 1.0 * dull[layer]
            query = int(gain.argmax())
            found.append(
                (
                    float(gain[query]),
                    ScaleQuestion(
                        layer,
                        head,
                        query,
                        int(maps.weights[layer, head, query].argmax()),
                        scale.divisor,
                        float(scale.largest[query]),
                        float(scale.largest_undivided[query]),
                        1.0 / sees[layer, query],
                    ),
                )
            )
    return max(found, key=lambda pair: pair[0])[1]
