"""Files that are small to send and costly to read, written by code: pickles, and tokenizers that explode.

    python -m tests.checkpoints.hostile KIND FOLDER     # opens each and prints what it took, as JSON

That runs in a process of its own (test_costly_files.py): its memory is then what the files took, and a thread beside it
shows how long the interpreter was kept from everybody else.
"""

import base64
import io
import json
import struct
import sys
import threading
import time
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

MEBIBYTE = 2**20
Json = dict[str, Any]

# --- pickles: the object itself, after the two bytes that say the protocol ---


def _text(text: str) -> bytes:
    return b"X" + struct.pack("<I", len(text)) + text.encode()


def _long(number: int) -> bytes:
    size = number.bit_length() // 8 + 1
    return b"\x8a" + bytes([size]) + number.to_bytes(size, "little")


def _storage(numbers: int) -> bytes:
    return b"(" + _text("storage") + b"ctorch\nFloatStorage\n" + _text("0") + _text("cpu") + _long(numbers) + b"tQ"


def _tensor(numbers: int, size: bytes, stride: bytes) -> bytes:
    ending = b"\x89ccollections\nOrderedDict\n)RtR"
    return b"ctorch._utils\n_rebuild_tensor_v2\n(" + _storage(numbers) + b"K\0(" + size + b"t(" + stride + b"t" + ending


OBJECT = b"c__main__\nA\n)\x81"  # of a class that nobody knows


def _doubled(depth: int, members: bytes = b"") -> bytes:
    """A module that holds a module twice, which holds one twice, ...; `members` are those of the innermost one."""
    if depth:
        inner = _doubled(depth - 1, members) + b"q" + bytes([depth])
        members = b"(" + _text("a") + inner + _text("b") + b"h" + bytes([depth]) + b"u"
    return OBJECT + b"}" + _text("_modules") + b"}" + members + b"sb"


