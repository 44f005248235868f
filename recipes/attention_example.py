"""The arrays with which the page From other programs begins: as any program might have saved them.

    python -m recipes.attention_example assets/attention/example.npz      # seconds

They are the cross-attention of the bundled translator for one sentence, with its tokens: plain numbers, no model.
"""

from pathlib import Path

import numpy as np

from recipes.arguments import paths
from vizformer import load
from vizformer.analysis import head_maps

SENTENCE = "我有一只猫。"


def make(path: Path) -> None:
    """Writes weights and tokens."""
    trace = load("zh-en").trace(SENTENCE)
    read, asked = ([token.text for token in trace.tokens[stack]] for stack in ("encoder", "decoder"))
    path.parent.mkdir(parents=True, exist_ok=True)
    weights = head_maps(trace, "cross").weights
    np.savez_compressed(path, cross_attention=weights, query_tokens=np.array(asked), key_tokens=np.array(read))


if __name__ == "__main__":
    make(*paths(1, __doc__))
