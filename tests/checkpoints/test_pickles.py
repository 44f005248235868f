"""What torch.save writes is let through, in both of its formats; archives that could be read in two ways are not."""

import argparse
import collections
import io
import os
import struct
import subprocess
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.checkpoints import hostile
from vizformer.checkpoints import load
from vizformer.checkpoints.files import pickles
from vizformer.checkpoints.files.weights import load_torch
from vizformer.errors import CheckpointError


def trained() -> dict[str, Any]:
    """What a training keeps: weights, optimiser, schedule, counters, the state of the dice."""
    model = nn.TransformerEncoderLayer(8, 2, 16)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 1e-2, total_steps=9)
    model(torch.zeros(2, 3, 8)).sum().backward()
    optimiser.step()
    schedule.step()
    state = {name: value for name, value in schedule.state_dict().items() if not callable(value)}
    return {
        "state_dict": model.state_dict(),
        "optimizer_states": [optimiser.state_dict()],
        "epoch": 3,
        "lr_schedulers": [{k: v for k, v in state.items() if k != "_anneal_func"}],
        "rng": torch.get_rng_state(),
        "hyper_parameters": {"n_heads": 4, "betas": (0.9, 0.98), "name": "我", "sizes": [1, [2, 3]]},
    }


def new() -> dict[str, Any]:
    """Kinds of numbers that the format before PyTorch 1.6 has no storages for."""
    return {str(kind): torch.zeros(2, dtype=kind) for kind in (torch.uint16, torch.uint64, torch.float8_e4m3fn)}


def odd() -> dict[str, Any]:
    """Everything else that `weights_only` takes, and that a file may hold beside its weights."""
    base = torch.arange(24.0)
    parameter = nn.Parameter(torch.ones(2))
    parameter.told = "by hand"
    return {
        "view": base.view(4, 6)[1:3, ::2],
        "shared": base[2:5],
        "transposed": base.view(4, 6).t(),
        "expanded": torch.ones(1).expand(1000),
        "scalar": torch.tensor(3),
        "empty": torch.zeros(0, 5),
        "parameter": parameter,
        "meta": torch.empty(3, 4, device="meta"),
        "conjugate": torch.ones(2) * 1j,
        **{
            str(kind): torch.zeros(2, dtype=kind)
            for kind in (
                torch.float64,
                torch.float16,
                torch.bfloat16,
                torch.int8,
                torch.int64,
                torch.bool,
                torch.complex64,
                torch.uint8,
            )
        },
        "texts": ["a", "", "é" * 300, "🐱"],
        "numbers": [0, -1, 255, 256, 65536, -(2**31), 2**40, -(2**70), 0.5, 1e300],
        "plain": (None, True, False, (), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), [], {}, {1: {2: {3: [()]}}}),
        "keys": {0: 1, "a": 2, ("b", "c"): 3, None: 4, 2.5: 5, -7: 6, (1, 2): 7, torch.float32: 8},
        "ordered": collections.OrderedDict(a=1),
        "counted": collections.Counter("hello"),
        "set": {1, "a"},
        "bytes": b"\0\xff",
        "array": bytearray(b"abc"),
        "size": torch.Size([2, 3]),
        "device": torch.device("cuda", 1),
        "dtype": torch.bfloat16,
        "complex": 1 + 2j,
        "layout": torch.strided,
    }


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
@pytest.mark.parametrize("make", [trained, odd, new, lambda: nn.Linear(2, 3).state_dict(), lambda: [torch.ones(1)]])
def test_what_torch_save_writes_is_read_as_torch_reads_it(tmp_path: Path, make: Any, zipped: bool) -> None:
    if make is new and not zipped:
        return
    file = tmp_path / "model.pt"
    torch.save(make(), file, _use_new_zipfile_serialization=zipped)
    expected = torch.load(file, weights_only=True, map_location="cpu")
    assert str(load_torch(file, file.name)) == str(expected)


@pytest.mark.slow
@pytest.mark.sweep
def test_many_tensors_are_not_too_many(tmp_path: Path) -> None:
    """As many as a large model has with its optimiser's two of each."""
    file, storage = tmp_path / "model.pt", torch.zeros(1)
    torch.save({f"model.layers.{i}.self_attn.weight": storage[:] for i in range(25_000)}, file)
    assert len(load_torch(file, file.name)) == 25_000


def archive(path: Path, *entries: tuple[str, bytes], comment: bytes = b"", behind: bytes = b"") -> Path:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as made:
        for name, content in entries:
            made.writestr(name, content)
        made.comment = comment
    path.write_bytes(packed.getvalue() + behind)
    return path


