"""Parts of lessons and pages that links of before name and that there are no more: what is nearest.

NEAREST["map/cost"]    # "rnn"
"""

from collections.abc import Mapping

NEAREST: Mapping[str, str] = {
    "map/cost": "rnn",
    "tokens/signals": "lookup",
    "tokens/vectors": "context",
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

MOVED: Mapping[str, str] = {
    "errors": "training?part=dropout",
    "errors/dropout": "training?part=dropout",
    "errors/scale": "qkv?part=scale",
    "errors/waves": "positions?part=waves",
    "errors/total": "qkv?part=lookup",
    "errors/count": "block?part=count",
    "errors/after": "masks?part=mistakes",
    "errors/cache": "decoding?part=cache",
    "errors/embedding": "tokens?part=norms",
    "errors/join": "heads?part=split",
    "learn": "path",
    "reading": "glossary?dials=glossary.list:reading",
}
"""A page, or a part of it, that there is no more, and where its content stands."""
