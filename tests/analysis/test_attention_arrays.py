"""Attention of other programs: which arrays are read as which heads, what is said of them, what is refused."""

import html
import io
import tracemalloc
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import save

import vizformer as vf
from vizformer.analysis import head_maps
from vizformer.analysis.heads import attention_arrays
from vizformer.analysis.heads.attention_arrays import read_attention
from vizformer.errors import TraceError


def weights(*shape: int, seed: int = 0) -> np.ndarray:
    """Rows that are positive and sum to 1."""
    found = np.random.default_rng(seed).random(shape, dtype=np.float32) + 0.01
    return found / found.sum(-1, keepdims=True)


def npz(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def test_one_array_of_all_layers_in_every_kind_of_file() -> None:
    stored = weights(3, 2, 5, 5)
    for name, content in (
        ("a.npz", npz(maps=stored)),
        ("maps.npy", npy(stored)),
        ("a.safetensors", save({"maps": stored})),
    ):
        (found,) = read_attention(name, content).items()
        assert found[0] == "maps"
        np.testing.assert_array_equal(found[1].weights, stored)
        assert found[1].query_tokens == found[1].key_tokens == ("0", "1", "2", "3", "4")
        assert found[1].notes == ()


def test_an_array_for_each_layer_in_the_order_of_their_numbers() -> None:
    layers = {f"layer.{index}.attention": weights(2, 4, 4, seed=index) for index in (10, 2, 1)}
    (found,) = read_attention("a.safetensors", save(layers)).values()
    assert found.layers == ("layer.1.attention", "layer.2.attention", "layer.10.attention")
    np.testing.assert_array_equal(found.weights[2], layers["layer.10.attention"])


def test_maps_of_other_sizes_are_another_kind_of_attention() -> None:
    given = dict(encoder=weights(2, 3, 5, 5), decoder=weights(2, 3, 4, 4), cross=weights(2, 3, 4, 5))
    found = read_attention("a.npz", npz(**given))
    assert {name: one.shape for name, one in found.items()} == {name: one.shape for name, one in given.items()}
    assert len(read_attention("a.npz", npz(a=weights(3, 5, 5), b=weights(3, 5, 5), c=weights(4, 5)))) == 2
    with pytest.raises(TraceError, match="several kinds of attention: cross, decoder, encoder"):
        vf.view(given)


def test_what_transformers_hands_out() -> None:
    """output_attentions=True: a tuple with [1, heads, n, n] of each layer."""
    layers = tuple(torch.from_numpy(weights(1, 2, 6, 6, seed=i)).bfloat16().requires_grad_() for i in range(3))
    found = vf.view(layers, list("abcdef")).heads
    assert (found.shape, found.key_tokens) == ((3, 2, 6, 6), tuple("abcdef"))
    stacked = vf.view(torch.stack(layers)).heads  # [layers, 1, heads, n, n]
    np.testing.assert_array_equal(stacked.weights, found.weights)


def test_tokens_of_the_file_and_of_the_reader() -> None:
    content = npz(
        maps=weights(1, 2, 3, 4), query_tokens=np.array(["a", "b", "猫"]), key_tokens=np.array([b"1", b"2", b"3", b"4"])
    )
    (found,) = read_attention("a.npz", content).values()
    assert (found.query_tokens, found.key_tokens) == (("a", "b", "猫"), ("1", "2", "3", "4"))
    (found,) = read_attention("a.npz", content, ["x", "y", "z"]).values()
    assert (found.query_tokens, found.key_tokens) == (("x", "y", "z"), ("1", "2", "3", "4"))
    with pytest.raises(TraceError, match="There are 3 queries but 2 tokens for them"):
        read_attention("a.npz", content, ["x", "y"])


def test_rows_that_do_not_sum_to_1_are_said_and_drawn_as_they_are() -> None:
    given = weights(2, 2, 4, 4)
    assert not vf.view(given.astype(np.float16)).heads.notes  # within what half precision keeps
    given[1, 0, 2] *= 0.5
    given[0, 1, 3] = 0
    found = vf.view(given).heads
    first, second = map(str, found.notes)
    assert "1 of 16 rows do not sum to 1, the farthest off is row 2 of layer 1, head 0: 0.5" in first
    assert "1 of 16 rows are 0 throughout" in second
    np.testing.assert_array_equal(found.weights, given)


def test_a_single_stack_of_maps_is_said_to_be_one_layer() -> None:
    assert "taken as the heads of one layer" in str(vf.view(weights(3, 4, 4)).heads.notes[0])
    assert not vf.view(weights(1, 3, 4, 4)).heads.notes
    assert vf.view(weights(4, 4)).heads.shape == (1, 1, 4, 4)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (weights(2, 2, 4, 4) * 3, "numbers go from .* and weights are from 0 to 1"),
        (weights(2, 2, 4, 4) - 0.5, "apply the softmax to the last axis first"),
        (np.full((2, 2, 4, 4), -np.inf), "not finite"),
        (np.full((2, 2, 4, 4), np.nan), "not finite"),
        (weights(2, 3, 2, 4, 4), "3 texts in one batch"),
        (weights(4), "has the shape .4., which is no attention"),
        (np.zeros((2, 0, 4, 4)), "which is no attention"),
        (np.array([["a"]]), "no array of numbers"),
        ([], "which is no attention"),
        ({}, "There is no array in it"),
    ],
    ids=range(10),
)
def test_what_is_no_attention_is_refused_with_its_shape_or_its_numbers(given: object, said: str) -> None:
    with pytest.raises(TraceError, match=said):
        vf.view(given)


