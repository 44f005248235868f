"""Mixtures of experts: what the trace keeps, edits of the router, files, and what needs one network for all tokens."""

from pathlib import Path
from typing import Any

import pytest
import torch

from tests import tiny
from tests.eager_transformer import Eager
from vizformer.analysis.causes.ablation import Part, without
from vizformer.analysis.vectors.neurons import firing, raised_most, silent_by_layer
from vizformer.checkpoints import load, save
from vizformer.errors import CheckpointError, TraceError
from vizformer.generation import greedy_steps
from vizformer.model import Cell, Edit, Patch, Trace, trace_file

KINDS: dict[str, dict[str, Any]] = {"mixtral": tiny.MIXTRAL, "qwen2_moe": tiny.QWEN2_MOE}
everywhere = pytest.mark.parametrize("name", KINDS)
ROUTER, TEXT = "decoder.1.feedforward.router", "I have a cat."


def run(name: str, ids: torch.Tensor, **said: Any) -> Trace:
    with torch.inference_mode():
        tiny.model("decoder-only", **KINDS[name])(ids, trace=(trace := Trace()), **said)
    return trace


@everywhere
def test_the_trace_keeps_whom_each_token_chose(name: str) -> None:
    model, ids = tiny.model("decoder-only", **KINDS[name]), tiny.ids(9).repeat(2, 1)
    trace = run(name, ids)
    with torch.inference_mode():
        assert torch.equal(model(ids)[0], trace.logits)  # looking changes nothing
    eager = Eager(model).run(ids[0])
    assert list(trace.routings) == [f"decoder.{i}.feedforward" for i in range(2) if model.config.has_experts(i)]
    for site, routing in trace.routings.items():
        chosen = eager.routings[site.replace("decoder.", "decoder.layers.")]
        for row, expected in enumerate(chosen):
            assert routing.chosen[row].tolist() == list(expected)
            assert routing.weights[row].tolist() == pytest.approx(list(expected.values()), abs=1e-5)
        assert routing.probabilities.sum(-1).tolist() == pytest.approx([1.0] * 9)
        assert (routing.opened is None) == (name == "mixtral")
        one = trace.routing(site)
        assert one is routing
    with pytest.raises(TraceError, match=r"no experts at .decoder.7.feedforward.\. It has: decoder.*feedforward"):
        trace.routing("decoder.7.feedforward")
    kept = trace_file.tensors(trace)
    assert torch.equal(kept["decoder.1.feedforward.experts"], trace.routing("decoder.1.feedforward").chosen)
    assert (ROUTER in kept, "decoder.1.feedforward.opened" in kept) == (True, name == "qwen2_moe")
    small = Trace(_residuals=trace._residuals, _records=trace._records, _logits=trace._logits)
    assert trace.nbytes > small.nbytes


@everywhere
def test_items_of_a_batch_do_not_see_each_others_experts(name: str) -> None:
    model, ids = tiny.model("decoder-only", **KINDS[name]), torch.cat([tiny.ids(7), tiny.ids(7, seed=3)])
    with torch.inference_mode():
        together = model(ids)
        for item in (0, 1):
            tiny.assert_close(together[item], model(ids[[item]])[0])


@everywhere
def test_the_cache_writes_the_same_text(name: str) -> None:
    model, prompt = tiny.model("decoder-only", **{**KINDS[name], "eos_id": None}), tiny.ids(5)[0].tolist()
    written = [step.id for step in greedy_steps(model, prompt, max_new=8)]
    for n, id in enumerate(written):
        with torch.inference_mode():
            assert int(model(torch.tensor([prompt + written[:n]]))[0, -1].argmax()) == id


