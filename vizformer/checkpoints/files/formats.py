"""Files of weights that other programs read: recognised by their first bytes or their names, and named in the refusal."""

import re
import struct
from collections.abc import Callable, Iterable
from pathlib import Path

from vizformer.checkpoints.files.untrusted_folder import shown
from vizformer.messages import N_, Message

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


def by_content(path: Path, name: str) -> Message | None:
    """What a file is that neither PyTorch nor safetensors wrote, if it can be told; reads its two ends only."""
    with path.open("rb") as file:
        start = file.read(64)
        size = file.seek(0, 2)
        file.seek(max(0, size - 8))
        end = file.read(8)
    kind = _begins_like(start, size) or ("tensorflow" if end == _TABLE_END else None)
    return None if kind is None else _MESSAGES[kind](name)


def by_name(names: Iterable[str]) -> Message | None:
    """What the first of these files is that is known to be another program's."""
    for name in names:
        for pattern, kind in _NAMES:
            if any(found.end() == len(name) for found in pattern.finditer(name.lower())):
                return _MESSAGES[kind](name)
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


def gguf_message(name: str) -> Message:
    return N_(
        "{file} is a GGUF file: its weights are packed for llama.cpp, mostly with a few bits each. Open the original model, "
        "the folder with config.json and model.safetensors; or give the path of the file itself, with a name that ends in "
        ".gguf: LLaMA, Qwen and GPT-2 open in F32, F16, BF16, Q8_0 and Q4_0, with numbers as fine as these are.",
        file=shown(name),
    )


_MESSAGES: dict[str, Callable[[str], Message]] = {
    "gguf": gguf_message,
    "ggml": lambda file: N_(
        "{file} is a GGML file, as older versions of llama.cpp read: its weights are packed, mostly with a few bits "
        "each. Open the original model, the folder with config.json and model.safetensors.",
        file=shown(file),
    ),
    "flax": lambda file: N_(
        "{file} is a Flax file (msgpack), the weights of a model in JAX: only PyTorch's files are read here. A model "
        "of `transformers` opens there with from_pretrained(folder, from_flax=True) up to version 4; save_pretrained() "
        "then writes model.safetensors.",
        file=shown(file),
    ),
    "keras": lambda file: N_(
        "{file} is an HDF5 file of Keras or TensorFlow: only PyTorch's files are read here. A model of "
        "`transformers` opens there with from_pretrained(folder, from_tf=True) up to version 4; "
        "save_pretrained() then writes model.safetensors.",
        file=shown(file),
    ),
    "tensorflow": lambda file: N_(
        "{file} belongs to a TensorFlow checkpoint: only PyTorch's files are read here. Convert it to "
        "PyTorch with the script of the model's authors, or take the model from a hub as model.safetensors.",
        file=shown(file),
    ),
    "tflite": lambda file: N_(
        "{file} is a TensorFlow Lite file: a program with packed weights. Open the model that it was made from, as "
        "PyTorch saves it.",
        file=shown(file),
    ),
    "onnx": lambda file: N_(
        "{file} is an ONNX file: a graph of operations that was exported to be run, in which the layers of the model "
        "have been taken apart. Open the model that it was exported from.",
        file=shown(file),
    ),
    "numpy": lambda file: N_(
        "{file} holds arrays of NumPy. Load them, and save them under the names of a state dict with "
        "safetensors.numpy.save_file.",
        file=shown(file),
    ),
    "llama2.c": lambda file: N_(
        "{file} is a file for llama2.c: a LLaMA's numbers one after the other, without names. Open the model that it "
        "was made from; export.py of llama2.c writes it with config.json (--version -1).",
        file=shown(file),
    ),
}