class Bomb:
    def __reduce__(self) -> tuple[Any, ...]:
        return (exec, ("raise SystemExit('ran')",))


def header(shape: str, dtype: str = "<f4") -> bytes:
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def zipped(**members: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return file.getvalue()


def growing() -> bytes:
    """200 MiB in a small zip; made when it is asked for, which takes a second."""
    return zipped(a=header("(1, 1, 16384, 16384)") + b"\0" * (200 * 2**20))


def zeros(*shape: int) -> bytes:
    """A small zip of numbers that are one byte each."""
    return npz(a=np.zeros(shape, dtype=bool))


HOSTILE: dict[str, tuple[str, bytes | Callable[[], bytes]]] = {
    "a program": ("a.npy", npy(np.array([Bomb()], dtype=object))),
    "a program among arrays": ("a.npz", zipped(a=npy(np.array([Bomb()], dtype=object)))),
    "more numbers than bytes": ("a.npy", header("(10**6, 10**6)") + b"\0" * 64),
    "a terabyte": ("a.npy", header("(1000000, 1000, 1000)") + b"\0" * 64),
    "sides below 0": ("a.npy", header("(-1, 2, 2)") + b"\0" * 16),
    "a zip that grows": ("a.npz", growing),
    "a hundred groups": ("a.npz", lambda: npz(**{f"a{i}": np.zeros((2, 1, 409 + i, 409), bool) for i in range(100)})),
    "a query for each byte": ("a.npz", lambda: zeros(1, 1, 2**25, 1)),
    "a head for each byte": ("a.npz", lambda: zeros(1, 2**25, 1, 1)),
    "a layer for each byte": ("a.npz", lambda: zeros(2**25, 1, 1, 1)),
    "half a zip": ("a.npz", npz(a=weights(2, 2, 3, 3))[:100]),
    "half a header": ("a.safetensors", save({"a": weights(2, 2, 3, 3)})[:20]),
    "texts alone": ("a.npz", npz(tokens=np.array(["a", "b"]))),
    "texts of another name": ("a.npz", npz(maps=np.array(["a", "b"]))),
    "another kind": ("a.pt", b"PK"),
    "nothing": ("a.npy", b""),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused(name: str) -> None:
    file, content = HOSTILE[name]
    content = content() if callable(content) else content
    tracemalloc.start()
    with pytest.raises(TraceError):
        read_attention(file, content)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 2.2 * attention_arrays.MAX_BYTES  # what is unpacked, and once more while it is put together


@pytest.mark.sweep
def test_what_is_read_takes_little_more_memory_than_what_is_kept() -> None:
    """A row a query: what is said of the sums of the rows is as many numbers as the weights."""
    content = npz(a=np.ones((1, 512, 2**15, 1), np.float16))
    tracemalloc.start()
    (found,) = read_attention("a.npz", content).values()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.weights.nbytes == 4 * 2**24
    assert most < 3.2 * found.weights.nbytes  # the file of half of it, twice, the weights, and labels


def test_tokens_that_are_no_characters_are_shown_as_such() -> None:
    """numpy keeps any number as a character; a browser takes neither half a pair nor what lies above the last one."""
    codes = np.array([[ord("a"), 0xD800], [0xDFFF, ord("b")], [0x110000, 0x2FFFFFFF]], np.uint32)
    for order in "<>":
        tokens = codes.astype(f"{order}u4").view(f"{order}U2").ravel()
        (found,) = read_attention("a.npz", npz(maps=weights(1, 1, 3, 3), tokens=tokens)).values()
        assert found.query_tokens == ("a\ufffd", "\ufffdb", "\ufffd\ufffd")
    assert vf.view(weights(1, 1, 2, 2), ["\ud83d\ude00", "b\ud83d"]).heads.key_tokens == ("😀", "b\ufffd")
    (found,) = read_attention("a.npz", npz(maps=weights(1, 1, 2, 2), tokens=["x" * 10**6, "y"])).values()
    assert found.query_tokens == ("x" * attention_arrays.MAX_CHARACTERS, "y")
    header = b'{"\\ud800":{"dtype":"F32","shape":[1,1],"data_offsets":[0,4]}}'
    content = len(header).to_bytes(8, "little") + header + np.float32(1).tobytes()
    assert list(read_attention("a.safetensors", content)) == ["\ufffd"]


def test_a_file_that_is_too_large_is_refused_with_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention_arrays, "MAX_BYTES", 3 << 20)
    with pytest.raises(TraceError, match="larger than 3 MB"):
        read_attention("a.npz", bytes((3 << 20) + 1))


def test_too_many_numbers_are_refused_before_they_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention_arrays, "MAX_NUMBERS", 100)
    for given in (weights(2, 2, 6, 6), [weights(2, 5, 5), weights(2, 5, 5), weights(2, 5, 5)]):
        with pytest.raises(TraceError, match="Hand in fewer layers"):
            vf.view(given)


