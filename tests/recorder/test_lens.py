"""The calls after the last block, run again on any stream: the logit lens of anybody's model."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import vizformer as vf
from tests.recorder.all_types import CHOSEN, given, made
from tests.recorder.hand_written import GPT, KINDS, Cached, ids
from vizformer.errors import TraceError
from vizformer.recorder import record
from vizformer.recorder.head_weights import Out, WritesRecorder, heard_again, writes_of_keys


@pytest.mark.parametrize("name", ["Separate", "Sdpa", "Loop"])
def test_the_lens_is_the_final_norm_and_head_on_an_earlier_stream(name):
    model = GPT(KINDS[name])
    trace = vf.record(model, ids(2)).of_item(1)
    assert torch.equal(trace.logits_of(trace.residual("h.1")), trace.output[1])
    for point in ("h", "h.0"):
        with torch.no_grad():
            by_hand = model.lm_head(model.ln_f(trace.residual(point)))
        assert_close(trace.logits_of(trace.residual(point)), by_hand)


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CHOSEN)
def test_what_a_type_hands_back_is_made_of_its_last_stream(name):
    model = made(name, "eager")
    trace = record(model, **given(model))
    last = [point for point in trace.points if point.block >= 0][-1]
    found = trace.logits_of(trace.rows(last))
    if trace.logits is not None:
        assert torch.equal(found, trace.logits)
    other = trace.logits_of(trace.rows(last).flip(0))
    assert not torch.equal(found, other)


def test_batches_in_the_middle_keep_their_rows():
    class Stack(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.inner = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 24), 2)
            self.head = nn.Linear(16, 9)

        def forward(self, x):  # [n, batch, d]
            return self.head(self.inner(x))

    model, x = Stack().eval(), torch.randn(7, 3, 16)
    trace = vf.record(model, x).of_item(2)
    assert_close(trace.logits_of(trace.residual("inner.layers.1")), trace.output[:, 2])


def test_numbers_changed_in_place_after_the_last_block_run_again():
    class Scaled(GPT):
        def forward(self, given):
            logits = super().forward(given)
            logits.mul_(0.5)
            kept = torch.zeros_like(logits)
            kept[..., 1:] = logits[..., 1:]
            return kept

    trace = vf.record(Scaled(), ids())
    for _ in range(2):
        assert torch.equal(trace.logits_of(trace.residual("h.1")), trace.output[0])


def test_weights_that_change_afterwards_are_noticed():
    model = GPT()
    trace = vf.record(model, ids())
    with torch.no_grad():
        model.lm_head.weight.mul_(2)
    with pytest.raises(TraceError, match="do not give"):
        trace.logits_of(trace.residual("h.1"))


def test_what_has_no_lens_says_so():
    trace = vf.record(GPT(), ids())
    with pytest.raises(TraceError, match=r"\[3, 16\]"):
        trace.logits_of(trace.residual("h.1")[:3])
    model = Cached()
    with torch.no_grad(), vf.recording(model) as several:
        model.generate(ids(1, 4), 3)
    with pytest.raises(TraceError, match="runs"):
        several.logits_of(trace.residual("h.1"))
    alone = vf.record(GPT().h[0].attn, torch.randn(1, 5, 16))
    with pytest.raises(TraceError, match="no repeated blocks"):
        alone.logits_of(torch.randn(5, 16))

    class Skips(GPT):
        def forward(self, given):
            logits = super().forward(given)
            return logits + self.wpe(torch.arange(given.shape[1])).sum() * torch.rand(())

    random = vf.record(Skips(), ids())
    assert torch.equal(random.logits_of(random.residual("h.1")), random.output[0])  # the same noise: it is kept


@pytest.mark.parametrize("against", [None, 3, "mean"])
def test_shares_of_a_logit_are_those_by_hand(against):
    model = GPT()
    trace = vf.record(model, ids(2)).of_item(1)
    shares = trace.logit_shares(4, 11, against)
    assert shares.names == ("h", "h.0", "h.1")
    streams = [trace.residual(name)[4].double() for name in shares.names]
    x = streams[-1]
    deviation = (x.var(correction=0) + model.ln_f.eps).sqrt()
    rows = model.lm_head.weight.detach().double()
    row = rows[11] - (0 if against is None else rows.mean(0) if against == "mean" else rows[against])
    gamma, beta = model.ln_f.weight.detach().double(), model.ln_f.bias.detach().double()
    written = [streams[0], streams[1] - streams[0], streams[2] - streams[1]]
    for share, one in zip(shares.values, written, strict=True):
        assert share == pytest.approx(float(((one - one.mean()) / deviation * gamma) @ row), abs=1e-4)
    assert shares.constant == pytest.approx(float(beta @ row), abs=1e-4)
    assert shares.error < 1e-5


class Last(GPT):
    """nanoGPT: its last row alone."""

    def forward(self, given):
        return super().forward(given)[:, [-1]]


@pytest.mark.parametrize("position", [2, 6, -1])
def test_a_model_that_hands_back_its_last_row_has_shares_and_a_lens_of_each(position):
    trace, whole = vf.record(Last(), ids()), vf.record(GPT(), ids())
    mine, theirs = (one.logit_shares(position, 11, "mean") for one in (trace, whole))
    assert mine.values == pytest.approx(theirs.values, abs=1e-5)
    assert mine.logit == pytest.approx(theirs.logit, abs=1e-5)
    assert mine.error < 1e-5
    heads, others = (one.head_shares(position, 11, "mean")["h.1.attn"] for one in (trace, whole))
    assert heads == pytest.approx(others, abs=1e-5)
    with pytest.raises(TraceError, match="choose 0 to 6"):
        trace.logit_shares(7, 11)


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CHOSEN)
def test_shares_of_a_type_sum_to_its_logit(name):
    model = made(name, "eager")
    trace = record(model, **given(model))
    shares = trace.logit_shares(3, 7)
    assert sum(shares.values) + shares.constant == pytest.approx(shares.logit, abs=1e-5)
    assert shares.error < 1e-5
    if name != "vit":
        assert shares.logit == pytest.approx(float(trace.logits[3, 7]))
    assert len(shares.values) > 2


def test_shares_that_are_no_sum_are_refused():
    class Normal(GPT):
        def forward(self, given):
            return super().forward(given).softmax(-1)

    trace = vf.record(Normal(), ids())
    with pytest.raises(TraceError, match="not linear"):
        trace.logit_shares(0, 0)

    class Mixes(GPT):
        def forward(self, given):
            return super().forward(given).cumsum(1)

    with pytest.raises(TraceError, match="not linear"):
        vf.record(Mixes(), ids()).logit_shares(3, 0)

    class Adds(GPT):
        def forward(self, given):
            logits = super().forward(given)
            return logits + logits.mean(1, keepdim=True)

    with pytest.raises(TraceError, match="mix rows"):
        vf.record(Adds(), ids()).logit_shares(3, 0)
    with pytest.raises(TraceError, match="choose 0 to 6"):
        vf.record(GPT(), ids()).logit_shares(7, 0)
    with pytest.raises(TraceError, match="choose 0 to 28"):
        vf.record(GPT(), ids()).logit_shares(0, 29)


def test_shares_of_heads_are_z_times_their_rows_of_the_output_matrix():
    model = GPT()
    trace = vf.record(model, ids(2)).of_item(1)
    found = trace.head_shares(4, 11)
    assert tuple(found) == trace.sites
    x = trace.residual("h.1")[4].double()
    deviation = (x.var(correction=0) + model.ln_f.eps).sqrt()
    row, gamma = model.lm_head.weight.detach().double()[11], model.ln_f.weight.detach().double()
    for layer, site in enumerate(trace.sites):
        out = model.h[layer].attn.wo.weight.detach().double()
        for head in range(4):
            one = out[:, 4 * head : 4 * head + 4] @ trace[site].z(head)[4].double()
            share = float(((one - one.mean()) / deviation * gamma) @ row)
            assert found[site][head] == pytest.approx(share, abs=1e-4)


def test_shares_of_keys_are_weights_times_values_times_the_output_matrix():
    model = GPT()
    trace = vf.record(model, ids(2)).of_item(1)
    x = trace.residual("h.1")[4].double()
    deviation = (x.var(correction=0) + model.ln_f.eps).sqrt()
    row, gamma = model.lm_head.weight.detach().double()[11], model.ln_f.weight.detach().double()
    for layer, site in enumerate(trace.sites):
        for head in range(4):
            found = trace.key_shares(site, head, 4, 11)
            weights, values = trace[site].pattern(head)[4].double(), trace[site].v[head].double()
            out = model.h[layer].attn.wo.weight.detach().double()[:, 4 * head : 4 * head + 4]
            vectors = weights[:, None] * values @ out.T
            expected = ((vectors - vectors.mean(1, keepdim=True)) / deviation * gamma) @ row
            assert_close(torch.from_numpy(found.shares), expected, rtol=0, atol=1e-4)
            assert_close(torch.from_numpy(found.weights), weights, rtol=0, atol=0)
            assert_close(torch.from_numpy(found.lengths), vectors.norm(dim=1), rtol=0, atol=1e-5)
            assert found.shares.sum() == pytest.approx(trace.head_shares(4, 11)[site][head], abs=1e-4)
    with pytest.raises(TraceError, match="no head 9"):
        trace.key_shares(trace.sites[0], 9, 4, 11)


def test_more_keys_than_queries_go_through_in_several_turns():
    torch.manual_seed(0)
    layer = nn.TransformerDecoderLayer(16, 4, 24, batch_first=True, norm_first=True)
    model = nn.TransformerDecoder(layer, 2).eval()
    trace = vf.record(model, torch.randn(1, 3, 16), torch.randn(1, 7, 16))
    site = trace["layers.1.multihead_attn"]
    vectors = writes_of_keys(Out(trace, heard_again(trace, WritesRecorder), site), site, 2, 1)
    out = model.layers[1].multihead_attn.out_proj.weight.detach()[:, 8:12]
    assert vectors.shape == (7, 16)
    assert_close(vectors, site.pattern(2)[1][:, None] * site.v[2] @ out.T, rtol=0, atol=1e-5)


def test_heads_behind_whose_sum_a_norm_stands_have_no_share():
    for norm_first in (False, True):
        torch.manual_seed(0)
        layer = nn.TransformerEncoderLayer(16, 4, 24, batch_first=True, norm_first=norm_first)
        model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
        found = vf.record(model, torch.randn(1, 6, 16)).head_shares(2, 3)
        assert all((values is not None) == norm_first for values in found.values())
    with vf.recording(model) as trace, torch.no_grad():
        model(torch.randn(1, 6, 16))
    with pytest.raises(TraceError, match=r"vf\.record"):
        trace.head_shares(2, 3)
