"""The boxes of the reader's model in one line, and the station of each."""

from collections.abc import Collection, Sequence

from vizformer.components.whole_model import Box
from vizformer.config import ModelConfig
from vizformer.web.words.i18n import _

_ATTENTION = ("query", "softmax", "heads")  # the stations of a head


def boxes(config: ModelConfig, stations: Collection[str]) -> list[Box]:
    """The parts of a model in the order of the data, encoder before decoder; those alone that have a station.

    They are called what figure 1 of Vaswani et al. 2017 calls them, norms where this model has them.
    """
    found: list[Box] = []
    alone = config.architecture != "encoder-decoder"
    if config.n_encoder_layers:
        heads = Box(_("Multi-head self-attention"), "query", _ATTENTION, f"× {config.n_encoder_layers}")
        found += [
            Box(_("Tokens"), "tokens", ("machine", "tokens")),
            *_entering(shown=True),
            *_layer(config, [heads], shown=True),
        ]
    if config.n_decoder_layers:
        heads = Box(
            *(_("Masked multi-head self-attention"), "mask", (*_ATTENTION, "mask") if alone else ("mask",)),
            f"× {config.n_decoder_layers}",
        )
        crossed = Box(_("Multi-head cross-attention"), "cross", ("cross",), _("K, V from the encoder"))
        reads = (
            Box(_("Tokens"), "tokens", ("tokens", "machine"))
            if alone
            else Box(_("Outputs (shifted right)"), "writing", ("writing",), "⇒")
        )
        found += [
            reads,
            *_entering(shown=alone),
            *_layer(config, [heads] if alone else [heads, crossed], shown=alone),
        ]
    found.append(
        Box(_("Linear + softmax"), "writing" if "writing" in stations else "machine", ("machine", "writing", "loss"))
    )
    return [box for box in found if box.station in stations]


def _entering(*, shown: bool) -> list[Box]:
    """Embedding and positional encoding of a stack; `shown`: whether it is the one that the stations follow."""
    return [
        Box(_("Embedding"), "rows", ("rows",) if shown else ()),
        Box(_("Positional encoding"), "places", ("places",) if shown else ()),
    ]


def _layer(config: ModelConfig, attentions: Sequence[Box], *, shown: bool) -> list[Box]:
    """A layer: its attentions and its feed-forward network, what is added and normalised between them."""
    norm, add, both = _("Norm"), _("Add"), _("Add & Norm")
    first, between, last = {
        "post": ("", both, both),
        "pre": (norm, both, add),
        "sandwich": (norm, _("Norm, Add & Norm"), _("Norm & Add")),
        "none": ("", add, add),
    }[config.norm_order]
    lit = ("layer",) if shown else ()
    made = [Box(first, "layer", lit)]
    for attention in attentions:
        made += [attention, Box(between, "layer", lit)]
    return [box for box in (*made, Box(_("Feed-forward"), "layer", lit), Box(last, "layer", lit)) if box.title]
