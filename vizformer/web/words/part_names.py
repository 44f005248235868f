"""What the parts of a model are called, and how they stand in a link."""

import re
from collections.abc import Iterable, Sequence

from vizformer.analysis import SignedRole, signed_role
from vizformer.analysis.attribution.terms import layer_of
from vizformer.analysis.causes.ablation import Part
from vizformer.checkpoints import Checkpoint
from vizformer.config import ModelConfig
from vizformer.errors import TraceError
from vizformer.model import Trace
from vizformer.web.words import labels
from vizformer.web.words.i18n import _

_LETTERS = {"self": "s", "cross": "c", "feedforward": "f"}
_ITEM = re.compile(r"([ed])([0-9]{1,3})([scf])([0-9]{0,3})")


def name(part: Part) -> str:
    """A part in words: decoder, layer 1, head 3."""
    stack, layer, what = part.sublayer.split(".")
    place = {
        "self": labels.kind_label("encoder" if stack == "encoder" else "decoder"),
        "cross": labels.kind_label("cross"),
        "feedforward": _("feed-forward, encoder") if stack == "encoder" else _("feed-forward, decoder"),
    }[what]
    if part.head is not None:
        return _("{place}, layer {layer}, head {head}", place=place, layer=layer, head=part.head)
    if what == "feedforward":
        return _("{place}, layer {layer}", place=place, layer=layer)
    return _("{place}, layer {layer}, all of it", place=place, layer=layer)


def operand(head: Part, which: str) -> str:
    """The query, the key or the value of a head (q, k, v) in words."""
    return {
        "q": _("the query of {head}", head=name(head)),
        "k": _("the key of {head}", head=name(head)),
        "v": _("the value of {head}", head=name(head)),
    }[which]


def signed(value: float, digits: int = 3) -> str:
    """A number with its sign; one that would round to 0 with its first digits."""
    text = f"{value:+.{digits}f}" if value else "0"
    return (text if float(text) or not value else f"{value:+.1e}").replace("-", "−")


def write(parts: Iterable[Part]) -> str:
    """Parts as a setting of a link: e0s3,d1f."""
    items = []
    for part in parts:
        stack, layer, what = part.sublayer.split(".")
        items.append(f"{stack[0]}{layer}{_LETTERS[what]}{'' if part.head is None else part.head}")
    return ",".join(items)


def parts(text: str) -> tuple[Part, ...]:
    """The parts that a setting names, whether the model has them or not; anything else in it does not count."""
    sublayers, stacks = {letter: what for what, letter in _LETTERS.items()}, {"e": "encoder", "d": "decoder"}
    found = []
    for item in text.split(","):
        if one := _ITEM.fullmatch(item):
            stack, layer, letter, head = one.groups()
            found.append(Part(f"{stacks[stack]}.{int(layer)}.{sublayers[letter]}", int(head) if head else None))
    return tuple(found)


def read(text: str, known: Iterable[Part]) -> tuple[Part, ...]:
    """The parts of a setting that the model has; anything else in it does not count."""
    there = set(known)
    return tuple(dict.fromkeys(part for part in parts(text) if part in there))


def part_name(config: ModelConfig, part: str, place: str, head: int | None, token: str) -> str:
    layer = layer_of(place)
    if part == "head":
        where = {"layer": layer, "head": head}
        if config.architecture == "encoder-decoder":
            if place.endswith("cross"):
                return _("layer {layer}, cross-attention head {head}", **where)
            return _("layer {layer}, self-attention head {head}", **where)
        return _("layer {layer}, head {head}", **where)
    if part == "norm_bias" and layer is not None:
        return _("layer {layer}, bias of a norm", layer=layer)
    names = {
        "token": _("the token itself, “{token}”", token=token),
        "position": _("its position"),
        "segment": _("its segment"),
        "feedforward": _("layer {layer}, feed-forward", layer=layer),
        "attention_bias": _("layer {layer}, bias of attention", layer=layer),
        "feedforward_bias": _("layer {layer}, bias of feed-forward", layer=layer),
        "projection_bias": _("bias of W_Q, W_K or W_V"),
        "head_bias": _("bias of the head's layer"),
        "logit_bias": _("bias of the token"),
        "norm_bias": _("bias of a norm"),
        "by_hand": _("set by hand at {place}", place=place),
    }
    return names[part]


# What a head does to the logits of what it looks at, in a sentence.
def role_or_none(checkpoint: Checkpoint, traces: Sequence[Trace], site: str, head: int) -> SignedRole | None:
    """The signed role of a head in these traces; None where it is not defined."""
    try:
        return signed_role(checkpoint, traces, site, head)
    except TraceError:
        return None


def role_said(found: SignedRole) -> str:
    values = {"n": len(found.effects), "mean": f"{found.mean:+.3f}".replace("-", "−")}
    if found.role == "copying":
        return _(
            "This head copies: it raises the logits of the tokens to which it attends, by {mean} on average over "
            "{n} rows.",
            **values,
        )
    if found.role == "suppressing":
        return _(
            "This head suppresses: it lowers the logits of the tokens to which it attends, by {mean} on average "
            "over {n} rows, mostly of tokens that would be probable without it.",
            **values,
        )
    if found.role == "anti-copying":
        return _(
            "This head anti-copies: it lowers the logits of the tokens to which it attends, by {mean} on "
            "average over {n} rows.",
            **values,
        )
    return _(
        "This head neither copies nor suppresses the tokens to which it attends ({mean} on their logits, on "
        "average over {n} rows): it does something else, or writes for other heads.",
        **values,
    )
