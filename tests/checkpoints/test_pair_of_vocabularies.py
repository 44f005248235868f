"""Marian's source.spm, target.spm and vocab.json, and T5's spiece.model, written here byte by byte."""

import json
import math
import random
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

pytest.importorskip("transformers")

from tests.checkpoints import folders
from tests.checkpoints.test_sentencepiece import CONTROL, NORMAL, UNKNOWN, Pieces, entry, model
from vizformer.checkpoints import inspect, load, save
from vizformer.errors import CheckpointError, TokenizerError

ENGLISH = "the cat sat on the mat , a low lower lowest hat"
GERMAN = "die katze saß auf der matte , ein tiefer tieferer hut sofa"
LANGUAGE = ">>deu<<"
TEXTS = ["the cat sat on a mat", " low  lower hats", "tattoo", "x the", "die katze", "ß"]


def pieces_of(words: str, seed: int) -> Pieces:
    """All stretches of the words, in an order of their own."""
    dice = random.Random(seed)
    stretches = {f"▁{word}"[i:j] for word in words.split() for i in range(len(word) + 1) for j in range(i + 1, i + 6)}
    return [(text, round(dice.uniform(-9, -2) + 0.4 * len(text), 3), NORMAL) for text in sorted(stretches)]


MARIAN_MARKS: Pieces = [("<unk>", 0.0, UNKNOWN), ("<s>", 0.0, CONTROL), ("</s>", 0.0, CONTROL)]
SOURCE, TARGET = [*MARIAN_MARKS, *pieces_of(ENGLISH, 1)], [*MARIAN_MARKS, *pieces_of(GERMAN, 2)]


def write_marian(folder: Path, leave_out: Iterable[str] = ()) -> dict[str, int]:
    both = sorted(({text for text, _, kind in (*SOURCE, *TARGET) if kind == NORMAL} | {LANGUAGE}) - set(leave_out))
    ids = {token: id for id, token in enumerate(["</s>", "<unk>", *both, "<pad>"])}
    (folder / "source.spm").write_bytes(model(SOURCE))
    (folder / "target.spm").write_bytes(model(TARGET))
    (folder / "vocab.json").write_text(json.dumps(ids))
    said = {
        "tokenizer_class": "MarianTokenizer",
        "eos_token": "</s>",
        "pad_token": "<pad>",
        "unk_token": "<unk>",
        "source_lang": "en",
        "target_lang": "de",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(said))
    return ids


def marian(folder: Path, leave_out: Iterable[str] = ()) -> tuple[Path, dict[str, int]]:
    """A folder as OPUS-MT's are."""
    folder.mkdir(parents=True)
    ids = write_marian(folder, leave_out)
    pad = ids["<pad>"]
    options = dict(vocab_size=len(ids), pad_token_id=pad, decoder_start_token_id=pad, eos_token_id=0)
    folders.marian(folder / "made", **options)
    for name in ("config.json", "model.safetensors"):
        (folder / "made" / name).rename(folder / name)
    shutil.rmtree(folder / "made")
    return folder, ids


def best_split(text: str, pieces: Pieces, ids: dict[str, int]) -> list[str]:
    """The split of the highest sum of scores, by trying every one; characters without a piece may be others' pieces."""
    scores = {piece: score for piece, score, kind in pieces if kind == NORMAL}
    lowest = min(scores.values()) - 10
    spaced = "▁" + "▁".join(text.split())
    best: list[tuple[float, list[str]]] = [(0.0, [])]
    for end in range(1, len(spaced) + 1):
        found = [(-math.inf, [""])]
        for start in range(end):
            piece, (before, split) = spaced[start:end], best[start]
            if piece in scores:
                found.append((before + scores[piece], [*split, piece]))
            elif len(piece) == 1 or (piece in ids and not any(character in scores for character in piece)):
                found.append((before + lowest, [*split, piece]))
        best.append(max(found))
    return best[-1][1]


def test_marian_splits_texts_and_translations_each_its_own_way(tmp_path: Path) -> None:
    folder, ids = marian(tmp_path / "mine")
    checkpoint = load(folder)
    unknown = ids["<unk>"]
    differ = 0
    for text in TEXTS:
        expected = [ids.get(piece, unknown) for piece in best_split(text, SOURCE, ids)]
        assert [token.id for token in checkpoint.encode(text)] == [*expected, ids["</s>"]], text
        as_target = [ids.get(piece, unknown) for piece in best_split(text, TARGET, ids)]
        assert [token.id for token in checkpoint.encode_target(text)] == [ids["<pad>"], *as_target], text
        differ += expected != as_target
    assert differ > 3
    assert checkpoint.tokenizer.decode([token.id for token in checkpoint.encode("the cat sat")]) == "the cat sat"
    words = [(token.text, token.start, token.end) for token in checkpoint.encode("the cat")]
    assert "".join("the cat"[start:end] for _, start, end in words).replace(" ", "") == "thecat"
    assert not any("pieces of" in str(note) for note in checkpoint.report.assumptions)


