"""Numbers from somebody else's program: read as they were written, or refused before they cost anything."""

import contextlib
import io
import json
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save

from vizformer.analysis.other_programs import submitted_steps
from vizformer.analysis.other_programs.submitted_steps import MAX_BYTES, MAX_TEXT_BYTES, read_file, read_text
from vizformer.errors import TraceError

X = torch.tensor([[0.25, -torch.inf], [1.5e-3, -7.0]])


def npz(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def test_a_tensor_as_pytorch_and_numpy_print_it():
    for text in (
        str(X),
        str(X.clone().requires_grad_()),
        str(X.numpy()),
        repr(X.numpy()),
        repr(X.double()),
        f"weights = {X.tolist()}",
    ):
        found = read_text(text, "encoder.0.self.scores")
        np.testing.assert_allclose(found["encoder.0.self.scores"], X.numpy(), atol=1e-4)
    assert read_text("tensor([1, 2, 3])", "x")["x"].tolist() == [1, 2, 3]
    assert read_text("tensor([])", "x")["x"].shape == (0,)


def test_json_with_names():
    found = read_text(json.dumps({"a": [[1, 2.5]], "b": [1e-9]}))
    assert found["a"].tolist() == [[1.0, 2.5]]
    assert read_text('{"a": [-Infinity, NaN]}')["a"][0] == -np.inf


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64])
def test_safetensors_of_every_kind_of_number(dtype):
    tensors = {"a": torch.arange(6).reshape(2, 3).to(dtype), "b": torch.zeros(1, 2, 2, dtype=dtype)}
    found = read_file("steps.safetensors", save(tensors, {"made": "here"}))
    assert {name: x.shape for name, x in found.items()} == {"a": (2, 3), "b": (1, 2, 2)}
    np.testing.assert_array_equal(found["a"], np.arange(6).reshape(2, 3))


def test_npz():
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    found = read_file("steps.npz", npz(**{"encoder.0.input": values, "turned": np.asfortranarray(values)}))
    np.testing.assert_array_equal(found["encoder.0.input"], values)
    np.testing.assert_array_equal(found["turned"], values)


def header(entry, body=b""):
    text = json.dumps(entry).encode()
    return struct.pack("<Q", len(text)) + text + body


