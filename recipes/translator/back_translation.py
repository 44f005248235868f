"""Adds the translator's own translations of sentences: `python -m recipes.translator.back_translation SET WORK TEXTS OUT`.

Back-translation (Sennrich, Haddow and Birch 2016): a text that a person wrote is the translation to be learned, and what the
translator makes of it is the source. A pair is kept where the translator finds its way back to nearly the same text.
"""

import random
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

import click
import sacrebleu
import torch

from recipes.pairs import sentence_key
from recipes.translate import translate_all
from recipes.translator.train import averaged
from recipes.translator.training_set import Line, judged_by, read_lines, write_parts
from vizformer.checkpoints import Checkpoint

SOURCE = "back_translation"
ALIKE = 80.0  # chrF of the text and its round trip, from which a pair is kept
MAX_NEW = 40  # tokens


def candidates(texts: Iterable[str], folder: Path, words: range) -> list[str]:
    """Of English texts those with a number of words that no line of the set holds and that nothing is judged by."""
    known = {
        sentence_key(text)
        for part in ("train", "valid", "test")
        for line in read_lines(folder / f"{part}.tsv")
        for text in (line.text, line.translation)
    }
    judged = judged_by()
    found = {sentence_key(text): text for text in texts if len(text.split()) in words}
    return [text for key, text in found.items() if key not in known and text not in judged]


def round_trips(checkpoint: Checkpoint, texts: Sequence[str]) -> list[Line]:
    """The pairs whose text comes back nearly as it was, the translator's Chinese to a person's English."""
    chinese = translate_all(checkpoint, texts, max_new=MAX_NEW)
    back = translate_all(checkpoint, chinese, max_new=MAX_NEW)
    return [
        Line("zh-en", zh, en, SOURCE)
        for zh, en, again in zip(chinese, texts, back, strict=True)
        if zh and sacrebleu.sentence_chrf(again, [en]).score >= ALIKE
    ]


@click.command()
@click.argument("folder", metavar="SET", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("work", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("texts", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("out", type=click.Path(file_okay=False, path_type=Path))
@click.option("--most", default=12_000, show_default=True, help="How many texts are translated.")
@click.option("--seed", default=0, show_default=True)
def main(folder: Path, work: Path, texts: Path, out: Path, most: int, seed: int) -> None:
    """Write into OUT the training set SET with pairs more, made by the translator in WORK from the English TEXTS.

    A line of TEXTS begins with the English text; what follows a tab is not read.
    """
    torch.set_num_threads(1)
    english = (line.partition("\t")[0].strip() for line in texts.read_text(encoding="utf-8").splitlines())
    chosen = candidates(english, folder, range(4, 13))
    random.Random(seed).shuffle(chosen)
    kept = round_trips(averaged(work), chosen[:most])
    shutil.copytree(folder, out, dirs_exist_ok=True)
    write_parts({"train": [*read_lines(folder / "train.tsv"), *kept]}, out)
    click.echo(f"{len(chosen)} texts, {min(most, len(chosen))} translated, {len(kept)} kept")


if __name__ == "__main__":
    main()
