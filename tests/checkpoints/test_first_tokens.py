"""A translator of both directions is told by a first token, which the script of a text decides, what it is to become."""

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import AddedToken
from tokenizers import Tokenizer as Backend

from tests import tiny
from vizformer.checkpoints import Checkpoint, load, save
from vizformer.errors import CheckpointError, TokenizerError
from vizformer.text import Tokenizer

FIRST_TOKENS = {"CJK": "<2en>", "LATIN": "<2zh>"}


def both_ways(*, first_tokens: dict[str, str] = FIRST_TOKENS) -> Checkpoint:
    backend = Backend.from_str(tiny.tokenizer().to_json())
    backend.add_special_tokens([AddedToken(piece) for piece in FIRST_TOKENS.values()])
    tokenizer = Tokenizer(backend).with_first_tokens(first_tokens)
    return Checkpoint("both ways", tiny.model(vocab_size=tokenizer.vocab_size), tokenizer)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("我有猫", "<2en>"),
        ("a cat", "<2zh>"),
        ("cat 我有猫", "<2en>"),  # three characters and one word
        ("a cat sat 猫", "<2zh>"),
        ("12 + 3 🐱", "<2en>"),  # no letters at all: the first one listed
        ("кот", "<2en>"),
    ],
)
def test_the_script_of_a_text_decides_the_direction(text: str, first: str) -> None:
    checkpoint = both_ways()
    plain = checkpoint.tokenizer.encode(text, special=False)
    marked, *rest = checkpoint.encode(text)
    assert marked.piece == marked.text == first
    assert marked.special
    assert marked.start == marked.end == 0
    assert marked.word is None
    assert rest[: len(plain)] == list(plain)  # the places in the text are the same
    assert checkpoint.tokenizer.encode_ids([text, "猫"])[0] == [token.id for token in (marked, *rest)]
    assert checkpoint.trace(text).tokens["encoder"][0] == marked


def test_a_translation_has_no_such_token() -> None:
    checkpoint = both_ways()
    assert all(token.piece not in FIRST_TOKENS.values() for token in checkpoint.encode_target("cat"))
    assert "<2" not in checkpoint.tokenizer.decode([token.id for token in checkpoint.encode("我有猫")])


def test_it_is_kept_in_the_folder(tmp_path: Path) -> None:
    original = both_ways()
    save(original, tmp_path)
    opened = load(tmp_path)
    assert json.loads((tmp_path / "config.json").read_text("utf-8"))["first_tokens"] == FIRST_TOKENS
    assert opened.tokenizer.first_tokens == FIRST_TOKENS
    assert opened.encode("a cat") == original.encode("a cat")


def test_models_that_differ_in_it_alone_have_other_keys() -> None:
    turned = both_ways(first_tokens={"CJK": "<2zh>", "LATIN": "<2en>"})
    assert len({both_ways().key, turned.key, both_ways(first_tokens={}).key}) == 3


@pytest.mark.parametrize("wrong", ["<2en>", ["<2en>"], {"CJK": 3}, {"CJK": None}, {"CJK": {}}])
def test_what_is_no_table_of_tokens_is_refused(tmp_path: Path, wrong: Any) -> None:
    save(both_ways(), tmp_path)
    said = json.loads((tmp_path / "config.json").read_text("utf-8"))
    (tmp_path / "config.json").write_text(json.dumps({**said, "first_tokens": wrong}))
    with pytest.raises(CheckpointError, match=r"first_tokens must give a token for each script"):
        load(tmp_path)


def test_a_token_that_the_vocabulary_lacks_is_refused(tmp_path: Path) -> None:
    save(both_ways(), tmp_path)
    said = json.loads((tmp_path / "config.json").read_text("utf-8"))
    (tmp_path / "config.json").write_text(json.dumps({**said, "first_tokens": {"CJK": "<2fr>" * 1000}}))
    with pytest.raises(TokenizerError, match=r"The first token '<2fr>.{0,90} is not in the vocabulary"):
        load(tmp_path)


def test_two_vocabularies(tmp_path: Path) -> None:
    """Where texts have a vocabulary of their own, the token is one of that."""
    original = tiny.two_vocabularies()
    assert original.source_tokenizer is not None
    piece = original.source_tokenizer.tokens([5])[0].piece
    save(original, tmp_path)
    said = json.loads((tmp_path / "config.json").read_text("utf-8"))
    (tmp_path / "config.json").write_text(json.dumps({**said, "first_tokens": {"CJK": piece}}))
    assert next(token.id for token in load(tmp_path).encode("猫")) == 5
