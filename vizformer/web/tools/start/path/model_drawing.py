"""The small drawing of the reader's model beside the stations: its parts, and the station of each."""

from collections.abc import Collection

from vizformer.components.stations import Box
from vizformer.config import ModelConfig
from vizformer.web.words.i18n import _


def boxes(config: ModelConfig, stations: Collection[str]) -> list[Box]:
    """The parts of a model from the bottom to the top of each stack; those alone that have a station."""
    attention = ("query", "softmax", "heads")
    output = ("machine", "writing", "loss")
    found: list[Box] = []
    alone = config.architecture != "encoder-decoder"
    if config.n_encoder_layers:
        found += [
            Box(_("Tokens"), "tokens", 0, ("machine", "tokens")),
            Box(_("Rows of a table"), "rows", 0, ("rows",)),
            Box(_("Places"), "places", 0, ("places",)),
            Box(_("Attention"), "query", 0, attention, f"× {config.n_encoder_layers}"),
            Box(_("Add, norm, network"), "layer", 0, ("layer",)),
        ]
    if config.n_decoder_layers:
        side = 0 if alone else 1
        reads = ("tokens", "machine") if alone else ("writing",)
        found += [
            Box(_("Tokens") if alone else _("Tokens so far"), reads[0], side, reads),
            Box(_("Rows of a table"), "rows", side, ("rows",) if alone else ()),
            Box(_("Places"), "places", side, ("places",) if alone else ()),
            Box(
                _("Masked attention"),
                "mask",
                side,
                (*attention, "mask") if alone else ("mask",),
                f"× {config.n_decoder_layers}",
            ),
            *([] if alone else [Box(_("Attention to the source"), "cross", side, ("cross",))]),
            Box(_("Add, norm, network"), "layer", side, ("layer",) if alone else ()),
        ]
    found.append(Box(_("Probabilities"), "writing" if "writing" in stations else "machine", 0 if alone else 1, output))
    return [box for box in found if box.station in stations]
