"""The sentence pairs of everyday life that the translator learns from: checked by rules of their own, not the grammar's."""

import re
from collections import Counter
from itertools import islice

import pytest
from click.testing import CliRunner

from recipes.translator.everyday import Pair, everyday, main
from recipes.translator.lexicon import FOLDER, rows

pytestmark = pytest.mark.sweep
N_PAIRS = 50_000
COURSE = ("我爱中国。", "我爱北京的春天。", "我的妹妹在河边看书。", "小明把苹果放在桌上，然后吃掉了它。")
SINGULAR = {"he", "she", "it", "who", "Tom", "Mary", "Anna", "Jack", "Lucy"}


@pytest.fixture(scope="module")
def pairs() -> list[Pair]:
    return list(islice(everyday(0), N_PAIRS))


@pytest.fixture(scope="module")
def held_out() -> list[Pair]:
    return list(islice(everyday(0, held_out=True), 1000))


def words(pair: Pair) -> list[str]:
    return re.findall(r"[A-Za-z'é-]+", pair.en)


def held_nouns() -> list[tuple[str, str]]:
    return [(row[0], row[1]) for row in rows("nouns") if "held" in row[3].split()] + [
        (row[0], row[1]) for row in rows("people") if "held" in row[2].split()
    ]


def test_the_command_writes_the_same_pairs_for_the_same_seed(tmp_path):
    texts = []
    for name, seed in (("one", 3), ("two", 3), ("three", 4)):
        result = CliRunner().invoke(main, ["--pairs", "500", "--seed", str(seed), str(tmp_path / name)])
        assert result.exit_code == 0, result.output
        texts.append((tmp_path / name).read_text(encoding="utf-8"))
    assert texts[0] == texts[1] != texts[2]
    lines = [line.split("\t") for line in texts[0].splitlines()]
    assert len(lines) == 500
    assert all(len(line) == 3 for line in lines)


def test_no_pair_comes_twice_and_each_is_whole(pairs):
    assert len({(pair.zh, pair.en) for pair in pairs}) == N_PAIRS
    for pair in pairs:
        assert re.fullmatch(r"[一-鿿，。？！]+[。？！]", pair.zh), pair
        assert re.fullmatch(r"[A-Z][A-Za-z0-9é,.' ?-]*[.?!]", pair.en), pair
        assert "  " not in pair.en, pair
        assert pair.zh.endswith("？") == pair.en.endswith("?"), pair
        assert not re.search(r"(\b\w+\b) \1\b", pair.en.replace("that that", "")), pair
        assert not re.search(r"在在|了了|的的|没没|不不|都都", pair.zh), pair


def test_the_examples_of_the_course_are_not_among_them(pairs):
    listed = set((FOLDER / "not_written.txt").read_text(encoding="utf-8").splitlines())
    assert listed.issuperset(COURSE)
    assert listed.isdisjoint(pair.zh for pair in pairs)
    for pair in pairs:
        assert pair.en not in ("I love China.", "I love spring in Beijing."), pair
        assert not re.match("我的?妹妹在河边看书", pair.zh.replace("正", "")), pair


@pytest.mark.parametrize("name", ["nouns", "people", "names", "places", "verbs", "activities", "adjectives", "phrases"])
def test_every_entry_of_the_lexicon_is_used(pairs, name):
    chinese = "\n".join(pair.zh for pair in pairs)
    english = "\n".join(pair.en.lower() for pair in pairs)
    for row in rows(name):
        parts = row[0].split(",")
        assert all(part.removesuffix("+") in chinese for part in parts), row[0]
        word = row[2 if name == "places" else 1]
        word = re.split("[ =]", word)[0] if name in ("verbs", "activities", "adjectives") else word
        irregular = row[4] if name == "nouns" else row[3] if name == "people" else ""
        assert word.lower() in english or (len(irregular) > 1 and irregular.lower() in english), row


def test_an_stands_before_vowels_only(pairs):
    for pair in pairs:
        for article, word in re.findall(r"(?<![\w\x27])([Aa]n?) (\w+)", pair.en):
            vowel = word[0].lower() in "aeiou" and not re.match(r"uni|use|one\b|eu", word)
            assert (article.lower() == "an") == (vowel or word in ("hour", "honest")), pair


def test_the_subject_agrees_with_its_verb(pairs):
    several = {"we", "they", "you", "We", "They", "You", "I"}
    for pair in pairs:
        starts = r"(?:^|, |because |while |if |that )(I|[Ww]e|[Tt]hey|[Yy]ou|[Hh]e|[Ss]he|[Ii]t) (\w+)"
        for subject, verb in re.findall(starts, pair.en):
            third = subject.lower() in ("he", "she", "it")
            if verb in ("is", "has", "does", "doesn", "hasn", "isn"):
                assert third, pair
            if verb == "am":
                assert subject == "I", pair
            if verb in ("are", "have", "do", "don", "haven"):
                assert not third, pair
            if verb.removesuffix("s") in ("like", "love", "know", "want", "think", "live", "need", "play"):
                assert verb.endswith("s") == third, pair
            if verb == "was":
                assert subject not in several - {"I"}, pair
            if verb == "were":
                assert not third, pair
                assert subject != "I", pair