EMPTY = ("archive/data.pkl", b"\x80\x02}.")


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    ("entries", "more", "said"),
    [
        ([EMPTY, EMPTY], {}, "is there twice"),
        ([EMPTY, ("archive/DATA.PKL", b"\x80\x02N.")], {}, "is there twice"),
        ([("archive/version", b"3")], {}, "no data.pkl"),
        ([EMPTY], {"comment": b"x" * 30}, "not at its end"),
        ([EMPTY], {"behind": b"x" * 30}, "not at its end"),
        ([EMPTY, ("archive/byteorder", b"x" * (17 * 2**20))], {}, "encrypted or too large"),
        ([(EMPTY[0], EMPTY[1] + b"N.")], {}, "behind its end"),
        ([EMPTY, *((f"archive/data/{n:0200}", b"") for n in range(40_000))], {}, "bytes of names"),
    ],
)
@pytest.mark.sample(3)
def test_an_archive_that_torch_save_does_not_write(
    tmp_path: Path, entries: list[tuple[str, bytes]], more: dict[str, bytes], said: str
) -> None:
    file = archive(tmp_path / "model.pt", *entries, **more)
    with pytest.raises(CheckpointError, match=said):
        load_torch(file, file.name)


def test_an_archive_inside_an_archive(tmp_path: Path) -> None:
    """Something before the first part: readers do not agree on where parts begin then."""
    file = archive(tmp_path / "model.pt", EMPTY)
    file.write_bytes(b"PK\3\4" + b"\0" * 60 + file.read_bytes())
    with pytest.raises(CheckpointError, match="not at its end"):
        load_torch(file, file.name)


def test_an_old_file_that_is_a_tar_as_well(tmp_path: Path) -> None:
    """PyTorch would look for a tar first, and unpack it onto the disk."""
    content = bytearray(hostile.as_legacy(b"}.").ljust(512, b"\0"))
    content[148:156] = b" " * 8
    content[148:156] = f"{sum(content):06o}\0 ".encode()
    file = tmp_path / "model.pt"
    file.write_bytes(content)
    with pytest.raises(CheckpointError, match="tar"):
        load_torch(file, file.name)


def test_a_pickle_cut_off_anywhere(tmp_path: Path) -> None:
    file = tmp_path / "model.pt"
    torch.save({"a": torch.ones(3), "b": {"c": [1, "x", (2.5, None)]}}, file, _use_new_zipfile_serialization=False)
    content = file.read_bytes()
    for n in range(1, len(content) - 12, 19):  # (a prime: opcodes and what they take)
        file.write_bytes(content[:n])
        with pytest.raises(CheckpointError):
            load_torch(file, file.name)


def test_a_long_header_of_safetensors(tmp_path: Path) -> None:
    from vizformer.checkpoints.files.weights import open_safetensors

    file = tmp_path / "model.safetensors"
    file.write_bytes(struct.pack("<Q", 17 * 2**20) + b"{" + b" " * (17 * 2**20 - 2) + b"}")
    with pytest.raises(CheckpointError, match="header"):
        open_safetensors(file, file.name)


# --- what used to be read, or might be, and is not ---------------------------------------------------------------


class Named:
    """A class of the author's own."""


