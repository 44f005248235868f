"""Every number in the words of the lessons, on the cards, in the README and in the documents is held by something.

A numeral, or a number in words above four, is inserted by the program (`{n}`), given by a question or a thing to try,
recomputed here (`COMPUTED`, `DOCUMENTS`), a figure of a paper whose text names section or table (`QUOTED`), held by another
test (`ELSEWHERE`), or exempt for a reason (`EXEMPT`, `VAGUE`, `EXAMPLES`, `MEASURED`).
"""

import json
import math
import re
import shutil
import tomllib
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from recipes.bundled_models import cards
from tests.bundled import load
from tests.test_docs import READING, WAY, lines_of
from tests.test_words import texts as listed
from vizformer.analysis.corpus_heads import habits
from vizformer.analysis.costs.paper_results import P100_FLOPS, RECIPES, TABLE_2, TABLE_3
from vizformer.analysis.heads.pronouns import MOST_PAIRS
from vizformer.analysis.positions import SAME, small_config
from vizformer.checkpoints.any_checkpoint import MAX_CHARACTERS
from vizformer.checkpoints.files import pickles
from vizformer.components import packing
from vizformer.explain.mixers_by_hand import D
from vizformer.model.masks import KINDS
from vizformer.model.transformer import count_parameters
from vizformer.text import schemes
from vizformer.training import classifier, lengths
from vizformer.web.catalogue import bounded_cache, followed_work, head_pictures, hub, session_folders, uploads
from vizformer.web.classroom import requests, rooms
from vizformer.web.frame import arrivals
from vizformer.web.lessons.block.count import COPIED
from vizformer.web.lessons.map import gru
from vizformer.web.lessons.positions import order, past_trained_length
from vizformer.web.lessons.positions.sinusoid import SCHEMES
from vizformer.web.lessons.tokens import contexts
from vizformer.web.lessons.training import adam
from vizformer.web.pages.path import stations
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
CLOZE = count_parameters(load("cloze").model.config)
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
    "block.count.asks.line": [base.layers, ATTENTION, NETWORK, NORM, DECODER, DECODERS, COPIES[1], 1e6 * COPIES[1]],
    "block.ffn.found": [base.d_ff, base.d_model, 1024, 4096],
    "costs.results.text": [
        *(abs(losses(row)[at] - losses(0)[at]) for row in (1, 2) for at in (0, -1)),
        *of_tables("Transformer base"),
        *ROWS,
        base.heads,
        0.1,
        0.2,
        1200,
        6000,
    ],
    "costs.family.also.rope": [len(SCHEMES) - 1],
    "costs.results.recipe.hours": [8],  # GPUs: section 5.2
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
    "reading list: Mixtral of Experts": [8, (MIXTRAL + 8 * EXPERTS) / 1e9, MIXTRAL + 8 * EXPERTS],
    "decoding.cache.growth": [2**3],
    "decoding.cache.asks.cube": [2**3],
    "heads.split.text": [base.heads, base.d_model, base.d_head],
    "heads.reference.unread": [MOST_PAIRS],  # two dozen
    "heads.reference.wrong": [100 / 20],
    "map.gru": [len(TEN)],
    "map.gru.spread": [min(TEN), max(TEN), gru.FAR.start, gru.EARLY.stop - gru.EARLY.start],
    "masks.kinds.title": [len(KINDS)],
    "masks.mistakes": [torch.finfo(torch.float16).max],
    "mixers.sink.asks.quarter": [3 / 4],
    "mixers.latent.asks.score": [1 * 2 + 3 * 1, 5 * 1 + 1 * 2, 3 * 1 + 1 * 2],
    "mixers.latent.asks.kept": [512 + 64, 2 * 128 * 128, 2 * 128 * 128 / (512 + 64)],
    "mixers.delta.asks.twice": [3 + 5],
    "mixers.comparison.made": [D],
    "path.loss": [math.log(2)],
    "qkv.lookup.asks.hand": [2**-0.5, HAND[0], 2 * sum(HAND), *(one / (2 * sum(HAND)) for one in HAND)],
    "positions.options.title": [len(SCHEMES)],
    "positions.longer.text": [len(SCHEMES)],
    "qkv.scale.text": [8**2, 64**0.5],
    "qkv.scale.wrong": [base.d_model, base.heads, base.d_head, base.d_head**0.5],
    "qkv.scale.asks.line": [base.d_model, base.d_head, base.d_model / base.d_head, (base.d_model / base.d_head) ** 0.5],
    "tokens.pieces": [len(schemes.SCHEMES), len(schemes.SCHEMES) - 1],  # bytes are not learned
    "tokens.context.large": [contexts.FRAMED],
    "training.classifier": [len(classifier.sentences("en", held_out=one)) for one in (False, True)],
    "training.classifier.text": [float(f"{len(classifier.TOPICS) * 257:.0e}")],  # W and b, d_model 256
    "training.classifier.wrong": [CLOZE // 1e6, 1e6],
    "training.classifier.how": [classifier.BATCH, 7],
    "training.loss.text": [math.log(2), math.log(1000), 1000],
    "training.loss.seventh": [100 / 7, 7],
    "training.smoothing": [base.smoothing, 1 / base.smoothing, 1 - base.smoothing, *ROWS],
    "training.rate": [base.d_model, base.warmup, base.steps, base.hours, *STARTED, 1e4, STARTED[1] * 1e4],
    "training.adam": [
        torch.optim.Adam([torch.zeros(1)]).defaults["betas"][1],
        *(1 / (1 - beta) for beta in (0.9, 0.98, 0.999)),
        *(len(gradients) for gradients in adam.GRADIENTS.values()),
        (adam.GRADIENTS["same"][0] / adam.GRADIENTS["small"][0]) ** 2,
        *(adam.START, adam.FIRST, adam.RATE, adam.BETA_1, adam.BETA_2),
        *(abs(gradient) for gradients in adam.GRADIENTS.values() for gradient in gradients),
    ],
    "training.dropout": [base.dropout, *ROWS],
    "training.sharing": [37_000, base.d_model],
    "positions.waves": [10_000],  # section 3.5
    "positions.clock": [10_000],
    "positions.shuffle": [small_config("none", 8, causal=False).d_model, SAME, order.SHOWN],
    "glossary: flops": [2 * 3],
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
EXAMPLES = {
    **{"training.loss.wrong": (0.4, 0.5), "tokens.context.text": (0.5,), "tokens.pieces.text": (50_000, 5e4)},
    **{"block.ffn.text": (10,), "cross.alignment.text": (10,), "cross.bottleneck.text": (40,), "map.gru.text": (10,)},
    **{"costs.results": (10,), "heads.all.wrong": (10,), "heads.reference.wrong": (20,), "path.turned": (5,)},
    **{"positions.clock.text": (12,), "training.classifier.recorded": (10,)},
}
"""Numbers that a text supposes, "about ten" of what is drawn, and one that the recipe of the tokenizers was given."""


LISTS = ("glossary", "notations", "reading list", "plan")
FILES = (*sorted(path.stem for path in (LESSONS / "en").glob("*.toml")), *LISTS)


def leaves(table: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(table, str):
        yield path, table
        return
    for name, found in table.items() if isinstance(table, dict) else enumerate(table):
        yield from leaves(found, f"{path}.{name}")


SPELT = {
    **{"five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "dozen": 12},
    **{"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60},
    **{"hundred": 100, "thousand": 1000, "million": 1_000_000},
}
CHINESE = {one: at for at, one in enumerate("一二三四五六七八九", 1)}
UNITS = {"十": 10, "百": 100, "千": 1000, "万": 10_000}
VAGUE = re.compile(
    r"\b(some|several|few|many) (dozens?|hundred|thousand|million)\b|[几数十百千][十百千万]+|百分[之点比数]?|十[几来多]|"
    r"[一二三四五六七八九十百]+[来几多][十百千个]|第[五六七八九十]+|(?<=[十百千万])分之"
)
"""Number words that claim no number: "some thousand", "percent", "the fifth"."""
IN_WORDS = re.compile(
    rf"\b({'|'.join(SPELT)})\b|[一二三四五六七八九]?[十百千](?![十百千])[一二三四五六七八九]?万?|[五六七八九]万?", re.I
)


def in_figures(found: re.Match[str]) -> str:
    """A number word as a numeral: twelve, 十二."""
    if word := found[1]:
        return f" {SPELT[word.lower()]} "
    total, one = 0, 0
    for sign in found[0]:
        if sign == "万":
            total, one = (total + one or 1) * UNITS[sign], 0
        elif sign in UNITS:
            total, one = total + (one or 1) * UNITS[sign], 0
        else:
            one = CHINESE[sign]
    return f" {total + one} "


def numerals(text: str) -> list[str]:
    """What of a text is read as a number that it claims."""
    text = IN_WORDS.sub(in_figures, VAGUE.sub(" ", text))
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


def test_the_numbers_of_the_models_in_the_readme_are_those_of_their_cards() -> None:
    rows = re.findall(r"^\| \[`([\w-]+)`\]\(.*?\) \| (.*) \|$", READ_ME, re.M)
    assert {*WRITERS} < {name for name, __ in rows}
    for name, said in rows:
        card = numerals((MODELS / name / "README.md").read_text(encoding="utf-8"))
        known = [float(one.replace(",", "")) for one in card if " " not in one]
        known += [value / 1e6 for value in known]
        assert [one for one in numerals(said) if not any(is_rounded(one, value) for value in known)] == [], name


MIB = 2**20
DOCUMENTS = {
    "architecture.md": ["{models:.0f} of them the bundled models", "The wheel has {wheel:.0f} MB"],
    "checkpoints.md": [f"bytes ({hub._DEFAULT // 2**30} GiB", f"bytes ({uploads._DEFAULT // MIB} MiB unless"],
    "decisions.md": [
        f"{pickles.MOST_OPCODES:,} opcodes, {pickles.MOST_MARKS:,} marks, a second and {pickles._MEMORY} MiB",
        f"looks every {session_folders.PERIOD:.0f} s",
        f"a text of {habits.MOST_TOKENS} tokens",
        f"{packing.LIMIT_BYTES // 10**6} MB in a file",
        f"Above {head_pictures.QUICK:,} tokens a thread",
        f"A file has {arrivals.PATIENCE:.0f} seconds for each",
        f"else {bounded_cache.USUAL // MIB} MiB each",
        f"weights of a model of {followed_work.LARGE // MIB} MiB or more",
        f"wait ({requests.WAIT:.0f} seconds at most)",
        f"ends after {requests.LONGEST:.0f} seconds",
        f"notes it every {rooms.BEAT:.0f} seconds",
        f"a server keeps {rooms.MOST}, and one address (of IPv6: the 64 bits of a subscriber) opens {rooms.MOST_OF_ONE},",
    ],
    "DESIGN.md": ["on a dozen words", "thirty students", "six questions that learners ask"],  # (counted in test_why)
    "learners.md": ["answers six questions"],
    "teachers.md": [f"one of {plan.MINUTES[0]} and one of {plan.MINUTES[1]} minutes", "for 20 to 40 students"],
    "concepts.md": ["five course texts"],
    "reading.md": ["Eleven stops, about {read} lines", "lines (1,000 at"],
}
"""Document -> what it says by numbers of the code; 20 to 40 readers: deploy/README.md, with how it was measured."""
ELSEWHERE = {
    **{"why.md": "test_why", "design-system.md": "components/test_design", "reference.md": "test_docs"},
    **{"recorded_types.md": "recorder/test_all_types", "own_model.md": "recorder/test_strangers"},
    "researchers.md": "analysis/test_trained_circuits",
}
"""Document -> the test that holds its numbers (its floor, for the table of circuits)."""
MEASURED = {
    "decisions.md": "times and bytes of one machine, measured once, when something was decided by them",
    "releasing.md": "times and bytes of one machine, measured once, and versions",
    "traps.md": "facts of other programs",
}


def test_the_other_numbers_of_the_readme_and_of_the_documents_hold() -> None:
    prose = re.sub(r"^(\| \[`|    )[^\n]*$|```.*?```", "", READ_ME, flags=re.M | re.S)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    oldest = project["requires-python"].removeprefix(">=")
    assert "One core for 20 to 40 readers" in (ROOT / "deploy" / "README.md").read_text(encoding="utf-8")
    licence = re.findall(r"CC BY(?:-SA)? (\d\.\d)", prose)
    twelve = {str(sum(len(told) for told in stations.EXERCISES.values())), str(len(stations.MADE) - 1)}
    assert {*numerals(prose)} <= {oldest, f"{MAX_CHARACTERS:,}", "20", "40", *licence, *twelve}
    parts = {folder: packed(folder) for folder in ("assets/models", "assets", "pages", "vizformer")}
    found = {
        "models": parts.pop("assets/models"),
        "wheel": sum(parts.values()),
        "read": round(sum(lines_of(file, name) for file, names in WAY.items() for name in names), -1),
    }
    assert len(re.findall(r"^\*\*\d+\. ", READING, re.M)) == SPELT["eleven"]
    for path in sorted((ROOT / "docs").glob("*.md")):
        text = re.sub(
            r"```.*?```|^    [^\n]*$|^ *(\*\*)?\d+\. ", " ", path.read_text(encoding="utf-8"), flags=re.M | re.S
        )
        text = re.sub(r"\s+", " ", re.sub(r"PEP \d+|tried on [\d.]+|\w+\.0\.self", " ", text))
        for said in DOCUMENTS.get(path.name, ()):
            assert said.format(**found) in text, said
            text = text.replace(said.format(**found), " ")
        if name := ELSEWHERE.get(path.name):
            assert (ROOT / "tests" / f"{name}.py").is_file()
        elif path.name not in MEASURED:
            assert {*numerals(text)} <= twelve, path.name


def packed(folder: str) -> float:
    """Megabytes of a folder in the wheel."""
    files = [path for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return sum(len(zlib.compress(path.read_bytes())) for path in files) / 1e6


if __name__ == "__main__":
    for code in ("en", "zh_CN"):
        print(code, Counter(by or "not held" for file in FILES for *_, by in held_by(file, code)))
    for document in sorted((ROOT / "docs").glob("*.md")):
        by = ELSEWHERE.get(document.name) or ("exempt" if document.name in MEASURED else "here")
        print(document.name, len(numerals(document.read_text(encoding="utf-8"))), by)
