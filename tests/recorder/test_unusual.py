"""Habits of single types of `transformers`, each in a small model: what is attention, whose heads, and what is named."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

import vizformer as vf
from tests.checkpoints.recorded.test_wrap import Letters
from tests.recorder.hand_written import GPT, KINDS, Attention, Block, D, H, Separate, d, future, ids, split
from vizformer.errors import TraceError
from vizformer.model import Edit, Patch
from vizformer.recorder import check


class Clamped(Attention):
    """Scores are no less than the least number (XGLM)."""

    def forward(self, x):
        q, k, v = self.qkv(x)
        scores = (q @ k.mT * d**-0.5).masked_fill(future(x.shape[1]), -torch.inf)
        scores = torch.max(scores, torch.tensor(torch.finfo(scores.dtype).min))
        return self.out(self.keep(scores.softmax(-1)) @ v)


class Halves(Attention):
    """The same map multiplies two halves of the values, put side by side (DiffLlama)."""

    def forward(self, x):
        q, k, v = self.qkv(x)
        halves = [F.scaled_dot_product_attention(q, k, part, is_causal=True).transpose(1, 2) for part in v.chunk(2, -1)]
        return self.wo(torch.cat(halves, -1).flatten(2))


class Indexed(Attention):
    """Tokens are chosen by scores that are added up over heads (DeepSeek-V3.2); as many heads as tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.Linear(D, H)

    def forward(self, x):
        q, k, v = self.qkv(x)
        index = F.relu(split(self.wq(x)).transpose(1, 2) @ self.wk(x)[:, None, :, :d].mT)
        index = (self.weights(x)[:, :, None] @ index).squeeze(2).masked_fill(future(x.shape[1]), -torch.inf)
        chosen = torch.full_like(index, -torch.inf).scatter(-1, index.topk(2, -1).indices, 0.0)
        chosen = chosen.masked_fill(future(x.shape[1]), -torch.inf).masked_fill(
            torch.eye(x.shape[1], dtype=torch.bool), 0.0
        )
        return self.out(self.keep((q @ k.mT * d**-0.5 + chosen[:, None]).softmax(-1)) @ v)


class Scaled(Attention):
    """A sink that scales z by a sum of the scores (Granite)."""

    def forward(self, x):
        q, k, v = self.qkv(x)
        scores = q @ k.mT * d**-0.5
        share = (scores.logsumexp(-1) - 0.3).sigmoid()
        return self.out(scores.softmax(-1) @ v * share[..., None])


class AllBlocked(Attention):
    """The first query may look at nothing, by the least number of float32 (BLT): its weights are alike."""

    def forward(self, x):
        mask = torch.zeros(x.shape[1], x.shape[1])
        mask[0] = torch.finfo(torch.float32).min
        return self.out(F.scaled_dot_product_attention(*self.qkv(x), attn_mask=mask))


class WithoutItself(Attention):
    """The diagonal of the scores is blocked in place, by way of a view."""

    def forward(self, x):
        q, k, v = self.qkv(x)
        scores = q @ k.mT * d**-0.5
        scores.diagonal(dim1=-2, dim2=-1).fill_(-torch.inf)
        return self.out(scores.softmax(-1) @ v)


class MovedMask(Attention):
    """All layers have one mask, which each changes in place."""

    def __init__(self) -> None:
        super().__init__()
        self.mask = torch.zeros(7, 7)

    def forward(self, x):
        q, k, v = self.qkv(x)
        z = self.keep((q @ k.mT * d**-0.5 + self.mask).softmax(-1)) @ v
        self.mask.sub_(torch.ones(7, 7).tril(-1))
        return self.out(z)


class IntoBuffers(Attention):
    """Scores and weights are written where room was made for them."""

    def forward(self, x):
        q, k, v = self.qkv(x)
        scores, p = (torch.empty(len(x), H, x.shape[1], x.shape[1]) for _ in range(2))
        torch.matmul(q * d**-0.5, k.mT, out=scores)
        torch.softmax(scores, -1, out=p)
        return self.out(self.keep(p) @ v)


