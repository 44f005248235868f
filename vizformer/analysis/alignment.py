"""Does cross-attention find the word that is being translated?"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from vizformer.analysis.heads import head_maps
from vizformer.checkpoints import Checkpoint
from vizformer.errors import VizformerError
from vizformer.messages import N_


@dataclass(frozen=True)
class AlignedPair:
    """A translation with its content words aligned by hand: (word of the target, characters of the source)."""

    source: str
    target: str
    links: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class AlignmentScore:
    """How often the most attended source token belongs to the aligned characters.

    Attributes:
        found: share of the content words, by layer, for rows that predict a word's first token ([n_layers]).
        words: how many content words there are.
    """

    found: Float[ndarray, " n_layers"]
    words: int

    @property
    def best_layer(self) -> int:
        return int(self.found.argmax())


def read_alignments(path: Path) -> list[AlignedPair]:
    """Lines of source, target and links ("word=characters word=characters ..."), separated by tabs.

    Raises:
        VizformerError: a line that is not of this form, or a link to text that is not in the pair.
    """
    pairs = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = line.split("\t")
        links = tuple(tuple(item.split("=", 1)) for item in parts[2].split()) if len(parts) == 3 else ()
        legal = bool(links) and all(
            len(link) == 2 and link[0] in parts[1] and set(link[1]) <= set(parts[0]) for link in links
        )
        if not legal:
            raise VizformerError(
                N_(
                    "{path}, line {number}: write source, target and word=characters links, separated by tabs.",
                    path=path.name,
                    number=number,
                )
            )
        pairs.append(AlignedPair(parts[0], parts[1], tuple((link[0], link[1]) for link in links)))
    return pairs


def alignment_score(checkpoint: Checkpoint, pairs: Sequence[AlignedPair]) -> AlignmentScore:
    """Teacher-forced cross-attention against alignments by hand, a layer's heads averaged.

    The row that counts is the one from which the word's first token is predicted: the decoder stands on the token
    before it and looks for what to say.  The end mark of the source is left out of the choice: it is where heads rest.
    """
    hits: list[Float[ndarray, " n_layers"]] = []
    for pair in pairs:
        trace = checkpoint.trace(pair.source, target=pair.target)
        source, target = trace.tokens["encoder"], trace.tokens["decoder"]
        maps = head_maps(trace, "cross").weights.mean(axis=1)  # [n_layers, n_q, n_k]
        real = np.array([not token.special for token in source])
        for word, characters in pair.links:
            first = pair.target.index(word)
            row = next(i for i, token in enumerate(target) if not token.special and token.end > first) - 1
            choice = np.where(real, maps[:, row], -1.0).argmax(-1)  # [n_layers]
            hits.append(np.array([_overlaps(pair.source, source[k].start, source[k].end, characters) for k in choice]))
    return AlignmentScore(np.mean(hits, axis=0), len(hits))


def measure_alignment(checkpoint: Checkpoint, folder: Path) -> dict[str, Any]:
    """The alignment score for a model card; nothing where the model's folder has no alignments by hand."""
    path = folder / "alignment.tsv"
    if not path.is_file():
        return {}
    pairs = read_alignments(path)
    score = alignment_score(checkpoint, pairs)
    layer = score.best_layer
    return {
        "alignment": {"pairs": len(pairs), "words": score.words, "layer": layer, "found": float(score.found[layer])}
    }


def _overlaps(text: str, start: int, end: int, characters: str) -> float:
    return float(any(character in characters for character in text[start:end]))
