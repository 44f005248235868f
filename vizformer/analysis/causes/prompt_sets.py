"""Sets of prompts: what a model is asked many times in the same way, so that an effect has a mean and an interval.

A row is a prompt with an answer and, where they are given, a wrong answer and a second, corrupted prompt for which the wrong
one would be right.  A set is read from CSV, from JSON, or made of a template with words:

    clean: When {name} and {name.2} went to the {place}, {name.2} gave a flower to
    corrupted: When {name} and {name.2} went to the {place}, {name} gave a flower to
    answer: {name}
    wrong: {name.2}
    name: Mary, John, Tom
    place: shop, park

`{name}`, `{name.2}`, ... are different words of one list; `a|b` are several right (or wrong) answers.

Source: Wang et al. 2022, "Interpretability in the Wild" (prompts made of templates, a corrupted one beside each).
"""

import csv
import io
import itertools
import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

from vizformer.assets import asset
from vizformer.checkpoints import Checkpoint
from vizformer.errors import TraceError

LARGEST = 2**20  # bytes of a file
LEAST, MOST = 2, 500  # rows
MOST_CHARACTERS = 2_000  # of a text in a row
MOST_MADE = 50  # rows that a template makes where it does not say `count: ...`
SEED = 0  # of which rows a template makes, where there are more
_SLOT = re.compile(r"\{([\w-]+)(?:\.(\d{1,2}))?\}")


@dataclass(frozen=True)
class PromptRow:
    """One row of a set; "" for what is not given.

    Attributes:
        clean, corrupted: texts; one with a mask token for a model that fills masks.
        answer, wrong: words that go on the clean text (or take the place of its mask), several of them with | between;
            of each the first token counts.
        target: what the decoder of an encoder-decoder has read so far.
    """

    clean: str
    corrupted: str = ""
    answer: str = ""
    wrong: str = ""
    target: str = ""


COLUMNS = tuple(field.name for field in fields(PromptRow))


@dataclass(frozen=True)
class PromptSet:
    """Prompts by a name.

    Raises:
        TraceError: fewer than LEAST or more than MOST rows, one without a prompt, or with a text that is too long.
    """

    name: str
    rows: tuple[PromptRow, ...]

    def __post_init__(self) -> None:
        if not LEAST <= len(self.rows) <= MOST:
            raise TraceError(
                "A set has {least} to {most} prompts; this one has {n}. Give one in each row.",
                least=LEAST,
                most=MOST,
                n=len(self.rows),
            )
        for at, row in enumerate(self.rows, start=1):
            if not row.clean:
                raise TraceError("Row {at} has no prompt: fill its column clean.", at=at)
            if max(map(len, astuple(row))) > MOST_CHARACTERS:
                raise TraceError(
                    "A text in row {at} is longer than {most} characters. Shorten it.", at=at, most=MOST_CHARACTERS
                )


def read_prompt_set(source: str | bytes | Path, name: str = "prompts") -> PromptSet:
    """A set from a file, or from what stands in one.

    It is CSV with a line of names (COLUMNS), JSON, a list of objects with the same names, or a template (see the module).

    Raises:
        TraceError: no such file, too large, not UTF-8, none of the three, or see `PromptSet`.
    """
    if isinstance(source, Path):
        if not source.is_file():
            raise TraceError(
                "There is no file {path}. Give a table of prompts: CSV, JSON or a template.", path=str(source)
            )
        name = source.stem
        with source.open("rb") as file:
            source = file.read(LARGEST + 1)
    if len(source) > LARGEST:
        raise TraceError("A set of prompts has at most {limit:,} bytes. Take a part of it.", limit=LARGEST)
    try:
        text = source if isinstance(source, str) else source.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TraceError("This is not UTF-8 text. Save it as UTF-8 and try again.") from error
    text = "\n".join(line for line in text.splitlines() if not line.startswith("#")).strip()
    if text[:1] in ("[", "{"):
        return PromptSet(name, tuple(_rows_of(_json(text))))
    if re.match(r"clean\s*:", text):
        return PromptSet(name, _made(text))
    return PromptSet(name, tuple(_rows_of(_csv(text))))


