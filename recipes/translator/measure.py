"""Says how well the translator in training translates: `python -m recipes.translator.measure SET WORK`."""

import json
import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import click
import sacrebleu
import torch

from recipes.translate import translate_all
from recipes.translator.lexicon import lexicon, rows
from recipes.translator.train import averaged
from recipes.translator.training_set import DIRECTIONS, Line, read_lines
from tests.translation.everyday import sentences, share_held
from vizformer.checkpoints import Checkpoint

PRONOUNS = ("他们", "她们", "它们")
MAX_NEW = 60  # tokens
TOKENIZE = {"zh-en": "13a", "en-zh": "zh"}  # words and marks; single characters


def translate(checkpoint: Checkpoint, texts: Sequence[str]) -> list[str]:
    return translate_all(checkpoint, texts, max_new=MAX_NEW)


def named(chinese: str, words: Iterable[str]) -> set[str]:
    """Which of the words the last clause holds; where one is a part of another, the longer one."""
    clauses = re.findall("[^，。？！]+", chinese)
    return set(re.findall("|".join(sorted(words, key=len, reverse=True)), clauses[-1])) if clauses else set()


def resolved(translation: str, line: Line) -> bool:
    """Whether the last clause of a translation means the same one of the two candidates as that of the line does."""
    things = {noun.zh for noun in lexicon().nouns if noun.zh in line.translation}
    return named(translation, {*PRONOUNS, *things}) == named(line.translation, {*PRONOUNS, *things})


@cache
def sense_words() -> dict[tuple[str, str], re.Pattern[str]]:
    """(word, sense) -> what a translation of the word in this sense holds."""
    return {(word, sense): re.compile(pattern) for word, sense, pattern, *_ in rows("sense_words")}


def same_sense(translation: str, line: Line) -> bool:
    """Whether a translation gives the word of the line the sense that it has there, and none of its others."""
    __, word, sense = line.source.split(maxsplit=2)
    words = sense_words()
    others = [words[key] for key in words if key[0] == word and key[1] != sense]
    own = words[word, sense].search(translation) is not None
    return own and not any(one.search(translation) and not one.search(line.translation) for one in others)


def reads_the_word(line: Line) -> bool:
    """Whether the word of two senses is in the text, and not in the translation."""
    return line.source.split()[1].isascii() == (line.direction == "en-zh")


def measure(checkpoint: Checkpoint, folder: Path, part: str, most: int) -> dict[str, float]:
    """BLEU and chrF on a part of Tatoeba; everyday sentences that hold all their words, coreference and senses that are
    right with held-out nouns, in percent."""
    found: dict[str, float] = {}
    held_out = read_lines(folder / f"{part}.tsv")
    for way in DIRECTIONS:
        lines = [line for line in held_out if line.direction == way][:most]
        outputs = translate(checkpoint, [line.text for line in lines])
        references = [[line.translation for line in lines]]
        found[f"{way} BLEU"] = sacrebleu.corpus_bleu(outputs, references, tokenize=TOKENIZE[way]).score
        found[f"{way} chrF"] = sacrebleu.corpus_chrf(outputs, references).score
        everyday = translate(checkpoint, [one.text for one in sentences(way)])
        found[f"{way} everyday"] = 100 * share_held(everyday, way)
    new_nouns = read_lines(folder / "held_out_nouns.tsv")
    who = [line for line in new_nouns if line.source.startswith("coreference") and line.direction == "en-zh"]
    senses = [line for line in new_nouns if line.source.startswith("senses") and reads_the_word(line)]
    for name, lines, judge in (("en-zh coreference", who, resolved), ("senses", senses, same_sense)):
        outputs = translate(checkpoint, [line.text for line in lines[:most]])
        right = [judge(output, line) for output, line in zip(outputs, lines, strict=False)]
        found[name] = 100 * sum(right) / len(right)
    return found


@click.command()
@click.argument("folder", metavar="SET", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("work", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--part", type=click.Choice(["valid", "test"]), default="valid", show_default=True)
@click.option("--most", default=1000, show_default=True, help="Of how many held-out pairs.")
def main(folder: Path, work: Path, part: str, most: int) -> None:
    """Translate held-out texts with the averaged model of the last state in WORK."""
    torch.set_num_threads(1)
    found = measure(averaged(work), folder, part, most)
    click.echo(json.dumps({name: round(value, 1) for name, value in found.items()}))


if __name__ == "__main__":
    main()
