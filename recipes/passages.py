"""The short texts that come with VizFormer, on which heads are measured: `assets/corpora`, made again by

python -m recipes.passages DATA FOLDER
"""

from collections.abc import Sequence
from pathlib import Path

from recipes.arguments import paths
from recipes.corpus import CHINESE, find_file, read_corpus

PASSAGES = 240
ENGLISH_CHARACTERS = (160, 600)  # some 40 to 150 tokens
LEAST_CHINESE = 9  # characters: the longer ones of the held-out sentences


def make(data: Path, out: Path) -> None:
    """Writes en.txt (passages of a book that no bundled model was trained on) and zh.tsv (held-out pairs, their source)."""
    corpus = read_corpus(data)
    low, high = ENGLISH_CHARACTERS
    english = _spread([text for text in corpus.test_book if low <= len(text) <= high])
    held_out = {(pair.source, pair.target) for pair in corpus.held_out_pairs}
    rows = []
    for line in find_file(data, CHINESE).read_text(encoding="utf-8-sig").splitlines():
        target, source, attribution = line.split("\t")[:3]
        if (source, target) in held_out and len(source) >= LEAST_CHINESE:
            rows.append("\t".join((source, target, attribution)))
    out.mkdir(parents=True, exist_ok=True)
    (out / "en.txt").write_text("\n".join(english) + "\n", encoding="utf-8")
    (out / "zh.tsv").write_text("\n".join(_spread(rows)) + "\n", encoding="utf-8")


def _spread(lines: Sequence[str]) -> list[str]:
    """PASSAGES of them, from the whole length of the list."""
    count = min(PASSAGES, len(lines))
    return [lines[index * len(lines) // count] for index in range(count)]


if __name__ == "__main__":
    make(*paths(2, __doc__))
