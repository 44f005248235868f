"""SentencePiece files, written here byte by byte, against plain implementations of what they stand for."""

import base64
import math
import os
import random
import struct
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sentencepiece")

from tests.checkpoints import hostile
from vizformer.checkpoints.files.untrusted_folder import Folder
from vizformer.checkpoints.tokenizers import sentencepiece_files as spm
from vizformer.errors import CheckpointError, VizformerError
from vizformer.text import Tokenizer

ROUNDS = int(os.environ.get("VIZFORMER_FUZZ", "200"))
NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
TEXTS = [
    "low lower lowest",
    "the newest of the widest",
    "slow  wet  news ",
    " new",
    "我有猫",
    "newt 猫猫 x!",
    "e",
    "wow\tlow",
]
Pieces = list[tuple[str, float, int]]


# --- writing -----------------------------------------------------------------------------------------------------


def varint(n: int) -> bytes:
    n, out = n % 2**64, bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes([*out, n])


def entry(key: int, value: int | float | bytes) -> bytes:
    if isinstance(value, bytes):
        return varint(key << 3 | 2) + varint(len(value)) + value
    if isinstance(value, float):
        return varint(key << 3 | 5) + struct.pack("<f", value)
    return varint(key << 3) + varint(value)


def model(
    pieces: Iterable[tuple[str, float, int]],
    kind: int = 1,
    byte_fallback: bool = False,
    charsmap: bytes = b"",
    **flags: int,
) -> bytes:
    """A file as the trainer writes it, with fields that nobody reads among the others."""
    out = b""
    for text, score, type in pieces:
        one = entry(1, text.encode(errors="surrogateescape")) + entry(2, float(score))
        out += entry(1, one + (entry(3, type) if type != 1 else b""))
    trainer = entry(1, b"corpus.txt") + entry(3, kind) + entry(4, 99) + entry(35, int(byte_fallback))
    trainer += entry(40, 0) + entry(43, -1)
    trainer += entry(41, int(flags.pop("bos", 1)))
    trainer += entry(24, int(flags.pop("suffix", False)))
    keys = dict(add_dummy_prefix=3, remove_extra_whitespaces=4, escape_whitespaces=5)
    normalizer = entry(1, b"identity") + (entry(2, charsmap) if charsmap else b"")
    normalizer += b"".join(entry(keys[name], int(on)) for name, on in flags.items())
    return out + entry(2, trainer) + entry(3, normalizer) + entry(4, b"") + varint(9 << 3 | 1) + bytes(8)


MARKS: Pieces = [("<unk>", 0.0, UNKNOWN), ("<s>", 0.0, CONTROL), ("</s>", 0.0, CONTROL)]
BYTES: Pieces = [(f"<0x{byte:02X}>", 0.0, BYTE) for byte in range(256)]
WORDS = "low lower lowest new newer newest wide wider widest slow slower the of wet news"


def unigram() -> Pieces:
    """Every stretch of the words with a score of its own."""
    dice = random.Random(3)
    stretches = {f"▁{word}"[i:j] for word in WORDS.split() for i in range(len(word)) for j in range(i + 1, i + 6)}
    letters = set("▁lowerstnidfhw猫")
    return [
        *MARKS,
        *((text, round(dice.uniform(-9, -2) + 0.4 * len(text), 3), NORMAL) for text in sorted(stretches | letters)),
    ]


def bpe() -> Pieces:
    """Learned as BPE is: the most frequent pair becomes a piece, again and again; letters come last."""
    words = [list(f"▁{word}") for word in f"{WORDS} {WORDS} low low new wet".split()]
    learned: list[str] = []
    for _ in range(40):
        counts: dict[tuple[str, str], int] = {}
        for word in words:
            for pair in pairwise(word):
                counts[pair] = counts.get(pair, 0) + 1
        if not counts:
            break
        first, second = max(sorted(counts), key=counts.__getitem__)
        learned.append(first + second)
        for word in words:
            i = 0
            while i < len(word) - 1:
                if (word[i], word[i + 1]) == (first, second):
                    word[i : i + 2] = [first + second]
                i += 1
    pieces = list(dict.fromkeys(learned)) + sorted(set("▁lowerstnidfhw猫"))
    return [*MARKS, *((text, -float(rank), NORMAL) for rank, text in enumerate(pieces))]


