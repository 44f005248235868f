"""What the lesson Many heads says of heads and of their number."""

from vizformer.analysis import HabitQuestion
from vizformer.analysis.heads.statistics import HeadStatistics, Tendency
from vizformer.web.words.i18n import _

SPREAD = 0.75  # of the visible keys: from so many on, a head reads from almost all of them


def tendency(found: HeadStatistics, layer: int, head: int) -> str:
    """What a head does in this sentence, in words."""
    leading = found.leading(layer, head)
    if leading is not None:
        share = f"{found.shares[leading][layer, head]:.0%}"
        return {
            "previous": _("looks at the token before: {share} of its attention", share=share),
            "own": _("looks at the query's own token: {share} of its attention", share=share),
            "next": _("looks at the token after: {share} of its attention", share=share),
            "first": _("looks at the first token: {share} of its attention", share=share),
            "last": _("looks at the last token: {share} of its attention", share=share),
        }[leading]
    keys, visible = float(found.effective[layer, head]), float(found.visible[layer])
    numbers = {"keys": f"{keys:.1f}", "visible": f"{visible:.1f}"}
    if keys >= SPREAD * visible:
        return _("spreads out: reads from {keys} of {visible} keys", **numbers)
    return _("no fixed place: reads from {keys} of {visible} keys", **numbers)


def deed(tendency: Tendency) -> str:
    """What a head may do, in words."""
    return {
        "previous": _("looks at the token before"),
        "own": _("looks at the query's own token"),
        "next": _("looks at the token after"),
        "first": _("looks at the first token"),
        "last": _("looks at the last token"),
    }[tendency]


def habit(asked: HabitQuestion, query: str, key: str) -> str:
    """The question in which cell a head does what it mostly does."""
    values = {"layer": asked.layer, "head": asked.head, "query": query}
    return {
        "previous": _(
            "Head {head} of layer {layer} mostly looks at the token before the one that asks. In which cell does “{query}” "
            "do so?",
            **values,
        ),
        "own": _(
            "Head {head} of layer {layer} mostly looks at the very token that asks. In which cell does “{query}” do so?",
            **values,
        ),
        "next": _(
            "Head {head} of layer {layer} mostly looks at the token after the one that asks. In which cell does “{query}” "
            "do so?",
            **values,
        ),
        "first": _(
            "Head {head} of layer {layer} mostly looks at the first token. In which cell does “{query}” do so?",
            **values,
        ),
        "last": _(
            "Head {head} of layer {layer} mostly looks at the last token. In which cell does “{query}” do so?", **values
        ),
        None: _(
            "In head {head} of layer {layer} “{query}” looks most at “{key}”. Which cell of the map is that?",
            **values,
            key=key,
        ),
    }[asked.habit]


def sharing_name(n_heads: int, groups: int) -> str:
    """MHA, GQA or MQA, in words."""
    if groups == n_heads:
        return _("multi-head (MHA)")
    return _("multi-query (MQA)") if groups == 1 else _("grouped-query (GQA)")