def _json(text: str) -> list[Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TraceError(
            "This JSON cannot be read. Write a list of objects: [{example}, ...].", example=_EXAMPLE
        ) from error
    return found if isinstance(found, list) else [found]


def _csv(text: str) -> list[Any]:
    try:
        return list(itertools.islice(csv.DictReader(io.StringIO(text), skipinitialspace=True), MOST + 1))
    except csv.Error as error:
        raise TraceError("This table cannot be read: {error}.", error=str(error)) from error


_EXAMPLE = '{"clean": "The boy lost", "answer": "his", "wrong": "her"}'


def _rows_of(found: Sequence[Any]) -> Iterator[PromptRow]:
    for at, one in enumerate(found[: MOST + 1], start=1):
        known = {str(name).strip().lower(): value for name, value in one.items()} if isinstance(one, dict) else {}
        values = {column: "" if known.get(column) is None else known[column] for column in COLUMNS}
        if "clean" not in known or not all(isinstance(value, str | int) for value in values.values()):
            raise TraceError(
                "Row {at} is not a prompt. Name the columns in the first line: {names}; only clean is needed.",
                at=at,
                names=", ".join(COLUMNS),
            )
        yield PromptRow(**{column: str(value).strip() for column, value in values.items()})


def _made(text: str) -> tuple[PromptRow, ...]:
    """The rows of a template: all ways of filling its slots, or so many of them, drawn."""
    given = dict[str, str]()
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if line.strip() and (not colon or name.strip() in given):
            raise TraceError(
                "A template has lines such as “clean: The {{boy}} lost” and “boy: boy, man”; not {line}.", line=line
            )
        given[name.strip()] = value.strip()
    given.pop("", None)
    template = {name: given.pop(name, "") for name in COLUMNS}
    count = given.pop("count", str(MOST_MADE))
    words = {
        name: tuple(dict.fromkeys(filter(None, map(str.strip, re.split("[,，]", said)))))
        for name, said in given.items()
    }
    return template_rows(template, words, min(int(count), MOST) if count.isdecimal() else MOST_MADE)


def template_rows(
    template: Mapping[str, str], words: Mapping[str, Sequence[str]], count: int = MOST_MADE, seed: int = SEED
) -> tuple[PromptRow, ...]:
    """The rows of a template, see the module: all ways of filling its slots if they are at most `count`, else so many drawn.

    Raises:
        TraceError: a slot without words, or with fewer words than it takes different ones.
    """
    slots = sorted({(name, int(n or 1)) for value in template.values() for name, n in _SLOT.findall(value)})
    for name, n in slots:
        if len(words.get(name, ())) < n:
            raise TraceError("The template needs {n} words for {{{name}}}: write a line “{name}: ...”.", n=n, name=name)
    most = {name: max(n for other, n in slots if other == name) for name, _ in slots}
    ways = 1
    for name, n in most.items():
        for taken in range(n):
            ways *= len(words[name]) - taken
    filled: Iterator[dict[tuple[str, int], str]]
    if ways <= count:
        lists = [itertools.permutations(words[name], n) for name, n in most.items()]
        filled = (_slots(most, chosen) for chosen in itertools.product(*lists))
    else:
        rng = random.Random(seed)
        filled = (
            _slots(most, [tuple(rng.sample(list(words[name]), n)) for name, n in most.items()])
            for _ in range(20 * count)
        )

    def fill(value: str, by: Mapping[tuple[str, int], str]) -> str:
        return _SLOT.sub(lambda found: by[found[1], int(found[2] or 1)], value)

    rows = dict.fromkeys(PromptRow(**{name: fill(value, by) for name, value in template.items()}) for by in filled)
    return tuple(itertools.islice(rows, count))


def _slots(most: Mapping[str, int], chosen: Sequence[tuple[str, ...]]) -> dict[tuple[str, int], str]:
    return {(name, n): word for name, words in zip(most, chosen, strict=True) for n, word in enumerate(words, start=1)}


_WRITTEN_FOR = {"stories": "decoder-only", "gpt2": "decoder-only", "cloze": "encoder-only", "zh-en": "encoder-decoder"}


def bundled_sets(checkpoint: Checkpoint | None = None) -> tuple[str, ...]:
    """The names of the sets that come with VizFormer: a task and a model that does it, "gender.stories".

    Args:
        checkpoint: those that it can be asked: of a bundled model its own, else those for models of its architecture.
    """
    names = sorted((path.stem for path in asset("prompts").glob("*.txt")), key=lambda name: (name.split(".")[1], name))
    if checkpoint is None:
        return tuple(names)
    own = tuple(name for name in names if name.split(".")[1] == checkpoint.name)
    fits = {
        model for model, architecture in _WRITTEN_FOR.items() if architecture == checkpoint.model.config.architecture
    }
    return own or tuple(name for name in names if name.split(".")[1] in fits)


def bundled_set(name: str) -> PromptSet:
    """One of `bundled_sets`.

    Raises:
        TraceError: there is no such set.
    """
    if name not in bundled_sets():
        raise TraceError(
            "There is no set called {name}. There are: {known}.", name=name, known=", ".join(bundled_sets())
        )
    return read_prompt_set(asset("prompts", f"{name}.txt"))
