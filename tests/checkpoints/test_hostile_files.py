"""Every file of every kind of model, replaced by what it should not be: refused with its name and the way out, at once.

Zips that are put up: tests/web/test_uploads.py; random damage: test_fuzz.py.
"""

import json
import os
import random
import shutil
import struct
import sys
import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import torch

pytest.importorskip("transformers")

from tests import tiny
from tests.checkpoints import folders
from tests.checkpoints import test_pair_of_vocabularies as pairs
from tests.checkpoints.test_state_dict import nano_gpt
from tests.parity.test_relatives import relative
from vizformer.checkpoints import load, save
from vizformer.errors import CheckpointError, VizformerError

WEIGHTS = (".safetensors", ".bin", ".pt")
WAY_OUT = (
    "opy ",
    "lfs pull",
    "ownload it again",
    "Put the file itself",
    "Ask its author",
    "Save the state dict",
    "Save it again: torch.save",
    "Choose",
    "Take",
    "Give the",
    "index",
    "Leave only",
    "write it again",
    "tokenizers`",
)


def in_bin(folder: Path) -> Path:
    torch.save(folders.tensors(folder), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    return folder


def in_shards(folder: Path) -> Path:
    weights = folders.tensors(folder)
    names, places = sorted(weights), {}
    for number, part in enumerate((names[:8], names[8:])):
        folders.save_tensors(folder, {name: weights[name] for name in part})
        (folder / "model.safetensors").rename(folder / f"part{number}.safetensors")
        places |= dict.fromkeys(part, f"part{number}.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    return folder


def bare(folder: Path) -> Path:
    folder.mkdir()
    torch.save({"model": nano_gpt(), "model_args": {"n_head": 4, "activation": "gelu"}}, folder / "ckpt.pt")
    return folder


def ours(folder: Path) -> Path:
    save(tiny.checkpoint("decoder-only", n_decoder_layers=1), folder)
    return folder


def variant(folder: Path) -> Path:
    (folders.llama(folder, num_hidden_layers=1) / "model.safetensors").rename(folder / "model.fp16.safetensors")
    return folder


MADE: dict[str, Callable[[Path], Path]] = {
    "vocab.json": lambda folder: folders.gpt2(folder, n_layer=1),
    "vocab.txt and .bin": lambda folder: in_bin(folders.bert(folder, num_hidden_layers=1)),
    "tokenizer.json, a variant": variant,
    "shards": lambda folder: in_shards(folders.qwen2(folder, num_hidden_layers=1)),
    "pieces": lambda folder: relative(folder, "XLMRoberta", num_hidden_layers=1),
    "two vocabularies": lambda folder: pairs.marian(folder)[0],
    "bare": bare,
    "ours": ours,
}


@pytest.fixture(scope="module", params=MADE)
def original(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = MADE[request.param](tmp_path_factory.mktemp("hostile") / "mine")
    (folder / "sizes.json").unlink(missing_ok=True)
    load(folder)
    return folder


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "mine"))


def refused(folder: Path, file: str, said: str = "(?s).") -> None:
    """In words that a terminal can show: the file by its name, what is wrong, what to do."""
    start = time.process_time()
    with pytest.raises(CheckpointError, match=said) as caught:
        load(folder)
    text = str(caught.value)
    assert time.process_time() - start < 5
    assert text.isprintable()
    assert len(text) < 1500
    assert file in text, text
    assert any(way in text for way in WAY_OUT), text


def each(folder: Path) -> list[Path]:
    return sorted(file for file in folder.iterdir() if file.name not in ("README.md",))


LFS = (
    b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daa\nsize 9\n"
)
PAGES = (
    b"<!DOCTYPE html>\n<html><head><title>404</title>",
    b"\n  <html lang=en>Please sign in",
    b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>AccessDenied</Code></Error>',
)


@pytest.mark.sample(4)
def test_pointers_and_pages(folder: Path) -> None:
    """A Git LFS pointer, an error page: under the name of any file that is read."""
    for file in each(folder):
        content = file.read_bytes()
        file.write_bytes(LFS)
        refused(folder, file.name, "is a Git LFS pointer.*git lfs pull")
        for page in PAGES:
            file.write_bytes(page)
            refused(folder, file.name, "is a web page, probably an error message")
        file.write_bytes(content)
    load(folder)


def test_files_that_end_too_early(folder: Path) -> None:
    """Also by one byte; lists of words, and of SentencePiece's messages, have no end that could be missed."""
    for file in each(folder):
        content = file.read_bytes()
        if file.suffix == ".json":
            content = content.rstrip()
        for n in {0, 1, 7, 8, 9, len(content) // 2, len(content) - 1}:
            file.write_bytes(content[: min(n, len(content) - 1)])
            if file.suffix == ".txt" or (file.suffix in (".spm", ".model") and n > 9):
                opens_or_not(folder)
            else:
                refused(folder, file.name.split(".")[0])
        file.write_bytes(content)
    load(folder)


def opens_or_not(folder: Path) -> None:
    """Either is right, but nothing else."""
    with suppress(VizformerError):
        load(folder)


def test_what_is_no_file(folder: Path, tmp_path: Path) -> None:
    """A link that leads out, a link to itself, a folder, a pipe that nobody writes to: reading it would never end."""
    for file in each(folder):
        outside = tmp_path / f"outside-{file.name}"
        file.rename(outside)
        file.symlink_to(outside)
        refused(folder, file.name, "is a link that leads out of mine")
        file.unlink()
        file.symlink_to(file)
        refused(folder, file.name, "lacks")
        file.unlink()
        file.mkdir()
        refused(folder, file.name, "is not a file")
        file.rmdir()
        if sys.platform != "win32":
            os.mkfifo(file)
            refused(folder, file.name, "is not a file")
            file.unlink()
        outside.rename(file)
    load(folder)


def test_json_that_is_deep_or_large_or_odd(folder: Path) -> None:
    """Brackets by the hundred thousand, numbers of 5000 digits, halves of characters, 65 MiB of nothing."""
    for file in each(folder):
        if file.suffix != ".json":
            continue
        content = file.read_bytes()
        for hostile in (
            b"[" * 100_000,
            b'{"a":' * 100_000,
            b"9" * 5000,
            b'{"a": ' + b"9" * 5000 + b"}",
            b"\xff{}",
            b"null",
            b"[]",
            b'"x"',
        ):
            file.write_bytes(hostile)
            refused(folder, file.name.split(".")[0])
        with file.open("wb") as large:
            large.truncate(65 * 2**20)  # no disk is used
        refused(folder, file.name, "(bytes; at most|cannot be used)")
        file.write_bytes(content)
    load(folder)


def weights(folder: Path) -> list[Path]:
    return [file for file in each(folder) if file.name.endswith(WEIGHTS)]


def header(entries: dict[str, object], body: int) -> bytes:
    text = json.dumps(entries).encode()
    return struct.pack("<Q", len(text)) + text + b"\0" * body


def entry(*offsets: int, shape: int = 16, dtype: str = "F32") -> dict[str, object]:
    return {"dtype": dtype, "shape": [shape], "data_offsets": list(offsets)}


LIES = [
    struct.pack("<Q", 2**64 - 1) + b"{}",
    struct.pack("<Q", 2**40) + b"{}" + b" " * 100,
    header({"a": entry(0, 64), "b": entry(0, 64)}, 64),  # two in one place
    header({"a": entry(0, 64), "b": entry(96, 160)}, 160),  # a hole
    header({"a": entry(64, 0)}, 64),
    header({"a": entry(0, 64, shape=17)}, 64),
    header({"a": entry(0, 64, dtype="F4")}, 64),
    header({"a": entry(0, 64)}, 100),  # more than it says
    header({"a": {**entry(0, 64), "shape": [2**62, 4]}}, 64),
    header({"a": {**entry(0, 64), "shape": [-4, -4]}}, 64),
    header({"a": None}, 64),
]


def test_headers_that_lie(folder: Path) -> None:
    for file in weights(folder):
        if file.suffix == ".safetensors":
            content = file.read_bytes()
            for lie in LIES:
                file.write_bytes(lie)
                refused(folder, file.name, "cannot be read|belong to different models|index")
            file.write_bytes(content)


def test_compressed_archives(folder: Path) -> None:
    """What PyTorch writes is never compressed; a bomb would be."""
    for file in weights(folder):
        if file.suffix != ".safetensors":
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("archive/data.pkl", b"\0" * 10**7)
            refused(folder, file.name, "VizFormer does not unpack it. Save it again")
            with zipfile.ZipFile(file, "w") as archive:
                archive.writestr("archive/data.pkl", b"\0" * (64 * 2**20 + 1))
            refused(folder, file.name, "is encrypted or too large")


@pytest.mark.sample(1)
@pytest.mark.slow
def test_flipped_bits(folder: Path) -> None:
    """Every bit of the first bytes, many of the rest of the header: it opens, or says why not."""
    dice = random.Random(4)
    for file in weights(folder):
        content = bytearray(file.read_bytes())
        for at in [*range(12 * 8), *(dice.randrange(8 * min(len(content), 3000)) for _ in range(60))]:
            content[at // 8] ^= 1 << at % 8
            file.write_bytes(content)
            opens_or_not(folder)
            content[at // 8] ^= 1 << at % 8
        file.write_bytes(content)
    load(folder)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_are_none(folder: Path, value: float) -> None:
    from safetensors.torch import load_file, save_file

    file = weights(folder)[0]
    if file.suffix == ".safetensors":
        tensors = load_file(file)
        name = next(name for name in sorted(tensors) if tensors[name].is_floating_point())
        tensors[name].view(-1)[-1] = value
        save_file(tensors, file, metadata={"format": "pt"})
    else:
        content = torch.load(file, weights_only=True)
        tensors = content.get("model", content)
        name = next(name for name in sorted(tensors) if tensors[name].is_floating_point())
        tensors[name].view(-1)[-1] = value
        torch.save(content, file)
    with pytest.raises(CheckpointError, match=r"NaN or infinite|no finite number") as caught:
        load(folder)
    assert name.removeprefix("bert.") in str(caught.value)


@pytest.mark.parametrize("kind", ["safetensors", "bin"])
@pytest.mark.parametrize(
    "place", ["../outside", "/etc/passwd", "sub/part", "..", ".", "", "c:\\part", "a\0b", "\ud800", "n" * 5000]
)
def test_an_index_that_points_elsewhere(kind: str, place: str, tmp_path: Path) -> None:
    """Also of .bin, and of a variant."""
    usual = {"safetensors": "model.safetensors", "bin": "pytorch_model.bin"}[kind]
    for index in (f"{usual}.index.json", f"{usual}.index.fp16.json"):
        folder = folders.gpt2(tmp_path / index, n_layer=1)
        (folder / "model.safetensors").rename(tmp_path / "outside")
        (folder / index).write_text(json.dumps({"weight_map": {"transformer.wte.weight": place}}))
        with pytest.raises(CheckpointError, match=r"is not the name of a file in this folder|lacks") as caught:
            load(folder)
        assert str(caught.value).isprintable()


def test_an_index_whose_part_is_a_link_out(tmp_path: Path) -> None:
    folder = in_shards(folders.gpt2(tmp_path / "mine", n_layer=1))
    (folder / "part1.safetensors").rename(tmp_path / "part1.safetensors")
    (folder / "part1.safetensors").symlink_to(tmp_path / "part1.safetensors")
    refused(folder, "part1.safetensors", "is a link that leads out of mine")


@pytest.mark.sweep
def test_an_index_that_lists_itself_or_far_too_many_tensors(tmp_path: Path) -> None:
    folder = in_shards(folders.gpt2(tmp_path / "mine", n_layer=1))
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": index.name}}))
    refused(folder, index.name, "cannot be read")
    index.write_text(json.dumps({"weight_map": {f"t{n}": "part0.safetensors" for n in range(3 * 10**5)}}))
    refused(folder, index.name, "does not fit the files it lists.*more")


def test_a_vocabulary_that_disagrees(folder: Path) -> None:
    """One token more than rows in the table of embeddings, in whichever file the tokens are."""
    names = {file.name for file in each(folder)}
    if "tokenizer.json" in names:
        content = json.loads((folder / "tokenizer.json").read_text())
        content["added_tokens"].append(
            {
                "id": 10**5,
                "content": "<more>",
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
        )
        (folder / "tokenizer.json").write_text(json.dumps(content))
    elif "vocab.txt" in names:
        with (folder / "vocab.txt").open("a") as file:
            file.write("".join(f"more{n}\n" for n in range(100)))
    elif "vocab.json" in names:
        content = json.loads((folder / "vocab.json").read_text())
        content |= {f"more{n}": len(content) + n for n in range(100)}
        (folder / "vocab.json").write_text(json.dumps(content))
    else:
        return  # bare weights have no words
    with pytest.raises(CheckpointError, match=r"token ids up to|vocab"):
        load(folder)
