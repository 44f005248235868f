"""Attention of other programs: which arrays are read as which heads, what is said of them, what is refused."""

import html
import io
import json
import tracemalloc
import zipfile
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import save
from transformers import BartConfig, BartForConditionalGeneration, GPT2Config, GPT2LMHeadModel

import vizformer as vf
from vizformer.analysis import head_maps
from vizformer.analysis.other_programs import attention_arrays
from vizformer.analysis.other_programs.attention_arrays import PAGE, Limits, Tokens, attention_groups
from vizformer.analysis.other_programs.attention_files import read_attention
from vizformer.analysis.other_programs.attention_outputs import collect
from vizformer.components import attention
from vizformer.errors import TraceError


def weights(*shape: int, seed: int = 0) -> np.ndarray:
    """Rows that are positive and sum to 1."""
    found = np.random.default_rng(seed).random(shape, dtype=np.float32) + 0.01
    return found / found.sum(-1, keepdims=True)


def npz(*layers: np.ndarray, **arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, *layers, **arrays)
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
    shown = vf.view(given, first_axis="layers")
    assert [(one.caption, one.heads.shape) for one in shown.views] == [
        (name, found[name].shape) for name in sorted(given)
    ]
    assert shown._repr_html_().count("<iframe") == shown.html.count("<iframe") == 3
    assert vf.view(given, kind="decoder", first_axis="layers").heads.shape == (2, 3, 4, 4)
    with pytest.raises(TraceError, match="no middle among these: cross, decoder, encoder"):
        vf.view(given, kind="middle", first_axis="layers")


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
    (found,) = read_attention("a.npz", content, Tokens(["x", "y", "z"])).values()
    assert (found.query_tokens, found.key_tokens) == (("x", "y", "z"), ("1", "2", "3", "4"))
    with pytest.raises(TraceError, match="There are 3 queries but 2 tokens for them"):
        read_attention("a.npz", content, Tokens(["x", "y"]))


def test_rows_that_do_not_sum_to_1_are_said_and_drawn_as_they_are() -> None:
    given = weights(2, 2, 4, 4)
    assert not vf.view(given.astype(np.float16), first_axis="layers").heads.notes  # within what half precision keeps
    given[1, 0, 2] *= 0.5
    given[0, 1, 3] = 0
    found = vf.view(given, first_axis="layers").heads
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
        (weights(2, 3, 2, 4, 4), "3 texts of a batch. Say which one: text=0"),
        (weights(4), "has the shape .4., which is no attention"),
        (np.zeros((2, 0, 4, 4)), "which is no attention"),
        (np.array([["a"]]), "no array of numbers"),
        ([], "no attention weights in it. Fused kernels"),
        ({}, "There is no array in it"),
    ],
    ids=range(9),
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
    "another kind": ("a.mat", b"PK"),
    "a pickle": ("a.pt", b"PK"),
    "a text for each byte": ("a.npz", lambda: zeros(1, 2**14, 1, 1, 1)),
    "a text for each byte, in two layers": ("a.npz", lambda: npz(**{f"a{i}": np.zeros((8000, 1, 1, 1)) for i in "12"})),
    "a shape for each name": ("a.npz", lambda: npz(**{f"a{i}": np.zeros((1, 1, 1, i + 1), bool) for i in range(300)})),
    "a layer for each name": ("a.json", json.dumps([[[0.5] * (1 + i % 2)] for i in range(3000)]).encode()),
    "half of JSON": ("a.json", b'{"a": [[1,'),
    "JSON of brackets": ("a.json", b"[" * 90_000),
    "JSON of numbers": ("a.json", b"[" + b"1," * 10**6 + b"1]"),
    "JSON of names": ("a.json", lambda: json.dumps({f"{i}": 1 for i in range(10**5)}).encode()),
    "JSON of digits": ("a.json", b"[[" + b"1" * 10**6 + b"]]"),
    "JSON of long numbers": ("a.json", b"[[" + b"1" * 400 + b"]]"),
    "JSON of texts": ("a.json", b'[["a", "b"]]'),
    "JSON of nothing": ("a.json", b"null"),
    "JSON that is no text": ("a.json", b"\xff\xfe["),
    "ragged JSON": ("a.json", b"[[[1, 0], [1]]]"),
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
    assert most < 2.2 * PAGE.file  # what is unpacked, and once more while it is put together


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


