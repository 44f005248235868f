"""What is lost without each head of `zh-en`, over sentences that differ in a name, a number, a "not", a thing, a quality.

python -m recipes.head_roles assets/lessons/heads/roles.json      # 45 seconds on one core
"""

import json
from pathlib import Path

import torch

from recipes.arguments import paths
from vizformer import load
from vizformer.analysis import bundled_set, over_prompts
from vizformer.analysis.causes.ablation import parts_of
from vizformer.analysis.causes.asked_prompts import KINDS, MODEL, ask
from vizformer.analysis.corpus_heads.report import digest
from vizformer.assets import asset


def main(out: Path) -> None:
    """Measures and writes."""
    torch.set_num_threads(1)
    checkpoint, sets = load(MODEL), {kind: bundled_set(f"{kind}.{MODEL}") for kind in KINDS}
    heads = [part for part in parts_of(ask(checkpoint, sets[KINDS[0]].rows[0]).clean) if part.head is not None]
    found = {kind: over_prompts(checkpoint, prompts, "zero", parts=heads) for kind, prompts in sets.items()}
    said = {
        "weights": digest(asset("models", MODEL)),
        "heads": [[part.sublayer, part.head] for part in heads],
        "kinds": {
            kind: {"odds": one.odds.round(3).tolist(), "values": one.values.round(3).tolist()}
            for kind, one in found.items()
        },
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(said) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*paths(1, __doc__))
