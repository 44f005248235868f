"""Every number in the words of the lessons, on the cards of the models and in the README is held by something.

A numeral is inserted by the program (`{n}`), given by a question or a thing to try, recomputed here (`COMPUTED`), a figure
of a paper whose text names section or table (`QUOTED`), or exempt for a reason (`EXEMPT`).
"""

import json
import math
import re
import shutil
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from recipes.bundled_models import cards
from tests.bundled import load
from tests.test_words import texts as listed
from vizformer.analysis.costs.paper_results import P100_FLOPS, RECIPES, TABLE_2, TABLE_3
from vizformer.analysis.positions import SAME, small_config
from vizformer.checkpoints.any_checkpoint import MAX_CHARACTERS
from vizformer.explain.mixers_by_hand import D
from vizformer.training import lengths
from vizformer.web.lessons.block.count import COPIED
from vizformer.web.lessons.positions import order, past_trained_length
from vizformer.web.lessons.training import adam
from vizformer.web.widgets import plan

ROOT = Path(__file__).resolve().parent.parent
LESSONS, MODELS = ROOT / "assets" / "lessons", ROOT / "assets" / "models"
POWERS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")

EXEMPT = {
    r"`[^`]*`|\]\([^)]*\)|<[^>]*>|@[\w.]+": "code, which other tests run; addresses; numbers of lessons",
    r"(?<![A-Za-z])[A-Za-z][A-Za-z_-]*\d+(\.\d+)?[A-Za-z0-9-]*|\d+x\d+B|\d+B\b": "names: GPT-2, W_1, float16",
    r"e\^[\d.]+|\d+e-\d+": "e^0.71 beside its value, and 1e-9 of a program",
    r"(Tables?|[Ss]ections?|表) ?\d[\d.]*( (and|与|和) \d[\d.]*)?|\d[\d.]*( ?[、与和] ?\d[\d.]*)* ?节": "places",
    r"(?<![\d.,])(19|20)\d\d(?!\d|[.,]\d)": "years",
    r"(?<![\d.,])(?<!10\^-)[0-4](?!\d|[.,]\d| ?(·|\\cdot) ?10)": "small whole numbers, which the sentence shows",
    r"(95|100) ?\\?%": "the level of an interval, and the whole",
    r"(\^|指数是 |exponent is )−\d\.5": "exponents of the schedule's formula",
    r"(?<!· )(?<!cdot )10[⁻⁰¹²³⁴-⁹]+|−0\.2": "a power of ten alone, and the other sign of a number beside it",
}
"""What is read as no claim, and why."""
NUMERAL = re.compile(r"\d[\d,]*(?:\.\d+)?(?:\s?(?:·|\\cdot)\s?10(?:[⁻⁰¹²³⁴-⁹]+|\^-?\d+))?(?: ?[万亿])?")
GIVEN = re.compile(r"\.(try\.\d+|asks\.\w+\.(question|choices|again)\b.*)$")

base, big = RECIPES
ATTENTION, NETWORK, NORM = 4 * (512 * 512 + 512), 2 * 512 * 2048 + 2048 + 512, 2 * 512
DECODER = 2 * ATTENTION + NETWORK + 3 * NORM
ENCODERS, DECODERS, TABLE = 6 * (ATTENTION + NETWORK + 2 * NORM), 6 * DECODER, 37_000 * 512
HAND = [math.exp(2**-0.5), math.exp(0)]  # one query, four keys, scores 0.71, 0, 0.71 and 0
COPIES = [float(number.split()[0]) for number in COPIED.values()]


def rate(d: int, step: int) -> float:
    """The learning rate of the paper after `step` steps, at the end of the warm-up or later."""
    return float(d**-0.5 * step**-0.5)


