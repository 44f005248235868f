"""Cached computations of the lesson Many heads."""

from vizformer.analysis import HabitQuestion, Kind, head_maps
from vizformer.analysis.costs.head_sharing import (
    LayerCost,
    SharingCost,
    layer_cost,
    possible_groups,
    possible_heads,
    sharing_cost,
    with_heads,
)
from vizformer.analysis.heads import pronouns as reference
from vizformer.analysis.heads.minimal_pairs import minimal_pair
from vizformer.analysis.heads.pronouns import ReferenceShift
from vizformer.analysis.heads.residual_contributions import Contributions, KeyContributions
from vizformer.analysis.heads.statistics import HeadStatistics
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.heads.sentences import PAIRS, Pronoun
from vizformer.web.link.model_ref import ModelRef

AFFORDABLE = 100_000_000  # parameters of a model that reads two dozen sentences while a reader waits


@cached
def contributions(subject: Subject, site: str, query: int) -> Contributions:
    from vizformer.analysis.heads.residual_contributions import contributions

    return contributions(subject.checkpoint, subject.trace, site, query)


@cached
def key_contributions(subject: Subject, site: str, head: int, query: int) -> KeyContributions:
    from vizformer.analysis.heads.residual_contributions import key_contributions

    return key_contributions(subject.checkpoint, subject.trace, site, head, query)


@cached
def head_statistics(subject: Subject, kind: Kind) -> HeadStatistics:
    from vizformer.analysis.heads.statistics import head_statistics

    return head_statistics(head_maps(subject.trace, kind), cross=kind == "cross")


@cached
def habit_question(subject: Subject, kind: Kind, most: int) -> HabitQuestion | None:
    from vizformer.analysis import habit_question

    return habit_question(subject.trace, kind, most, head_statistics(subject, kind))


@cached
def reference_shift(model: ModelRef, pronoun: Pronoun) -> ReferenceShift:
    # Only what the first stack makes of a text is measured, and an encoder knows nothing of the target.
    return reference.reference_shift(lambda text: Subject(model, text, _any_target(model, text)).trace, PAIRS[pronoun])


@cached
def readable(model: ModelRef) -> tuple[Pronoun, ...]:
    """The pronouns whose sentences the model can read; none where it is too large to read them all."""
    if sum(parameter.numel() for parameter in model_cache.checkpoint(model).model.parameters()) > AFFORDABLE:
        return ()
    return tuple(
        pronoun
        for pronoun, pairs in PAIRS.items()
        if all(model_cache.reads(model, one.text) for written in pairs for one in minimal_pair(written))
    )


def _any_target(model: ModelRef, text: str) -> str:
    return text.split()[0] if model_cache.reads_target(model) else ""


@cached
def layer_costs(model: ModelRef, n: int) -> tuple[LayerCost, ...]:
    """One layer of the model cut into 1, 2, 4, ... heads, each with its own keys and values."""
    config = model_cache.options(model)
    return tuple(layer_cost(with_heads(config, heads), n) for heads in possible_heads(config))


@cached
def sharing_costs(model: ModelRef, length: int, memory: int) -> tuple[SharingCost, ...]:
    """The model with every possible number of key/value heads."""
    config = model_cache.options(model)
    return tuple(sharing_cost(config, groups, length, memory) for groups in possible_groups(config))
