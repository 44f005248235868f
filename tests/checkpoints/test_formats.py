"""Files of weights that other programs read are named for what they are, however they come in."""

import io
import struct
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import pytest
import torch
from safetensors.torch import save_file

from tests.checkpoints.test_state_dict import ANSWERS, nano_gpt, saved
from vizformer.checkpoints import load
from vizformer.checkpoints.bare.derived_tensors import _dtype
from vizformer.checkpoints.files import formats, weights
from vizformer.checkpoints.files.untrusted_folder import Folder
from vizformer.errors import CheckpointError
from vizformer.web.catalogue import local_paths, safe_zip, server_folder, uploads

NUMBERS = bytes(range(1, 255)) * 64
HEADER = struct.pack("<7i", 288, 768, 6, 6, 6, 32_000, 256)
TABLE_END = bytes.fromhex("57fb808b247547db")
# The usual name, how the file begins and goes on, what it is called.
FILES: dict[str, tuple[str, bytes, str]] = {
    "flax": ("flax_model.msgpack", b"\x81\xabtransformer\x82\xa1h\x81\xa10" + NUMBERS, "is a Flax file"),
    "flax of many": ("x.msgpack", b"\xde\x00\x20\xa6params" + NUMBERS, "is a Flax file"),
    "keras": ("tf_model.h5", b"\x89HDF\r\n\x1a\n" + NUMBERS, "is an HDF5 file of Keras or TensorFlow"),
    "tensorflow": ("model.ckpt.index", NUMBERS + TABLE_END, "belongs to a TensorFlow checkpoint"),
    "onnx": ("model.onnx", b"\x08\x08\x12\x07pytorch\x1a\x052.4.0" + NUMBERS, "is an ONNX file"),
    "llama2.c": ("stories15M.bin", HEADER + bytes(4096), "is a file for llama2.c"),
    "llama2.c, narrow": ("stories260K.bin", struct.pack("<7i", 128, 172, 5, 8, 4, -512, 512) + bytes(64), "llama2.c"),
    "llama2.c, newer": ("model.bin", struct.pack("<Ii", 0x616B3432, 1) + HEADER + NUMBERS, "is a file for llama2.c"),
    "gguf": (
        "model.Q4_K_M.gguf",
        b"GGUF\x03\x00\x00\x00" + NUMBERS,
        "is a GGUF file.*VizFormer does not read GGUF.*Open the original",
    ),
    "gguf by another name": ("model.bin", b"GGUF\x03\x00\x00\x00" + NUMBERS, "is a GGUF file"),
    "ggml": ("ggml-model.bin", b"tjgg\x01\x00\x00\x00" + NUMBERS, "is a GGML file"),
    "tflite": ("model.tflite", b"\x1c\x00\x00\x00TFL3" + NUMBERS, "is a TensorFlow Lite file"),
    "numpy": ("weights.npy", b"\x93NUMPY\x01\x00" + NUMBERS, "holds arrays of NumPy"),
}


@pytest.fixture(params=FILES)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_as_a_file_and_as_all_that_a_folder_holds(kind: str, tmp_path: Path) -> None:
    name, content, said = FILES[kind]
    (tmp_path / name).write_bytes(content)
    for source in (tmp_path / name, tmp_path):
        with pytest.raises(CheckpointError, match=said) as caught:
            load(source)
        assert "damaged" not in str(caught.value)
        assert name in str(caught.value)


@pytest.mark.parametrize("name", ["model.pt", "weights.bin", "pytorch_model.bin", "model.ckpt", "model.pth"])
def test_under_a_name_of_pytorch(kind: str, name: str, tmp_path: Path) -> None:
    __, content, said = FILES[kind]
    (tmp_path / name).write_bytes(content)
    for source in (tmp_path / name, tmp_path):
        with pytest.raises(CheckpointError, match=said) as caught:
            load(source)
        assert "damaged" not in str(caught.value)


def test_as_an_upload(kind: str) -> None:
    name, content, said = FILES[kind]
    kept = uploads.Kept()
    with pytest.raises(CheckpointError, match=said):  # refused by its name, or when it is opened
        load(kept.uploads[kept.add([(name, io.BytesIO(content))], 2**20)].folder)
    kept.remove()


def test_beside_weights_that_open_an_upload_is_told_to_leave_it_out() -> None:
    kept = uploads.Kept()
    files = [("model.safetensors", io.BytesIO(b"x")), ("flax_model.msgpack", io.BytesIO(b"\x81\xa1a"))]
    with pytest.raises(CheckpointError, match=r"flax_model.msgpack is no file of a model.*Leave it out"):
        kept.add(files, 2**20)
    kept.remove()


