"""How strongly tokens are felt at the last one, in ten sentences, by the GRU of The map and by `stories`.

    python -m recipes.felt_tokens assets/lessons/map/ten_sentences.json     # half a minute on one core

The sentences are the first five of each corpus (`assets/corpora`) that have 20 to 30 tokens: of a Chinese pair its
source, of an English passage what stands before its first full stop.  No model was trained on them.
"""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from recipes.arguments import paths
from vizformer.analysis.corpus_heads.corpus import bundled_corpus
from vizformer.analysis.training.depth_gradients import gru_gradients, transformer_gradients
from vizformer.assets import asset
from vizformer.checkpoints import load
from vizformer.text import Tokenizer
from vizformer.training.repeater import load_gru

EACH, LEAST, MOST = 5, 20, 30  # sentences of a language, tokens of a sentence


def sentences(tokenizer: Tokenizer) -> list[str]:
    """The ten."""

    def fitting(language: str) -> Iterator[str]:
        for passage in bundled_corpus(language).passages:
            text = passage.text.split(". ")[0].rstrip(".") + "." if language == "en" else passage.text
            if LEAST <= len(tokenizer.encode(text)) <= MOST:
                yield text

    return [text for language in ("zh", "en") for text in islice(fitting(language), EACH)]


def measured(texts: list[str]) -> dict[str, list[list[float]]]:
    """Network -> how strongly the tokens of each text are felt, against the last one; from the last one back."""
    gru, tokenizer = load_gru(asset("lessons", "map"))
    stories = load("stories").model
    read = [tokenizer.encode_ids([text])[0] for text in texts]
    found = {
        "gru": [gru_gradients(gru, ids) for ids in read],
        "stories": [transformer_gradients(stories, ids) for ids in read],
    }
    return {name: [np.round(sizes[::-1] / sizes[-1], 5).tolist() for sizes in listed] for name, listed in found.items()}


def main(out: Path) -> None:
    """Writes the sentences and what was measured on them."""
    texts = sentences(load_gru(asset("lessons", "map"))[1])
    out.write_text(json.dumps({"sentences": texts, **measured(texts)}, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*paths(1, __doc__))
