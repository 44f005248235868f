"""Text to tokens and back, for the three ways in which vocabularies are written."""

from pathlib import Path
from unicodedata import combining

import pytest
from tokenizers import (
    AddedToken,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from tokenizers import (
    Tokenizer as Backend,
)

from tests import tiny
from vizformer.errors import TokenizerError
from vizformer.text import Token, Tokenizer

WORDS = ["low lower lowest newer wider", "new wide cats hat", "the cat sat on the hat"] * 5
HARD = [
    "我有一只猫。 I have a cat.",
    "鑫鑫",
    "🐱 and 👩‍👩‍👧",
    "שלום עולם",
    "مرحبا",
    "e\u0301a",
    "a\x00b\x07\x1b[0m",
    "\u202eabc",
    "  two  spaces  ",
    "tab\tnew\nline\r\n",
    "<b>bold</b> &amp;",
    "zero\u200dwidth\ufeff",
    "x",
    "Ġ▁##",
    "\U0010ffff",
]


def byte_level() -> Tokenizer:
    """As GPT-2: every text can be written."""
    backend = Backend(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.post_processor = processors.ByteLevel(trim_offsets=True, add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=["<|end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator(WORDS, trainer)
    return Tokenizer(backend)


def metaspace() -> Tokenizer:
    """As SentencePiece with byte fallback (Llama)."""
    pieces = [
        "<unk>",
        "<s>",
        "▁",
        *(f"<0x{byte:02X}>" for byte in range(256)),
        "c",
        "a",
        "t",
        "ca",
        "▁c",
        "▁ca",
        "▁cat",
    ]
    merges = [("c", "a"), ("▁", "c"), ("▁", "ca"), ("▁ca", "t")]
    vocabulary = {piece: id for id, piece in enumerate(pieces)}
    backend = Backend(models.BPE(vocab=vocabulary, merges=merges, unk_token="<unk>", byte_fallback=True))
    backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    backend.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    backend.add_special_tokens([AddedToken("<s>", special=True), AddedToken("<unk>", special=True)])
    return Tokenizer(backend)


def wordpiece() -> Tokenizer:
    """As BERT."""
    backend = Backend(models.WordPiece(unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(vocab_size=36, special_tokens=["[UNK]", "[CLS]", "[SEP]"], show_progress=False)
    backend.train_from_iterator(WORDS, trainer)
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[(t, backend.token_to_id(t)) for t in ("[CLS]", "[SEP]")]
    )
    return Tokenizer(backend)


BYTES = [tiny.tokenizer, byte_level, metaspace]  # those that can write any text
any_text = pytest.mark.parametrize("text", HARD, ids=ascii)


def own(tokens: tuple[Token, ...]) -> list[Token]:
    return [token for token in tokens if not token.special]


@pytest.mark.parametrize("make", BYTES)
@any_text
def test_offsets_map_back_into_the_text(make: object, text: str) -> None:
    """In order, inside the text, and together they leave out nothing but spaces and marks that were composed away."""
    tokens = own(make().encode(text, special=False))  # type: ignore[operator]
    covered: set[int] = set()
    for token in tokens:
        assert 0 <= token.start <= token.end <= len(text)
        covered |= set(range(token.start, token.end))
    assert [token.start for token in tokens] == sorted(token.start for token in tokens)
    assert all(char == " " or combining(char) for place, char in enumerate(text) if place not in covered)


@any_text
def test_a_tokens_text_is_the_part_of_the_text_that_it_covers(text: str) -> None:
    tokenizer = tiny.tokenizer()
    for token in own(tokenizer.encode(text)):
        part = text[token.start : token.end]
        if "⟨" not in token.text and part.isprintable() and part.strip() and "e\u0301" not in text:
            assert token.text == part.strip()
        elif "⟨" in token.text and "e\u0301" not in text:  # bytes of a character, or of one that cannot be seen
            assert tokenizer.bytes_of(token.id).strip() in part.encode()


@any_text
def test_nothing_unreadable_is_shown(text: str) -> None:
    for tokenizer in (tiny.tokenizer(), byte_level(), metaspace()):
        for token in tokenizer.encode(text):
            assert token.text
            assert token.text.isprintable()
            assert "\ufffd" not in token.text
            if text != "Ġ▁##":
                assert not set("Ġ▁Ċĉ") & set(token.text)
    for token in wordpiece().encode(text):
        assert token.text.isprintable()
        assert not token.text.startswith("##") or text == "Ġ▁##"


@any_text
def test_there_and_back(text: str) -> None:
    assert round_trip(byte_level(), text) == text
    assert round_trip(metaspace(), text) == text.replace("▁", " ")  # to SentencePiece the two are the same


def round_trip(tokenizer: Tokenizer, text: str) -> str:
    return tokenizer.decode([token.id for token in tokenizer.encode(text)])


def test_words_tell_which_tokens_belong_together() -> None:
    tokenizer = wordpiece()
    text = "lowest cats sat"
    words: dict[int, str] = {}
    for token in own(tokenizer.encode(text)):
        assert token.word is not None
        words[token.word] = words.get(token.word, "") + text[token.start : token.end]
    assert words == {0: "lowest", 1: "cats", 2: "sat"}
    assert len(own(tokenizer.encode(text))) > 3  # some word was split, else this shows nothing
    first, *_, last = tokenizer.encode(text)
    assert (first.word, last.word) == (None, None)


def test_special_tokens_are_visible_and_marked() -> None:
    tokens = wordpiece().encode("cats")
    assert [token.text for token in tokens if token.special] == ["[CLS]", "[SEP]"]
    assert [(token.start, token.end) for token in tokens if token.special] == [(0, 0), (0, 0)]
    end = tiny.tokenizer().encode("猫")[-1]
    assert (end.text, end.special, end.id) == ("</s>", True, tiny.tokenizer().id_of("</s>"))
    assert not any(token.special for token in tiny.tokenizer().encode("猫", special=False))
    assert tiny.tokenizer().is_special(end.id)
    assert not tiny.tokenizer().is_special(tiny.tokenizer().encode("猫")[0].id)
    assert "</s>" not in tiny.tokenizer().decode([end.id])


def test_special_tokens_are_shown_as_they_are_written() -> None:
    """Their markers are part of their name (this one is DeepSeek's), not a space that was spelt."""
    backend = Backend.from_str(metaspace().to_json())
    backend.add_special_tokens([AddedToken("<｜end▁of▁sentence｜>", special=True)])
    tokenizer = Tokenizer(backend)
    (token,) = tokenizer.tokens([tokenizer.vocab_size - 1])
    assert (token.text, token.special) == ("<｜end▁of▁sentence｜>", True)


def test_tokens_of_ids() -> None:
    tokenizer = tiny.tokenizer()
    ids = [token.id for token in tokenizer.encode("I have a cat.")]
    assert [token.text for token in tokenizer.tokens(ids)] == [
        token.text for token in tokenizer.encode("I have a cat.")
    ]
    assert b"".join(tokenizer.bytes_of(id) for id in ids[:-1]) == b"I have a cat."


@pytest.mark.parametrize("id", [-1, 320, 10**6, 2**40, 2**70])
def test_ids_that_do_not_exist(id: int) -> None:
    last = tiny.tokenizer().vocab_size - 1
    with pytest.raises(TokenizerError, match=rf"{id} is not in the vocabulary: ids go from 0 to {last}"):
        tiny.tokenizer().tokens([id])


def test_half_a_surrogate_pair_is_refused() -> None:
    """It is no text that could be written down; a browser can send it."""
    for tokenizer in (tiny.tokenizer(), metaspace(), wordpiece()):
        with pytest.raises(TokenizerError, match="Remove unusual characters"):
            tokenizer.encode("cat \ud800")


def test_a_long_text_without_spaces() -> None:
    tokenizer = tiny.tokenizer()
    text = "猫" * 3000 + "a" * 3000
    assert round_trip(tokenizer, text) == text


def test_saving_and_opening(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    tiny.tokenizer().save(path)
    text = "我有一只猫。 鑫"
    assert Tokenizer.from_file(path).encode(text) == tiny.tokenizer().encode(text)


@pytest.mark.parametrize("content", [b"", b"{}", b"[" * 100_000, b"\xff\xfe", b'{"model": {"type": "BPE"}}'])
def test_files_that_are_no_tokenizer(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(content)
    with pytest.raises(
        TokenizerError, match=r"tokenizer.json is not a tokenizer file \(.+\). Copy tokenizer.json again"
    ):
        Tokenizer.from_file(path)
    with pytest.raises(TokenizerError, match="not a tokenizer file"):
        Tokenizer.from_file(tmp_path / "nothing.json")
