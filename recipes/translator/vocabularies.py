"""Says what vocabularies of several sizes make of held-out sentences: `python -m recipes.translator.vocabularies SET`."""

from pathlib import Path

import click

from recipes.translator.train import learn_vocabulary
from recipes.translator.training_set import read_lines

SIZES = (4000, 6000, 8000, 12000)


@click.command()
@click.argument("folder", metavar="SET", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--without", multiple=True, help="A source that the vocabulary is not learned from.")
def main(folder: Path, without: tuple[str, ...]) -> None:
    """Write a row for each size: tokens a sentence (held-out Tatoeba), and Chinese characters there that are one token."""
    lines = [line for line in read_lines(folder / "train.tsv") if line.source.split()[0] not in without]
    test = [line.text for line in read_lines(folder / "test.tsv")]
    characters = sorted({one for text in test for one in text if "\u4e00" <= one <= "\u9fff"})
    texts = {"Chinese": [text for text in test if set(text) & set(characters)]}
    texts["English"] = [text for text in test if text not in set(texts["Chinese"])]
    for size in SIZES:
        tokenizer = learn_vocabulary(lines, size)
        counts = {text: len(tokenizer.encode(text, special=False)) for text in [*test, *characters]}
        means = [f"{sum(counts[text] for text in group) / len(group):.1f} {name}" for name, group in texts.items()]
        whole = sum(counts[one] == 1 for one in characters)
        click.echo(f"{size}: {', '.join(means)}, {whole} of {len(characters)} characters")


if __name__ == "__main__":
    main()
