"""Words that misled readers, or said one thing in two ways, do not come back: catalogue, lessons, glossary, reading list."""

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from babel.messages.pofile import read_po

from tests.bundled import load
from vizformer.analysis.costs.model_boxes import architecture
from vizformer.components import whole_model_picture
from vizformer.web.frame.sitemap import PAGES
from vizformer.web.link.languages import catalogue

ROOT = Path(__file__).resolve().parent.parent
LESSONS = ROOT / "assets" / "lessons"

ENGLISH = {
    r"nothing is overwritten|only adds": "a post-norm layer normalises the sum, and so rewrites it",
    r"takes? home": "attention mixes values, nobody carries them anywhere",
    r"tells? on it": "an idiom that people whose English is a second language cannot guess",
    r"below the fraction": "the word is denominator",
    r"\bbehind\b": "of places in a text and of an order: after",
    r"two layers and more": "not true of zh-en, whose table weighs 1.7 of its decoder layers",
    r"half precision ends at 65504": "float16 does; bfloat16, the other half precision, ends where float32 does",
    r"share that is not symmetric": "a ratio of norms is no share; the share is that of the squares",
    r"only through their product": "biases reach the scores too, where there are some",
    r"reading \{length\} positions": "“1 positions”",
    r"\bhangs? on\b": "depends on",
    r"\bshall say\b|P of that|says itself$": "the correct next token, its probability, the model's choice",
    r"Take away|\{difference\}: (compared|this number)": "Download; differs from ... by at most",
    r"[Ii]n the place of (what is taken out|a neuron)": "Replace the removed part with",
    r"weights published with LLaMA|built like": "Meta's files pair neighbours; a model is nearest to a family",
    r"every row of Table 3 is one": "the paper does not say how often a row was trained",
}
"""Patterns that no English text may hold, and why."""

CHINESE = {
    r"头 \$d_\\mathrm\{head\}\$ 列": "可以读成“注意力头”：前 d_head 列",
    r"散布": "分散程度",
    r"带回|带走": "按权重混合；贡献最大",
    r"：对照对象：": "一句话里只用一个冒号",
    r"往前看": "在文本里看前面，是“只看前文”；往前看可以读成向后",
    r"向前传": "传到前面的位置",
    r"旁边放一个 GRU": "与 GRU 对照",
    r"反嵌入": "输出层（unembedding）",
    r"前词头": "前一词元头",
    r"占其注意力": "{share} 的注意力落在……上",
    r"切分、注意|首尾相接": "一套说法：拆分、关注、拼接、混合",
    r"相合|合适的程度|合适程度": "匹配",
    r"一摞层": "层的堆叠",
    r"要学的数|任何学来的东西": "无可学习参数",
    r"会缩小东西的矩阵": "起收缩作用的矩阵",
    r"对你这句话[：输]": "就这句话而言",
    r"半精度最大只到 65504": "那是 float16，bfloat16 不是",
    r"抵得上两层还多": "zh-en 的嵌入表只有 1.7 个解码器层那么重",
    r"(?<!（)\b(post|pre)-norm|(?<![之以然])[后前]归一化": "后置归一化、前置归一化（英文只在术语表中）",
    r"(?<![*A-Za-z0-9])\*[^*\s$][^*\n$]*[\u4e00-\u9fff][^*\n$]*\*(?!\*)": "中文用粗体，不用斜体",
    r"另一句好话": "另一句通顺的话",
    r"平均次方": "平均损失取指数",
    r"弯一弯|压弯|弯折": "做非线性变换；压缩",
    r"梯度最长|梯度的长度": "梯度的范数最大",
    r"换一种括号|加括号": "改变结合顺序",
    r"除了会怎样": "若做除法会怎样",
    r"用哪一个程序都": "无论用哪个宽度",
    r"变得很贵": "损失会很大",
    r"把一切都给": "全部概率都给",
    r"LLaMA 公开的权重里是|表 3 每一行只训练了一次": "Meta 的权重是相邻成对；论文没有说训练了几次",
}
"""Patterns that no Chinese text may hold, and what is said instead."""