# --- reading, a second time --------------------------------------------------------------------------------------


def ready(text: str, *, prefix: bool = True, extra: bool = True) -> str:
    if extra:
        text = " ".join(part for part in text.split(" ") if part)
    return (f" {text}" if prefix and text else text).replace(" ", "▁")


def viterbi(text: str, pieces: Pieces, byte_fallback: bool = False) -> list[int]:
    """The split with the highest sum; a character that no piece begins with costs 10 more than the worst piece."""
    known = {t: (s, id) for id, (t, s, kind) in enumerate(pieces) if kind == NORMAL}
    unknown = min(score for score, __ in known.values()) - 10
    best: list[tuple[float, list[tuple[str, int]]]] = [(0.0, [])]
    for end in range(1, len(text) + 1):
        ways = []
        for start in range(end):
            part = text[start:end]
            if part in known:
                ways.append((best[start][0] + known[part][0], [*best[start][1], (part, known[part][1])]))
            elif len(part) == 1:
                ways.append((best[start][0] + unknown, [*best[start][1], (part, 0)]))
        best.append(max(ways, key=lambda way: way[0]))
    return with_unknown(best[-1][1], pieces, byte_fallback)


def by_score(text: str, pieces: Pieces, byte_fallback: bool = False) -> list[int]:
    """Merges the neighbours whose piece scores highest, the leftmost of equals, as long as there are any."""
    known = {t: (s, id) for id, (t, s, kind) in enumerate(pieces) if kind == NORMAL}
    parts = list(text)
    while True:
        ways = [(-known[a + b][0], i) for i, (a, b) in enumerate(pairwise(parts)) if a + b in known]
        if not ways:
            break
        __, i = min(ways)
        parts[i : i + 2] = [parts[i] + parts[i + 1]]
    return with_unknown([(p, known[p][1] if p in known else 0) for p in parts], pieces, byte_fallback)


def with_unknown(parts: list[tuple[str, int]], pieces: Pieces, byte_fallback: bool) -> list[int]:
    """Unknown characters in a row are one token, or their bytes."""
    place = {text: id for id, (text, __, ___) in enumerate(pieces)}
    ids: list[int] = []
    for part, id in parts:
        if id == 0 and byte_fallback:
            ids += [place[f"<0x{byte:02X}>"] for byte in part.encode()]
        elif id != 0 or ids[-1:] != [0]:
            ids.append(id)
    return ids


def opened(tmp_path: Path, content: bytes, **arguments: Any) -> Tokenizer:
    (tmp_path / "tokenizer.model").write_bytes(content)
    return Tokenizer(spm.sentencepiece(Folder(tmp_path), "tokenizer.model", **arguments))


def ids(tokenizer: Tokenizer, text: str) -> list[int]:
    return [token.id for token in tokenizer.encode(text)]


def texts() -> list[str]:
    dice = random.Random(5)
    return [*TEXTS, *("".join(dice.choices("lowerstnid  猫xé", k=dice.randrange(1, 30))) for _ in range(200))]


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
@pytest.mark.parametrize("byte_fallback", [False, True])
@pytest.mark.parametrize("flags", [{}, dict(add_dummy_prefix=False), dict(remove_extra_whitespaces=False)], ids=str)
@pytest.mark.sample(4)
def test_token_ids(kind: str, byte_fallback: bool, flags: dict[str, bool], tmp_path: Path) -> None:
    pieces = [*(unigram() if kind == "unigram" else bpe()), *(BYTES if byte_fallback else [])]
    content = model(pieces, 1 if kind == "unigram" else 2, byte_fallback, **flags)
    tokenizer = opened(tmp_path, content)
    split = viterbi if kind == "unigram" else by_score
    for text in texts():
        normal = ready(
            text, prefix=flags.get("add_dummy_prefix", True), extra=flags.get("remove_extra_whitespaces", True)
        )
        assert ids(tokenizer, text) == split(normal, pieces, byte_fallback), text


