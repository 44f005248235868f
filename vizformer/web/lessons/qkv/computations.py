"""Cached computations of the lesson Query, key, value."""

from jaxtyping import Float
from numpy import ndarray

from vizformer.analysis import (
    Asymmetry,
    Bilinear,
    CellQuestion,
    HeadLookUp,
    Kind,
    RatioQuestion,
    ScaleQuestion,
    ScoreForms,
    ScoreScale,
    WhereQuestion,
    asymmetry,
    head_look_up,
    score_forms,
)
from vizformer.analysis.heads import score_scaling as scaling
from vizformer.analysis.heads.score_scaling import Saturation
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject


@cached
def look_up(subject: Subject, site: str, head: int, query: int, temperature: float) -> HeadLookUp:
    return head_look_up(subject.trace, site, head, query, temperature=temperature)


@cached
def forms(subject: Subject, site: str, head: int) -> ScoreForms:
    return score_forms(subject.checkpoint, subject.trace, site, head)


@cached
def asymmetries(subject: Subject, site: str) -> list[tuple[Asymmetry, Asymmetry, Asymmetry]]:
    """(identity, shared, learned) for every head of a site."""
    n_heads = subject.trace[site].n_heads
    found = [forms(subject, site, head) for head in range(n_heads)]
    return [(asymmetry(f.identity), asymmetry(f.shared), asymmetry(f.learned)) for f in found]


@cached
def bilinear(subject: Subject, site: str, head: int) -> Bilinear:
    from vizformer.analysis import bilinear

    return bilinear(subject.checkpoint, subject.trace, site, head)


@cached
def variances(seed: int) -> Float[ndarray, " widths"]:
    return scaling.variances(seed)


@cached
def saturation(seed: int) -> Saturation:
    return scaling.saturation(seed)


@cached
def score_scale(subject: Subject, site: str, head: int) -> ScoreScale:
    from vizformer.analysis import score_scale

    return score_scale(subject.trace, site, head)


@cached
def where_question(subject: Subject, kind: Kind) -> WhereQuestion | None:
    from vizformer.analysis import where_question

    return where_question(subject.trace, kind)


@cached
def scale_question(subject: Subject, kind: Kind) -> ScaleQuestion | None:
    from vizformer.analysis import scale_question

    return scale_question(subject.trace, kind)


@cached
def ratio_question(subject: Subject, kind: Kind) -> RatioQuestion | None:
    from vizformer.analysis import ratio_question

    return ratio_question(subject.trace, kind)


@cached
def cell_question(subject: Subject, kind: Kind, most: int) -> CellQuestion | None:
    from vizformer.analysis import cell_question

    return cell_question(subject.trace, kind, most)
