"""Cached computations of the lesson Many heads, and what is said of them."""

from typing import TYPE_CHECKING

from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.words.i18n import _

if TYPE_CHECKING:
    from torch import Tensor

    from vizformer.analysis import Kind
    from vizformer.analysis.contributions import Contributions, KeyContributions
    from vizformer.analysis.habits import HeadHabits
    from vizformer.analysis.head_costs import LayerCost, SharingCost
    from vizformer.web.catalogue.subject import Subject

SPREAD = 0.75  # of the visible keys: from so many on, a head reads from almost all of them


@cached
def contributions(subject: "Subject", site: str, query: int) -> "Contributions":
    from vizformer.analysis.contributions import contributions

    return contributions(model_cache.checkpoint(subject.model), subject.trace, site, query)


@cached
def key_contributions(subject: "Subject", site: str, head: int, query: int) -> "KeyContributions":
    from vizformer.analysis.contributions import key_contributions

    return key_contributions(model_cache.checkpoint(subject.model), subject.trace, site, head, query)


@cached
def habits(subject: "Subject", kind: "Kind") -> "HeadHabits":
    from vizformer.analysis import head_maps
    from vizformer.analysis.habits import head_habits

    return head_habits(head_maps(subject.trace, kind), cross=kind == "cross")


@cached
def layer_costs(model: ModelRef, n: int) -> "tuple[LayerCost, ...]":
    """One layer of the model cut into 1, 2, 4, ... heads, each with its own keys and values."""
    from vizformer.analysis.head_costs import layer_cost, possible_heads, with_heads

    config = model_cache.options(model)
    return tuple(layer_cost(with_heads(config, heads), n) for heads in possible_heads(config))


@cached
def sharing_costs(model: ModelRef, length: int, memory: int) -> "tuple[SharingCost, ...]":
    """The model with every possible number of key/value heads."""
    from vizformer.analysis.head_costs import possible_groups, sharing_cost

    config = model_cache.options(model)
    return tuple(sharing_cost(config, groups, length, memory) for groups in possible_groups(config))


def habit(habits: "HeadHabits", layer: int, head: int) -> str:
    """What a head does in this sentence, in words."""
    leading = habits.leading(layer, head)
    if leading is not None:
        share = f"{habits.shares[leading][layer, head]:.0%}"
        return {
            "previous": _("looks at the token before: {share} of its attention", share=share),
            "own": _("looks at the query's own token: {share} of its attention", share=share),
            "next": _("looks at the token after: {share} of its attention", share=share),
            "first": _("looks at the first token: {share} of its attention", share=share),
            "last": _("looks at the last token: {share} of its attention", share=share),
        }[leading]
    keys, visible = float(habits.effective[layer, head]), float(habits.visible[layer])
    numbers = {"keys": f"{keys:.1f}", "visible": f"{visible:.1f}"}
    if keys >= SPREAD * visible:
        return _("spreads out: reads from {keys} of {visible} keys", **numbers)
    return _("no fixed place: reads from {keys} of {visible} keys", **numbers)


def sharing_name(n_heads: int, groups: int) -> str:
    """MHA, GQA or MQA, in words."""
    if groups == n_heads:
        return _("multi-head (MHA)")
    return _("multi-query (MQA)") if groups == 1 else _("grouped-query (GQA)")


def output_matrix(subject: "Subject", site: str) -> "dict[str, Tensor]":
    """W_O as in z W_O, and its bias where it has one, by the names that code has for them."""
    from vizformer.explain.site import find_site
    from vizformer.explain.sublayer import linear_inputs

    found = find_site(model_cache.checkpoint(subject.model), subject.trace, site)
    return linear_inputs(found.attention.W_O, "O")