class DividedAfter(Attention):
    """Exponentials multiply the values, and their sum divides what comes out: none of them is a weight."""

    def forward(self, x):
        q, k, v = self.qkv(x)
        e = torch.exp(q @ k.mT * d**-0.5 - 9.0)
        return self.out(e @ v / e.sum(-1, keepdim=True))


class Gathered(Attention):
    """Each query has three keys of its own."""

    def forward(self, x):
        k, v = (F.pad(f(x), (0, 0, 1, 1)).unfold(1, 3, 1) for f in (self.wk, self.wv))  # [b, n, D, 3]
        p = (torch.einsum("bnd,bndm->bnm", self.wq(x), k) * D**-0.5).softmax(-1)
        return self.wo(torch.einsum("bnm,bndm->bnd", p, v))


class TwoSteps(Attention):
    """What multiplies the values is the product of a map with itself."""

    def forward(self, x):
        q, k, v = self.qkv(x)
        p = (q @ k.mT * d**-0.5).softmax(-1)
        return self.out((p @ p) @ v)


class Operator(Attention):
    """The fused call by its operator, which hands itself to nobody."""

    def forward(self, x):
        return self.out(torch.ops.aten.scaled_dot_product_attention(*self.qkv(x)))


class RowByRow(Attention):
    """A query after another, put below one another."""

    def forward(self, x):
        q, k, v = self.qkv(x)
        rows = [(one @ k.mT * d**-0.5).softmax(-1) @ v for one in q.split(1, 2)]
        return self.out(torch.cat(rows, 2))


class Halved(Attention):
    """Two pieces of as many queries, put below one another where heads lie behind."""

    def forward(self, x):
        q, k, v = self.qkv(x)
        rows = [((one @ k.mT * d**-0.5).softmax(-1) @ v).transpose(1, 2) for one in q.chunk(2, 2)]
        return self.wo(torch.cat(rows, 1).flatten(2))


@pytest.mark.parametrize(
    ("attention", "about"),
    [
        (Gathered, "a softmax at h.0.attn was followed by no product with values that is known"),
        (TwoSteps, "maps at h.0.attn are multiplied with one another, and the recorder does not follow their product"),
        (Operator, "a tensor of unknown origin at h.0.attn, in transpose"),
    ],
)
def test_attention_that_is_not_seen_is_named(attention, about):
    trace = vf.record(GPT(attention), ids())
    assert not trace.sites
    assert about in [str(said) for said in trace.escaped]


class Placed(Attention):
    """Each piece written where room was made, with the keys that it needs."""

    def forward(self, x):
        q, k, v = self.qkv(x)
        room, blocked = torch.empty_like(q), future(x.shape[1])
        for first in range(0, x.shape[1], 3):
            rows = slice(first, first + 3)
            end = min(first + 3, x.shape[1])
            scores = q[:, :, rows] @ k[:, :, :end].mT * d**-0.5
            room[:, :, rows] = scores.masked_fill(blocked[rows, :end], -torch.inf).softmax(-1) @ v[:, :, :end]
        return self.out(room)


class Local(Attention):
    """Each piece reads the keys of its own neighbourhood."""

    def forward(self, x):
        q, k, v = self.qkv(x)
        rows = [
            (a @ b.mT * d**-0.5).softmax(-1) @ c
            for a, b, c in zip(*(one.split(4, 2) for one in (q, k, v)), strict=True)
        ]
        return self.out(torch.cat(rows, 2))