@pytest.mark.parametrize("kind", [1, 2])
def test_there_and_back(kind: int, tmp_path: Path) -> None:
    tokenizer = opened(tmp_path, model([*(unigram() if kind == 1 else bpe()), *BYTES], kind, byte_fallback=True))
    for text in ("low lower", "我有猫 x!", "newest é"):
        assert tokenizer.decode(ids(tokenizer, text)) == text
    tokens = tokenizer.encode("low 猫é")
    assert "".join(token.text for token in tokens if token.end - token.start).startswith("low")
    assert tokens[0].word == 0
    assert {token.word for token in tokens} == {0, 1}
    assert tokens[-1].text == "⟨A9⟩"


def test_pieces_that_reach_into_the_next_word(tmp_path: Path) -> None:
    pieces = [*unigram(), ("▁of▁the", -1.0, NORMAL)]
    tokenizer = opened(tmp_path, model(pieces))
    text = "the news of the low"
    assert ids(tokenizer, text) == viterbi(ready(text), pieces)
    assert len(pieces) - 1 in ids(tokenizer, text)


def test_special_and_user_defined_pieces(tmp_path: Path) -> None:
    pieces = [*unigram(), ("<sep>", 0.0, USER)]
    tokenizer = opened(tmp_path, model(pieces))
    found = ids(tokenizer, "low<sep>new")
    assert found == [*viterbi("▁low", pieces), len(pieces) - 1, *viterbi("▁new", pieces)]
    assert tokenizer.is_special(0) and tokenizer.is_special(1) and not tokenizer.is_special(len(pieces) - 1)  # noqa: PT018


def charsmap(rules: dict[str, str]) -> bytes:
    """A double array over the bytes of the keys, found by trying offsets, and the replacements behind it."""
    texts, starts = b"", {}
    for key, value in rules.items():
        starts[key.encode()] = len(texts)
        texts += value.encode() + b"\0"
    units, used = [0] * 4096, {0}

    def place(node: int, prefix: bytes) -> None:
        here = starts.get(prefix)
        letters = sorted({key[len(prefix)] for key in starts if key.startswith(prefix) and len(key) > len(prefix)})
        wanted = [*([0] if here is not None else []), *letters]
        base = next(b for b in range(256, 4096, 256) if not used & {b ^ letter for letter in wanted})
        used.update(base ^ letter for letter in wanted)
        units[node] |= (node ^ base) << 10
        if here is not None:
            units[node] |= 1 << 8
            units[base] = here | 1 << 31
        for letter in letters:
            units[base ^ letter] = letter
            place(base ^ letter, prefix + bytes([letter]))

    place(0, b"")
    trie = struct.pack("<4096I", *units)
    return struct.pack("<I", len(trie)) + trie + texts


RULES = {"\t": " ", "ｌ": "l", "é": "e", "Ⅳ": "lv"}


def test_characters_are_replaced_first(tmp_path: Path) -> None:
    pieces = unigram()
    tokenizer = opened(tmp_path, model(pieces, charsmap=charsmap(RULES)))
    for text, plain in (("ｌow\tnéw", "low new"), ("\t low", "low"), ("Ⅳ", "lv")):
        assert ids(tokenizer, text) == viterbi(ready(plain), pieces), text


# --- families ----------------------------------------------------------------------------------------------------