PICKLES: dict[str, Callable[[], bytes]] = {
    "bytes counted one by one": lambda: (
        b"ccollections\nCounter\ncbuiltins\nbytearray\n" + _long(2**28) + b"\x85R\x85R."
    ),
    "marks": lambda: b"(" * (12 * MEBIBYTE) + b".",
    "copies of the top": lambda: b"N" + b"2" * (12 * MEBIBYTE) + b".",
    "tuples in tuples": lambda: b"N" + b"\x85" * (12 * MEBIBYTE) + b".",
    "lists in lists": lambda: b"]" * (6 * MEBIBYTE) + b"a" * (6 * MEBIBYTE - 1) + b".",
    "a list of nothing": lambda: b"(" + b"N" * (12 * MEBIBYTE) + b"t.",
    "a number of 16 MB": lambda: b"\x8b" + struct.pack("<i", 2**24) + b"\x7f" * 2**24 + b".",
    "a number in digits": lambda: b"I" + b"9" * 2**23 + b"\n.",
    "notes at high places": lambda: (
        b"}" + b"".join(b"r" + struct.pack("<I", 2**32 - 1 - i) for i in range(10**6)) + b"."
    ),
    "keys that collide": lambda: b"}(" + b"".join(_long(i * (2**61 - 1)) + b"N" for i in range(1, 50_000)) + b"u.",
    "a key that is hashed for ever": lambda: b"N" + b"q\0h\0\x86" * 40 + b"}q\1h\0Ns.",
    "bytes that double": lambda: b"c_codecs\nencode\n" * 40 + _text("ab") + (_text("hex") + b"\x86R") * 40 + b".",
    "a tensor of 4 TB": lambda: b"ctorch\nTensor\n" + _long(2**40) + b"\x85R.",
    "a storage of 4 TB": lambda: b"}" + _text("a") + _storage(2**40) + b"s.",
    "a tensor that wraps around": lambda: b"}" + _text("a") + _tensor(1, _long(2**33) * 2, b"K\0" * 2) + b"s.",
    "a program": lambda: b"cos\nsystem\n" + _text("true") + b"\x85R.",
    "a program in an object": lambda: OBJECT + b"}" + _text("a") + b"cos\nsystem\n" + _text("true") + b"\x85Rsb.",
    "an expression": lambda: b"cbuiltins\neval\n" + _text("1") + b"\x85R.",
    "an object that is called": lambda: OBJECT + b")R.",
    "a found function that is called": lambda: (
        b"cbuiltins\ngetattr\nctorch.hub\nos\n" + _text("system") + b"\x86R" + _text("true") + b"\x85R."
    ),
    "a class with a state": lambda: b"c__main__\nA\n}" + _text("a") + b"Nsb.",
    "objects in objects": lambda: (OBJECT + b"}" + _text("a")) * 70_000 + b"N" + b"sb" * 70_000 + b".",
    "modules that double": lambda: _doubled(20) + b".",
    "modules of many members": lambda: (
        _doubled(14, b"(" + b"".join(_text(f"{i}") + b"N" for i in range(60_000)) + b"u") + b"."
    ),
    "a module in itself": lambda: OBJECT + b"q\0}" + _text("_modules") + b"}" + _text("a") + b"h\0ssb.",
    "a module of a long name": lambda: (
        OBJECT + b"q\0}" + _text("_modules") + b"}(" + (_text("a" * 2**20) + OBJECT) * 8 + b"usb."
    ),
    "objects as keys": lambda: b"}(" + (OBJECT + b"N") * 5_000 + b"u.",
    "a tensor of an object": lambda: b"ctorch._utils\n_rebuild_tensor_v2\n(" + OBJECT + b"K\0))\x89NtR.",
    "a storage of an object": lambda: OBJECT + b"Q.",
    "as many values as are let through": lambda: b"](" + b"N" * (3 * 2**18 - 8) + b"e.",
    "as many marks as are let through": lambda: b"(" * 2**17 + b"t" * 2**17 + b".",
    "half a million marks": lambda: b"(" * (2**19 - 8) + b"t" * (2**19 - 8) + b".",
    "tuples in a key, very deep": lambda: b"}" + b"N" + b"\x85" * 500_000 + b"Ns.",
    "a storage that is in the file, and then is not": lambda: (
        b"}(" + _text("a") + _storage(0) + _text("b") + _tensor(2**40, b"K\1", b"K\1") + b"u."
    ),
    "a tensor with a state": lambda: b"}" + _text("a") + _tensor(0, b"", b"") + _storage(0) + b"K\0))tbs.",
    "a parameter of nothing much": lambda: b"ctorch.nn.parameter\nParameter\n" + _long(2**40) + b"\x85\x81.",
    "a tensor of one number, a trillion times": lambda: b"}" + _text("a") + _tensor(1, _long(2**40), b"K\0") + b"s.",
    "a tensor that is mostly not there": lambda: (
        b"}"
        + _text("a")
        + b"ctorch._utils\n_rebuild_meta_tensor_no_storage\n(ctorch\nfloat32\n("
        + _long(2**40)
        + b"t(K\1t\x89tRs."
    ),
    "a quantised tensor of 4 TB": lambda: (
        b"ctorch._utils\n_rebuild_qtensor\n(" + _storage(0) + b"K\0(" + _long(2**40) + b"t(K\1ttR."
    ),
    "a sparse tensor of 4 TB": lambda: b"ctorch._utils\n_rebuild_sparse_tensor\n)R.",
    "a set that is hashed for ever": lambda: b"cbuiltins\nset\n](" + b"N" + b"q\0h\0\x86" * 40 + b"e\x85R.",
    "sizes by the million": lambda: b"}" + _text("a") + _tensor(1, b"K\1" * 500_000, b"K\1" * 500_000) + b"s.",
    "lists in an object": lambda: OBJECT + b"(" + b"N" * (12 * MEBIBYTE) + b"e.",
}

_MAGIC = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.\x80\x02}q\x00."


