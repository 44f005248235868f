"""Weights that do not have the usual name: the only ones in a folder open, a choice is left to people."""

import json
import shutil
from pathlib import Path

import pytest
import torch

pytest.importorskip("transformers")

from tests.checkpoints import folders
from vizformer.checkpoints import load
from vizformer.checkpoints.files import hub
from vizformer.checkpoints.files.finding import choose
from vizformer.errors import CheckpointError

IDS = torch.tensor([[5, 6, 7]])
MODEL = "model.safetensors"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folders.gpt2(tmp_path_factory.mktemp("made") / "gpt2", n_layer=1)


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "mine"))


def same(folder: Path, original: Path, file: str) -> None:
    """It opens as the original does, and the report says from which file."""
    found, expected = load(folder), load(original)
    torch.testing.assert_close(found.model(IDS), expected.model(IDS), rtol=0, atol=0)
    assert any(f'"{file}", the only ones there' in str(note) for note in found.report.assumptions)
    assert not any("only ones" in str(note) for note in expected.report.assumptions)


@pytest.mark.parametrize(
    "name", ["model.fp16.safetensors", "pytorch_model.safetensors", "diffusion.safetensors", "my model-v2.safetensors"]
)
def test_one_file_of_any_name(folder: Path, original: Path, name: str) -> None:
    (folder / MODEL).rename(folder / name)
    (folder / "training_args.bin").write_bytes(b"x")
    (folder / "pytorch_model.fp32.bin").write_bytes(b"x")  # the other form of the same, which is not read then
    same(folder, original, name)


@pytest.mark.parametrize("name", ["weights.pt", "pytorch_model.fp16.bin", "consolidated.00.pth"])
@pytest.mark.parametrize("within", ["", "model_state_dict"])
def test_one_file_of_pytorch(folder: Path, original: Path, name: str, within: str) -> None:
    """Also as trainings save it, the state dict among other things."""
    weights = folders.tensors(folder)
    torch.save({within: weights, "epoch": 3} if within else weights, folder / name)
    (folder / MODEL).unlink()
    (folder / "optimizer.pt").write_bytes(b"x")
    (folder / "rng_state_0.pth").write_bytes(b"x")
    same(folder, original, name)


def in_parts(folder: Path, variant: str) -> str:
    """Two shards and their index, as `save_pretrained(variant=)` writes them; the index."""
    weights = folders.tensors(folder)
    names = sorted(weights)
    places = {}
    for number, part in enumerate((names[:5], names[5:]), 1):
        folders.save_tensors(folder, {name: weights[name] for name in part})
        file = f"model-{number:05}-of-00002.{variant}safetensors"
        (folder / MODEL).rename(folder / file)
        places |= dict.fromkeys(part, file)
    index = f"model.safetensors.index.{variant}json"
    (folder / index).write_text(json.dumps({"weight_map": places}))
    return index


def test_a_variant_in_parts(folder: Path, original: Path) -> None:
    index = in_parts(folder, "fp16.")
    same(folder, original, index)
    names = sorted(file.name for file in folder.iterdir())
    needed = hub.needed("a/b", names)
    assert [name for name in needed if "model" in name] == [
        index,
        "model-00001-of-00002.fp16.safetensors",
        "model-00002-of-00002.fp16.safetensors",
    ]
    (folder / index).unlink()
    with pytest.raises(CheckpointError, match=r'"model-00001-of-00002.fp16.safetensors", a part.*no index'):
        load(folder)


def test_several_are_named_and_none_is_taken(folder: Path) -> None:
    for name in ("model.fp16.safetensors", "model.fp32.safetensors"):
        shutil.copy(folder / MODEL, folder / name)
    usual = load(folder)
    assert not any("only ones" in str(note) for note in usual.report.assumptions)
    (folder / MODEL).unlink()
    said = r'mine holds several files of weights: "model.fp16.safetensors", "model.fp32.safetensors".*Leave only one'
    with pytest.raises(CheckpointError, match=said):
        load(folder)
    with pytest.raises(CheckpointError, match="several files of weights"):
        hub.needed("a/b", sorted(file.name for file in folder.iterdir()))


def test_parts_of_one_variant_beside_the_whole_of_another(folder: Path) -> None:
    shutil.copy(folder / MODEL, folder / "whole.safetensors")
    in_parts(folder, "fp16.")
    with pytest.raises(CheckpointError, match=r"several.*model.safetensors.index.fp16.json.*whole.safetensors"):
        load(folder)


def test_what_is_no_weights() -> None:
    beside = ["training_args.bin", "optimizer.pt", "scheduler.pt", "rng_state.pth", "openvino_model.bin", "tf_model.h5"]
    assert choose("x", ["config.json", *beside]) is None
    assert choose("x", ["config.json", *beside, "own.bin"]) == "own.bin"
    assert choose("x", [*beside, "pytorch_model.bin", "own.safetensors"]) == "pytorch_model.bin"


@pytest.mark.parametrize("with_config", [False, True])
def test_an_adapter_is_refused_with_the_way_out(folder: Path, with_config: bool) -> None:
    (folder / MODEL).rename(folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": "somebody/base"}))
    if not with_config:
        (folder / "config.json").unlink()
    said = r'mine is an adapter \(LoRA\).*"somebody/base"\. Put adapter_config\.json and'
    with pytest.raises(CheckpointError, match=said):
        load(folder)
    if not with_config:
        with pytest.raises(CheckpointError, match=said):
            load(folder / "adapter_model.safetensors")
    with pytest.raises(CheckpointError, match=r"a/b is an adapter"):
        hub.needed("a/b", [file.name for file in folder.iterdir()])


def test_a_name_that_shows_more_than_it_is(folder: Path) -> None:
    """Control characters in a file's name are shown as what they are."""
    (folder / MODEL).rename(folder / "a\x1b[2J.safetensors")
    assert all(str(note).isprintable() for note in load(folder).report.assumptions)
