"""The steps behind a head and a query are the author's own calls: they lead to the recorded map and z, and are proved."""

import threading

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import vizformer as vf
from tests.recorder.hand_written import GPT, KINDS, Cached, D, Fused, H, Separate, ids
from vizformer.errors import TraceError
from vizformer.recorder import op_recorder
from vizformer.recorder.op_recorder import difference
from vizformer.recorder.op_steps import GROUPS, Again, attention_ops

HEAD, QUERY = 2, 4


def numbers(step):
    return step.result.x.flatten()


def last(steps, group):
    return [step for step in steps if step.group == group][-1]


@pytest.mark.parametrize("name", KINDS)
def test_steps_of_a_style_lead_to_its_map_and_z(name):
    trace = vf.record(GPT(KINDS[name]), ids(2)).of_item(1)
    site = trace.sites[1]
    steps = trace.steps(site, HEAD, QUERY)
    groups = list(dict.fromkeys(step.group for step in steps))
    moved = {"Flattened", "Torch"}  # these scale q before the product
    assert groups == [one for one in GROUPS if one != "q and k" or name in moved]
    weights = numbers(last(steps, "softmax"))[:7]  # without the column of a sink
    assert_close(weights, trace[site].pattern(HEAD)[QUERY], rtol=0, atol=1e-6)
    assert_close(numbers(last(steps, "weighted sum")), trace[site].z(HEAD)[QUERY], rtol=0, atol=1e-6)
    x = trace.residual("h.0")
    assert_close(steps[0].result.x.reshape(-1, D), x)
    mlp = trace.layer_steps("h.1", QUERY)
    assert_close(numbers(mlp[-1]), trace.residual("h.1")[QUERY])
    entry = next(step for step in mlp if step.name == "attention")
    every = torch.stack([trace[site].z(head)[QUERY] for head in range(H)]).flatten()
    assert_close(entry.result.x.flatten().sort().values, every.sort().values)
    for step in (*steps, *mlp):
        assert step.error is None or step.error < 1e-5
        assert step.holds
        assert (step.error is None) == (step.name in ("input", "attention"))
        assert step.source is None or step.source.file == "tests/recorder/hand_written.py"
        for operand in step.operands:
            assert all(at < len(steps) for at in operand.of)
    assert [step.group for step in mlp][-1] == ""  # the block's own sum
    assert {"ln_2", "mlp"} <= {step.group for step in mlp}


def test_a_step_names_its_line_its_weights_and_the_steps_before():
    steps = vf.record(GPT(), ids()).steps("h.1.attn", HEAD, -1)
    q = next(step for step in steps if step.operands[1:2] and step.operands[1].weight == "h.1.attn.wq.weight")
    assert (q.group, q.name, q.module, q.module_class) == ("projections", "linear", "h.1.attn.wq", "Linear")
    assert q.source.part == "self.wq(x)"
    assert q.source.text.startswith("return split(self.wq(x))")
    assert_close(q.operands[1].numbers.x, GPT().h[1].attn.wq.weight[8:12].detach())  # the rows of head 2
    at = steps.index(q)
    product = next(step for step in steps if step.group == "scores")
    assert product.operands[0].of == (at,)
    assert set(product.moves) == {"unflatten", "transpose"}
    assert product.source.part == "q @ k.transpose(-2, -1)"
    assert_close(product.operands[0].numbers.x.flatten(), numbers(q))
    total = steps[-1]
    assert total.operands[0].of == (0,)  # the stream
    assert "h.1" in repr(steps[0])


def test_lines_inside_torch_are_said_by_their_module():
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 24, batch_first=True), 2).eval()
    x = torch.randn(1, 6, 16)
    trace = vf.record(model, x)
    steps = trace.steps("layers.1.self_attn", 1, 3)
    assert {step.source for step in steps} == {None}
    assert {"layers.1.self_attn: MultiheadAttention"} <= {f"{step.module}: {step.module_class}" for step in steps}
    assert_close(numbers(last(steps, "softmax")), trace["layers.1.self_attn"].pattern(1)[3], rtol=0, atol=1e-6)
    assert_close(numbers(last(steps, "weighted sum")), trace["layers.1.self_attn"].z(1)[3], rtol=0, atol=1e-6)
    assert [step.group for step in steps][-1] == "sum"


def test_a_decoder_reads_its_memory():
    torch.manual_seed(1)
    model = nn.Transformer(16, 4, 2, 2, 24, batch_first=True).eval()
    trace = vf.record(model, torch.randn(1, 7, 16), torch.randn(1, 5, 16))
    steps = trace.steps("decoder.layers.1.multihead_attn", 3, 2)
    memory = next(step for step in steps if step.name == "memory")
    assert memory.result.shape == (7, 1, 16)  # torch turns it
    assert_close(numbers(last(steps, "weighted sum")), trace["decoder.layers.1.multihead_attn"].z(3)[2])
    assert not any("self_attn" in step.module for step in steps)  # what came before is the stream