@everywhere
def test_a_router_set_by_hand_chooses_other_experts(name: str) -> None:
    ids = tiny.ids(6)
    plain = run(name, ids)
    last = plain.routing("decoder.1.feedforward").scores.shape[1] - 1
    for edit in (Edit((Cell(ROUTER, (2, last), 50.0),)), Edit(patches=(Patch(ROUTER, (2, last), 50.0),))):
        edited = run(name, ids, edit=edit)
        edit.check(edited.editable())
        before, after = (trace.routing("decoder.1.feedforward") for trace in (plain, edited))
        assert int(after.chosen[2, 0]) == last
        assert float(after.weights[2, 0]) == pytest.approx(1.0)
        moved = edited.residual("decoder.1.post") - plain.residual("decoder.1.post")
        changed = (moved.abs() > 1e-5).any(-1)  # rows of other experts may round otherwise
        assert changed.tolist() == [row == 2 for row in range(6)]
        assert torch.equal(before.chosen[[0, 1, 3, 4, 5]], after.chosen[[0, 1, 3, 4, 5]])
    with pytest.raises(TraceError, match=r"decoder.1.feedforward is a mixture of experts.*Set the router's scores"):
        run(name, ids, edit=Edit(patches=(Patch("decoder.1.feedforward.hidden", (), 0.0),)))
    with pytest.raises(TraceError, match=r"nothing called decoder\.0\.self\.router"):
        Edit((Cell("decoder.0.self.router", (0, 0), 1.0),)).check(plain.editable())


@everywhere
def test_own_files_keep_everything(name: str, tmp_path: Path) -> None:
    checkpoint = tiny.checkpoint("decoder-only", **KINDS[name])
    save(checkpoint, tmp_path, torch.float32)
    again = load(tmp_path)
    assert again.model.config == checkpoint.model.config
    kept = again.model.state_dict()
    assert all(torch.equal(kept[name], tensor) for name, tensor in checkpoint.model.state_dict().items())
    # The same weights at another place in memory: on some processors the last bit of a sum depends on that.
    tiny.assert_close(again.trace(TEXT).logits, checkpoint.trace(TEXT).logits, 1e-6)


def test_experts_of_a_width_that_no_layout_has_stay(tmp_path: Path) -> None:
    checkpoint = tiny.checkpoint("decoder-only", **tiny.MIXTRAL)
    with pytest.raises(CheckpointError, match=r"it comes nearest to Mixtral, apart from d_expert=12\."):
        save(checkpoint, tmp_path, layout="hugging-face")


@everywhere
def test_what_needs_neurons_says_so_and_the_rest_works(name: str) -> None:
    checkpoint = tiny.checkpoint("decoder-only", **KINDS[name])
    trace = checkpoint.trace(TEXT)
    with pytest.raises(
        TraceError, match=r"of decoder layer 1 is a mixture of . experts, of which each token goes through"
    ):
        firing(checkpoint, trace, "decoder", 1, 0)
    with pytest.raises(TraceError, match=r"is a mixture of . experts"):
        raised_most(checkpoint, [(TEXT, None)], "decoder")
    shares = silent_by_layer(checkpoint, trace, "decoder")
    assert ((shares > 0) & (shares < 1)).all()
    left = without(checkpoint, trace, [Part("decoder.1.feedforward")])
    assert torch.equal(left.residual("decoder.1.post"), left.residual("decoder.1.mid"))
    found = checkpoint.model
    assert sum(parameter.numel() for parameter in found.parameters()) > found.config.idle_parameters > 0


def test_gradients_reach_the_experts_that_computed_and_the_router() -> None:
    model = tiny.model("decoder-only", **tiny.QWEN2_MOE)
    trace = Trace()
    model(tiny.ids(3), trace=trace).sum().backward()
    network = model.get_submodule("decoder.layers.1.feedforward")
    used = set(trace.routing("decoder.1.feedforward").chosen.flatten().tolist())
    assert 0 < len(used) < 6
    for number in range(6):
        weight = network.get_parameter(f"experts.{number}.W_in.weight")
        assert (weight.grad is not None) == (number in used)
    for name in ("router.weight", "shared_gate.weight", "shared.W_out.weight"):
        assert float(network.get_parameter(name).grad.abs().sum()) > 0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_other_precisions_compute_in_theirs(dtype: torch.dtype) -> None:
    model, ids = tiny.model("decoder-only", **tiny.QWEN2_MOE), tiny.ids(6)
    with torch.inference_mode():
        expected = model(ids)
        model.to(dtype).materialise_buffers()
        found = model(ids)
    assert found.dtype == dtype
    assert float((found - expected).abs().max()) < (0.1 if dtype == torch.bfloat16 else 1e-5)