def test_a_view_is_a_file_of_its_own_and_shows_itself_in_a_notebook(tmp_path: Any) -> None:
    shown = vf.view(weights(2, 2, 3, 3) * 0.9, ["<b>", "猫", '"'])
    shown.save(tmp_path / "maps.html")
    page = (tmp_path / "maps.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "<b>" not in page
    assert html.unescape(shown._repr_html_().split('srcdoc="')[1].split('" style')[0]) == page
    inside = shown._repr_html_()
    assert "do not sum to 1" in inside
    assert inside.count("<iframe") == 1
    assert "vf" in vf.view(weights(2, 2, 3, 3), picture="lines").html


def test_masked_cells_of_a_view_are_masked_as_on_the_pages() -> None:
    trace = vf.load("stories").trace("The cat sat.")
    found = vf.view(trace, kind="decoder")
    n = found.heads.shape[2]
    np.testing.assert_array_equal(found.heads.blocked(), 2 * np.triu(np.ones((n, n)), 1))
    assert '"reasons"' in found.html
    seen = head_maps(trace, "decoder").weights
    alone = vf.view(list(seen))  # without the trace nobody says why they are 0
    np.testing.assert_array_equal(alone.heads.reasons, found.heads.blocked())
    seen[1, 2, 0, 3] = 0.5  # one head sees it
    assert vf.view(seen).heads.reasons is None
    assert not vf.view(vf.load("zh-en").trace("我有一只猫。"), kind="cross").heads.blocked().any()
