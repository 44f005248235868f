"""Parts of lessons and pages that links of before name and that there are no more: what is nearest.

NEAREST["map/cost"]    # "rnn"
"""

from collections.abc import Mapping

from vizformer.messages import N_, Message
from vizformer.web.link import link_settings

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

_GATES = N_(
    "The link asks for learned gates, but What if no longer has them. It measures what a head does by taking the head out."
)
_NEURONS = N_(
    "The link asks for neurons taken out one by one, but What if no longer does that. It takes out a feed-forward network "
    "as a whole."
)
_PATHS = N_(
    "The link asks for paths from head to head, but What if no longer has them. For a set of prompts it measures which "
    "edges of a model carry the answer: the circuit."
)
_SCAN = N_(
    "The link asks for a scan in words, but this page no longer has one. Its drawing of tokens, heads and networks shows "
    "what carries the answer, and how the answer changes without each of them."
)
_SIMILARITY = N_(
    "The link asks how similar two texts are to a model of sentences, but Side by side no longer measures that. It compares "
    "the maps and the residual streams of both texts."
)
GONE: Mapping[str, Message] = {
    "whatif.taken:gates": _GATES,
    "whatif.taken:neurons": _NEURONS,
    "whatif.what:paths": _PATHS,
    "whatif.over:gates": _GATES,
    "whatif.over:paths": _PATHS,
    "lens.scan:1": _SCAN,
    **{f"beside.pooling:{way}": _SIMILARITY for way in ("mean", "cls", "max", "mean_sqrt_len")},
}


# Settings of links of before that ask for what there is no more: what is said, before the usual value is shown.
#
# GONE["whatif.taken:gates"]    # the sentence for a link that has this setting
def take_out(written: str) -> tuple[str, list[Message]]:
    """The settings of a link without those that are gone, and what is said of these."""
    settings = link_settings.read(written)
    gone = {name: GONE[item] for name, value in settings.items() if (item := f"{name}:{value}") in GONE}
    left = link_settings.write({name: value for name, value in settings.items() if name not in gone})
    return left, list({said.text: said for said in gone.values()}.values())
