"""A vocabulary that lies in the file of the weights reads and writes texts; what is none, or too large, is left alone."""

from pathlib import Path
from typing import Any

import pytest
import torch

from tests import tiny
from tests.checkpoints.test_state_dict import nano_gpt
from tests.strangers import SOURCES, Seq2Seq
from vizformer.checkpoints import Opened, load, save
from vizformer.errors import TokenizerError

CHARACTERS = "\n !,.abcdefghijklmnopq"  # as many as the model has rows
WORDS = ["<pad>", "<sos>", "<eos>", "<unk>", ",", "."] + [f"word{letter}" for letter in "abcdefghijklmnopq"]


def opened(tmp_path: Path, **beside: Any) -> Opened:
    torch.save({"model": nano_gpt(), **beside}, tmp_path / "model.pt")
    return load(tmp_path / "model.pt", n_heads=4, activation="gelu")


def said(ours: Opened) -> str:
    return " ".join(map(str, ours.report.assumptions))


@pytest.mark.parametrize(
    "beside",
    [
        dict(stoi={c: i for i, c in enumerate(CHARACTERS)}),
        dict(itos=dict(enumerate(CHARACTERS))),
        dict(chars=list(CHARACTERS)),
        dict(chars=CHARACTERS),
        dict(vocab={"char2idx": {c: i for i, c in enumerate(CHARACTERS)}}),
        dict(config={"stoi": {c: i for i, c in enumerate(CHARACTERS)}, "n_embd": 16}),
        dict(stoi={c: i for i, c in enumerate(CHARACTERS)}, itos=dict(enumerate(CHARACTERS))),
    ],
    ids=["stoi", "itos", "list", "text", "inside", "config", "both"],
)
def test_characters(beside: dict[str, Any], tmp_path: Path) -> None:
    ours = opened(tmp_path, **beside)
    text = "a cab,\nno"
    tokens = ours.encode(text)
    assert [token.id for token in tokens] == [CHARACTERS.index(c) for c in text]
    assert [text[token.start : token.end] for token in tokens] == list(text)
    assert ours.tokenizer.decode([token.id for token in tokens]) == text
    assert ours.generate("a cab", max_new=4).text.strip("\n ") == "".join(
        CHARACTERS[i] for i in ours.generate("a cab", max_new=4).ids
    ).strip("\n ")
    assert "is the vocabulary: every character of a text is a token" in said(ours)
    with pytest.raises(TokenizerError, match='"Z" is not in the vocabulary of this model'):
        ours.encode("aZ")


def test_a_vocabulary_with_one_token_too_many_is_passed_over(tmp_path: Path) -> None:
    more = {f"x{i}": i for i in range(len(WORDS) + 1)}  # the table has as many rows as there are words
    ours = opened(tmp_path, word2idx=more, stoi={c: i for i, c in enumerate(CHARACTERS)})
    assert [token.id for token in ours.encode("cab")] == [CHARACTERS.index(c) for c in "cab"]


def test_words(tmp_path: Path) -> None:
    ours = opened(tmp_path, word2idx={word: i for i, word in enumerate(WORDS)})
    assert [token.id for token in ours.encode("WordA, wordb strange.")] == [6, 4, 7, 3, 5]
    assert ours.model.config.bos_id == 1
    assert (ours.model.config.eos_id, ours.model.config.pad_id) == (2, 0)
    assert "cut at spaces and around punctuation, in small letters" in said(ours)


def test_a_vocabulary_for_each_language(tmp_path: Path) -> None:
    sources = ["<pad>", "<sos>", "<eos>", "<unk>"] + [f"wort{n}" for n in range(SOURCES - 4)]
    beside = dict(
        trg_vocab={word: i for i, word in enumerate(WORDS)}, src_vocab={word: i for i, word in enumerate(sources)}
    )
    torch.save({"model": tiny.randomise(Seq2Seq()).state_dict(), **beside}, tmp_path / "model.pt")
    said = dict(n_heads=4, norm_order="post", activation="relu", scaled_embedding=True)
    ours = load(tmp_path / "model.pt", **said)
    assert [token.id for token in ours.encode("wort0 wort9")] == [4, 13]
    assert [token.id for token in ours.encode_target("worda wordb")] == [1, 6, 7]
    assert ours.model.config.bos_id == 1


@pytest.mark.parametrize(
    "vocabulary",
    [
        {"a": 0, "b": 0},
        {"a": -1, "b": 1},
        {"a": 1.0, "b": 2},
        {"a": True, "b": False},
        {"a": 1, 2: "b"},
        ["a", "a"],
        ["a", 3],
        ["", "b"],
        {"a" * 5000: 0, "b": 1},
        {"a": 10**9, "b": 1},
        {"\ud800": 0, "b": 1},
        {"a": {"b": 1}},
        3,
        None,
    ],
    ids=lambda value: ascii(value)[:30],
)
def test_what_is_no_vocabulary_is_left_alone(vocabulary: object, tmp_path: Path) -> None:
    ours = opened(tmp_path, stoi=vocabulary)
    assert [token.id for token in ours.encode("3 1")] == [3, 1]
    assert "numbers separated by spaces are read as token ids" in said(ours)


def test_a_vocabulary_of_another_model_is_said_and_not_used(tmp_path: Path) -> None:
    ours = opened(tmp_path, stoi={str(i): i for i in range(99)})
    assert '"stoi" in the file has 99 tokens with ids up to 98, which do not go with' in said(ours)
    assert [token.id for token in ours.encode("3 1")] == [3, 1]
    ours = opened(tmp_path, vocab={f"##{i}": i for i in range(23)})
    assert "holds pieces of words, without the rules by which a text is cut" in said(ours)


def test_a_saved_model_keeps_it(tmp_path: Path) -> None:
    ours = opened(tmp_path, chars=CHARACTERS)
    save(ours, tmp_path / "saved", torch.float32)
    again = load(tmp_path / "saved")
    assert [token.id for token in again.encode("a cab")] == [token.id for token in ours.encode("a cab")]
    with pytest.raises(TokenizerError, match='"Z" is not in the vocabulary of this model'):
        again.encode("aZ")
