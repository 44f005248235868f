"""One row of what is drawn is proved each time: what is not the model's is said, or not drawn."""

import pytest
import torch

import vizformer as vf
from tests.recorder.hand_written import GPT, KINDS, Attention, Cached, H, d, ids
from vizformer.errors import TraceError


class InPlace(Attention):
    """Queries are changed after their product: what is computed again from them is something else."""

    def forward(self, x):
        q, k, v = self.qkv(x)
        scores = q @ k.mT * d**-0.5
        q.mul_(3.0)
        return self.out(scores.softmax(-1) @ v)


@pytest.mark.parametrize("name", KINDS)
def test_rows_of_a_style_are_proved(name):
    trace = vf.record(GPT(KINDS[name]), ids(2))
    for item in range(2):
        for one in trace.of_item(item).attention:
            assert one.unproved is None
            for query in (0, 3, -1):
                proof = one.prove(H - 1, query)
                assert proof.holds
                assert proof.query == query % 7
                assert (proof.weights is None) == (name == "ReluAttention")
                assert proof.z < 1e-5


def test_a_row_that_is_not_the_models_is_found():
    one = vf.record(GPT(), ids())["h.0.attn"]
    row = one.pattern(1)[4].clone()
    assert one.prove(1, 4, row).holds
    row[0], row[1] = row[1].clone(), row[0].clone()
    proof = one.prove(1, 4, row)
    assert not proof.holds
    assert "row 4 of head 1 at h.0.attn" in str(proof.said)
    assert not one.prove(1, 3, one.pattern(1)[2]).holds
    assert not one.prove(1, 4, one.pattern(2)[4]).holds


def test_rows_of_a_cache_are_proved():
    model = Cached()
    with torch.no_grad(), vf.recording(model) as trace:
        model.generate(ids(n=4), 3)
    one = trace["h.1.attn"]
    assert all(one.prove(head, query).holds for head in range(H) for query in range(one.n_q))
    assert one.unproved is None


def test_a_map_that_is_not_the_models_is_labelled_and_is_no_trace_of_the_app():
    trace = vf.record(GPT(InPlace), ids())
    assert trace["h.0.attn"].unproved is not None
    assert any("is not what it computed" in str(note) for note in vf.view(trace).notes)
    assert not any("is not what it computed" in str(note) for note in vf.view(vf.record(GPT(), ids())).notes)
    with pytest.raises(TraceError, match="is not what it computed"):
        trace.as_trace()


def test_a_head_or_query_that_is_not_there_is_refused():
    one = vf.record(GPT(), ids())["h.0.attn"]
    with pytest.raises(TraceError, match="choose 0 to 3"):
        one.prove(4)
    with pytest.raises(TraceError, match="choose 0 to 6"):
        one.prove(0, 7)
