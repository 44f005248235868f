"""How long the path takes: its words, pictures, predictions and questions, by the rates of the app's own clock.

    python -m tests.benchmarks.path                       # both languages, the bundled translator
    python -m tests.benchmarks.path --model stories --text "The dog was tired, so it went to"

The last lines say what becomes of the sum where a reader is a quarter faster or slower.
"""

from contextlib import ExitStack
from unittest.mock import patch

import click

from vizformer.components.stations import Ask, Turn
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link.languages import LANGUAGES
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.pages.path import stations
from vizformer.web.widgets.whole_model.sentence import Sentence
from vizformer.web.words import i18n, lesson_words

LEAST, MOST = 60, 90  # minutes that the path is to take
HEADINGS = ("station", "words", "字", "steps", "ticks", "predictions", "pictures", "second half", "minutes")


def rows(subject: Subject, code: str) -> list[tuple[str | float, ...]]:
    """A row for each station, and their sum."""
    with ExitStack() as patched:
        for module in (stations, lesson_words, i18n):
            patched.enter_context(patch.object(module, "language", lambda: code))
        made = stations.all_stations(Sentence(subject))
    found: list[tuple[str | float, ...]] = []
    for one in made:
        counts = lesson_words.counted(step.words for step in one.steps)
        ticks = sum(len(step.ticks) for step in one.steps if isinstance(step, Turn))
        asked = sum(isinstance(step, Ask) for step in one.steps)
        parts = (one.minutes, one.deeper.minutes if one.deeper else 0.0)
        found.append((one.name, *counts, len(one.steps), ticks, asked, *parts, sum(parts)))
    return [*found, ("all", *(sum(float(row[at]) for row in found) for at in range(1, len(HEADINGS))))]


@click.command(help=__doc__)
@click.option("--model", default="zh-en", help="A bundled model.")
@click.option("--text", default="我有一只猫。", help="The sentence.")
def main(model: str, text: str) -> None:
    for code in LANGUAGES:
        found = rows(Subject(ModelRef("bundled", model), text, ""), code)
        click.echo(f"\n{code}: {lesson_words.WORDS} words or {lesson_words.CHARACTERS} characters a minute\n")
        click.echo(" | ".join(HEADINGS))
        for row in found:
            click.echo(" | ".join(f"{value:.1f}" if isinstance(value, float) else str(value) for value in row))
        all_of_it = float(found[-1][-1])
        click.echo(f"a quarter faster {0.75 * all_of_it:.0f}, a quarter slower {1.25 * all_of_it:.0f} minutes")
        if model == "zh-en" and not LEAST <= all_of_it <= MOST:
            raise SystemExit(f"{all_of_it:.0f} minutes are not between {LEAST} and {MOST}.")


if __name__ == "__main__":
    main()