class Called:
    def __init__(self, function: Any) -> None:
        self.function = function

    def __reduce__(self) -> tuple[Any, ...]:
        return self.function, ("1",)


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
@pytest.mark.parametrize(
    ("content", "named"),
    [
        ({"model": {"w": torch.ones(2)}, "config": Named()}, "test_pickles.Named"),
        ({"model": {"w": torch.ones(2)}, "args": argparse.Namespace(n_heads=4)}, "argparse.Namespace"),
        (nn.Linear(2, 2), "torch.nn.modules.linear.Linear"),
        *((Called(function), function.__name__) for function in (exec, eval, __import__, os.system, open)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_objects_are_refused_by_name_and_nothing_of_them_is_run(
    tmp_path: Path, content: object, named: str, zipped: bool
) -> None:
    file = tmp_path / "model.pt"
    torch.save(content, file, _use_new_zipfile_serialization=zipped)
    with pytest.raises(CheckpointError, match=rf"holds more than tensors \(\".*{named}.*model.state_dict\(\)"):
        load_torch(file, file.name)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_torchscript_is_refused_with_the_way_out(tmp_path: Path) -> None:
    file = tmp_path / "model.pt"
    torch.jit.script(nn.Linear(2, 2)).save(str(file))
    with pytest.raises(CheckpointError, match=r"is TorchScript.*torch\.jit\.load\('model\.pt'\)\.state_dict\(\)"):
        load_torch(file, file.name)


def test_a_file_that_was_packed_again_opens_once_it_is_written_as_the_refusal_says(tmp_path: Path) -> None:
    file = tmp_path / "weights.pt"
    torch.save({"w": torch.arange(5)}, tmp_path / "plain.pt")
    with zipfile.ZipFile(tmp_path / "plain.pt") as plain, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        for entry in plain.infolist():
            made.writestr(entry.filename, plain.read(entry))
    with pytest.raises(CheckpointError, match=r"torch\.load\('weights\.pt', weights_only=True\)") as refused:
        load_torch(file, file.name)
    assert "damaged" not in str(refused.value)
    torch.save(torch.load(file, weights_only=True), tmp_path / "model.pt")
    assert torch.equal(load_torch(tmp_path / "model.pt", "model.pt")["w"], torch.arange(5))


@pytest.mark.parametrize("bomb", ["data.pkl", "data/0", "version"])
def test_a_zip_that_becomes_large_is_refused_before_anything_is_unpacked(tmp_path: Path, bomb: str) -> None:
    """A gigabyte in a megabyte."""
    file = tmp_path / "model.pt"
    torch.save({"w": torch.zeros(2)}, tmp_path / "small.pt")
    with zipfile.ZipFile(tmp_path / "small.pt") as small, zipfile.ZipFile(file, "w") as made:
        for entry in small.infolist():
            inside = entry.filename.partition("/")[2]
            if inside != bomb:
                made.writestr(entry.filename, small.read(entry))
                continue
            with made.open(zipfile.ZipInfo(entry.filename), "w", force_zip64=True) as content:
                content._compressor = zlib.compressobj(9, zlib.DEFLATED, -15)  # type: ignore[attr-defined]
                content._zinfo.compress_type = zipfile.ZIP_DEFLATED  # type: ignore[attr-defined]
                for _ in range(256):
                    content.write(bytes(2**22))
    assert file.stat().st_size < 2 * 2**20
    with pytest.raises(CheckpointError, match=f"{bomb}.* is compressed.*Save it again"):
        load_torch(file, file.name)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: torch.eye(3).to_sparse(), "_rebuild_sparse_tensor"),
        (lambda: torch.eye(3).to_sparse_csr(), "_rebuild_sparse_tensor"),
        (lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8), "_rebuild_qtensor"),
        (lambda: torch.empty(3, device="meta"), '"w" is no tensor'),
        (lambda: torch.ones(1).expand(2**30), '"w" is no tensor'),
    ],
    ids=["sparse", "compressed rows", "quantised", "meta", "expanded"],
)
@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
def test_tensors_of_another_kind_are_refused_by_name(
    tmp_path: Path, make: Callable[[], torch.Tensor], said: str, zipped: bool
) -> None:
    file = tmp_path / "model.pt"
    torch.save({"w": make()}, file, _use_new_zipfile_serialization=zipped)
    with pytest.raises(CheckpointError, match=said):
        load(file)


def test_where_no_process_can_be_started_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object, **__: object) -> None:
        raise BlockingIOError("no more processes")

    file = tmp_path / "model.pt"
    torch.save({"w": torch.ones(2)}, file)
    monkeypatch.setattr(subprocess, "run", none)
    with pytest.raises(CheckpointError, match="not enough memory"):
        load_torch(file, file.name)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (hostile._storage(26), "26 numbers, which are not in the file"),  # of 4 bytes, in 100
        (b"c_codecs\nencode\n" + hostile._text("ab") + hostile._text("hex") + b"\x86R", "bytes that are made of"),
        (
            b"ctorch._utils\n_rebuild_meta_tensor_no_storage\n(ctorch\nfloat32\n("
            + hostile._long(2**63)
            + b"t(K\1t\x89tR",
            "a tensor larger than any",
        ),
    ],
    ids=["a storage", "bytes", "sizes"],
)
def test_what_a_pickle_may_ask_for_is_counted_in_bytes(asked: bytes, said: str) -> None:
    pickles.check_pickle(b"\x80\x02}" + hostile._text("a") + hostile._storage(25) + b"s.", 100)
    with pytest.raises(pickles.PickleError, match=said):
        pickles.check_pickle(b"\x80\x02}" + hostile._text("a") + asked + b"s.", 100)