def test_a_language_before_the_text(tmp_path: Path) -> None:
    folder, ids = marian(tmp_path / "mine")
    with_it, without = (load(folder).encode(text) for text in (f"{LANGUAGE} the cat", "the cat"))
    assert [token.id for token in with_it] == [ids[LANGUAGE], *(token.id for token in without)]


def test_what_is_saved_in_our_format_splits_the_same(tmp_path: Path) -> None:
    original = load(marian(tmp_path / "mine")[0])
    save(original, tmp_path / "ours")
    again = load(tmp_path / "ours")
    for text in TEXTS:
        assert again.encode(text) == original.encode(text)
        assert again.encode_target(text) == original.encode_target(text)
    path = tmp_path / "ours" / "tokenizer_of_targets.json"
    path.write_text(path.read_text().replace('"▁katz"', '"▁katx"'))
    with pytest.raises(TokenizerError, match=r"Texts and translations have different vocabularies"):
        load(tmp_path / "ours")


def test_pieces_without_an_id_are_told(tmp_path: Path) -> None:
    folder, ids = marian(tmp_path / "mine", leave_out=["▁cat", "▁ca"])
    report = inspect(folder)
    assert any("2 of the pieces of source.spm are not in vocab.json" in str(note) for note in report.assumptions)
    assert all(token.id in ids.values() for token in load(folder).encode("the cat"))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("vocab.json", '{"</s>": 0, "<unk>": 1, "<pad>": 3}', "vocab.json cannot be used .*its ids are not 0, 1, 2"),
        ("vocab.json", '{"</s>": 0, "<unk>": 1}', 'vocab.json cannot be used .*it lacks "<pad>"'),
        ("source.spm", b"\x0a", "source.spm is no file of SentencePiece"),
        ("target.spm", model(TARGET, kind=2), "target.spm cannot be used .*kind bpe; supported here is unigram"),
        ("target.spm", None, "tokenizer only as .*source.spm.*it needs .*vocab.json, source.spm and target.spm"),
        ("vocab.json", None, "it needs .*vocab.json, source.spm and target.spm"),
    ],
    ids=lambda value: str(value)[:24],
)
@pytest.mark.sample(2)
def test_files_that_do_not_fit(name: str, content: str | bytes | None, said: str, tmp_path: Path) -> None:
    folder, _ = marian(tmp_path / "mine")
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(CheckpointError, match=said):
        load(folder)


def test_marian_as_transformers_reads_it(tmp_path: Path) -> None:
    pytest.importorskip("sentencepiece")
    from transformers import MarianTokenizer

    folder, _ = marian(tmp_path / "mine")
    ours, other = load(folder), MarianTokenizer.from_pretrained(folder)
    for text in (*TEXTS, f"{LANGUAGE} the hat"):
        assert [token.id for token in ours.encode(text)] == other(text)["input_ids"], text
        target = [token.id for token in ours.encode_target(text)][1:]
        assert [*target, 0] == other(text_target=text)["input_ids"], text


# --- T5 ---------------------------------------------------------------------------------------------------------

T5_MARKS: Pieces = [("<pad>", 0.0, CONTROL), ("</s>", 0.0, CONTROL), ("<unk>", 0.0, UNKNOWN)]
T5 = [*T5_MARKS, *pieces_of(ENGLISH, 3)]


def test_t5_as_transformers_reads_it(tmp_path: Path) -> None:
    """Marks of gaps behind the pieces, the last one first; an end mark behind the text."""
    from transformers import T5Tokenizer

    gaps = [(f"<extra_id_{number}>", 0.0) for number in reversed(range(7))]
    other = T5Tokenizer(vocab=[*((text, score) for text, score, _ in T5), *gaps], extra_ids=7)
    folders.t5(tmp_path / "made", vocab_size=len(T5) + 7, eos_token_id=1)
    (tmp_path / "made" / "tokenizer.json").unlink()
    (tmp_path / "made" / "spiece.model").write_bytes(model(T5, bos=-1) + entry(2, entry(42, 1)))
    (tmp_path / "made" / "tokenizer_config.json").write_text(json.dumps({"extra_ids": 7}))
    checkpoint = load(tmp_path / "made")
    for text in (*TEXTS, "the <extra_id_0> sat on <extra_id_6>."):
        assert [token.id for token in checkpoint.encode(text)] == other(text)["input_ids"], text
    assert checkpoint.tokenizer.id_of("<extra_id_0>") == len(T5) + 6
    assert checkpoint.model.config.eos_id == 1
