"""The training of the translator: blocks that go on where the last one ended, and a first token that says which way."""

import json
import re
import shutil

import click
import pytest
import torch
from click.testing import CliRunner

from recipes.bundled_models.zh_en import encode_pairs
from recipes.translator import mean_of_states, measure, packed_state, vocabularies
from recipes.translator import train as recipe
from recipes.translator.lexicon import lexicon
from recipes.translator.train import averaged, main, pairs_of, read_vocabulary, slice_of
from recipes.translator.training_set import Line, both_ways
from vizformer.checkpoints import load

LINES = [
    line
    for who, people in (("我", "I"), ("你", "You"), ("他们", "They"), ("我们", "We"))
    for what, thing in (("茶", "tea"), ("水", "water"), ("汤", "soup"), ("牛奶", "milk"), ("果汁", "juice"))
    for line in both_ways(
        f"{who}喝{what}。", f"{people} drink {thing}.", "grammar drinks" if what != "汤" else "tatoeba"
    )
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(recipe, "SLICE", 20)
    for part, lines in (("train", LINES), ("valid", LINES[:4]), ("held_out_nouns", LINES[4:8])):
        (tmp_path / f"{part}.tsv").write_text("".join("\t".join(line) + "\n" for line in lines), encoding="utf-8")
    return tmp_path


def run(folder, work, *options):
    asked = [str(folder), str(folder / work), "--size", "small", "--vocabulary", "320", *options]
    result = CliRunner().invoke(main, asked)
    return result.exit_code, result.output


@pytest.mark.sweep
def test_two_blocks_are_as_one(folder):
    for work, blocks in (("twice", (1, 2)), ("once", (2,))):
        for updates in blocks:
            code, said = run(folder, work, "--updates", str(updates))
            assert code == 0, said
    twice, once = (averaged(folder / work).model.state_dict() for work in ("twice", "once"))
    assert all(torch.equal(twice[name], once[name]) for name in once)
    log = [json.loads(line) for line in (folder / "twice" / "log.jsonl").read_text().splitlines()]
    assert [entry["updates"] for entry in log] == [1, 2]
    assert log[1]["held_out"].keys() == {f"{line.source.split()[0]} {line.direction}" for line in LINES[:8]}


def test_a_block_ends_when_its_time_is_over_and_leaves_a_model(folder):
    code, said = run(folder, "short", "--minutes", "0")
    assert code == 0, said
    opened = load(folder / "short" / "model")
    tokens = opened.encode("I drink tea.")
    assert (tokens[0].piece, tokens[0].special) == ("<2zh>", True)
    assert tokens[-1].piece == "</s>"
    assert "<2" not in opened.tokenizer.decode([token.id for token in tokens])
    assert opened.generate("我喝茶。", max_new=5).ids


def test_other_options_or_another_set_are_refused(folder):
    assert run(folder, "work", "--minutes", "0")[0] == 0
    code, said = run(folder, "work", "--minutes", "0", "--without", "tatoeba")
    assert code == 1
    assert "other options" in said
    (folder / "train.tsv").write_text("".join("\t".join(line) + "\n" for line in LINES[1:]), encoding="utf-8")
    assert run(folder, "work", "--minutes", "0")[0] == 1

    assert run(folder, "work", "--minutes", "0", "--another-set")[0] == 0
    assert run(folder, "work", "--minutes", "0")[0] == 0  # what it goes on with is written down


def test_the_first_token_says_the_direction(folder):
    run(folder, "work", "--minutes", "0")
    pairs = encode_pairs(read_vocabulary(folder / "work"), pairs_of(LINES[:2]))
    pieces = [[token.piece for token in read_vocabulary(folder / "work").tokens(ids)] for pair in pairs for ids in pair]
    assert [(line[0], line[-1]) for line in pieces] == [
        ("<2en>", "</s>"),
        ("<s>", "</s>"),
        ("<2zh>", "</s>"),
        ("<s>", "</s>"),
    ]
    assert not any(piece.startswith("<2") for line in pieces for piece in line[1:])


def test_a_training_goes_on_from_a_packed_state(folder):
    assert run(folder, "work", "--updates", "1")[0] == 0
    packed_state.pack(folder / "work", folder / "packed")
    assert (
        sum(file.stat().st_size for file in (folder / "packed").iterdir())
        < 0.25 * (folder / "work" / "state.pt").stat().st_size
    )
    packed_state.unpack(folder / "packed", folder / "carried")
    before, after = (averaged(folder / name).model.state_dict() for name in ("work", "carried"))
    assert all((after[name] - before[name]).abs().max() <= before[name].abs().max() / 254 * 1.001 for name in before)
    code, said = run(folder, "carried", "--updates", "2")
    assert code == 0, said
    assert json.loads((folder / "carried" / "log.jsonl").read_text().splitlines()[-1])["updates"] == 2
    with pytest.raises(click.ClickException, match="holds a training"):
        packed_state.unpack(folder / "packed", folder / "carried")


def test_the_mean_of_two_states_is_a_state_to_go_on_with(folder):
    assert run(folder, "work", "--updates", "1")[0] == 0
    shutil.copytree(folder / "work", folder / "before")
    assert run(folder, "work", "--updates", "2")[0] == 0
    mean = CliRunner().invoke(
        mean_of_states.main, [str(folder / name) for name in ("before", "work", "mean")], catch_exceptions=False
    )
    assert mean.exit_code == 0, mean.output
    first, second, found = (averaged(folder / name).model.state_dict() for name in ("before", "work", "mean"))
    assert any(not torch.equal(first[name], second[name]) for name in first)
    for name, weight in found.items():
        torch.testing.assert_close(weight, (first[name] + second[name]) / 2)
    assert packed_state.counts_of(folder / "mean") == packed_state.counts_of(folder / "work")
    again = CliRunner().invoke(mean_of_states.main, [str(folder / "work"), str(folder / "mean")])
    assert "choose another folder" in again.output


def test_every_line_of_a_turn_comes_once_and_those_of_the_grammar_every_other_turn(monkeypatch):
    monkeypatch.setattr(recipe, "SLICE", 12)  # 8 lines of Tatoeba and half of 32 others are two slices
    turns = [[line for index in (turn, turn + 1) for line in slice_of(LINES, index, seed=0)] for turn in (0, 2, 4)]
    real = [line for line in LINES if line.source == "tatoeba"]
    assert sorted(turns[0] + turns[1]) == sorted(LINES + real)
    assert all(turn.count(line) == 1 for turn in turns for line in real)
    assert sorted(turns[2]) == sorted(turns[0])
    assert turns[2] != turns[0]


def test_what_is_learned_comes_more_rarely_from_a_later_slice_on(folder):
    turns = 2 * recipe.EVERY_LATER["grammar"]
    later = [line for turn in range(turns) for line in slice_of(LINES, recipe.LATER + turn, seed=0)]
    assert all(later.count(line) == (turns if line.source == "tatoeba" else 2) for line in LINES)
    assert recipe.EVERY_LATER["senses"] > recipe.EVERY.get("senses", 1)


IT = Line("en-zh", "The apple is next to the book. Tom ate it.", "苹果在书旁边。汤姆把苹果吃了。", "coreference it 1")
THEY = Line("en-zh", "The girls are near the cars. They laughed.", "女孩们在汽车附近。她们笑了。", "coreference they 1")


@pytest.mark.parametrize(
    ("line", "translation", "right"),
    [
        (IT, IT.translation, True),
        (IT, "那个苹果挨着书。后来汤姆吃掉了苹果。", True),
        (IT, "苹果在书旁边。汤姆把书吃了。", False),
        (IT, "苹果在书旁边。汤姆把它吃了。", False),
        (IT, "苹果在书旁边。汤姆把它们吃了。", False),
        (IT, "", False),
        (THEY, "她们笑了。", True),
        (THEY, "女孩们在汽车附近。它们笑了。", False),
        (THEY, "女孩们在汽车附近。他们笑了。", False),
    ],
)
def test_a_translation_says_who_is_meant(line, translation, right):
    assert measure.resolved(translation, line) == right


APPLE = Line("zh-en", "汤姆吃了一个苹果和一个梨。", "Tom ate an apple and a pear.", "senses 苹果 fruit")
BANK = Line("en-zh", "We sat on the bank with a goose.", "我们和一只鹅坐在河岸上。", "senses bank river")


@pytest.mark.parametrize(
    ("line", "translation", "right"),
    [
        (APPLE, APPLE.translation, True),
        (APPLE, "Tom bought some apples.", True),
        (APPLE, "Tom ate Apple and a pear.", False),
        (APPLE, "Tom ate a pear.", False),
        (BANK, BANK.translation, True),
        (BANK, "我们和一只鹅坐在银行里。", False),
        (BANK, "我们坐在河岸边的银行里。", False),
    ],
)
def test_a_translation_gives_a_word_its_sense(line, translation, right):
    assert measure.same_sense(translation, line) == right


def test_every_sense_of_the_frames_is_told_by_its_words():
    assert set(measure.sense_words()) == {(frame.word, frame.sense) for frame in lexicon().senses}
    for frame in lexicon().senses:
        ways = [("zh-en", frame.zh, frame.en), ("en-zh", frame.en, frame.zh)]
        for line in (Line(*way, f"senses {frame.word} {frame.sense}") for way in ways):
            assert not measure.reads_the_word(line) or measure.same_sense(line.translation, line), line


@pytest.mark.sweep
def test_a_training_is_measured(folder, monkeypatch):
    monkeypatch.setattr(measure, "MAX_NEW", 2)
    shutil.copy(folder / "valid.tsv", folder / "held_out_nouns.tsv")
    with (folder / "held_out_nouns.tsv").open("a", encoding="utf-8") as file:
        file.write("\t".join(IT) + "\n" + "\t".join(APPLE) + "\n")
    assert run(folder, "work", "--minutes", "0")[0] == 0
    result = CliRunner().invoke(measure.main, [str(folder), str(folder / "work")])
    assert result.exit_code == 0, result.output
    found = json.loads(result.output)
    assert found.keys() >= {"zh-en BLEU", "en-zh BLEU", "en-zh chrF", "zh-en everyday", "en-zh coreference", "senses"}
    assert all(0 <= value <= 100 for value in found.values())


def test_vocabularies_are_compared(folder, monkeypatch):
    monkeypatch.setattr(vocabularies, "SIZES", (320, 330))
    (folder / "test.tsv").write_text("".join("\t".join(line) + "\n" for line in LINES[:4]), encoding="utf-8")
    result = CliRunner().invoke(vocabularies.main, [str(folder)])
    assert result.exit_code == 0, result.output
    small, large = (
        re.fullmatch(r"(\d+): (\S+) Chinese, (\S+) English, (\d+) of (\d+) characters", row)
        for row in result.output.splitlines()
    )
    assert (small[1], large[1]) == ("320", "330")
    assert float(small[3]) >= float(large[3]) >= 4
    assert int(small[4]) <= int(large[4]) <= int(large[5]) == 4  # 我 喝 茶 水