def test_steps_of_a_generation_with_a_cache():
    model, given = Cached(), ids(1, 4)

    def run():
        return model.generate(given, 6)

    with torch.no_grad(), vf.recording(model) as trace:
        run()
    with pytest.raises(TraceError, match=r"vf\.record"):
        trace.steps("h.0.attn", 0, 0)
    trace.again = Again(model, run)
    steps = trace.steps("h.1.attn", HEAD, 7)  # the query of a step of its own
    attention = trace["h.1.attn"]
    assert_close(numbers(last(steps, "softmax")), attention.pattern(HEAD)[7, :8], rtol=0, atol=1e-6)
    assert_close(numbers(last(steps, "weighted sum")), attention.z(HEAD)[7], rtol=0, atol=1e-6)


def test_a_number_that_is_not_what_the_call_gives_is_noticed(monkeypatch):
    def wrong(result, again, terms):
        changed = result.clone()
        changed.view(-1)[-1] += 1e-3
        return difference(changed, again, terms)

    monkeypatch.setattr(op_recorder, "difference", wrong)
    steps = vf.record(GPT(), ids()).steps("h.1.attn", HEAD, QUERY)
    tried = [step for step in steps if step.error is not None]
    assert len(tried) > 8
    masked = [step for step in tried if not step.result.x.isfinite().all()]
    assert not any(step.holds for step in tried if step not in masked)


def test_a_product_of_other_weights_is_noticed():
    class Wrong(Separate):
        """Its product is not that of the numbers that it was handed."""

        def forward(self, x):
            out = super().forward(x)
            return Changed.apply(out)

    class Changed(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x + torch.rand_like(x)

    model = GPT(Wrong)
    trace = vf.record(model, ids())
    with pytest.raises(TraceError, match="other numbers each time"):
        trace.steps("h.1.attn", 0, 6)  # the stream that enters is another one each time


def test_infinite_and_masked_numbers_are_compared():
    minus = torch.tensor([-torch.inf, 1.0, torch.nan])
    assert difference(minus, minus.double(), torch.ones(3)) == (0.0, True)
    assert not difference(torch.tensor([-torch.inf]), torch.tensor([0.0]).double(), torch.ones(1))[1]
    lowest = torch.finfo(torch.float32).min
    assert difference(torch.tensor([lowest]), torch.tensor([lowest]).double() * 1.0001, torch.ones(1))[1]
    assert not difference(torch.tensor([2.0]), torch.tensor([2.1]).double(), torch.ones(1))[1]
    assert difference(torch.tensor([5.0]).bfloat16(), torch.tensor([5.01]).double(), torch.tensor([5.0]))[1]


def test_only_what_a_head_and_a_query_need_is_kept():
    model = GPT(Fused)
    trace = vf.record(model, ids(1, 30))
    steps = trace.steps("h.1.attn", HEAD, QUERY)
    assert max(step.result.x.numel() for step in steps) <= 30 * 16  # no [n, n] of all heads
    small = attention_ops(trace, trace["h.1.attn"], HEAD, QUERY, room=16 * 500)
    kept = [one.x for step in small for one in (step.result, *(part.numbers for part in step.operands))]
    assert any(x is None for x in kept)
    assert sum(x.numel() * 4 for x in kept if x is not None) <= 16 * 500
    assert all(a.error == b.error for a, b in zip(steps, small, strict=True))  # proved all the same


def test_wrong_places_are_refused():
    trace = vf.record(GPT(), ids())
    for site, head, query, match in (
        ("h.9.attn", 0, 0, "h.0.attn, h.1.attn"),
        ("h.0.attn", 4, 0, "choose 0 to 3"),
        ("h.0.attn", 0, 7, "choose 0 to 6"),
    ):
        with pytest.raises(TraceError, match=match):
            trace.steps(site, head, query)
    with pytest.raises(TraceError, match=r"h\.0, h\.1"):
        trace.layer_steps("h", 0)


def test_steps_while_other_threads_run_the_model():
    model, given = GPT(), ids()
    trace = vf.record(model, given)
    alone = trace.steps("h.1.attn", HEAD, QUERY)
    with torch.no_grad():
        plain = model(given)
    failed: list[object] = []

    def steps():
        for _ in range(5):
            mine = trace.steps("h.1.attn", HEAD, QUERY)
            if [step.error for step in mine] != [step.error for step in alone]:
                failed.append(mine)

    def run():
        with torch.no_grad():
            for _ in range(40):
                if not torch.equal(model(given), plain):
                    failed.append("plain")

    threads = [threading.Thread(target=work) for work in (steps, run, steps, run)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
