"""The small drawing of the reader's model beside the stations: its parts, the station of each, and what is inside."""

from collections.abc import Collection, Mapping, Sequence

from vizformer.components.stations import Box, Inside
from vizformer.config import ModelConfig
from vizformer.web.words.i18n import _


def boxes(config: ModelConfig, stations: Collection[str], inside: Mapping[str, Sequence[Inside]]) -> list[Box]:
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
            Box(_("Attention"), "query", 0, attention, f"× {config.n_encoder_layers}", inside.get("attention", ())),
            Box(_("Add, norm, network"), "layer", 0, ("layer",), "", inside.get("layer", ())),
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
                inside.get("attention" if alone else "mask", ()),
            ),
            *(
                []
                if alone
                else [Box(_("Attention to the source"), "cross", side, ("cross",), "", inside.get("cross", ()))]
            ),
            Box(
                *(_("Add, norm, network"), "layer", side, ("layer",) if alone else (), ""),
                inside.get("layer", ()) if alone else (),
            ),
        ]
    found.append(Box(_("Probabilities"), "writing" if "writing" in stations else "machine", 0 if alone else 1, output))
    return [box for box in found if box.station in stations]