def zipped(name, content, kind=zipfile.ZIP_DEFLATED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", kind) as archive:
        archive.writestr(name, content)
    return file.getvalue()


def npy(shape, descr="<f4", body=b""):
    text = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + body


HOSTILE = {
    "huge header": ("a.safetensors", struct.pack("<Q", 2**62) + b"{}"),
    "too short": ("a.safetensors", b"\x00"),
    "huge shape": ("a.safetensors", header({"a": {"dtype": "F32", "shape": [2**39, 2**39], "data_offsets": [0, 4]}})),
    "beyond the end": ("a.safetensors", header({"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}}, b"1234")),
    "backwards": ("a.safetensors", header({"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 0]}}, b"1234")),
    "negative": ("a.safetensors", header({"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}, b"1234")),
    "no table": ("a.safetensors", header([1, 2])),
    "deep header": ("a.safetensors", struct.pack("<Q", 100_000) + b"[" * 100_000),
    "true for one": (
        "a.safetensors",
        header({"a": {"dtype": "F32", "shape": [True], "data_offsets": [0, 4]}}, b"1234"),
    ),
    "unknown type": ("a.safetensors", header({"a": {"dtype": "F8", "shape": [1], "data_offsets": [0, 1]}}, b"1")),
    "nothing of huge sides": (
        "a.safetensors",
        header({"a": {"dtype": "F32", "shape": [0, 2**39, 2**39], "data_offsets": [0, 0]}}),
    ),
    "many names for the same bytes": (
        "a.safetensors",
        header(
            {f"a{i}": {"dtype": "BF16", "shape": [2**20], "data_offsets": [0, 2**21]} for i in range(200)}, bytes(2**21)
        ),
    ),
    "a header of many megabytes": ("a.safetensors", header({"a" * (MAX_TEXT_BYTES + 1): {}})),
    "zip bomb": ("a.npz", zipped("a.npy", b"\0" * 60_000_000)),
    "lzma": ("a.npz", zipped("a.npy", npy((1,), body=b"1234"), zipfile.ZIP_LZMA)),
    "no zip": ("a.npz", b"hello"),
    "npy of a terabyte": ("a.npz", zipped("a.npy", npy((2**40,)))),
    "negative npy": ("a.npz", zipped("a.npy", npy((-1,)))),
    "objects": ("a.npz", zipped("a.npy", npy((1,), "|O", b"x"))),
    "text": ("a.npz", zipped("a.npy", npy((1,), "<U4", b"x" * 16))),
    "code in the header": ("a.npz", zipped("a.npy", npy("__import__('os')"))),
    "deep npy header": ("a.npz", zipped("a.npy", npy("(" * 5000))),
    "deep json": ("a.json", b"[" * 500_000),
    "deep names": ("a.json", b'{"a":' * 100_000),
    "a word": ("a.json", b'{"a": ["x"]}'),
    "huge integer": ("a.json", b'{"a": [' + b"9" * 6000 + b"]}"),
    "wide integer": ("a.json", b'{"a": [' + b"9" * 400 + b"]}"),
    "ragged": ("a.json", b'{"a": [[1, 2], [3]]}'),
    "nothing": ("a.json", b"{}"),
    "not utf-8": ("a.json", b"\xff\xfe{}"),
    "pickle": ("a.pt", b"\x80\x04."),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_what_is_hostile_is_refused_at_little_cost(case):
    name, content = HOSTILE[case]
    tracemalloc.start()
    with pytest.raises(TraceError):
        read_file(name, content)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 6 * MAX_BYTES


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", b'{"a": "' + b"x" * (MAX_BYTES - 64) + "😀".encode() + b'"}'),
        ("a.json", b'{"a": [' + b"1," * 2_000_000 + b"1]}"),
        ("a.json", b'{"a": {' + b'"":{},' * 600_000 + b'"b":1}}'),
        ("a.safetensors", header(dict.fromkeys(map(str, range(300_000)), 0))),
    ],
    ids=["a long text with an emoji", "numbers", "objects", "names in a header"],
)
def test_json_that_would_grow_is_not_parsed(name, content):
    tracemalloc.start()
    try:
        with pytest.raises(TraceError):
            read_file(name, content)
        assert tracemalloc.get_traced_memory()[1] < 12 * 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no tensor in this text"),
        ("tensor([[0.1, ..., 0.2]])", "dots in place"),
        ("[[1, 2], [3]]", "different lengths"),
        ("[1, import, 2]", "among the numbers"),
        ("[1, f(2)]", "among the numbers"),
        ("[" * 100_000, "too many brackets"),
        ("[" + "1" * 100_000 + "x", "among the numbers"),  # each digit is looked at once, not once for every start
        ("[" + "1." * 50_000 + "x", "among the numbers"),
        ("[1, 2", "no tensor in this text"),
    ],
)
def test_text_that_is_no_tensor(text, words):
    with pytest.raises(TraceError, match=words):
        read_text(text, "x")


def test_a_printed_tensor_needs_a_name():
    with pytest.raises(TraceError, match="does not say which step"):
        read_text("tensor([1.])")


def test_too_much_is_refused_unread(monkeypatch):
    monkeypatch.setattr(submitted_steps, "MAX_TEXT_BYTES", 10)
    with pytest.raises(TraceError, match="more than is read"):
        read_text("[1, 2, 3, 4, 5, 6]", "x")
    with pytest.raises(TraceError, match="more than is read"):
        read_file("a.npz", b"\0" * (MAX_BYTES + 1))
    monkeypatch.setattr(submitted_steps, "MAX_WORDS", 10)
    monkeypatch.setattr(submitted_steps, "MAX_BRACKETS", 3)
    monkeypatch.setattr(submitted_steps, "MAX_TEXT_BYTES", 2**20)
    assert read_text("[[1, 2], [3, 4]]", "x")["x"].size == 4
    for text in ("[" + "1 " * 11 + "]", "a " * 12, "[[], [], []]", '{"a": [[1], [2], [3]]}'):
        with pytest.raises(TraceError, match="Of a text at most 3 rows and 10 numbers"):
            read_text(text, "x")
    monkeypatch.setattr(submitted_steps, "MAX_NAMES", 2)
    with pytest.raises(TraceError, match="more than 2 names"):
        read_file("a.npz", npy_of_three())


def npy_of_three():
    return npz(a=np.zeros(1), b=np.zeros(1), c=np.zeros(1))


@given(st.text(max_size=200))
@pytest.mark.sweep
def test_any_text_is_read_or_refused(text):
    with contextlib.suppress(TraceError):
        read_text(text, "x")


@given(st.sampled_from(["safetensors", "npz", "json"]), st.binary(max_size=400))
def test_any_bytes_are_read_or_refused(kind, content):
    with contextlib.suppress(TraceError):
        read_file(f"a.{kind}", content)
