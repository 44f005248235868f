"""What the translator learns from: all sources, both ways, and nothing by which it is judged, nor nearly so."""

import ast
import gzip
import random
import re
import tomllib
from itertools import product
from pathlib import Path

import pytest
from click.testing import CliRunner

from recipes.pairs import sentence_key
from recipes.translator.dictionary import Word, character_counts, entries, words
from recipes.translator.near_copies import NearCopies, units, within
from recipes.translator.training_set import build, judged_by, main, read_lines
from tests.translation.everyday import sentences

ROOT = Path(__file__).resolve().parents[2]
SUBJECTS, PLACES = "张王李赵陈刘杨黄周吴徐孙", "门桥山河海湖树田楼站港岛"
LEAKED = (  # a sentence by which the translator is judged, and what differs from one a little
    ("我的妹妹在河边看书。", "My sister reads at the river."),
    ("我妹妹正在河边看书！", "My sister reads at the river side now."),
    ("我爱北京的秋天。", "I am fond of autumn in the capital."),
    ("完全不同的一句话在这里。", "My father gets up at six every day."),
    ("小明把苹果放在桌子上，然后吃了它。", "Something else altogether is said here."),
    ("我有一只猫。", "There is a cat that I have."),
)
DICTIONARY = """# CC-CEDICT
陳橋 陈桥 [chen2 qiao2] /bridge/CL:座[zuo4]/
北京 北京 [Bei3 jing1] /Beijing, capital of the People's Republic of China/
王海 王海 [Wang2 Hai3] /Thomas (name)/
山湖 山湖 [shan1 hu2] /variant of 山河[shan1 he2]/
山河 山河 [shan1 he2] /mountain and river together with all that is between/
黃河 黄河 [Huang2 He2] /Yellow River/
田站 田站 [tian2 zhan4] /to stand (in a field)/
龘龘 龘龘 [da2 da2] /dragons/
"""


@pytest.fixture(scope="module")
def sources(tmp_path_factory) -> tuple[Path, Path]:
    """A file of sentence pairs, some of which leak, and a dictionary."""
    folder = tmp_path_factory.mktemp("sources")
    pairs = [
        (f"{who}先生昨天到了{place}。", f"Mister {i} came to spot {k} yesterday.")
        for (i, who), (k, place) in product(enumerate(SUBJECTS, 100), enumerate(PLACES, 500))
    ]
    pairs += [(f"{zh}了第{i}次。", f"Time {i}: {en}.") for i in range(1500) for zh, en in [("北京下雨", "it rained")]]
    random.Random(5).shuffle(pairs)
    text = "".join(f"{en}\t{zh}\tCC-BY\n" for zh, en in [*LEAKED, *pairs])
    (folder / "cmn.txt").write_text(text, encoding="utf-8")
    (folder / "dictionary.txt.gz").write_bytes(gzip.compress(DICTIONARY.encode()))
    return folder, folder / "dictionary.txt.gz"


@pytest.fixture(scope="module")
def parts(sources):
    return build(*sources, seed=0, n_grammar=3000)


@pytest.mark.sweep
def test_the_command_writes_the_same_lines_for_the_same_seed(sources, tmp_path):
    written = []
    for name, seed in (("one", 1), ("two", 1), ("three", 2)):
        asked = [*map(str, sources), str(tmp_path / name), "--grammar", "300", "--seed", str(seed)]
        result = CliRunner().invoke(main, asked)
        assert result.exit_code == 0, result.output
        written.append((tmp_path / name / "train.tsv").read_text(encoding="utf-8"))
    assert written[0] == written[1] != written[2]
    lines = read_lines(tmp_path / "one" / "train.tsv")
    assert all(line.direction in ("zh-en", "en-zh") and line.text and line.translation for line in lines)
    assert len(set(lines)) == len(lines)


@pytest.mark.sweep
def test_each_line_names_its_source_and_each_source_is_there_both_ways(parts):
    ways = {(line.source.split()[0], line.direction) for line in parts["train"]}
    sources = ("tatoeba", "grammar", "coreference", "senses", "dictionary", "names")
    assert ways == set(product(sources, ("zh-en", "en-zh")))
    chinese = re.compile("[一-鿿]")
    for line in parts["train"]:
        assert bool(chinese.search(line.text)) == (line.direction == "zh-en"), line
        assert bool(chinese.search(line.translation)) == (line.direction == "en-zh"), line


def test_nothing_of_the_list_or_the_course_is_trained_on(parts):
    trained = {sentence_key(text) for line in parts["train"] for text in (line.text, line.translation)}
    for way in ("zh-en", "en-zh"):
        for one in sentences(way):
            assert sentence_key(one.text) not in trained, one
            assert sentence_key(one.translation) not in trained, one