def as_legacy(pickle: bytes) -> bytes:
    """As PyTorch wrote files before 1.6."""
    return _MAGIC + b"\x80\x02" + pickle + b"\x80\x02]q\x00."


def as_zip(pickle: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02" + pickle)
        archive.writestr("archive/byteorder", "little")
        archive.writestr("archive/version", "3\n")
    return packed.getvalue()


def as_bare(pickle: bytes) -> bytes:
    return b"\x80\x02" + pickle


# --- tokenizers: what is changed in a harmless one ---


def harmless() -> Json:
    """A tokenizer of a few words."""
    words = ["<unk>", "<s>", "</s>", *"abcdefghijklmnopqrstuvwxyz "]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": {word: id for id, word in enumerate(words)}, "unk_token": "<unk>"},
    }


def _replace(content: str, **pattern: str) -> Json:
    return {"type": "Replace", "pattern": pattern or {"Regex": "."}, "content": content}


def _sequence(name: str, parts: list[Json]) -> Json:
    return {"type": "Sequence", name: parts}


def _split(pattern: str) -> Json:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def _added(n: int, content: str = "<{}>") -> list[Json]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return [{"id": 40 + i, "content": content.format(i), "special": bool(i % 2), **flags} for i in range(n)]


def _template(n: int) -> Json:
    return {
        "type": "TemplateProcessing",
        "pair": [],
        "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}] * n + [{"Sequence": {"id": "A", "type_id": 0}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [1] * 1000, "tokens": ["<s>"] * 1000}},
    }


def _words(n: int, length: int = 1) -> Json:
    words = {f"w{i}" * length: i for i in range(1, n)}
    return {"type": "WordLevel", "unk_token": "<unk>", "vocab": {"<unk>": 0, **words}}


def damaged_charsmap(letter: str = "q") -> str:
    """SentencePiece's table, in which one letter leads out of the array: the library panics at it."""
    away = ord(letter) ^ 0xFF
    units = [(0x100 | away) << 10] + [0] * 0x1FE  # the letter's place is 0x1ff, the first one behind the end
    trie = struct.pack(f"<{len(units)}I", *units)
    return base64.b64encode(struct.pack("<I", len(trie)) + trie + b"x\0").decode()