def test_a_file_that_is_too_large_is_refused_with_the_limit() -> None:
    with pytest.raises(TraceError, match="larger than 3 MB"):
        read_attention("a.npz", bytes((3 << 20) + 1), limits=Limits(3 << 20, 100))


def test_too_many_numbers_are_refused_before_they_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vizformer.attention_view.NOTEBOOK", Limits(1000, 100))
    for given in (weights(2, 2, 6, 6), [weights(2, 5, 5), weights(2, 5, 5), weights(2, 5, 5)]):
        with pytest.raises(TraceError, match="Hand in fewer layers"):
            vf.view(given)


def test_a_view_is_a_file_of_its_own_and_shows_itself_in_a_notebook(tmp_path: Any) -> None:
    shown = vf.view(weights(2, 2, 3, 3) * 0.9, ["<b>", "猫", '"'], first_axis="layers")
    shown.save(tmp_path / "maps.html")
    page = (tmp_path / "maps.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "<b>" not in page
    assert html.unescape(shown._repr_html_().split('srcdoc="')[1].split('" style')[0]) == page
    inside = shown._repr_html_()
    assert "do not sum to 1" in inside
    assert inside.count("<iframe") == 1
    assert "vf" in vf.view(weights(2, 2, 3, 3), picture="lines", first_axis="layers").html


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
    assert vf.view(seen, first_axis="layers").heads.reasons is None
    assert not vf.view(vf.load("zh-en").trace("我有一只猫。"), kind="cross").heads.blocked().any()


# --- as people have them ----------------------------------------------------------------------------------------------


def language_model(**options: Any) -> Any:
    torch.manual_seed(0)
    config = dict(n_layer=3, n_head=2, n_embd=16, vocab_size=50, n_positions=64, bos_token_id=0, eos_token_id=49)
    return GPT2LMHeadModel(GPT2Config(**config, attn_implementation="eager", **options)).eval()


def written(model: Any, **options: Any) -> Any:
    asked = dict(
        output_attentions=True, return_dict_in_generate=True, max_new_tokens=6, min_new_tokens=6, pad_token_id=0
    )
    return model.generate(torch.tensor([[1, 2, 3, 4, 5]]), do_sample=False, **asked, **options)


@pytest.mark.parametrize(
    "options", [{}, dict(cache_implementation="static"), dict(num_beams=3, num_return_sequences=2)]
)
def test_the_steps_of_a_generation_are_what_one_forward_of_the_whole_text_gives(options: dict[str, Any]) -> None:
    model = language_model()
    found = written(model, **options)
    for text in range(len(found.sequences)):
        ids = found.sequences[text]
        shown = vf.view(found, [f"t{id}" for id in ids], text=text if len(found.sequences) > 1 else None)
        whole = vf.view(model(ids[None, :-1], output_attentions=True)).heads
        np.testing.assert_allclose(shown.heads.weights, whole.weights, atol=1e-6)
        np.testing.assert_array_equal(shown.heads.blocked(), whole.blocked())  # a key that did not exist yet
        assert shown.query_tokens == tuple(f"t{id}" for id in ids[:-1])
        assert any("was written and not read" in str(note) for note in shown.notes)
    if len(found.sequences) == 1:
        assert vf.view(found.attentions).heads.shape == (3, 2, 10, 10)


def test_the_output_of_an_encoder_decoder_has_three_kinds_of_attention() -> None:
    torch.manual_seed(0)
    sizes = dict(d_model=16, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2, decoder_attention_heads=4)
    sizes |= dict(encoder_ffn_dim=16, decoder_ffn_dim=16, vocab_size=50, max_position_embeddings=64)
    config = BartConfig(**sizes, forced_eos_token_id=None, eos_token_id=49, attn_implementation="eager")
    model = BartForConditionalGeneration(config).eval()
    found = written(model)
    whole = model(torch.tensor([[1, 2, 3, 4, 5]]), decoder_input_ids=found.sequences[:, :-1], output_attentions=True)
    source, target = list("abcde"), [str(id) for id in found.sequences[0, :-1].tolist()]
    for kind, shape, rows, columns in (
        ("encoder", (2, 2, 5, 5), source, source),
        ("decoder", (2, 4, 6, 6), target, target),
        ("cross", (2, 4, 6, 5), target, source),
    ):
        shown = vf.view(found, target, key_tokens=source, kind=kind)
        assert shown.heads.shape == shape
        assert (list(shown.query_tokens), list(shown.key_tokens)) == (rows, columns)
        np.testing.assert_allclose(shown.heads.weights, vf.view(whole, kind=kind).heads.weights, atol=1e-6)
    assert [view.caption for view in vf.view(found).views] == ["encoder", "decoder", "cross"]
    assert "Left out, since it is no attention: logits" in str(vf.view(whole).views[0].notes[0])


def test_an_output_that_a_program_made_itself_is_taken_by_its_names() -> None:
    layers = [weights(1, 2, 4, 4, seed=i) for i in range(3)]

    @dataclass
    class Output:
        attentions: list[np.ndarray]
        hidden_states: np.ndarray

    named = namedtuple("named", ["logits", "attentions"])
    for output in (
        Output(layers, weights(1, 4, 16) * 5),
        named(np.zeros((1, 4, 9)), tuple(layers)),
        {"attentions": layers, "hidden_states": [weights(1, 4, 16) * 5]},
        type("Plain", (), {})(),
    ):
        if not isinstance(output, Output | tuple | dict):
            output.attentions = layers
        np.testing.assert_array_equal(vf.view(output).heads.weights, np.concatenate(layers))


@pytest.mark.parametrize(
    "given", [None, (), (None, None), {"attentions": None}, {"cross_attentions": ()}, ((None,), (None,))]
)
def test_where_fused_kernels_hand_out_nothing_eager_is_named(given: object) -> None:
    with pytest.raises(TraceError, match='attn_implementation="eager"'):
        vf.view(given)


def test_a_model_with_fused_kernels_is_told_of_eager() -> None:
    model = GPT2LMHeadModel(language_model().config)
    model.set_attn_implementation("sdpa")
    for given in (found := model(torch.tensor([[1, 2, 3]])), found.attentions, found.get("attentions")):
        with pytest.raises(TraceError, match='attn_implementation="eager"'):
            vf.view(given)


def test_layers_without_attention_among_others_are_said() -> None:
    shown = vf.view({"attentions": (weights(1, 2, 4, 4), None, weights(1, 2, 4, 4))})
    assert (shown.heads.shape, shown.layers) == ((2, 2, 4, 4), (0, 2))
    assert "hand out no weights: 1" in str(shown.notes[0])


def test_of_one_array_whoever_hands_it_in_says_what_the_first_axis_is() -> None:
    given = torch.from_numpy(weights(2, 3, 4, 4))  # as nn.MultiheadAttention(average_attn_weights=False) gives it
    with pytest.raises(TraceError, match="2 layers, or 2 texts of a batch"):
        vf.view(given)
    assert vf.view(given, first_axis="layers").heads.shape == (2, 3, 4, 4)
    shown = vf.view(given, text=1)
    assert shown.heads.shape == (1, 3, 4, 4)
    np.testing.assert_array_equal(shown.heads.weights[0], given[1])
    with pytest.raises(TraceError, match=r"2 texts of a batch\. Say which one"):
        vf.view(given, first_axis="texts")
    with pytest.raises(TraceError, match="no text 2: they are counted from 0 to 1"):
        vf.view(given, text=2)


def test_a_list_of_layers_with_several_texts_asks_for_the_text() -> None:
    layers = [weights(2, 3, 4, 4, seed=i) for i in range(3)]
    with pytest.raises(TraceError, match=r"2 texts of a batch\. Say which one"):
        vf.view(layers)
    np.testing.assert_array_equal(vf.view(layers, text=1).heads.weights, np.stack(layers)[:, 1])
    found = read_attention("a.npz", npz(*layers))  # arr_0, arr_1, arr_2
    assert [(one.text, one.shape) for one in found.values()] == [(0, (3, 3, 4, 4)), (1, (3, 3, 4, 4))]


def test_layers_of_different_shapes_are_each_drawn() -> None:
    layers = [weights(1, 2, 4, 4), weights(1, 2, 4, 4), weights(1, 4, 4, 4), weights(1, 2, 6, 6)]
    shown = vf.view(layers, list("abcd"))
    assert [view.heads.shape for view in shown.views] == [(2, 2, 4, 4), (1, 4, 4, 4), (1, 2, 6, 6)]
    assert [view.layers for view in shown.views] == [None, (2,), (3,)]
    assert shown.views[1].query_tokens == tuple("abcd")
    assert "The tokens do not fit these maps of 6 × 6" in str(shown.views[2].notes[0])
    assert shown._repr_html_().count("<iframe") == 3


def test_rows_of_nan_are_drawn_as_such_and_counted(tmp_path: Any) -> None:
    given = weights(1, 2, 4, 4)
    given[0, 1, 2:] = np.nan
    shown = vf.view(given)
    assert "2 of 8 rows have NaN in them" in str(shown.notes[0])
    np.testing.assert_array_equal(shown.heads.weights, given)
    assert "vf" in shown.html
    assert "vf" in vf.view(given, picture="lines").html
    assert np.isnan(attention.pack(shown.heads).columns["weights"]).sum() == 8
    long = np.full((1, 1, 40, 40), np.nan)
    assert not attention.pack(vf.view(long).heads).columns["thumbs"].any()
    with pytest.raises(TraceError, match="Scores before the softmax have -inf"):
        vf.view(np.where(np.isnan(given), -np.inf, given))


def test_numbers_that_were_rounded_are_not_said_to_miss_1() -> None:
    given = torch.softmax(torch.randn(1, 4, 40, 40, generator=torch.Generator().manual_seed(0)) * 3, -1)
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        rounded = given.to(dtype)
        assert not vf.view([rounded]).notes
        assert not vf.view([rounded.float().numpy()]).notes  # numpy has no bfloat16: people hand it over so
        assert "do not sum to 1" in str(vf.view([rounded * 0.95]).notes[0])
    assert "do not sum to 1" in str(vf.view([given * 0.997]).notes[0])


def test_what_is_no_attention_in_a_file_is_named_and_the_rest_is_taken() -> None:
    maps, ids = weights(3, 2, 5, 5), np.arange(5)[None]
    hidden = np.random.default_rng(0).normal(size=(1, 5, 16)).astype(np.float32)
    content = npz(
        attentions=maps, input_ids=ids, attention_mask=np.ones((1, 5)), hidden_states=hidden, names=np.array(["x"])
    )
    (found,) = read_attention("a.npz", content).values()
    np.testing.assert_array_equal(found.weights, maps)
    said = str(found.notes[0])
    assert all(name in said for name in ("input_ids", "attention_mask", "hidden_states", "names"))
    shown = vf.view({"attn": maps, "input_ids": ids, "tokens": list("abcde")}, first_axis="layers")
    assert shown.query_tokens == tuple("abcde")
    with pytest.raises(TraceError, match="scores: the numbers go from"):
        read_attention("a.npz", npz(scores=maps * 9, input_ids=ids))


def test_tokens_of_two_texts_name_the_side_that_they_belong_to() -> None:
    content = npz(
        encoder=weights(2, 2, 3, 3), decoder=weights(2, 2, 4, 4), cross=weights(2, 2, 4, 3),
        source_tokens=np.array(list("abc")), target_tokens=np.array(list("wxyz")),
    )  # fmt: skip
    found = read_attention("a.npz", content)
    said = {name: ("".join(one.query_tokens), "".join(one.key_tokens)) for name, one in found.items()}
    assert said == {"encoder": ("abc", "abc"), "decoder": ("wxyz", "wxyz"), "cross": ("wxyz", "abc")}


def test_json_is_read_with_its_tokens_and_its_null_is_nan() -> None:
    maps = weights(2, 3, 3).round(3)
    content = json.dumps({"attentions": maps.tolist(), "tokens": ["a", "b", "猫"], "title": "x", "n": 3}).encode()
    (found,) = read_attention("a.json", content).values()
    np.testing.assert_allclose(found.weights[0], maps, atol=1e-6)
    assert found.query_tokens == ("a", "b", "猫")
    layers = [weights(2, 3, 3).tolist(), weights(2, 4, 4).tolist()]  # layers of different shapes
    assert [one.shape for one in read_attention("a.json", json.dumps(layers).encode()).values()] == [
        (1, 2, 3, 3),
        (1, 2, 4, 4),
    ]
    (found,) = read_attention("a.json", b"[[[1.0, 0.0], [null, null]]]").values()
    assert np.isnan(found.weights[0, 0, 1]).all()


def test_a_pickle_is_refused_for_what_it_is_with_the_way_out() -> None:
    file = io.BytesIO()
    torch.save([torch.eye(4)[None]], file)
    for name in ("a.pt", "a.PTH", "a.pkl"):
        with pytest.raises(TraceError, match=r"pickle, which is not run here.*numpy.savez_compressed"):
            read_attention(name, file.getvalue())


def test_in_a_notebook_the_bound_of_the_page_does_not_hold() -> None:
    """BERT at 512 tokens has 37.7 million numbers; these are as many heads as the page does not take."""
    layer = np.broadcast_to(np.float16(1 / 1024), (1, PAGE.numbers // 2**20 + 1, 1024, 1024))
    with pytest.raises(TraceError, match="Hand in fewer layers"):
        attention_groups(collect([layer], PAGE), limits=PAGE)
    assert vf.view([layer]).heads.shape == layer.shape
    with pytest.raises(TraceError, match="Hand in fewer layers"):  # a view of one number: none of it is made
        vf.view(torch.zeros(1).expand(1, 1024, 1024, 1024))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("nothing.npz", "There is no file nothing.npz"),
        ("/", "There is no file /"),
        (torch.eye(4).to_sparse(), "sparse or nested tensor.*to_dense"),
        ([torch.eye(4).to_sparse_csr()], "sparse or nested tensor.*to_dense"),
        (torch.zeros(2, 2, device="meta"), "has a shape and no numbers"),
        ([[1.0, 0.0], [1.0]], "rows of different lengths"),
        ({"a": [[1.0, 0.0], [1.0]]}, "rows of different lengths"),
        ([[[[1.0]], [[1.0, 0.0]]]], "rows of different lengths"),
        (object(), "no array of numbers"),
        (3, "which is no attention"),
        ((torch.zeros(1, 4, 8), (torch.eye(4)[None],)), "no steps of one generation"),
        ([[torch.eye(4)[None, None]], [torch.ones(1, 1, 1, 9) / 9]], "no steps of one generation"),
    ],
    ids=range(12),
)
def test_what_is_none_of_it_gets_an_error_of_ours(given: object, said: str) -> None:
    with pytest.raises(TraceError, match=said):
        vf.view(given)


def test_names_of_a_byte_level_tokenizer_become_readable() -> None:
    shown = vf.view(weights(1, 2, 5, 5), ["<s>", "æĪĳ", "æľī", "Ġcats", "Ċ"])
    assert shown.query_tokens == shown.key_tokens == ("<s>", "我", "有", " cats", "\n")
    odd = vf.view(
        weights(1, 1, 3, 3), ["Ġa", "ãĢĢ", "âĢ®"]
    ).query_tokens  # an ideographic space, and what turns the line
    assert odd == (" a", "\u3000", "⟨E2 80 AE⟩")
    assert vf.view(weights(1, 1, 2, 2), ["kārlis", "é"]).query_tokens == ("kārlis", "é")  # words of a language


def test_a_token_that_would_turn_the_sentence_shows_its_bytes() -> None:
    shown = vf.view(weights(1, 2, 2, 2), ["a\u202eb", "\u2067"])
    assert shown.query_tokens == ("a⟨E2 80 AE⟩b", "⟨E2 81 A7⟩")
