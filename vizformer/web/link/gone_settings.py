"""Settings of links of before that ask for what there is no more: what is said, before the usual value is shown.

GONE["whatif.taken:gates"]    # the sentence for a link that has this setting
"""

from collections.abc import Mapping

from vizformer.messages import N_, Message
from vizformer.web.link import link_settings

_GATES = N_(
    "The link asks for learned gates, which are no part of What if any more. What a head does is measured there by taking "
    "it out."
)
_NEURONS = N_(
    "The link asks for neurons taken out one by one, which are no part of What if any more. A feed-forward network is taken "
    "out there as a whole."
)
_PATHS = N_(
    "The link asks for paths from head to head, which are no part of What if any more. Which edges of a model carry an "
    "answer is measured there for a set of prompts, as a circuit."
)
_SCAN = N_(
    "The link asks for a scan in words, which this page does not have any more. The drawing of tokens, heads and networks "
    "shows what carries the answer, and what becomes of it without each."
)
_SIMILARITY = N_(
    "The link asks how alike a model of sentences finds two texts, which is no part of Side by side any more. The maps and "
    "residual streams of both texts are compared here."
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


def take_out(written: str) -> tuple[str, list[Message]]:
    """The settings of a link without those that are gone, and what is said of these."""
    settings = link_settings.read(written)
    gone = {name: GONE[item] for name, value in settings.items() if (item := f"{name}:{value}") in GONE}
    left = link_settings.write({name: value for name, value in settings.items() if name not in gone})
    return left, list({said.text: said for said in gone.values()}.values())
