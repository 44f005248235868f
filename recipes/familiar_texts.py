"""What a bundled model makes of held-out texts, by which pages tell texts that it has not learned:

    python -m recipes.familiar_texts assets/models      # a minute, one core

Writes familiar.json beside each card: for letters and for Chinese characters the bounds that all but one in 200 texts keep,
each by itself, and the texts that the model knows best.  The texts are those of `assets/corpora`: sentences of the book and
both sides of the pairs; of a decoder, for which readers type beginnings, their first words too.  (The translator may know
some of the pairs.)
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from recipes.arguments import paths
from vizformer import load
from vizformer.analysis.one_forward.predictions import FEWEST, Bounds, familiarity
from vizformer.assets import asset
from vizformer.checkpoints import Checkpoint
from vizformer.text.pieces import HAN, LATIN

MODELS = ("zh-en", "stories", "cloze")
SHARE = 0.995
RARE_SIGNS = 0.1  # share of unknown tokens that is let through in any case: a picture sign, a name
FIRST = {LATIN: (4, 6, 9), HAN: (5, 7, 10)}  # words or characters of beginnings
OFFERED, LONGEST = 60, {LATIN: 9, HAN: 14}


def texts(script: str) -> list[str]:
    """Held-out sentences in a script."""
    pairs = [line.split("\t")[:2] for line in asset("corpora", "zh.tsv").read_text(encoding="utf-8").splitlines()]
    if script == HAN:
        return [chinese for chinese, __ in pairs]
    book = asset("corpora", "en.txt").read_text(encoding="utf-8")
    return [english for __, english in pairs] + re.findall(r"(?<=[.!?] )[A-Z][^.!?“”\"\n]{15,110}[.!?]", book)


def beginnings(text: str, script: str) -> list[str]:
    """The first words of a text, and all of it."""
    words = text.split(" ") if script == LATIN else list(text)
    between = " " if script == LATIN else ""
    return [between.join(words[:n]) for n in FIRST[script] if n < len(words)] + [text]


def bounds(checkpoint: Checkpoint, script: str, of: Sequence[str]) -> Bounds:
    """What `SHARE` of these texts keep."""
    found = [(text, familiarity(checkpoint, checkpoint.trace(text), text)) for text in of]
    found = [(text, one) for text, one in found if one.tokens >= FEWEST]
    log_probs = np.array([one.log_prob for __, one in found])
    typical = float(np.median(log_probs))
    size = (lambda text: len(text.split(" "))) if script == LATIN else len
    best = sorted((one.log_prob, text) for text, one in found if size(text) <= LONGEST[script] and not one.unknown)
    decodes = checkpoint.model.config.architecture == "decoder-only"  # goes on with what has no end
    known = [text for __, text in reversed(best) if bool(re.search(r"[.!?。！？]$", text)) != decodes]
    return Bounds(
        round(max(RARE_SIGNS, float(np.quantile([one.unknown for __, one in found], SHARE))), 3),
        round(float(np.quantile([one.pieces for __, one in found], SHARE)), 3),
        round(float(np.quantile(log_probs, 1 - SHARE)), 2),
        round(typical, 2),
        SHARE,
        tuple(dict.fromkeys(known))[:OFFERED],
    )


def make(folder: Path) -> None:
    for name in MODELS:
        checkpoint = load(name)
        decodes = checkpoint.model.config.architecture == "decoder-only"
        found = {}
        for script in (LATIN, HAN):
            of = [one for text in texts(script) for one in (beginnings(text, script) if decodes else [text])]
            found[script] = bounds(checkpoint, script, of)
        content = json.dumps({script: vars(one) for script, one in found.items()}, ensure_ascii=False, indent=1)
        (folder / name / "familiar.json").write_text(content + "\n", encoding="utf-8")


if __name__ == "__main__":
    make(*paths(1, __doc__))
