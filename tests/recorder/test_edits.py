"""Numbers set through the recorder equal those set by hand in the code."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import vizformer as vf
from tests.recorder.hand_written import GPT, KINDS, H, d, ids
from vizformer import HeadEdit, StreamEdit
from vizformer.errors import TraceError


def by_hand(model, given, layer, change):
    """The logits where W_O of a layer reads z [b, n, H, d] as `change` makes it."""

    def hook(_module, args):
        return (change(args[0].unflatten(-1, (H, d)).clone()).flatten(2),)

    handle = model.h[layer].attn.wo.register_forward_pre_hook(hook)
    try:
        with torch.no_grad():
            return model(given)
    finally:
        handle.remove()


def edited(model, given, *edits):
    with torch.no_grad(), vf.recording(model, edits=edits) as trace:
        out = model(given)
    return out, trace


@pytest.mark.parametrize("name", sorted(KINDS.keys() - {"Torch", "Loop"}))
def test_z_of_a_head_at_each_kind_of_site(name):
    model, given = GPT(KINDS[name]), ids(2)

    def zero(z):
        z[:, :, 2] = 0
        return z

    out, trace = edited(model, given, HeadEdit("h.0.attn", [2], z=0.0))
    assert_close(out, by_hand(model, given, 0, zero), rtol=0, atol=1e-5)
    assert not trace["h.0.attn"].z(2).any()
    assert trace["h.0.attn"].z(1).any()
    new = torch.linspace(-1, 1, 7 * d).reshape(7, d)

    def put(z):
        z[:, :, 1] = new
        return z

    out, _ = edited(model, given, HeadEdit("h.1.attn", [1], z=new))
    assert_close(out, by_hand(model, given, 1, put), rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", sorted(KINDS.keys() - {"Torch", "Loop"}))
def test_the_map_of_a_head_at_each_kind_of_site(name):
    model, given = GPT(KINDS[name]), ids(2)
    own = vf.record(model, given)
    values = torch.stack([own.of_item(item)["h.0.attn"].v[3] for item in range(2)])
    p = torch.rand(7, 7, generator=torch.Generator().manual_seed(1)).softmax(-1)

    def put(z):
        z[:, :, 3] = p @ values
        return z

    out, trace = edited(model, given, HeadEdit("h.0.attn", [3], pattern=p))
    assert_close(out, by_hand(model, given, 0, put), rtol=0, atol=1e-4)
    assert_close(trace["h.0.attn"].z(3), p @ values[0], rtol=0, atol=1e-5)


def test_a_head_of_torchs_attention():
    torch.manual_seed(3)
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 24, batch_first=True), 2).eval()
    x, layer = torch.randn(2, 5, 16), model.layers[0]
    weight = layer.self_attn.out_proj.weight
    out, _ = edited(model, x, HeadEdit("layers.0.self_attn", [1], z=0.0))
    kept = weight.data.clone()
    weight.data[:, d : 2 * d] = 0  # what head 1 gives to W_O is 0: so is what W_O makes of it
    with torch.no_grad():
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            expected = model(x)
        finally:
            torch.backends.mha.set_fastpath_enabled(True)
    weight.data.copy_(kept)
    assert_close(out, expected, rtol=0, atol=1e-5)


def test_a_head_of_a_loop_is_one_of_its_calls():
    model, given = GPT(KINDS["Loop"]), ids()

    def zero(z):
        return z * 0

    out, _ = edited(model, given, HeadEdit("h.0.attn", z=0.0))
    assert_close(out, by_hand(model, given, 0, zero), rtol=0, atol=1e-5)


def test_the_stream_at_the_end_of_a_block():
    model, given = GPT(), ids(2)
    with torch.no_grad():
        x = model.wte(given) + model.wpe(torch.arange(7))
        entered = model.lm_head(model.ln_f(model.h[1](model.h[0](x * 2))))
        left = model.h[0](x)
        left[:, 3] = 1.0
        expected = model.lm_head(model.ln_f(model.h[1](left)))

    def row(stream):
        stream = stream.clone()
        stream[:, 3] = 1.0
        return stream

    out, trace = edited(model, given, StreamEdit("h.0", row))
    assert torch.equal(out, expected)
    assert trace.residual("h.0")[3].eq(1).all()
    out, _ = edited(model, given, StreamEdit("h", lambda stream: stream * 2))
    assert torch.equal(out, entered)


def test_gradients_flow_through_an_edit():
    model, factor = GPT(), torch.tensor(1.0, requires_grad=True)
    with vf.recording(model, edits=[HeadEdit("h.0.attn", [0], z=lambda z: z * factor)]):
        model(ids()).sum().backward()
    step, sums = 1e-3, []
    for f in (1 + step, 1 - step):
        out, _ = edited(model, ids(), HeadEdit("h.0.attn", [0], z=lambda z, f=f: z * f))
        sums.append(float(out.double().sum()))
    assert factor.grad.item() == pytest.approx((sums[0] - sums[1]) / (2 * step), rel=2e-2)


def test_an_edit_that_met_nothing_is_named():
    with pytest.raises(TraceError, match=r"met nothing: h\.7\.attn.*h\.0\.attn, h\.1\.attn"):
        edited(GPT(), ids(), HeadEdit("h.7.attn", z=0.0))
    with pytest.raises(TraceError, match="choose 0 to 3"):
        edited(GPT(), ids(), HeadEdit("h.0.attn", [4], z=0.0))
