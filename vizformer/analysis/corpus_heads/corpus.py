"""The texts that heads are measured on: one a line, with a translation after a tab where a model reads two."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vizformer.assets import asset
from vizformer.errors import VizformerError

BUNDLED = {"en": "en.txt", "zh": "zh.tsv"}
LARGEST = 64 * 2**20  # bytes of a file
MOST_TEXTS = 100_000
MOST_CHARACTERS = 4_000  # of a text that are read


@dataclass(frozen=True)
class Passage:
    """A text, and its translation where there is one (else empty)."""

    text: str
    target: str = ""


@dataclass(frozen=True)
class Corpus:
    """Texts by a name; the same texts have the same key, whatever they are called.

    `cut`: how many of them are longer than MOST_CHARACTERS, of which the rest is left out.
    """

    name: str
    passages: tuple[Passage, ...]
    cut: int = 0

    @property
    def key(self) -> str:
        digest = hashlib.blake2b(digest_size=12)
        for passage in self.passages:
            digest.update(f"{passage.text}\t{passage.target}\n".encode())
        return digest.hexdigest()

    @classmethod
    def of(cls, texts: Sequence[str], name: str = "texts") -> "Corpus":
        """Makes a corpus of lines: a text, or a text, a tab and its translation; what follows a second tab is left out.

        Raises:
            VizformerError: not one text, or too many.
        """
        passages, cut = [], 0
        for line in texts:
            source, target = (part.strip() for part in f"{line}\t".split("\t", 2)[:2])
            if source:
                passages.append(Passage(source[:MOST_CHARACTERS], target[:MOST_CHARACTERS]))
                cut += max(len(source), len(target)) > MOST_CHARACTERS
        if not passages:
            raise VizformerError("{name} has no text. Write one text in each line.", name=name)
        if len(passages) > MOST_TEXTS:
            raise VizformerError(
                "{name} has {n:,} texts; at most {limit:,} are measured at once. Take a part of them.",
                name=name,
                n=len(passages),
                limit=MOST_TEXTS,
            )
        return cls(name, tuple(passages), cut)


def bundled_corpus(name: str) -> Corpus:
    """A corpus that comes with VizFormer, by its language: a key of `BUNDLED`."""
    return Corpus.of(asset("corpora", BUNDLED[name]).read_text(encoding="utf-8").splitlines(), name)


def read_texts(path: Path) -> Corpus:
    """A text file, UTF-8, one text a line; a file of pairs has a tab in each line.

    Raises:
        VizformerError: no such file, too large, not UTF-8, without a text or with too many.
    """
    if not path.is_file():
        raise VizformerError("There is no file {path}. Give a text file with one text in each line.", path=str(path))
    if path.stat().st_size > LARGEST:
        raise VizformerError(
            "{path} has {n:,} bytes; at most {limit:,} are read. Take a part of it.",
            path=path.name,
            n=path.stat().st_size,
            limit=LARGEST,
        )
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise VizformerError("{path} is not UTF-8 text. Save it as UTF-8 and try again.", path=path.name) from error
    return Corpus.of(lines, path.name)
