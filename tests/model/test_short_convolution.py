"""The short convolution: by its definition, by the maps of its taps, with its cache."""

import json

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from tests import tiny
from vizformer.errors import TraceError
from vizformer.model import Cache, Cell, Edit, Patch, Trace, trace_file
from vizformer.model.short_convolution import ShortConvolution

SITE, BOTH = "decoder.0.self", {**tiny.SHORT, "state_layers": (0, 1)}


def traced(edit: Edit | None = None, **options: object):
    model, trace = tiny.model("decoder-only", **{**tiny.SHORT, **options}), Trace()
    with torch.inference_mode():
        model(tiny.ids(9), trace=trace, edit=edit)
    return model, trace


@pytest.mark.parametrize("options", [{}, {"state_bias": True, "state_kernel": 5}], ids=["plain", "biases"])
def test_it_is_the_convolution_between_two_gates(options: dict) -> None:
    """out = ((C * conv1d(B * x)) W_O, as one depthwise convolution of torch."""
    model, trace = traced(**options)
    block = model.decoder.layers[0]
    layer, x = block.self_attention, block.self_norm(trace.residual("decoder.0.pre"))
    assert isinstance(layer, ShortConvolution)
    c, b, v = layer.W_Q(x), layer.W_K(x), layer.W_V(x)
    padded = torch.nn.functional.pad((b * v).T[None], (layer.n_heads - 1, 0))
    convolved = torch.nn.functional.conv1d(padded, layer.filters, layer.filter_bias, groups=16)[0].T
    brought = layer.W_O.matrix(c * convolved)
    tiny.assert_close(trace.residual("decoder.0.pre") + brought, trace.residual("decoder.0.mid"))


@pytest.mark.parametrize("bias", [False, True])
def test_the_map_of_each_tap_mixes_what_it_has_mixed(bias: bool) -> None:
    """|M v - o| / |o| at most 1e-6; all taps through their gates and W_O are what the layer adds."""
    model, trace = traced(state_bias=bias)
    record = trace[SITE]
    assert (record.n_heads, record.gates.rule) == (3, "convolution")
    for tap in range(3):
        M, z = record.pattern(tap), record.z(tap)
        assert float((M @ record.v[tap] - z).norm() / z.norm()) <= 1e-6
        assert torch.equal(M, torch.diag(torch.ones(9 - tap), -tap))
        for first, end in ((0, 1), (3, 7), (8, 9)):
            part = record.of_queries(first, end)
            assert torch.equal(part.pattern(tap), M[first:end])
            assert torch.equal(part.z(tap), z[first:end])
    layer = model.decoder.layers[0].self_attention
    read = torch.cat([record.read(tap) for tap in range(3)], dim=1)
    tiny.assert_close(trace.residual("decoder.0.pre") + layer.W_O(read), trace.residual("decoder.0.mid"))
    by_head = sum(record.read(tap) @ layer.W_O.weight[:, 16 * tap : 16 * (tap + 1)].T for tap in range(3))
    tiny.assert_close(by_head + (0.0 if layer.W_O.bias is None else layer.W_O.bias), layer.W_O(read))
    more = record.padded(5)
    assert torch.equal(more.pattern(2), record.pattern(2))
    assert float(more.pattern(4).abs().max()) == float(more.z(4).abs().max()) == 0.0


def test_a_cache_keeps_the_last_rows_that_the_filter_reads_and_nothing_else() -> None:
    model, ids = tiny.model("decoder-only", **BOTH), tiny.ids(20)
    sizes, cache, rows = [], Cache(), []
    with torch.inference_mode():
        for part in (slice(0, 1), slice(1, 2), slice(2, 8), *(slice(i, i + 1) for i in range(8, 20))):
            rows.append(model.decode(ids[:, part], cache=cache))
            sizes.append(cache.nbytes)
        tiny.assert_close(torch.cat(rows, 1), model.decode(ids))
    assert set(sizes) == {2 * 2 * 16 * 4}  # two layers, two rows of 16 numbers
    cache.select(torch.tensor([0, 0]))
    assert cache.tails[SITE].shape == (2, 16, 2)


def test_a_token_reads_no_later_one_and_none_before_the_filter() -> None:
    model, ids = tiny.model("decoder-only", **{**BOTH, "n_decoder_layers": 1, "state_layers": (0,)}), tiny.ids(9)
    other = ids.clone()
    other[0, 4] = ids[0, 4] - 1
    with torch.inference_mode():
        changed = (model.decode(ids) != model.decode(other)).any(-1)[0]
    assert changed.nonzero().flatten().tolist() == [4, 5, 6]


@pytest.mark.parametrize("letter", "qkv")
def test_numbers_set_by_hand_are_followed_by_map_and_reading(letter: str) -> None:
    model, plain = traced()
    _, trace = traced(Edit((Cell(f"{SITE}.{letter}", (1, 4, 0), 2.5),)))
    record = trace[SITE]
    for tap in range(3):
        tiny.assert_close(record.pattern(tap) @ record.v[tap], record.z(tap))
    layer = model.decoder.layers[0].self_attention
    read = torch.cat([record.read(tap) for tap in range(3)], dim=1)
    tiny.assert_close(trace.residual("decoder.0.pre") + layer.W_O(read), trace.residual("decoder.0.mid"))
    moved = (trace.residual("decoder.0.mid") != plain.residual("decoder.0.mid")).any(-1).nonzero().flatten()
    assert moved.tolist() == [4 if letter == "q" else 5]


def test_a_tap_can_be_left_out_and_patched_and_has_no_mask() -> None:
    model, plain = traced()
    zeros = torch.zeros(9, 16)
    with torch.inference_mode():
        without = model(tiny.ids(9), edit=Edit(patches=(Patch(f"{SITE}.z", (2,), zeros),)))
        same = model(tiny.ids(9), edit=Edit(patches=(Patch(f"{SITE}.pattern", (2,), plain[SITE].pattern(2)),)))
        assert not torch.equal(without, plain.logits[None])
        tiny.assert_close(same[0], plain.logits)
        with pytest.raises(TraceError, match="no mask blocks them"):
            model(tiny.ids(9), edit=Edit((Cell(f"{SITE}.mask", (2, 1), 0.0),)))
    with pytest.raises(TraceError, match="short convolution in the place of attention: no scores"):
        plain[SITE].scores(0)


def test_a_saved_trace_knows_its_taps(tmp_path) -> None:
    trace = tiny.checkpoint("decoder-only", **tiny.SHORT).trace("The cats")
    trace.save(tmp_path / "trace.safetensors")
    again = trace_file.open_trace(tmp_path / "trace.safetensors")[SITE]
    assert again.gates.rule == "convolution"
    for tap in range(3):
        assert torch.equal(again.pattern(tap), trace[SITE].pattern(tap))
        assert torch.equal(again.read(tap), trace[SITE].read(tap))
    tensors = load_file(tmp_path / "trace.safetensors")
    with safe_open(tmp_path / "trace.safetensors", framework="pt") as file:
        said = file.metadata()
    n = tensors[f"{SITE}.q"].shape[1]
    wide = tensors | {f"{SITE}.{letter}": torch.ones(3, n, 2) for letter in "qk"}
    for changed, about in ((tensors, {**said, "state_rules": json.dumps({SITE: "space"})}), (wide, said)):
        save_file(changed, tmp_path / "other.safetensors", about)
        with pytest.raises(TraceError, match="does not fit its tensors"):
            trace_file.open_trace(tmp_path / "other.safetensors")