@pytest.mark.parametrize(("attention", "like"), [(RowByRow, "Flattened"), (Halved, "Flattened"), (Placed, "Separate")])
def test_queries_that_are_read_in_pieces_are_one_attention(attention, like):
    trace = vf.record(GPT(attention), ids(2, 8)).of_item(1)
    found, whole = trace["h.0.attn"], vf.record(GPT(KINDS[like]), ids(2, 8)).of_item(1)["h.0.attn"]
    assert (found.n_heads, found.n_q, found.n_k) == (H, 8, 8)
    assert not trace.escaped
    assert found.is_exact
    assert_close(found.maps(), whole.maps())
    assert_close(found.q * (d**-0.5 if like == "Flattened" else 1), whole.q)
    assert_close(found.k, whole.k)
    assert_close(found.v, whole.v)
    assert_close(found.z(2), whole.z(2))
    assert_close(found.record.pattern(1), whole.pattern(1))
    if attention is not Placed:
        assert_close(found.scores(3), whole.scores(3))
    weights = next(step for step in trace.steps("h.0.attn", 1, 5) if step.group == "softmax")
    assert_close(weights.result.x.flatten()[:6], whole.pattern(1)[5, :6], check_dtype=False)
    assert check(GPT(attention), ids(2, 8)).said == ()
    assert trace.nbytes < 1.1 * vf.record(GPT(KINDS[like]), ids(2, 8)).nbytes  # keys are kept once
    assert len(trace.as_trace().sites) == 2


class PlacedByNumbers(Attention):
    """Each piece is written to the rows that an array of numpy counts."""

    def forward(self, x):
        q, k, v = self.qkv(x)
        room = torch.empty_like(q)
        for rows in np.array_split(np.arange(x.shape[1]), 2):
            room[:, :, rows] = (q[:, :, rows] @ k.mT * d**-0.5).softmax(-1) @ v
        return self.out(room)


def test_pieces_that_are_written_to_counted_rows_are_named():
    trace = vf.record(GPT(PlacedByNumbers), ids(1, 8))
    assert [one.n_q for one in trace.runs("h.0.attn")] == [4, 4]
    assert str(trace.escaped[0]) == "h.0.attn has 4 queries for 8 tokens: they are not its tokens one by one"


def test_a_score_that_no_piece_has_is_not_made_up():
    with pytest.raises(TraceError, match="a score of every key"):
        vf.record(GPT(Placed), ids(1, 8))["h.0.attn"].scores(0)


def test_pieces_with_keys_of_their_own_are_named():
    trace = vf.record(GPT(Local), ids(1, 8))
    assert [one.n_k for one in trace.runs("h.0.attn")] == [4, 4]
    assert str(trace.escaped[0]) == "h.0.attn has 4 queries for 8 tokens: they are not its tokens one by one"


def test_nothing_is_set_by_hand_where_queries_are_read_in_pieces():
    checkpoint = vf.wrap(GPT(Placed), Letters())
    with pytest.raises(TraceError, match="in pieces"):
        checkpoint.trace("a cat sat", edit=Edit(patches=(Patch("decoder.0.self.z", (2,), 0.0),)))


def test_texts_are_counted_in_the_stream_where_what_goes_in_first_has_none():
    class PlacesFirst(GPT):
        def forward(self, at, given):
            x = self.wte(given) + self.wpe(at)
            for block in self.h:
                x = block(x)
            return self.lm_head(self.ln_f(x))

    model = PlacesFirst()
    trace = vf.record(model, torch.arange(7), ids(3))
    assert trace["h.0.attn"].n_heads == H
    for item in range(3):
        assert_close(trace.of_item(item)["h.1.attn"].maps(), model.maps[1][item], rtol=0, atol=1e-6)


def run_alone(model, given, inference):
    with torch.inference_mode(inference), torch.no_grad(), vf.recording(model) as trace:
        model(given)
    return trace


@pytest.mark.parametrize("inference", [False, True])
def test_scores_that_change_by_way_of_a_view_are_named(inference):
    said = [str(one) for one in run_alone(GPT(WithoutItself), ids(), inference).escaped]
    assert said == [f"scores or weights at h.{n}.attn were changed in place by way of a view" for n in (0, 1)]


@pytest.mark.parametrize("inference", [False, True])
def test_each_layer_keeps_the_mask_that_it_had(inference):
    with torch.inference_mode(inference):
        model = GPT(MovedMask)
        model.h[1].attn.mask = model.h[0].attn.mask
    trace = run_alone(model, ids(), inference)
    for site, shown in zip(trace.sites, model.maps, strict=True):
        assert_close(trace[site].maps(), shown[0], rtol=0, atol=1e-6)
    assert not trace.escaped


