"""Marian folders with a vocabulary for each language against `transformers`, every parameter randomised."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("transformers")

from tests import tiny
from tests.checkpoints import folders
from tests.checkpoints.test_pair_of_vocabularies import SOURCE, TARGET, TEXTS, best_split, model
from tests.checkpoints.test_sentencepiece import NORMAL
from tests.parity.against_transformers import same_numbers_of_both_stacks, same_translation, theirs
from vizformer.checkpoints import inspect, load, save
from vizformer.errors import CheckpointError

MARIAN = "MarianMTModel"
PAD = 20  # in both vocabularies, as config.json has one pad_token_id


def ids_of(pieces: Any) -> dict[str, int]:
    """As Marian's own: the end mark, the unknown, pieces; here the padding comes early, as 20 is a row of both."""
    names = ["</s>", "<unk>", *sorted(text for text, _, kind in pieces if kind == NORMAL)]
    return {token: id for id, token in enumerate([*names[:PAD], "<pad>", *names[PAD:]])}


def known(pieces: list[str], ids: dict[str, int]) -> list[int]:
    """The ids of pieces; unknown characters in a row are one unknown, as SentencePiece counts them."""
    found = [ids.get(piece, 1) for piece in pieces]
    return [id for i, id in enumerate(found) if id != 1 or found[i - 1 : i] != [1]]


def separate(folder: Path, **changes: Any) -> Path:
    folder.mkdir(parents=True)
    source, target = ids_of(SOURCE), ids_of(TARGET)
    options = dict(
        vocab_size=len(source),
        decoder_vocab_size=len(target),
        share_encoder_decoder_embeddings=False,
        pad_token_id=PAD,
        decoder_start_token_id=PAD,
        eos_token_id=0,
        **changes,
    )
    folders.marian(folder / "made", **options)
    for name in ("config.json", "model.safetensors"):
        (folder / "made" / name).rename(folder / name)
    shutil.rmtree(folder / "made")
    for name, pieces, ids, vocabulary in (
        ("source", SOURCE, source, "vocab"),
        ("target", TARGET, target, "target_vocab"),
    ):
        (folder / f"{name}.spm").write_bytes(model(pieces))
        (folder / f"{vocabulary}.json").write_text(json.dumps(ids))
    said = {"tokenizer_class": "MarianTokenizer", "separate_vocabs": True, "source_lang": "en", "target_lang": "de"}
    (folder / "tokenizer_config.json").write_text(json.dumps(said))
    return folder


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.sample(1)
def test_every_number(tied: bool, tmp_path: Path) -> None:
    folder = separate(tmp_path / "mine", tie_word_embeddings=tied)
    checkpoint, other = load(folder), theirs(folder, MARIAN)
    config = checkpoint.model.config
    assert (config.source_vocab_size, config.vocab_size) == (len(ids_of(SOURCE)), len(ids_of(TARGET)))
    assert config.source_vocab_size != config.vocab_size
    assert config.tied_unembedding is tied
    assert {tensor.fate for tensor in checkpoint.report.tensors} == {"used"}
    for text in TEXTS[:3]:
        same_numbers_of_both_stacks(checkpoint, other, text, "die katze")
    same_translation(checkpoint, other, TEXTS[0])


def test_second_names_must_hold_the_same_numbers(tmp_path: Path) -> None:
    folder = separate(tmp_path / "mine")
    weights = folders.tensors(folder)
    table = weights["model.decoder.embed_tokens.weight"]
    folders.save_tensors(folder, {**weights, "lm_head.weight": table.clone()})
    assert [t.name for t in load(folder).report.with_fate("tied")] == ["lm_head.weight"]
    folders.save_tensors(folder, {**weights, "lm_head.weight": table + 1})
    with pytest.raises(CheckpointError, match=r"should be the same numbers \(tie_word_embeddings\)"):
        load(folder)