def leaves(table: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every text of a file of words, with its path; those of a list have the same."""
    if isinstance(table, str):
        yield path, table
        return
    for name, found in table.items() if isinstance(table, dict) else ((None, one) for one in table):
        yield from leaves(found, path if name is None else f"{path}.{name}".lstrip("."))


@cache
def texts(language: str) -> tuple[tuple[str, str], ...]:
    """Every text of a language that a reader can see, and where it is."""
    return tuple(_texts(language))


def _texts(language: str) -> Iterator[tuple[str, str]]:
    with (ROOT / "assets" / "locale" / "zh_CN" / "LC_MESSAGES" / "vizformer.po").open("rb") as file:
        for entry in read_po(file, locale="zh_CN"):
            if entry.id:
                found = entry.id if language == "en" else entry.string
                yield "catalogue", found if isinstance(found, str) else " ".join(found)
    for path in sorted((LESSONS / language).glob("*.toml")):
        for name, said in leaves(tomllib.loads(path.read_text(encoding="utf-8"))):
            yield f"{path.name}: {name}", said
    for name, term in tomllib.loads((LESSONS / "glossary.toml").read_text(encoding="utf-8")).items():
        yield f"glossary: {name}", " ".join(term[language].values())
    for row in tomllib.loads((LESSONS / "notations.toml").read_text(encoding="utf-8"))["notation"]:
        yield f"notations: {row['here']}", " ".join(row[language].values())
    for item in tomllib.loads((LESSONS / "reading.toml").read_text(encoding="utf-8"))["item"]:
        yield f"reading list: {item['title']}", item[language]
    for rows in tomllib.loads((LESSONS / "plan.toml").read_text(encoding="utf-8")).values():
        yield from (("plan", row[language]) for row in rows)


@pytest.mark.parametrize(
    ("language", "pattern", "reason"),
    [("en", *rule) for rule in ENGLISH.items()] + [("zh_CN", *rule) for rule in CHINESE.items()],
)
def test_words_that_mislead_are_gone(language: str, pattern: str, reason: str) -> None:
    allowed = "The papers behind the course"  # (neither a place nor an order)
    found = [f"{where}: {text}" for where, text in texts(language) if re.search(pattern, text.replace(allowed, ""))]
    assert not found, f"{pattern}: {reason}"


def chinese_terms() -> list[tuple[str, list[str], list[str]]]:
    """The table of CONTRIBUTING: the English term, the Chinese ones, and the forms that are not used."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text.split("| English | 中文 | not used |\n|---|---|---|\n")[1].split("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    return [(english, chinese.split("、"), unused.split("、")) for english, chinese, unused in rows]


def test_one_chinese_term_stands_for_one_thing() -> None:
    found = texts("zh_CN")
    for english, used, unused in chinese_terms():
        for term in used:
            assert any(term in text for __, text in found), f"{english}: {term} is used nowhere"
        for form in unused:
            assert form not in used
            wrong = [f"{where}: {text}" for where, text in found if form in text]
            assert not wrong, f"{english} is {'、'.join(used)}, not {form}: {wrong}"


def test_the_glossary_says_the_terms_of_the_table() -> None:
    glossary = tomllib.loads((LESSONS / "glossary.toml").read_text(encoding="utf-8"))
    named = {entry["en"]["name"]: entry["zh_CN"]["name"] for entry in glossary.values()}
    shared = [(english, used) for english, used, __ in chinese_terms() if english in named]
    assert len(shared) >= 20
    for english, used in shared:
        assert used[0] in named[english], english


@pytest.mark.parametrize("name", ["zh-en", "stories", "cloze"])
def test_what_the_map_says_of_the_weight_of_its_parts_holds(name: str) -> None:
    boxes = architecture(load(name).model, 8, 8)
    table = max(box.copy for box in boxes if box.kind == "embedding")
    for section in {box.section for box in boxes if box.repeated}:
        layer = [box for box in boxes if box.section == section and box.repeated]
        feedforward = sum(box.copy for box in layer if box.kind == "feedforward")
        attention = sum(box.copy for box in layer if box.kind in ("attention", "cross"))
        attentions = sum(box.kind in ("attention", "cross") for box in layer)
        assert table > sum(box.copy for box in layer)  # "the embedding table alone weighs more than a whole layer"
        if attentions == 2:
            assert feedforward == pytest.approx(attention, rel=0.01)  # "as many where a layer has two attentions"
        else:
            assert 1.9 < feedforward / attention < 3.1  # "two to three times as many"


HOUSE_LABELS = {
    "en": (
        "Rows of a table|Places|Masked attention|Attention to the source|Add, norm, network|Tokens so far|The whole machine|"
        "A number becomes a row|Where a token stands|Query meets key|From scores to weights|Values, and many heads|"
        "No look ahead|The decoder looks back|Many heads|Positions|Encoder meets decoder|Writing a text|The sum|Why add|"
        "Post/pre|A row of a table|Six ways to cut|Left out|Smoothing|Shared weights|Averaging|On top|Drafts|"
        "One wrong token|Shifted by one|Family|Flash|Linear|Sparse|One memory|Without the memory|Split, attend, mix"
    ),
    "zh_CN": (
        "表中的行|位置|对源文的注意力|相加、归一化、网络|已有的词元|整台机器|编号变成一行数|词元站在哪里|查询遇到键|从分数到权重|"
        "值，与许多头|看不到后文|解码器回头看|多头|编码器遇见解码器|写出文本|累加的和|为何相加|查表取一行|六种切法|去掉一样|"
        "加个分类器|草稿|一个错误的词元|线性|稀疏|一份记忆|没有记忆|拆分、关注、混合"
    ),
}
"""Names that lessons, parts, stations and boxes of the drawing had before they had the field's; nothing is titled so."""


def titles(language: str) -> Iterator[str]:
    """What the pages, the parts of lessons, the stations of the path and the boxes of the picture are called."""
    for path in sorted((LESSONS / language).glob("*.toml")):
        for name, said in leaves(tomllib.loads(path.read_text(encoding="utf-8"))):
            if name.endswith(".title"):
                yield said
    for entry in PAGES.values():
        yield entry.title.text if language == "en" else catalogue("zh_CN")[entry.title.text]
    for label in whole_model_picture.ENGLISH.values():
        yield label if language == "en" else catalogue("zh_CN")[label]


@pytest.mark.parametrize("language", HOUSE_LABELS)
def test_the_fields_own_names_stand_over_pages_parts_and_boxes(language: str) -> None:
    found = {*titles(language)}
    assert {"en": "Multi-head cross-attention", "zh_CN": "多头交叉注意力"}[language] in found
    assert found & {*HOUSE_LABELS[language].split("|")} == set()


CODE = {
    r"\b[Hh]angs? on\b": "depends on",
    r"[Ww]orked out anew": "recomputed",
    r"[Ww]ho (asks|wants) (for )?(it|what)\b": "name who: the reader, the request, the caller",
}
"""Idioms that no comment or docstring may hold, and what is written instead."""
PARTICIPLES = {"told", "said", "made", "found", "kept", "written", "taken", "hand_in", "put_together", "by_hand"}


def modules() -> Iterator[Path]:
    """Every module of the program."""
    for folder in ("vizformer", "pages", "recipes"):
        yield from (ROOT / folder).rglob("*.py")


@pytest.mark.parametrize(("pattern", "instead"), CODE.items())
def test_comments_use_no_idioms(pattern: str, instead: str) -> None:
    found = [str(path.relative_to(ROOT)) for path in modules() if re.search(pattern, path.read_text(encoding="utf-8"))]
    assert not found, instead


def test_a_file_is_named_by_a_noun() -> None:
    nouns = {"speed", "feed", "embed", "seed"}
    names = {path.stem for path in modules()} - nouns
    assert {name for name in names if name in PARTICIPLES or re.fullmatch(r"[a-z]{3,}ed", name)} == set()
