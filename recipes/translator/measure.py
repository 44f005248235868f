"""Says how well the translator in training translates: `python -m recipes.translator.measure SET WORK`."""

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import click
import sacrebleu
import torch

from recipes.translate import translate_all
from recipes.translator.lexicon import lexicon
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


def measure(checkpoint: Checkpoint, folder: Path, part: str, most: int) -> dict[str, float]:
    """BLEU and chrF on a part of Tatoeba, everyday sentences that hold all their words, coreference resolved, in percent."""
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
    pairs = [line for line in read_lines(folder / "held_out_nouns.tsv") if line.direction == "en-zh"]
    pairs = [line for line in pairs if line.source.startswith("coreference")][:most]
    outputs = translate(checkpoint, [line.text for line in pairs])
    right = [resolved(output, line) for output, line in zip(outputs, pairs, strict=True)]
    return {**found, "en-zh coreference": 100 * sum(right) / len(right)}


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
