"""Running text to learn from: children's books cut into paragraphs, and single sentences in English and Chinese."""

import re
from dataclasses import dataclass
from pathlib import Path

from recipes.pairs import Pair, read_pairs, sentence_key
from vizformer.errors import VizformerError

BOOKS, CHINESE, FRENCH = "books.txt", "cmn.txt", "fra.txt"
TEST_BOOK = "The Princess and the Goblin"  # by an author who wrote no other book of the collection
VALID_BOOK = "A Kidnapped Santa Claus"
N_HELD_OUT_PAIRS = 600
SOURCES = (
    "Books: 26 children's books in English in the public domain (Project Gutenberg).",
    "Sentences: Tatoeba, the Mandarin - English and French - English exports of manythings.org/anki, CC BY 2.0 FR.",
)


@dataclass(frozen=True)
class Corpus:
    """What models of running text learn from.

    Attributes:
        books: title -> paragraphs, for training; valid_book and test_book are held out whole.
        english: single sentences.
        pairs: Chinese sentences (source) with their English translations (target).
        held_out_pairs: the same, never trained on.
    """

    books: dict[str, list[str]]
    valid_book: list[str]
    test_book: list[str]
    english: list[str]
    pairs: list[Pair]
    held_out_pairs: list[Pair]


def find_file(data: Path, name: str) -> Path:
    """`data` itself, if it is that file, or the file of that name somewhere below it.

    Raises:
        VizformerError: it is not there.
    """
    if data.is_file():
        return data
    if not data.is_dir():
        raise VizformerError("There is no file or folder {path}.", path=str(data))
    found = sorted(data.rglob(name))
    if not found:
        raise VizformerError(
            "There is no {name} in {folder}. Give the folder that holds it.", name=name, folder=str(data)
        )
    return found[0]


def read_corpus(data: Path) -> Corpus:
    """Reads books.txt, cmn.txt and fra.txt from a folder.

    Raises:
        VizformerError: one of them is missing, not UTF-8, or lacks the held-out books.
    """
    books = read_books(find_file(data, BOOKS))
    if missing := {TEST_BOOK, VALID_BOOK} - set(books):
        raise VizformerError(
            "{file} lacks the book {title!r}, which is held out for the evaluation.",
            file=BOOKS,
            title=sorted(missing)[0],
        )
    valid, test = books.pop(VALID_BOOK), books.pop(TEST_BOOK)
    pairs = read_pairs(find_file(data, CHINESE))
    # Every k-th distinct Chinese sentence, with all its translations: which ones does not depend on chance.
    by_key: dict[str, list[Pair]] = {}
    for pair in pairs:
        by_key.setdefault(sentence_key(pair.source), []).append(pair)
    every = max(2, len(by_key) // N_HELD_OUT_PAIRS)
    held_keys = set(list(by_key)[::every])
    held_out = [pair for key in by_key for pair in by_key[key] if key in held_keys]
    known = {sentence_key(pair.target) for pair in held_out}
    trained = [pair for key in by_key for pair in by_key[key] if key not in held_keys]
    trained = [pair for pair in trained if sentence_key(pair.target) not in known]
    english = [pair.target for pair in trained]
    english += [pair.target for pair in read_pairs(find_file(data, FRENCH)) if sentence_key(pair.target) not in known]
    return Corpus(books, valid, test, list(dict.fromkeys(english)), trained, held_out)


def read_books(path: Path) -> dict[str, list[str]]:
    """Books that each begin with a line "# Title: ..."; paragraphs are joined to one line, headings left out.

    Raises:
        VizformerError: the file is not UTF-8.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise VizformerError("{path} is not UTF-8 text. Save it as UTF-8 and try again.", path=path.name) from error
    books = {}
    for part in re.split(r"^# Title:", text, flags=re.MULTILINE)[1:]:
        title, _, body = part.partition("\n")
        books[title.strip()] = _paragraphs(body)
    return books


def _paragraphs(body: str) -> list[str]:
    paragraphs = []
    for block in re.split(r"\n\s*\n", body):
        line = re.sub(r"\s+", " ", block.replace("_", "")).strip()
        prose = line and not line.startswith("#") and not re.fullmatch(r"[\W\d]*", line) and line != line.upper()
        if prose:
            paragraphs.append(line.replace("“", '"').replace("”", '"').replace("’", "'").replace("‘", "'"))
    return paragraphs