def test_marks_and_added_tokens(tmp_path: Path) -> None:
    pieces = unigram()
    (tmp_path / "added_tokens.json").write_text(f'{{"<pad>": {len(pieces)}}}')
    tokenizer = opened(tmp_path, model(pieces), begun=True)
    assert ids(tokenizer, "low") == [1, *viterbi("▁low", pieces)]
    assert ids(tokenizer, "<pad>") == [1, len(pieces)]
    assert ids(opened(tmp_path, model(pieces, bos=2), begun=True, ended=True), "low") == [
        2,
        *viterbi("▁low", pieces),
        2,
    ]
    (tmp_path / "tokenizer_config.json").write_text('{"add_bos_token": false, "add_eos_token": true}')
    assert ids(opened(tmp_path, model(pieces), begun=True), "low") == [*viterbi("▁low", pieces), 2]
    for wrong in ('{"<pad>": 5000}', '{"<pad>": "x"}'):
        (tmp_path / "added_tokens.json").write_text(wrong)
        with pytest.raises(CheckpointError, match=r"added_tokens.json cannot be used as a tokenizer"):
            opened(tmp_path, model(pieces))


def test_a_llama_folder_with_nothing_but_tokenizer_model(tmp_path: Path) -> None:
    """The same ids as tokenizer.json gives: its merges are the order in which the pieces were learned."""
    pytest.importorskip("transformers")
    import json

    from tests.checkpoints import folders
    from vizformer.checkpoints import load

    folder = folders.llama(tmp_path / "llama")
    expected = load(folder)
    content = json.loads((folder / "tokenizer.json").read_text())["model"]
    made = {first + second: rank for rank, (first, second) in enumerate(content["merges"])}
    kinds = {"<unk>": UNKNOWN, "<s>": CONTROL, "</s>": CONTROL}
    pieces = [
        (text, -float(made.get(text, len(made) + id)), kinds.get(text, BYTE if text.startswith("<0x") else NORMAL))
        for text, id in sorted(content["vocab"].items(), key=lambda item: item[1])
    ]
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer.model").write_bytes(model(pieces, 2, byte_fallback=True, remove_extra_whitespaces=False))
    found = load(folder)
    for text in folders.TEXTS:
        assert [t.id for t in found.encode(text)] == [t.id for t in expected.encode(text)], text
        assert (found.trace(text).logits == expected.trace(text).logits).all()


# --- damage ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "0 pieces stand for unknown"),
        (b"not a model", "is no file of SentencePiece"),
        (b"IQ== 0\nIg== 1\nIw== 2\n", "LLaMA 3.s tokenizer.model, of tiktoken, is not read"),
        (model(unigram())[:500], "is no file of SentencePiece"),
        (model(unigram(), kind=3), "a vocabulary of the kind word; supported are unigram and bpe"),
        (model(unigram(), suffix=True), "treat_whitespace_as_suffix"),
        (model(unigram(), escape_whitespaces=False), "escape_whitespaces is false"),
        (model([*unigram(), ("low", 0.0, NORMAL), ("low", 0.0, NORMAL)]), "twice"),
        (model([*unigram(), ("", 0.0, NORMAL)]), "a piece of 0 bytes"),
        (model([*unigram(), ("x" * 600, 0.0, NORMAL)]), "a piece of 600 bytes"),
        (model([*unigram(), ("x", math.nan, NORMAL)]), "has the score nan"),
        (model([*unigram(), ("x", 0.0, UNUSED)]), "is of type 5"),
        (model(MARKS[1:]), "0 pieces stand for unknown characters instead of one"),
        (model(MARKS), "it has no pieces"),
        (model([*unigram(), ("\udcff", 0.0, NORMAL)]), "is no file of SentencePiece"),
        (b"\n\0" * (4 * 2**20), "more than 1,048,576 pieces"),
        (b"\n\0" * (2**20 + 1), "more than 1,048,576 pieces"),
        (bytes(spm.LIMIT + 1), "bytes; at most"),
        (b"<html>", "is a web page"),
    ],
)
def test_what_cannot_be_read(content: bytes, said: str, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=said) as caught:
        opened(tmp_path, content)
    assert str(caught.value).startswith("tokenizer.model")