def test_near_copies_are_not_trained_on_either(parts):
    trained = {(line.text, line.translation) for line in parts["train"]}
    for zh, en in LEAKED:
        assert (zh, en) not in trained
        assert (en, zh) not in trained
    judged = judged_by()
    assert not [line for line in parts["train"] if line.text in judged or line.translation in judged]


@pytest.mark.sweep
def test_near_copies_are_found_as_by_comparing_with_each():
    listed = [one.text for way in ("zh-en", "en-zh") for one in sentences(way)]
    judged, rng = NearCopies(listed), random.Random(3)
    found = {True: 0, False: 0}
    for _ in range(400):
        read = list(units(rng.choice(listed)))
        for _ in range(rng.randint(0, 4)):
            at = rng.randrange(len(read) + 1)
            read[at : at + rng.randint(0, 1)] = rng.choice([[], ["山"], ["stone"]])
        near = any(within(read, units(one), len(units(one)) // 5) for one in listed)
        assert (" ".join(read) in judged) == near, read
        found[near] += 1
    assert min(found.values()) > 50


@pytest.mark.parametrize(
    ("one", "other", "changes"), [("abcd", "abcd", 0), ("abcd", "bcd", 1), ("abcd", "badc", 3), ("", "abc", 3)]
)
def test_changes_are_counted(one, other, changes):
    assert within(one, other, changes)
    assert changes == 0 or not within(one, other, changes - 1)


@pytest.mark.sweep
def strings(value):
    if isinstance(value, str):
        yield value
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from strings(one)


def test_every_sentence_that_the_course_quotes_is_kept_out():
    """Whole Chinese sentences in the code and in the tables beside it, those with gaps and brackets apart."""
    texts = [
        text
        for path in [*ROOT.glob("vizformer/web/**/*.toml"), *ROOT.glob("vizformer/analysis/**/*.toml")]
        for text in strings(tomllib.loads(path.read_text(encoding="utf-8")))
    ]
    for path in [
        *ROOT.glob("vizformer/web/**/*.py"),
        *ROOT.glob("vizformer/analysis/**/*.py"),
        *ROOT.glob("recipes/bundled_models/*.py"),
    ]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
    quoted = {text for text in texts if re.fullmatch("[一-鿿，]{4,}[。？！]", text)}
    assert len(quoted) > 20
    judged = judged_by()
    assert [text for text in sorted(quoted) if text not in judged] == []


def test_held_out_sentences_are_those_of_before_and_not_trained_on(parts):
    assert len(parts["test"]) >= 2 * 800
    assert len(parts["valid"]) >= 2 * 400
    held = {sentence_key(text) for name in ("valid", "test") for line in parts[name] for text in line[1:3]}
    for line in parts["train"]:
        assert sentence_key(line.text) not in held, line
        assert sentence_key(line.translation) not in held, line
    trained = {(line.text, line.translation) for line in parts["train"]}
    assert not [line for line in parts["held_out_nouns"] if (line.text, line.translation) in trained]
    assert {line.source.split()[0] for line in parts["held_out_nouns"]} == {"coreference", "senses"}


def test_the_dictionary_gives_plain_words_and_names_of_known_characters(sources):
    found = list(words(entries(sources[1]), character_counts([SUBJECTS + PLACES, "北京北京"])))
    assert set(found) == {
        Word("北京", "Beijing", "place"),
        Word("陈桥", "bridge", "word"),
        Word("王海", "Thomas", "person"),
        Word("黄河", "Yellow River", "word"),
        Word("田站", "to stand", "word"),
    }
    assert found[0].zh == "北京"  # whose characters are the most frequent ones


def test_a_name_comes_alone_and_in_a_sentence(parts):
    place = [line for line in parts["train"] if line.source == "names place" and line.direction == "zh-en"]
    (line,) = place
    assert "北京" in line.text
    assert "Beijing" in line.translation
    assert ("zh-en", "北京", "Beijing", "dictionary") in parts["train"]


def test_a_word_that_tatoeba_translates_is_not_taken_from_the_dictionary(sources, tmp_path):
    (tmp_path / "cmn.txt").write_text(
        (sources[0] / "cmn.txt").read_text(encoding="utf-8") + "The Yellow River.\t黄河。\tCC-BY\n" * 40,
        encoding="utf-8",
    )
    train = build(tmp_path, sources[1], seed=0, n_grammar=100)["train"]
    assert [(line.translation, line.source) for line in train if line.text.startswith("黄河")] == [
        ("The Yellow River.", "tatoeba")
    ]
    assert ("en-zh", "Yellow River", "黄河", "dictionary") in train