def test_by_path_the_loader_says_what_it_is() -> None:
    for name, __, ___ in FILES.values():
        assert name.lower().endswith((*server_folder.WEIGHTS, *server_folder.OTHERS)), name
    for suffix in server_folder.OTHERS:
        assert formats.by_name([f"model{suffix}"]) is not None, suffix
        assert local_paths._is_weights(f"model{suffix}")
    assert formats.by_name([f"model{suffix}" for suffix in server_folder.WEIGHTS]) is None


def test_what_pytorch_writes_is_taken_for_nothing_else(tmp_path: Path) -> None:
    for zipped in (True, False):
        torch.save(nano_gpt(), tmp_path / "model.pt", _use_new_zipfile_serialization=zipped)
        assert formats.by_content(tmp_path / "model.pt", "model.pt") is None
        assert load(tmp_path / "model.pt", **ANSWERS).report.tensors


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 28, 29])
def test_short_files(n: int, tmp_path: Path) -> None:
    for byte in (0x02, 0x81, 0xDE, 0xDF, 0x08, 0x00):
        (tmp_path / "model.pt").write_bytes(bytes([byte]) * n)
        with pytest.raises(CheckpointError):
            load(tmp_path / "model.pt")


def test_a_tensor_that_cannot_be_read_later_is_damage_of_its_file():
    class Cut:
        def get_tensor(self, key):
            raise ValueError(f"{key} ends early")

    with pytest.raises(CheckpointError, match=r"model\.safetensors.*ends early"):
        weights._read(Cut(), "embedding", "model.safetensors")


def test_what_is_made_of_several_tensors_has_the_widest_of_their_kinds():
    kinds = [weights.Stored("a.pt", (2,), kind, lambda: torch.zeros(2)) for kind in ("float16", "float32", "bfloat16")]
    assert _dtype(kinds) == "float32"
    assert _dtype(kinds[:1]) == "float16"
    assert _dtype([*kinds, weights.Stored("a.pt", (2,), "int8", lambda: torch.zeros(2))]) == "int8"


@pytest.mark.parametrize("file", ["rust_model.ot", "last.ckpt"])
def test_weights_of_a_kind_that_is_not_read_are_named_with_the_way_out(tmp_path, file):
    (tmp_path / file).write_bytes(b"x")
    said = str(weights.no_weights(Folder(tmp_path)))
    assert f"has its weights in {file}, which VizFormer does not read" in said
    assert "save_pretrained" in said


@pytest.mark.parametrize("name", ["model.pth.tar", "last.chkpt", "weights", "w.pt", "pytorch_model.bin", "step.0500"])
@pytest.mark.parametrize("how", ["zip", "legacy", "safetensors"])
def test_what_a_file_begins_with_says_what_it_is(name: str, how: str, tmp_path: Path) -> None:
    """Alone, as all that a folder holds, in the server's folder, by its path and as an upload."""
    folder = tmp_path / "mine"
    folder.mkdir()
    file = folder / name
    if how == "safetensors":
        save_file(nano_gpt(), file)
    else:
        torch.save(nano_gpt(), file, _use_new_zipfile_serialization=how == "zip")
    expected = load(saved(nano_gpt(), tmp_path / "plain.pt"), **ANSWERS).trace(ids=[3, 1]).logits
    content = file.read_bytes()
    place = tmp_path / "put_up"
    place.mkdir()
    packed = BytesIO()
    with ZipFile(packed, "w") as archive:
        archive.writestr(name, content)
    unpacked = [
        place / safe_zip.unpack([(name, BytesIO(content))], place, 10**7),
        tmp_path / "zip" / safe_zip.unpack([("in.zip", packed)], _new(tmp_path / "zip"), 10**7),
    ]
    for source in (file, folder, *unpacked):
        assert torch.equal(load(source, **ANSWERS).trace(ids=[3, 1]).logits, expected)
        assert server_folder._may_be_model(source)
        assert local_paths._problem(source) is None


def _new(folder: Path) -> Path:
    folder.mkdir()
    return folder


@pytest.mark.parametrize(
    "content", [b"", b"text", b"PK\3\4", b"\x80\x02]q\0.", bytes(200), b"PK\3\4" + bytes(22) + b"\5\0\0\0a.npy"]
)
def test_other_beginnings_are_no_weights(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "notes.chkpt"
    file.write_bytes(content)
    assert not server_folder._may_be_model(file)
    assert local_paths._problem(file) is not None
    with pytest.raises(CheckpointError):
        load(file)
    with pytest.raises(CheckpointError, match=r"notes.chkpt is no file of a model"):
        safe_zip.unpack([("notes.chkpt", BytesIO(content))], tmp_path, 10**6)
