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

How long the texts of a template can become, and how many words a row takes, is worked out before any row is made; rows are
made one by one, as many as are asked for.

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
from vizformer.checkpoints import AnyCheckpoint
from vizformer.errors import TraceError

LARGEST = 2**20  # bytes of a file
LEAST, MOST = 2, 500  # rows
MOST_CHARACTERS = 2_000  # of a text in a row
MOST_COLUMNS = 64  # of a table
MOST_SLOTS = 64  # of a template in all its texts, its lists of words, and the words that one of its rows takes
MOST_WORDS = 2_000  # of all lists of a template
MOST_MADE = 50  # rows that a template makes where it does not say `count: ...`
SEED = 0  # of which rows a template makes, where there are more
_TRIES = 10  # drawn for each row that is wanted, of which some are the same
_QUOTED = 80  # characters of a line that is wrong
_SLOT = re.compile(r"\{([\w-]+)(?:\.(\d+))?\}")
_HALF = re.compile("[\ud800-\udfff]")  # of a character that JSON writes as two


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
            if any(map(_HALF.search, astuple(row))):
                raise TraceError(
                    "A text in row {at} has half of a character (U+D800 to U+DFFF). Write the whole one.", at=at
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
        lines = csv.reader(io.StringIO(text), skipinitialspace=True)
        names = next(lines, [])
        if len(names) > MOST_COLUMNS:
            raise TraceError(
                "A table of prompts has at most {most} columns; this one has {n:,}. Keep these: {names}.",
                most=MOST_COLUMNS,
                n=len(names),
                names=", ".join(COLUMNS),
            )
        filled = (line for line in lines if line)
        return [
            dict.fromkeys(names) | dict(zip(names, line, strict=False)) for line in itertools.islice(filled, MOST + 1)
        ]
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
    for line in filter(str.strip, text.splitlines()):
        name, colon, value = (part.strip() for part in line.partition(":"))
        if not colon or name in given:
            raise TraceError(
                "A template has lines such as “clean: The {{boy}} lost” and “boy: boy, man”; not {line}.",
                line=line if len(line) <= _QUOTED else line[: _QUOTED - 1] + "…",
            )
        given[name] = value
        if len(given) > len(COLUMNS) + 1 + MOST_SLOTS:
            raise TraceError("A template has at most {most} lists of words. Take some out.", most=MOST_SLOTS)
    template = {name: given.pop(name, "") for name in COLUMNS}
    count = given.pop("count", str(MOST_MADE))
    if not (count.isdecimal() and len(count) <= len(str(MOST)) and LEAST <= int(count) <= MOST):
        raise TraceError(
            "The line “count: ...” says how many prompts are made: a whole number from {least} to {most}.",
            least=LEAST,
            most=MOST,
        )
    _check_words(sum(1 + said.count(",") + said.count("，") for said in given.values()))
    words = {
        name: tuple(dict.fromkeys(filter(None, map(str.strip, re.split("[,，]", said)))))
        for name, said in given.items()
    }
    return template_rows(template, words, int(count))


def _check_words(n: int) -> None:
    if n > MOST_WORDS:
        raise TraceError(
            "A template has at most {most:,} words in its lists; this one has {n:,}. Take some out.",
            most=MOST_WORDS,
            n=n,
        )


def template_rows(
    template: Mapping[str, str], words: Mapping[str, Sequence[str]], count: int = MOST_MADE, seed: int = SEED
) -> tuple[PromptRow, ...]:
    """The rows of a template, see the module: all ways of filling its slots if they are at most `count`, else so many drawn.

    Raises:
        TraceError: a slot without words, or with fewer words than it takes different ones; too many slots or words, or a
            text that can become longer than MOST_CHARACTERS.
    """
    _check_words(sum(map(len, words.values())))
    most = _words_taken(template, words)
    _check_lengths(template, words)
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
            _slots(most, [tuple(rng.sample(words[name], n)) for name, n in most.items()]) for _ in range(_TRIES * count)
        )

    def fill(value: str, by: Mapping[tuple[str, int], str]) -> str:
        return _SLOT.sub(lambda found: by[found[1], int(found[2] or 1)], value)

    rows = dict[PromptRow, None]()
    for by in filled:
        rows[PromptRow(**{name: fill(value, by) for name, value in template.items()})] = None
        if len(rows) == count:
            break
    return tuple(rows)


def _words_taken(template: Mapping[str, str], words: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """The number of different words of each list that one row uses."""
    slots = list[tuple[str, int]]()
    for value in template.values():
        for found in _SLOT.finditer(value):
            name, number = found[1], found[2] or "1"
            if len(number) > len(str(MOST_SLOTS)) or not 1 <= int(number) <= MOST_SLOTS:
                raise TraceError(
                    "{slot} is no slot of a template: different words of one list are {{{name}}}, {{{name}.2}} and so on, "
                    "up to {most}.",
                    slot=found[0][:_QUOTED],
                    name=name[:_QUOTED],
                    most=MOST_SLOTS,
                )
            slots.append((name, int(number)))
            if len(slots) > MOST_SLOTS:
                raise TraceError("The texts of a template have at most {most} slots. Take some out.", most=MOST_SLOTS)
    for name, n in sorted(set(slots)):
        if len(words.get(name, ())) < n:
            raise TraceError(
                "The template needs {n} words for {{{name}}}: write a line “{name}: ...”.", n=n, name=name[:_QUOTED]
            )
    most = {name: max(n for other, n in slots if other == name) for name, _ in sorted(slots)}
    if sum(most.values()) > MOST_SLOTS:
        raise TraceError(
            "A prompt of this template takes {n} words; at most {most} are taken.",
            n=sum(most.values()),
            most=MOST_SLOTS,
        )
    return most


def _check_lengths(template: Mapping[str, str], words: Mapping[str, Sequence[str]]) -> None:
    """Checks the length of each text with the longest word in every slot, without building it."""
    longest = {name: max(map(len, listed), default=0) for name, listed in words.items()}
    for column, value in template.items():
        n = len(value) + sum(longest[found[1]] - len(found[0]) for found in _SLOT.finditer(value))
        if n > MOST_CHARACTERS:
            raise TraceError(
                "The text “{column}” of the template becomes up to {n:,} characters long; at most {most:,} are read. "
                "Shorten it, or its words.",
                column=column,
                n=n,
                most=MOST_CHARACTERS,
            )


def _slots(most: Mapping[str, int], chosen: Sequence[tuple[str, ...]]) -> dict[tuple[str, int], str]:
    return {(name, n): word for name, words in zip(most, chosen, strict=True) for n, word in enumerate(words, start=1)}


_WRITTEN_FOR = {"stories": "decoder-only", "gpt2": "decoder-only", "cloze": "encoder-only", "zh-en": "encoder-decoder"}


def bundled_sets(checkpoint: AnyCheckpoint | None = None) -> tuple[str, ...]:
    """The names of the sets that come with VizFormer: a task and a model that does it, "gender.stories".

    Args:
        checkpoint: those that it can be asked: of a bundled model its own, else those for models of its architecture.
    """
    names = sorted((path.stem for path in asset("prompts").glob("*.txt")), key=lambda name: (name.split(".")[1], name))
    if checkpoint is None:
        return tuple(names)
    own = tuple(name for name in names if name.split(".")[1] == checkpoint.name)
    fits = {model for model, architecture in _WRITTEN_FOR.items() if architecture == checkpoint.shape.architecture}
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