TOKENIZERS: dict[str, Callable[[], Json]] = {
    "a decoder that multiplies": lambda: {"decoder": _sequence("decoders", [_replace("a" * 10)] * 9)},
    "normalizers that multiply": lambda: {"normalizer": _sequence("normalizers", [_replace("a" * 10)] * 9)},
    "normalizers that double": lambda: {"normalizer": _sequence("normalizers", [_replace("aa", String="a")] * 40)},
    "normalizers inside each other": lambda: {
        "normalizer": _sequence("normalizers", [_sequence("normalizers", [_replace("a" * 60)] * 4)] * 4)
    },
    "5 MB before every text": lambda: {"normalizer": {"type": "Prepend", "prepend": "a" * 5_000_000}},
    "a long replacement": lambda: {"normalizer": _replace("a" * 2_000_000, String="a")},
    "bytes of bytes": lambda: {
        "pre_tokenizer": _sequence(
            "pretokenizers",
            [{"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}] * 20,
        )
    },
    "a pattern that goes back": lambda: {"pre_tokenizer": _split("(a+)+$|(a|aa)+b")},
    "a pattern with many ways": lambda: {"pre_tokenizer": _split("a?" * 30 + "a" * 30)},
    "three repetitions": lambda: {"pre_tokenizer": _split("a*a*a*b")},
    "a normalizer that goes back": lambda: {"normalizer": _replace("b", Regex="(a|a)*c")},
    "a decoder that goes back": lambda: {"decoder": _replace("b", Regex="(.*)*c")},
    "a template of thousands": lambda: {"post_processor": _template(5000)},
    "marks of a thousand tokens": lambda: {"post_processor": _template(30)},
    "800,000 tokens": lambda: {"model": _words(800_000)},
    "a million merges": lambda: {
        "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]] * 1_000_000}
    },
    "200,000 added tokens": lambda: {"added_tokens": _added(200_000)},
    "an added token of 3 MB": lambda: {"added_tokens": _added(1, "x" * 3_000_000)},
    "tokens of 20,000 letters": lambda: {"model": _words(40, 10_000)},
    "a prefix of 1 MB": lambda: {
        "model": {"type": "BPE", "vocab": {"a": 0}, "merges": [], "continuing_subword_prefix": "#" * 1_000_000}
    },
    "words without end": lambda: {
        "model": {
            "type": "WordPiece",
            "vocab": {"<unk>": 0},
            "unk_token": "<unk>",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 2**31,
        }
    },
    "padding to 2^31": lambda: {
        "decoder": _replace("a" * 100),
        "padding": {
            "strategy": {"Fixed": 2**31},
            "direction": "Right",
            "pad_to_multiple_of": None,
            "pad_id": 0,
            "pad_type_id": 0,
            "pad_token": "<unk>",
        },
    },
    "two million lists": lambda: {"truncation": [[]] * 2_000_000},
    "a table that is damaged": lambda: {
        "normalizer": {"type": "Precompiled", "precompiled_charsmap": damaged_charsmap("H")}
    },
    "parts by the thousand": lambda: {"normalizer": _sequence("normalizers", [{"type": "NFC"}] * 100_000)},
    "sequences 200 deep": lambda: {"normalizer": _deep(200)},
}


def _deep(n: int) -> Json:
    part: Json = {"type": "NFC"}
    for _ in range(n):
        part = _sequence("normalizers", [part])
    return part


def tokenizer(change: Json) -> str:
    return json.dumps({**harmless(), **change})


def bare_model(folder: Path) -> Path:
    """Bare weights of nanoGPT, with room for 40 tokens."""
    from safetensors.torch import save_file

    from tests.checkpoints.test_state_dict import nano_gpt

    folder.mkdir(parents=True, exist_ok=True)
    save_file({name: tensor.contiguous() for name, tensor in nano_gpt().items()}, folder / "model.safetensors")
    return folder


# --- measured ---


def measured(read: Callable[[], object]) -> Json:
    """What it said, the seconds of the processor, the longest time the interpreter was kept, and the memory in MiB."""
    import resource

    from vizformer.errors import VizformerError

    def peak() -> float:
        with open("/proc/self/status") as lines:
            return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024

    def used() -> float:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return time.process_time() + children.ru_utime + children.ru_stime

    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    kept, done = [0.0], threading.Event()

    def tick() -> None:
        last = time.process_time()
        while not done.wait(0.005):
            now = time.process_time()  # of this process: what others do on the machine does not count
            kept[0] = max(kept[0], now - last)
            last = now

    watch = threading.Thread(target=tick)
    before, start = peak(), used()
    watch.start()
    try:
        read()
        said = ""
    except VizformerError as error:
        said = str(error)
    except BaseException as error:
        said = f"{type(error).__name__} got out: {error}"
    done.set()
    watch.join()
    apart = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return {"said": said, "seconds": used() - start, "kept": kept[0], "memory": peak() - before, "apart": apart}


def main(kind: str, folder: Path) -> None:
    from vizformer.checkpoints import load
    from vizformer.checkpoints.files.weights import load_torch

    first = folder / "first.pt"
    first.write_bytes(as_zip(b"}."))
    load_torch(first, first.name)  # imports what it needs
    found = {}
    if kind == "pickles":
        for name, make in PICKLES.items():
            for wrap in (as_zip, as_legacy, as_bare):
                file = folder / "model.pt"
                file.write_bytes(wrap(make()))
                found[f"{name}, {wrap.__name__[3:]}"] = measured(partial(load, file))
    else:
        model = bare_model(folder / "mine")
        for name, change in TOKENIZERS.items():
            (model / "tokenizer.json").write_text(tokenizer(change()))
            found[name] = measured(lambda: load(model, n_heads=4, activation="gelu"))
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