def test_a_folder_is_told_what_its_tokenizer_lacks(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    from tests.checkpoints import folders
    from vizformer.checkpoints import load

    folder = folders.llama(tmp_path / "llama")
    (folder / "tokenizer.json").unlink()
    with pytest.raises(CheckpointError, match=r"llama lacks a tokenizer \(tokenizer.json"):
        load(folder)
    (folder / "tokenizer.model").write_bytes(model(unigram(), kind=4))
    with pytest.raises(CheckpointError, match=r"tokenizer.model cannot be used as a tokenizer \(a vocabulary of the"):
        load(folder)


def test_a_table_that_leads_astray_is_an_error_where_a_text_follows_it(tmp_path: Path) -> None:
    """There the library panics, which the pages say in words."""
    damaged = base64.b64decode(hostile.damaged_charsmap("q"))
    tokenizer = opened(tmp_path, model(unigram(), charsmap=damaged))
    assert ids(tokenizer, "low")
    with pytest.raises(VizformerError, match="cannot be split into tokens"):
        tokenizer.encode("quick")


def test_a_table_that_makes_much_of_a_character_is_refused(tmp_path: Path) -> None:
    with pytest.raises(VizformerError, match="Precompiled adds 100 characters to a text"):
        opened(tmp_path, model(unigram(), charsmap=charsmap({"a": "b" * 100})))


def test_without_the_library_a_file_is_refused_with_the_way_out(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "sentencepiece.sentencepiece_model_pb2", None)
    with pytest.raises(CheckpointError, match=r"pip install vizformer\[sentencepiece\].*save_pretrained"):
        opened(tmp_path, model(unigram()))


def test_as_many_pieces_as_are_let_through_take_little_memory(tmp_path: Path) -> None:
    """A byte each is all that they take in the file; measured in a process of its own."""
    (tmp_path / "tokenizer.model").write_bytes(b"\n\0" * 2**20 + b"\n\2\n\0" * 2**19)
    code = (
        "import resource, sys, pathlib\n"
        "from vizformer.checkpoints.files.untrusted_folder import Folder\n"
        "from vizformer.checkpoints.tokenizers import sentencepiece_files as spm\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try: spm.read(Folder(pathlib.Path(sys.argv[1])), 'tokenizer.model')\n"
        "except Exception as error: print(error)\n"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)\n"
    )
    said = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True).stdout
    assert "pieces" in said
    assert int(said.split()[-1]) < 400


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [ROUNDS, pytest.param(10 * ROUNDS, marks=pytest.mark.sweep)])
@pytest.mark.parametrize("kind", [1, 2])
def test_damaged_files(kind: int, rounds: int, tmp_path: Path) -> None:
    """Mutations, in `make sweep` ten times as many: refused with an error of ours, or a tokenizer that splits any text."""
    dice = random.Random(kind)
    whole = model([*(unigram() if kind == 1 else bpe()), *BYTES], kind, byte_fallback=True, charsmap=charsmap(RULES))
    outcome = {"opened": 0, "refused": 0}
    for number in range(rounds):
        content = bytearray(whole)
        if number % 5 == 0:
            del content[dice.randrange(len(content)) :]
        elif number % 5 == 1:
            start = dice.randrange(len(content))
            content[start:start] = dice.randbytes(dice.choice((1, 4, 40)))
        else:
            late = len(content) - 17_000  # in front of the table of characters
            for _ in range(dice.choice((1, 1, 2, 6))):
                place = dice.randrange(late) if number % 2 else dice.randrange(len(content))
                content[place] ^= 1 << dice.randrange(8)
        with suppress(VizformerError):
            tokenizer = opened(tmp_path, bytes(content))
            outcome["opened"] += 1
            for text in ("low\tnéw ｌⅣ 猫 \U0001f431", "".join(map(chr, range(1, 300)))):
                tokenizer.decode(ids(tokenizer, text))
            continue
        outcome["refused"] += 1
    assert min(outcome.values()) > rounds / 15, outcome
