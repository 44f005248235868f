"""Files of weights: those of PyTorch and safetensors by their first bytes, those of other programs named in the refusal."""

import re
import struct
from collections.abc import Iterable
from pathlib import Path

from vizformer.checkpoints.files.untrusted_folder import Folder, shown
from vizformer.errors import CheckpointError
from vizformer.messages import Message
from vizformer.word_tables import words_of

_TABLE_END = bytes.fromhex("57fb808b247547db")  # of TensorFlow's tables of tensors (and LevelDB's)
_GGML = (b"lmgg", b"fmgg", b"tjgg", b"algg")
# By the end of the name, which is all that is known of an upload or a hub's file before it is here.
_NAMES = (
    (re.compile(r"\.gguf"), "gguf"),
    (re.compile(r"\.(ggml|ggjt)"), "ggml"),
    (re.compile(r"\.msgpack"), "flax"),
    (re.compile(r"\.(h5|hdf5|keras)"), "keras"),
    (re.compile(r"\.onnx|\.onnx_data"), "onnx"),
    (re.compile(r"\.ckpt(-\d+)?\.(index|meta|data-\d{5}-of-\d{5})"), "tensorflow"),
    (re.compile(r"\.pb"), "tensorflow"),
    (re.compile(r"\.tflite"), "tflite"),
    (re.compile(r"\.np[yz]"), "numpy"),
)


BEGINNING = 128  # bytes of a file that say what wrote it
_LONGEST_HEADER = 2**24  # of safetensors
_LEGACY = bytes.fromhex("80028a0a6cfc9c46f9206aa850192e")  # what torch.save began with before PyTorch 1.6
_RECORD = re.compile(rb"[^/]+/(\.?data(/\d+|\.pkl)|constants\.pkl|version|\.format_version|byteorder|code/.+)")
_NEVER = (".json", ".txt", ".md", ".toml", ".yaml", ".yml", ".csv", ".tsv", ".py", ".ipynb", ".log", ".model", ".spm")
_MOST = 64  # files of a folder that are looked into


def written_by(start: bytes) -> str:
    """The format of weights by their first bytes: "safetensors", "torch", or "" for anything else."""
    if start[8:9] == b"{" and 2 <= int.from_bytes(start[:8], "little") <= _LONGEST_HEADER:
        return "safetensors"
    if start.startswith(_LEGACY):
        return "torch"
    first = start[30 : 30 + int.from_bytes(start[26:28], "little")] if start.startswith(b"PK\3\4") else b""
    return "torch" if _RECORD.fullmatch(first) else ""


def writer_of(path: Path) -> str:
    """The format of a file by its first bytes, as `written_by`; "" where it cannot be read."""
    try:
        with path.open("rb") as file:
            return written_by(file.read(BEGINNING))
    except OSError:
        return ""


def weights_in(folder: Folder) -> list[str]:
    """The files of a folder that hold weights by their first bytes, whatever they are called."""
    found: list[str] = []
    for name in [one for one in folder.names() if not one.startswith(".") and not one.lower().endswith(_NEVER)][:_MOST]:
        try:
            found += [name] if writer_of(folder.file(name)) else []
        except CheckpointError:  # a folder, or a link that leads elsewhere
            continue
    return found


def by_content(path: Path, name: str) -> Message | None:
    """Says what a file is that neither PyTorch nor safetensors wrote, by its first and last bytes; else None."""
    with path.open("rb") as file:
        start = file.read(64)
        size = file.seek(0, 2)
        file.seek(max(0, size - 8))
        end = file.read(8)
    kind = _begins_like(start, size) or ("tensorflow" if end == _TABLE_END else None)
    return None if kind is None else told(kind, name)


def by_name(names: Iterable[str]) -> Message | None:
    """Says what the first of these files is whose name belongs to another program; else None."""
    for name in names:
        for pattern, kind in _NAMES:
            if any(found.end() == len(name) for found in pattern.finditer(name.lower())):
                return told(kind, name)
    return None


def _begins_like(start: bytes, size: int) -> str | None:
    if start.startswith(b"GGUF"):
        return "gguf"
    if start.startswith(_GGML):
        return "ggml"
    if start.startswith(b"\x89HDF\r\n\x1a\n"):
        return "keras"
    if start.startswith(b"\x93NUMPY"):
        return "numpy"
    if start[4:8] == b"TFL3":
        return "tflite"
    if _is_llama2_c(start, size):
        return "llama2.c"
    if len(start) > 3 and start[0] == 8 and start[1] < 32 and start[2] == 0x12 and start[4:5].isalpha():
        return "onnx"  # the first two fields of its message: version, who made it
    is_map = start[:1] and (0x81 <= start[0] <= 0x8F or start[0] in (0xDE, 0xDF))  # (an empty map begins like a pickle)
    first = start[{0xDE: 3, 0xDF: 5}.get(start[0], 1) :][:1] if is_map else b""
    return "flax" if first and (0xA1 <= first[0] <= 0xBF or first[0] == 0xD9) else None


def _is_llama2_c(start: bytes, size: int) -> bool:
    """Seven whole numbers, then nothing but weights; newer files begin with a mark."""
    if start.startswith(b"24ka"):
        return True
    if len(start) < 28 or size % 4:
        return False
    width, inner, layers, heads, kv_heads, vocabulary, longest = struct.unpack("<7i", start[:28])
    plausible: bool = (
        8 <= width <= 65_536
        and 8 <= inner <= 524_288
        and 1 <= layers <= 512
        and 1 <= kv_heads <= heads <= 512
        and width % heads == 0
        and heads % kv_heads == 0
        and 1 <= abs(vocabulary) <= 2**22
        and 1 <= longest <= 2**22
    )
    return plausible


def told(kind: str, name: str) -> Message:
    """Why a file of this kind does not open, and what does."""
    return Message(_TEXTS[kind], {"file": shown(name)})


_TEXTS = words_of(__file__)
