"""LLaMA 3's file of tokens, against a plain implementation of what it stands for."""

import base64
import json
from itertools import pairwise
from pathlib import Path

import pytest
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

from vizformer.assets import asset
from vizformer.checkpoints.files.untrusted_folder import Folder
from vizformer.checkpoints.tokenizers import tiktoken
from vizformer.checkpoints.tokenizers.vocabularies import LLAMA3_WORDS
from vizformer.errors import CheckpointError
from vizformer.text.pieces import piece_bytes

TEXTS = ["Two dogs sleep.", "I'll  pay 12345 euros\n\n now", "我有一只猫 🐱", " naïve", "a", "\t x"]


@pytest.fixture(scope="module")
def ranks() -> list[bytes]:
    """Tokens in the order of their ranks, trained on a bundled text: bytes first, as in LLaMA 3's file."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = words()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    backend.train([str(asset("corpora", "en.txt"))], trainers.BpeTrainer(vocab_size=700, initial_alphabet=alphabet))
    made = json.loads(backend.to_str())["model"]
    tokens = [bytes([byte]) for byte in range(256)]
    for pair in made["merges"]:
        token = piece_bytes("".join(pair), "byte-level")
        if token not in tokens:
            tokens.append(token)
    return tokens


def words() -> pre_tokenizers.Sequence:
    into_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3_WORDS), "isolated"), into_bytes])


def written(folder: Path, lines: list[bytes]) -> Folder:
    (folder / "tokenizer.model").write_bytes(b"".join(lines))
    return Folder(folder)


def lines_of(tokens: list[bytes]) -> list[bytes]:
    return [base64.b64encode(token) + b" %d\n" % rank for rank, token in enumerate(tokens)]


def ids(word: bytes, ranks: dict[bytes, int]) -> list[int]:
    """A word's tokens, as tiktoken finds them: the pair that makes the token of the lowest rank, the first of these."""
    if word in ranks:
        return [ranks[word]]
    parts = [bytes([byte]) for byte in word]
    while True:
        found = [(ranks[a + b], at) for at, (a, b) in enumerate(pairwise(parts)) if a + b in ranks]
        if not found:
            return [ranks[part] for part in parts]
        __, at = min(found)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]


def test_the_tokens_are_those_of_tiktoken(ranks: list[bytes], tmp_path: Path) -> None:
    folder = written(tmp_path, lines_of(ranks))
    assert tiktoken.is_one(folder, "tokenizer.model")
    backend = tiktoken.read(folder, "tokenizer.model", len(ranks) + 12)
    numbers = {token: rank for rank, token in enumerate(ranks)}
    for text in (*TEXTS, *asset("corpora", "en.txt").read_text().splitlines()[:40]):
        cut = [piece_bytes(word, "byte-level") for word, __ in words().pre_tokenize_str(text)]
        expected = [id for word in cut for id in ids(word, numbers)]
        found = backend.encode(text).ids
        assert found == [len(ranks), *expected], text
        assert backend.decode(found) == text
    assert backend.token_to_id("<|eot_id|>") == len(ranks) + 9
    assert backend.get_vocab_size() == len(ranks) + 12


def test_rows_without_room_for_marks_have_none(ranks: list[bytes], tmp_path: Path) -> None:
    backend = tiktoken.read(written(tmp_path, lines_of(ranks)), "tokenizer.model", len(ranks))
    assert backend.get_vocab_size() == len(ranks)
    assert backend.encode("a").ids == [ord("a")]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda lines: [*lines[:7], *lines[8:]], "line 8 is not the next token"),
        (lambda lines: [*lines, b"YQ== %d\n" % len(lines)], "is not the next token"),
        (lambda lines: [*lines, b"?? %d\n" % len(lines)], "is not the next token"),
        (lambda lines: [*lines, b" %d\n" % len(lines)], "is not the next token"),
        (lambda lines: [*lines, base64.b64encode(b"x" * 9999) + b" %d\n" % len(lines)], "is not the next token"),
        (lambda lines: lines[:200], "not every byte is a token"),
        (
            lambda lines: [
                *lines,
                *(base64.b64encode(b"x" * 500 + b"%d" % n) + b" %d\n" % (len(lines) + n) for n in range(9000)),
            ],
            "bytes together",
        ),
    ],
)
def test_a_file_that_is_none(change, said: str, ranks: list[bytes], tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=said):
        tiktoken.read(written(tmp_path, change(lines_of(ranks))), "tokenizer.model", 2000)


def test_a_file_of_pieces_is_none_of_these(tmp_path: Path) -> None:
    for content in (b"\n\x0e\n\x05<unk>\x15\0\0\0\0\x18\x02", b"", b"YQ== 0", b"YQ== 1\nYg== 2\n"):
        assert not tiktoken.is_one(written(tmp_path, [content]), "tokenizer.model")
