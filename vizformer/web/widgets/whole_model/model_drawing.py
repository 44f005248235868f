"""The small drawing of the reader's model beside the stations: its parts, the station of each, and what is inside."""

from collections.abc import Collection, Mapping, Sequence

from vizformer.components.stations import Box, Inside
from vizformer.config import ModelConfig
from vizformer.web.words.i18n import _

_ATTENTION = ("query", "softmax", "heads")  # the stations of a head


def boxes(config: ModelConfig, stations: Collection[str], inside: Mapping[str, Sequence[Inside]]) -> list[Box]:
    """The parts of a model from the bottom to the top of each stack; those alone that have a station.

    They are called what figure 1 of Vaswani et al. 2017 calls them, norms where this model has them.
    """
    found: list[Box] = []
    alone = config.architecture != "encoder-decoder"
    if config.n_encoder_layers:
        heads = Box(
            *(_("Multi-head self-attention"), "query", 0, _ATTENTION),
            *(f"× {config.n_encoder_layers}", inside.get("attention", ())),
            opens=True,
        )
        found += [
            Box(_("Tokens"), "tokens", 0, ("machine", "tokens")),
            *_entering(0, shown=True),
            *_layer(config, [heads], 0, shown=True, inside=inside.get("layer", ())),
        ]
    if config.n_decoder_layers:
        side = 0 if alone else 1
        reads = ("tokens", "machine") if alone else ("writing",)
        heads = Box(
            *(_("Masked multi-head self-attention"), "mask", side, (*_ATTENTION, "mask") if alone else ("mask",)),
            *(f"× {config.n_decoder_layers}", inside.get("attention" if alone else "mask", ())),
            opens=True,
        )
        crossed = Box(
            *(_("Multi-head cross-attention"), "cross", side, ("cross",)),
            *(_("K, V from the encoder"), inside.get("cross", ())),
            opens=True,
        )
        found += [
            Box(_("Tokens") if alone else _("Outputs (shifted right)"), reads[0], side, reads),
            *_entering(side, shown=alone),
            *_layer(
                *(config, [heads] if alone else [heads, crossed], side),
                shown=alone,
                inside=inside.get("layer", ()) if alone else (),
            ),
        ]
    output = Box(
        *(_("Linear + softmax"), "writing" if "writing" in stations else "machine", 0 if alone else 1),
        ("machine", "writing", "loss"),
    )
    return [box for box in (*found, output) if box.station in stations]


def _entering(side: int, *, shown: bool) -> list[Box]:
    """Embedding and positional encoding of a stack; `shown`: whether it is the one that the stations follow."""
    return [
        Box(_("Embedding"), "rows", side, ("rows",) if shown else ()),
        Box(_("Positional encoding"), "places", side, ("places",) if shown else ()),
    ]


def _layer(
    config: ModelConfig, attentions: Sequence[Box], side: int, *, shown: bool, inside: Sequence[Inside]
) -> list[Box]:
    """A layer: its attentions and its feed-forward network, what is added and normalised between them."""
    norm, add, both = _("Norm"), _("Add"), _("Add & Norm")
    first, between, last = {
        "post": ("", both, both),
        "pre": (norm, both, add),
        "output": ("", _("Norm & Add"), _("Norm & Add")),
        "sandwich": (norm, _("Norm, Add & Norm"), _("Norm & Add")),
        "none": ("", add, add),
    }[config.norm_order]
    lit = ("layer",) if shown else ()
    network = Box(_("Feed-forward"), "layer", side, lit, "", inside, opens=shown)
    made = [Box(first, "layer", side, lit)]
    for attention in attentions:
        made += [attention, Box("" if config.residual == "parallel" else between, "layer", side, lit)]
    return [box for box in (*made, network, Box(last, "layer", side, lit)) if box.title]