def test_a_number_agrees_with_its_noun(pairs):
    one, many = set(), set()
    for __, en, *rest in rows("nouns"):
        irregular = rest[2]
        if irregular not in ("-", "+"):
            one.add(en)
            many.add(irregular or en + "s")
    number = r"\b(?:two|three|four|five|six|eight|ten|these|those|many) "
    for pair in pairs:
        for noun in re.findall(number + r"(\w+)[.?]?$", pair.en):
            assert noun not in one - many, pair
        for noun in re.findall(r"\b(?:this|that|an?|one) (\w+)[.?]?$", pair.en):
            assert noun not in many - one, pair


def test_each_noun_has_its_own_measure_word(pairs):
    measures = {row[0]: row[2].partition("=")[0] for row in rows("nouns")}
    nouns = "|".join(sorted(measures, key=len, reverse=True))
    count = re.compile(
        rf"(?<![一-鿿])(?:一|两|三|四|五|六|八|十|这|那)([^一二三四五六七八九十些个]|个)({nouns})(?=[。？，在被比是])"
    )
    seen = Counter()
    for pair in pairs:
        for measure, noun in count.findall(pair.zh):
            if measure in measures.values():
                assert measure == measures[noun], pair
                seen[measure] += 1
        assert not re.search("[^十第]二(个|只|本|条|件|张|把|辆|朵)", pair.zh), pair
    assert len(seen) > 20


def test_aspect_is_told_in_both_languages(pairs):
    for pair in pairs:
        if pair.kind == "past":
            assert " will " not in pair.en, pair
        if pair.kind == "now":
            assert "在" in pair.zh, pair
            assert re.search(r"(\b(am|is|are)|'(m|s|re)) \w+ing\b", pair.en), pair
        if pair.kind == "ever":
            assert "过" in pair.zh, pair
            assert re.search(r"\b(has|have)\b", pair.en), pair
        if pair.kind == "bei":
            assert "被" in pair.zh, pair
            assert re.search(r"\b(was|were|wasn|weren)\b", pair.en), pair
        if pair.kind == "denied_past":
            assert "没" in pair.zh, pair
            assert "didn't" in pair.en or "wasn't" in pair.en or "weren't" in pair.en, pair


def test_both_orders_of_the_candidates_are_as_frequent(pairs):
    counted = Counter(pair.kind for pair in pairs if pair.kind.startswith("coreference"))
    for pronoun in ("it", "they", "them"):
        first, second = counted[f"coreference {pronoun} 1"], counted[f"coreference {pronoun} 2"]
        assert first > 100
        assert abs(first - second) <= 2 + 0.02 * first


def test_coreference_turns_on_who_is_meant(pairs):
    """The Chinese says which one is meant; it is not always the first one, nor always the same pronoun."""
    meant = [pair.zh.split("。")[-2] for pair in pairs if " they " in pair.kind]
    they = Counter(word for clause in meant for word in re.findall("他们|她们|它们", clause))
    assert min(they[word] for word in ("他们", "她们", "它们")) > 50
    for pair in pairs:
        if pair.kind.startswith("coreference it"):
            assert re.search(r"\b[Ii]t\b", pair.en), pair
            assert "它" not in pair.zh, pair


def test_held_out_nouns_are_in_no_training_coreference_but_elsewhere(pairs, held_out):
    trained = [pair for pair in pairs if pair.kind.startswith(("coreference", "senses"))]
    others = [pair for pair in pairs if not pair.kind.startswith(("coreference", "senses"))]
    nouns = held_nouns()
    assert len(nouns) >= 20
    for zh, en in nouns:
        assert not [pair for pair in trained if re.search(rf"\b{en}(s|es|ies)?\b", pair.en)], en
        assert sum(zh in pair.zh for pair in others) >= 5, zh
    for pair in held_out:
        assert any(zh in pair.zh for zh, _ in nouns), pair
    assert {pair.zh for pair in held_out}.isdisjoint(pair.zh for pair in pairs)


def test_a_word_of_two_senses_is_translated_in_two_ways(pairs, held_out):
    for group in (pairs, held_out):
        senses: dict[str, set[str]] = {}
        for pair in group:
            if pair.kind.startswith("senses"):
                _, word, sense = pair.kind.split(" ", 2)
                senses.setdefault(word, set()).add(sense)
        for word in ("苹果", "bank", "花"):
            assert len(senses[word]) == 2, word
    for pair in pairs:
        if pair.kind == "senses bank river":
            assert "河岸" in pair.zh, pair
            assert "bank" in pair.en, pair
        if pair.kind == "senses 苹果 company":
            assert "Apple" in pair.en, pair
