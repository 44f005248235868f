"""What the parts of a model are called that write into a row: its token, its position, heads, networks, biases."""

from vizformer.analysis.attribution.terms import layer_of
from vizformer.config import ModelConfig
from vizformer.web.words.i18n import _


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