@pytest.mark.parametrize("inference", [False, True])
def test_scores_and_weights_that_are_written_into_buffers_are_followed(inference):
    model = GPT(IntoBuffers)
    trace = run_alone(model, ids(2), inference)
    assert not trace.escaped
    for site, shown in zip(trace.sites, model.maps, strict=True):
        assert_close(trace.of_item(1)[site].maps(), shown[1], rtol=0, atol=1e-6)
        assert trace[site].is_exact


def test_weights_that_are_divided_after_the_product_are_named():
    said = [str(one) for one in vf.record(GPT(DividedAfter), ids()).escaped]
    assert len(said) == 2
    assert all("the weights are shares of what is drawn" in one for one in said)


def test_the_larger_of_scores_and_a_number_is_on_the_way_to_a_map():
    model = GPT(Clamped)
    trace = vf.record(model, ids())
    assert not trace.escaped
    assert_close(trace["h.0.attn"].maps(), model.maps[0][0], rtol=0, atol=1e-6)


def test_parts_of_z_are_no_more_heads():
    trace = vf.record(GPT(Halves), ids())
    assert [one.n_heads for one in trace.runs("h.0.attn")] == [H, H]
    first, second = trace.runs("h.0.attn")
    assert_close(first.maps(), second.maps(), rtol=0, atol=0)


@pytest.mark.parametrize("n", [H, 7])
def test_scores_that_choose_tokens_are_no_attention(n):
    model = GPT(Indexed)
    trace = vf.record(model, ids(n=n))
    assert len(trace.calls) == 2
    assert_close(trace["h.0.attn"].maps(), model.maps[0][0], rtol=0, atol=1e-6)
    assert check(model, ids(n=n)).exact


def test_z_that_is_scaled_by_its_own_scores_is_named():
    found = check(GPT(Scaled), ids())
    assert found.exact
    assert not found.whole
    assert "the weights are shares of what is drawn" in str(found.said[0])


def test_a_query_whose_keys_are_all_blocked_by_a_number_has_equal_weights():
    one = vf.record(GPT(AllBlocked), ids())["h.0.attn"]
    assert one.is_exact
    assert one.prove(2, 0).holds
    assert_close(one.pattern(2)[0], torch.full((7,), 1 / 7))
    assert_close(one.record.pattern(2)[0], torch.full((7,), 1 / 7))


def test_blocks_of_several_classes_have_one_stream():
    class Other(Block):
        pass

    model = GPT()
    model.h[1] = Other(Separate).eval()
    trace = vf.record(model, ids())
    assert trace.streams == ("h", "h.0", "h.1")
    assert check(model, ids()).whole


def test_a_list_with_a_gap_is_no_list_of_blocks():
    """x-transformers: a norm that is left out is None in its list."""
    model = GPT()
    for block in model.h:
        block.norms = nn.ModuleList([None, nn.LayerNorm(D)])
    assert vf.record(model, ids()).streams == ("h", "h.0", "h.1")


def test_an_attention_and_a_feed_forward_in_a_list_are_no_blocks():
    """vit-pytorch: the stream does not run from the one to the other."""

    class Pairs(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(4)
            mlp = [nn.Sequential(nn.Linear(D, D), nn.GELU(), nn.Linear(D, D)) for _ in range(2)]
            self.layers = nn.ModuleList(nn.ModuleList([Separate(), one]) for one in mlp)

        def forward(self, x):
            for attention, mlp in self.layers:
                x = x + attention(x)
                x = x + mlp(x)
            return x

    model, x = Pairs().eval(), torch.randn(1, 6, D)
    trace = vf.record(model, x)
    assert not trace.streams
    assert trace.sites == ("layers.0.0", "layers.1.0")
    found = check(model, x)
    assert found.exact
    assert found.mixing is None