def losses(row: int) -> list[float]:
    """ln(perplexity) of a row of the trainings of 1,200 to 6,000 updates, which the notes of the lesson have."""
    text = (LESSONS / "costs" / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\|[^|]*\|((?: *[\d.]+ *\|){5})$", text, re.M)
    return [math.log(float(one)) for one in re.findall(r"[\d.]+", rows[row])]


def of_tables(*names: str) -> list[float]:
    """BLEU and training cost of rows of the paper's Table 2."""
    rows = [row for row in TABLE_2 if f"{row.name}{' ensemble' * row.ensemble}" in names]
    return [number for row in rows for number in (*row.bleu, *row.flops) if number is not None]


SMALL = json.loads((LESSONS / "costs" / "ablations.json").read_text(encoding="utf-8"))["recipe"]["model"]
TEN = [len(one) for one in json.loads((LESSONS / "map" / "ten_sentences.json").read_text(encoding="utf-8"))["gru"]]
EXPERTS = 32 * 3 * 4096 * 14_336  # Mistral 7B: one feed-forward network in each layer
MIXTRAL = 32 * (2 * 4096**2 + 2 * 4096 * 1024) + 2 * 32_000 * 4096  # its attention and its tables
STARTED = rate(512, 4000), rate(512, 100_000)
ROWS = [number for row in TABLE_3 for number in (row.perplexity, row.bleu)]
COMPUTED: dict[str, list[float]] = {
    "block.ffn.wrong.1": [8],  # 2 · 4 d² = 3 · (8/3) d²
    "block.count.text": [ENCODERS, DECODERS, TABLE, 37_000, ENCODERS + DECODERS + TABLE],
    "block.count.wrong_table": [
        6,
        DECODERS / 1e6,
        sum(COPIES[:3]),
        *COPIES,
        1e6 * COPIES[3],
        DECODERS,
        1e6 * sum(COPIES[:3]),
    ],
    "block.count.asks.line": [ATTENTION, NETWORK, NORM, DECODER, DECODERS, COPIES[1], 1e6 * COPIES[1]],
    "block.ffn.found": [base.d_ff, base.d_model, 1024, 4096],
    "costs.results.text": [
        *(abs(losses(row)[at] - losses(0)[at]) for row in (1, 2) for at in (0, -1)),
        *of_tables("Transformer base"),
        *ROWS,
        0.1,
        0.2,
        1200,
        6000,
    ],
    "costs.results.wrong": [41.0, *of_tables("Transformer big")],
    "costs.results.source": [41.0],
    "costs.results.pieces": [37_000, 41_000],  # tests/analysis/test_paper_results.py
    "costs.results.trained": [SMALL["d_model"], SMALL["d_ff"]],
    "costs.results.asks.hours": [
        8,
        big.hours / 24,
        24,
        3600,
        P100_FLOPS,
        P100_FLOPS / 1e12,
        *of_tables("Transformer big"),
    ],
    "costs.results.asks.beaten": [
        *of_tables("Transformer base", "ConvS2S ensemble"),
        7.7e19 / 3.3e18,
        100 * 3.3e18 / 7.7e19,
    ],
    "costs.family.mixtral": [8, MIXTRAL + 8 * EXPERTS, MIXTRAL + 2 * EXPERTS],
    "reading list: Mixtral of Experts": [(MIXTRAL + 8 * EXPERTS) / 1e9, MIXTRAL + 8 * EXPERTS],
    "decoding.cache.growth": [2**3],
    "decoding.cache.asks.cube": [2**3],
    "heads.split.text": [base.d_model, base.d_head],
    "heads.reference.wrong": [100 / 20],
    "map.gru.spread": [min(TEN), max(TEN)],
    "masks.mistakes": [torch.finfo(torch.float16).max],
    "mixers.sink.asks.quarter": [3 / 4],
    "mixers.latent.asks.score": [1 * 2 + 3 * 1, 5 * 1 + 1 * 2, 3 * 1 + 1 * 2],
    "mixers.latent.asks.kept": [512 + 64, 2 * 128 * 128, 2 * 128 * 128 / (512 + 64)],
    "mixers.delta.asks.twice": [3 + 5],
    "mixers.comparison.made": [D],
    "path.loss": [math.log(2)],
    "qkv.lookup.asks.hand": [2**-0.5, HAND[0], 2 * sum(HAND), *(one / (2 * sum(HAND)) for one in HAND)],
    "qkv.scale.text": [8**2],
    "qkv.scale.wrong": [base.d_model, base.heads, base.d_head, base.d_head**0.5],
    "qkv.scale.asks.line": [base.d_model, base.d_head, base.d_model / base.d_head, (base.d_model / base.d_head) ** 0.5],
    "training.loss.text": [math.log(2), math.log(1000)],
    "training.loss.seventh": [100 / 7],
    "training.smoothing": [base.smoothing, 1 - base.smoothing, *ROWS],
    "training.rate": [base.d_model, base.warmup, base.steps, base.hours, *STARTED, 1e4, STARTED[1] * 1e4],
    "training.adam": [
        torch.optim.Adam([torch.zeros(1)]).defaults["betas"][1],
        *(adam.START, adam.FIRST, adam.RATE, adam.BETA_1, adam.BETA_2),
        *(abs(gradient) for gradients in adam.GRADIENTS.values() for gradient in gradients),
    ],
    "training.dropout": [base.dropout, *ROWS],
    "training.sharing": [37_000, base.d_model],
    "positions.waves": [10_000],  # section 3.5
    "positions.clock": [10_000],
    "positions.shuffle": [small_config("none", 8, causal=False).d_model, SAME, order.SHOWN],
    "glossary: half-precision": [16, torch.finfo(torch.float16).max],
    "glossary: wavelength": [10_000],
    "notations": [base.d_model, base.heads, base.d_head],
    "reading list: Scaling": [2 * 3],  # multiplications and additions, forward and twice backward
    "positions.longer": [*past_trained_length.WIDTHS, past_trained_length.measured()["trained"], lengths.LONGEST],
}
"""Path of a text, or how it begins -> what is recomputed of it; a numeral is one of these, rounded as it is written."""
QUOTED = {
    "block.residual.text": (152,),
    "reading list: Attention Is All": (3.2, 3.5),
    "reading list: Interpretability in the Wild": (26,),
    "glossary: frame": (25,),
    "costs.results.batches": (25_000, 0.9, 0.98, 0.6, 0.1),
    "training.loss.seventh": (15,),
}
"""Figures of papers that are typed off: the text names the section, the table or the abstract."""
NAMED = re.compile(r"[Ss]ections? \d|Table \d|abstract|第 ?[\d.]+.*节|表 ?\d|摘要")
EXAMPLES = {"training.loss.wrong": (0.4, 0.5), "tokens.context.text": (0.5,), "tokens.pieces.text": (50_000, 5e4)}
"""Numbers that a text supposes, and one that the recipe of the tokenizers was given."""


LISTS = ("glossary", "notations", "reading list", "plan")
FILES = (*sorted(path.stem for path in (LESSONS / "en").glob("*.toml")), *LISTS)


def leaves(table: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(table, str):
        yield path, table
        return
    for name, found in table.items() if isinstance(table, dict) else enumerate(table):
        yield from leaves(found, f"{path}.{name}")


def numerals(text: str) -> list[str]:
    """What of a text is read as a number that it claims."""
    text = re.sub(r"\{[^{}]*\}", " ", re.sub(r"10\^\{(-?\d+)\}", r"10^\1", text))
    for pattern in EXEMPT:
        text = re.sub(pattern, " ", text)
    return [found[0].rstrip(",") for found in NUMERAL.finditer(text)]


def is_rounded(written: str, value: float) -> bool:
    """Whether a numeral is this value, rounded as it is written."""
    parts = re.fullmatch(r"([\d,.]+?)(?:\s?(?:·|\\cdot)\s?10(.+?))?( ?[万亿])?", written)
    assert parts, written
    digits = parts[1].replace(",", "")
    power = int(parts[2].lstrip("^").translate(POWERS)) if parts[2] else 0
    unit = 10.0**power * {"万": 1e4, "亿": 1e8}.get((parts[3] or "").strip(), 1)
    last = unit * 10.0 ** -len(digits.partition(".")[2])
    return abs(float(digits) * unit - value) <= 0.5000001 * last


def values(table: Mapping[str, Iterable[float]], path: str) -> list[float]:
    """What a table has of a text: of its path, and of what that begins with."""
    return [value for begun, found in table.items() if path.startswith(begun) for value in found]


def held_by(file: str, code: str) -> Iterator[tuple[str, str, str]]:
    """Each numeral of a lesson, or of a list beside the lessons, with its text's path and what holds it; or nothing."""
    texts = {path: text for path, text in words(file, code) if not re.search(r"\.line\d+$", path)}
    for path, text in texts.items():
        question = ".".join(path.split(".")[:4]) + ".question" if ".asks." in path else path
        asked = numerals(" ".join(said for at, said in texts.items() if at != path and at.startswith(question)))
        yield from ((path, written, "inserted") for written in re.findall(r"\{[a-z_]\w*[^{}]*\}", text))
        for written in numerals(text):
            computed, quoted, supposed = (values(one, path) for one in (COMPUTED, QUOTED, EXAMPLES))
            if any(is_rounded(written, value) for value in computed):
                yield path, written, "computed"
            elif any(is_rounded(written, value) for value in quoted):
                yield path, written, "quoted" if NAMED.search(text) else ""
            elif any(is_rounded(written, value) for value in supposed):
                yield path, written, "supposed"
            else:
                yield path, written, "given" if GIVEN.search(path) or written in asked else ""


def words(file: str, code: str) -> Iterator[tuple[str, str]]:
    """The texts of a lesson by their paths; of a list, by its name and the term or title."""
    if file in LISTS:
        return ((where, text) for where, text in listed(code) if where.startswith(file))
    return leaves(tomllib.loads((LESSONS / code / f"{file}.toml").read_text(encoding="utf-8")), file)


@pytest.mark.parametrize("code", ["en", "zh_CN"])
@pytest.mark.parametrize("file", FILES)
def test_every_number_in_words_is_held(file: str, code: str) -> None:
    assert [(path, written) for path, written, by in held_by(file, code) if not by] == []


def test_every_table_holds_a_number_for_each_of_its_texts() -> None:
    texts = [one for file in FILES for code in ("en", "zh_CN") for one in words(file, code)]
    for table in (COMPUTED, QUOTED, EXAMPLES):
        for begun, held in table.items():
            claimed = [one for path, text in texts if path.startswith(begun) for one in numerals(text)]
            assert any(is_rounded(one, value) for one in claimed for value in held), begun


@pytest.mark.parametrize(("written", "value"), [("0.69", 0.68), ("18,914,304", 18_914_303), ("2.3 · 10¹⁹", 2.4e19)])
def test_another_number_than_the_computed_one_is_found(written: str, value: float) -> None:
    assert not is_rounded(written, value)
    assert numerals(f"It is {written}, as in Table 3 of GPT-2 (2019).") == [written]


WRITERS = {"zh-en": cards.write_zh_en_card, "stories": cards.write_stories_card, "cloze": cards.write_cloze_card}


@pytest.mark.parametrize("name", WRITERS)
def test_a_card_is_what_its_model_and_its_measurements_give(name: str, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(MODELS / name, tmp_path / name))
    (folder / "README.md").unlink()
    notes = [folder / f"{one}.json" for one in ("training", "evaluation", "baseline")]
    WRITERS[name](folder, load(name), *(json.loads(one.read_text(encoding="utf-8")) for one in notes if one.exists()))
    assert (folder / "README.md").read_text(encoding="utf-8") == (MODELS / name / "README.md").read_text(
        encoding="utf-8"
    )


READ_ME = (ROOT / "README.md").read_text(encoding="utf-8")
TEACHERS = (ROOT / "docs" / "teachers.md").read_text(encoding="utf-8")


def test_the_numbers_of_the_models_in_the_readme_are_those_of_their_cards() -> None:
    rows = re.findall(r"^\| \[`([\w-]+)`\]\(.*?\) \| (.*) \|$", READ_ME, re.M)
    assert {*WRITERS} < {name for name, __ in rows}
    for name, said in rows:
        card = numerals((MODELS / name / "README.md").read_text(encoding="utf-8"))
        known = [float(one.replace(",", "")) for one in card if " " not in one]
        known += [value / 1e6 for value in known]
        assert [one for one in numerals(said) if not any(is_rounded(one, value) for value in known)] == [], name


def test_the_other_numbers_of_the_readme_and_of_what_teachers_read_hold() -> None:
    prose = re.sub(r"^(\||    ).*$|```.*?```", "", READ_ME, flags=re.M | re.S)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    oldest = project["requires-python"].removeprefix(">=")
    measured = ["20", "40"]  # readers of one core: deploy/README.md, with how it was measured
    assert "One core for 20 to 40 readers" in (ROOT / "deploy" / "README.md").read_text(encoding="utf-8")
    licence = re.findall(r"CC BY(?:-SA)? (\d\.\d)", prose)
    assert {*numerals(prose)} <= {oldest, f"{MAX_CHARACTERS:,}", *measured, *licence}
    assert {*numerals(TEACHERS)} <= {*measured, *map(str, plan.MINUTES)}


if __name__ == "__main__":
    for code in ("en", "zh_CN"):
        print(code, Counter(by or "not held" for file in FILES for *_, by in held_by(file, code)))
