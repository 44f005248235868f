"""Parts of lessons that links of before name and that there are no more: the part of the lesson that is nearest.

NEAREST["map/cost"]    # "rnn"
"""

from collections.abc import Mapping

NEAREST: Mapping[str, str] = {
    "map/cost": "rnn",
    "tokens/signals": "lookup",
    "heads/cost": "split",
    "block/neurons": "ffn",
    "block/build": "norm",
    "block/width": "ffn",
    "block/dropout": "residual",
    "decoding/steps": "ways",
    "decoding/drafts": "cache",
    "training/batches": "loss",
    "training/average": "smoothing",
    "costs/complexity": "flash",
    "costs/calculator": "family",
    "costs/measured": "sparse",
}