def test_each_language_has_its_own_ids(tmp_path: Path) -> None:
    checkpoint = load(separate(tmp_path / "mine"))
    source, target = ids_of(SOURCE), ids_of(TARGET)
    for text in TEXTS:
        expected = known(best_split(text, SOURCE, source), source)
        assert [token.id for token in checkpoint.encode(text)] == [*expected, 0], text
        as_target = known(best_split(text, TARGET, target), target)
        assert [token.id for token in checkpoint.encode_target(text)] == [PAD, *as_target], text
    assert checkpoint.encode("the cat")[-1].piece == "</s>"
    assert checkpoint.generate("the cat", max_new=4).text == checkpoint.tokenizer.decode(
        list(checkpoint.generate("the cat", max_new=4).ids)
    )


def test_as_transformers_reads_it(tmp_path: Path) -> None:
    pytest.importorskip("sentencepiece")
    from transformers import MarianTokenizer

    folder = separate(tmp_path / "mine")
    ours, other = load(folder), MarianTokenizer.from_pretrained(folder)
    for text in TEXTS:
        assert [token.id for token in ours.encode(text)] == other(text)["input_ids"], text
        target = [token.id for token in ours.encode_target(text)][1:]
        assert [*target, 0] == other(text_target=text)["input_ids"], text
        assert ours.tokenizer.decode(target).strip() == other.decode(target, skip_special_tokens=True), text


@pytest.mark.sweep
def test_saved_in_our_format(tmp_path: Path) -> None:
    original = load(separate(tmp_path / "mine"))
    save(original, tmp_path / "ours", torch.float32)
    again = load(tmp_path / "ours")
    assert again.encode_target(TEXTS[4]) == original.encode_target(TEXTS[4])
    assert again.trace(TEXTS[0]).tokens == original.trace(TEXTS[0]).tokens
    tiny.assert_close(again.trace("the cat").logits, original.trace("the cat").logits, 0)
    with pytest.raises(CheckpointError, match="source_vocab_size="):
        save(original, tmp_path / "theirs", layout="hugging-face")


def test_tables_of_their_own_with_the_words_of_both(tmp_path: Path) -> None:
    """A table for each stack does not need a vocabulary for each."""
    folder = tmp_path / "mine"
    folders.marian(folder, share_encoder_decoder_embeddings=False)
    checkpoint, other = load(folder), theirs(folder, MARIAN)
    assert checkpoint.model.config.source_vocab_size == checkpoint.model.config.vocab_size
    same_numbers_of_both_stacks(checkpoint, other, folders.TEXTS[0])


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("target_vocab.json", None, "vocab.json, source.spm, target_vocab.json and target.spm"),
        ("target_vocab.json", {"</s>": 0, "<unk>": 1}, 'target_vocab.json cannot be used .*it lacks "<pad>"'),
        ("tokenizer_config.json", {}, "two vocabularies, of .* but the files hold one"),
        (
            "vocab.json",
            {**ids_of(SOURCE), "more": len(ids_of(SOURCE))},
            "token ids up to .* belong to different models",
        ),
    ],
    ids=str,
)
@pytest.mark.sample(1)
def test_files_that_do_not_fit(name: str, change: dict[str, Any] | None, said: str, tmp_path: Path) -> None:
    folder = separate(tmp_path / "mine")
    if change is None:
        (folder / name).unlink()
    else:
        (folder / name).write_text(json.dumps(change))
    with pytest.raises(CheckpointError, match=said):
        load(folder)


def test_a_config_that_says_the_opposite(tmp_path: Path) -> None:
    folder = separate(tmp_path / "mine")
    folders.change(folder, share_encoder_decoder_embeddings=True, decoder_vocab_size=None)
    with pytest.raises(CheckpointError, match=r"separate_vocabs=true, but by config.json source and target share"):
        inspect(folder)
    folders.change(folder, decoder_vocab_size=7)
    with pytest.raises(CheckpointError, match="decoder_vocab_size=7"):
        inspect(folder)
