"""The boxes of the reader's model in one line, and the station of each."""

from collections.abc import Collection, Mapping, Sequence

from vizformer.components.whole_model import Box
from vizformer.components.whole_model_picture import ENGLISH
from vizformer.config import ModelConfig
from vizformer.web.words.i18n import _, words

_ATTENTION = ("query", "softmax", "heads")  # the stations of a head


def boxes(config: ModelConfig, stations: Collection[str]) -> list[Box]:
    """The parts of a model in the order of the data, encoder before decoder; those alone that have a station.

    They are called as in the picture of the whole model, norms where this model has them.
    """
    found: list[Box] = []
    named = words(ENGLISH)
    alone = config.architecture != "encoder-decoder"
    if config.n_encoder_layers:
        heads = Box(named["self"], "query", _ATTENTION, f"× {config.n_encoder_layers}")
        found += [
            Box(named["lane_alone"], "tokens", ("machine", "tokens")),
            *_entering(named, shown=True),
            *_layer(named, config, [heads], shown=True),
        ]
    if config.n_decoder_layers:
        heads = Box(
            *(named["masked_self"], "mask", (*_ATTENTION, "mask") if alone else ("mask",)),
            f"× {config.n_decoder_layers}",
        )
        crossed = Box(named["cross"], "cross", ("cross",), _("K, V from the encoder"))
        reads = (
            Box(named["lane_alone"], "tokens", ("tokens", "machine"))
            if alone
            else Box(_("Outputs (shifted right)"), "writing", ("writing",), "⇒")
        )
        found += [
            reads,
            *_entering(named, shown=alone),
            *_layer(named, config, [heads] if alone else [heads, crossed], shown=alone),
        ]
    found.append(
        Box(_("Linear + softmax"), "writing" if "writing" in stations else "machine", ("machine", "writing", "loss"))
    )
    return [box for box in found if box.station in stations]


def _entering(named: Mapping[str, str], *, shown: bool) -> list[Box]:
    """Embedding and positional encoding of a stack; `shown`: whether it is the one that the stations follow."""
    return [
        Box(named["embedding"], "rows", ("rows",) if shown else ()),
        Box(named["positions"], "places", ("places",) if shown else ()),
    ]


def _layer(named: Mapping[str, str], config: ModelConfig, attentions: Sequence[Box], *, shown: bool) -> list[Box]:
    """A layer: its attentions and its feed-forward network, what is added and normalised between them."""
    norm, add, both = _("Norm"), _("Add"), named["norm"]
    first, between, last = {
        "post": ("", both, both),
        "pre": (norm, both, add),
        "none": ("", add, add),
    }[config.norm_order]
    lit = ("layer",) if shown else ()
    made = [Box(first, "layer", lit)]
    for attention in attentions:
        made += [attention, Box(between, "layer", lit)]
    return [box for box in (*made, Box(named["feedforward"], "layer", lit), Box(last, "layer", lit)) if box.title]
