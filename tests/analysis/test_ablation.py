"""Parts taken out of a forward: identities, a plain recomputation, and the circuit that was built by hand."""

import math

import numpy as np
import pytest
import torch

from tests import tiny
from tests.bundled import load
from vizformer.analysis.causes.ablation import (
    Part,
    by_head,
    edit_without,
    parts_of,
    sweep,
    without,
)
from vizformer.analysis.causes.part_outputs import mean_outputs
from vizformer.errors import TraceError
from vizformer.model import Edit, Patch

KINDS_OF_MODEL = {
    "post-norm": dict(architecture="encoder-decoder"),
    "pre-norm": dict(architecture="decoder-only", norm_order="pre"),
    "grouped": dict(architecture="decoder-only", norm_order="pre", n_kv_heads=2),
    "no norms": dict(architecture="decoder-only", norm_order="none"),
    "no residual": dict(architecture="decoder-only", residual="none"),
    "encoder": dict(architecture="encoder-only"),
}


def made(name: str):
    """A tiny checkpoint with random weights, and a trace of some tokens."""
    checkpoint = tiny.checkpoint(**KINDS_OF_MODEL[name])
    target = dict(target_ids=[1, 7, 9, 4]) if name == "post-norm" else {}
    return checkpoint, checkpoint.trace(ids=[5, 6, 7, 8, 9], **target)


@pytest.mark.parametrize("name", KINDS_OF_MODEL)
def test_nothing_taken_out_changes_nothing(name: str) -> None:
    checkpoint, trace = made(name)
    assert torch.equal(without(checkpoint, trace, []).logits, trace.logits)
    assert trace.edit is None


@pytest.mark.parametrize("name", KINDS_OF_MODEL)
def test_without_all_heads_only_the_bias_of_the_output_is_left(name: str) -> None:
    checkpoint, trace = made(name)
    for site in trace.sites:
        heads = [Part(site, head) for head in range(trace[site].n_heads)]
        attention = checkpoint.model.get_submodule(_path(site))
        bias = torch.zeros(checkpoint.model.config.d_model) if attention.W_O.bias is None else attention.W_O.bias
        edit = Edit(patches=(Patch(site, (), bias.detach()),))
        ids = {stack: [token.id for token in tokens] for stack, tokens in trace.tokens.items()}
        given = dict(ids=ids.get("encoder", ids.get("decoder")))
        if len(ids) == 2:
            given["target_ids"] = ids["decoder"]
        expected = checkpoint.trace(**given, edit=edit)
        found = without(checkpoint, trace, heads)
        assert torch.equal(found.logits, expected.logits)
        assert not torch.equal(found.logits, trace.logits)


def _path(site: str) -> str:
    stack, layer, kind = site.split(".")
    return f"{stack}.layers.{layer}.{'cross' if kind == 'cross' else 'self'}_attention"


@pytest.mark.parametrize("name", ["pre-norm", "grouped"])
def test_one_head_is_taken_out_as_its_rows_of_w_o_are(name: str) -> None:
    checkpoint, trace = made(name)
    found = without(checkpoint, trace, [Part("decoder.1.self", 2)]).logits
    other = tiny.checkpoint(**KINDS_OF_MODEL[name])
    attention = other.model.decoder.layers[1].self_attention
    with torch.no_grad():
        attention.W_O.weight[:, 2 * attention.d_head : 3 * attention.d_head] = 0.0
    tiny.assert_close(found, other.trace(ids=[5, 6, 7, 8, 9]).logits)


@pytest.mark.parametrize(("name", "sublayer"), [("pre-norm", "self"), ("pre-norm", "feedforward")])
def test_a_sublayer_that_is_taken_out_adds_nothing(name: str, sublayer: str) -> None:
    checkpoint, trace = made(name)
    found = without(checkpoint, trace, [Part(f"decoder.0.{sublayer}")])
    if name == "pre-norm":
        before, after = ("pre", "mid") if sublayer == "self" else ("mid", "post")
        assert torch.equal(found.residual(f"decoder.0.{after}"), found.residual(f"decoder.0.{before}"))
    layer = tiny.checkpoint(**KINDS_OF_MODEL[name])
    block = layer.model.decoder.layers[0]
    with torch.no_grad():
        last = block.self_attention.W_O if sublayer == "self" else block.feedforward.W_out
        last.weight.zero_()
        if last.bias is not None:
            last.bias.zero_()
    assert torch.equal(found.logits, layer.trace(ids=[5, 6, 7, 8, 9]).logits)


@pytest.mark.parametrize("name", KINDS_OF_MODEL)
@pytest.mark.sample(3)
def test_the_effects_are_those_of_a_plain_recomputation(name: str) -> None:
    checkpoint, trace = made(name)
    row, token = 2, 11
    heard = list[tuple[int, int]]()
    effects = sweep(checkpoint, trace, row, token, heard=lambda *told: heard.append(told))
    assert [one.part for one in effects] == list(parts_of(trace))
    assert heard[-1] == (len(effects), len(effects))
    for one in effects:
        base, other = (x.double().numpy() for x in (trace.logits, without(checkpoint, trace, [one.part]).logits))
        p, q = (np.exp(x) / np.exp(x).sum(-1, keepdims=True) for x in (base, other))
        assert one.divergence == pytest.approx((p[row] * np.log(p[row] / q[row])).sum(), abs=1e-6)
        assert one.logit == pytest.approx(other[row, token] - base[row, token], abs=1e-6)
        assert one.probability == pytest.approx(q[row, token] - p[row, token], abs=1e-6)
        if "decoder" not in trace.tokens:
            assert one.loss is None
            continue
        ids = [item.id for item in trace.tokens["decoder"]]
        losses = [-np.mean([math.log(x[i, ids[i + 1]]) for i in range(len(ids) - 1)]) for x in (p, q)]
        assert one.loss == pytest.approx(losses[1] - losses[0], abs=1e-6)


def test_means_over_texts_take_the_place_of_heads() -> None:
    checkpoint, trace = made("pre-norm")
    others = [checkpoint.trace(ids=ids) for ids in ([4, 5], [9, 8, 7])]
    part = Part("decoder.1.self", 3)
    means = mean_outputs(checkpoint, others)
    tiny.assert_close(means[part], torch.cat([other["decoder.1.self"].z(3) for other in others]).mean(0))
    mean, zero = (without(checkpoint, trace, [part], given).logits for given in (means, None))
    assert not torch.allclose(mean, zero)
    same = {part: trace["decoder.1.self"].z(3)}  # a row for each position: nothing changes
    tiny.assert_close(without(checkpoint, trace, [part], same).logits, trace.logits)


@pytest.mark.parametrize("name", KINDS_OF_MODEL)
@pytest.mark.sample(3)
def test_means_over_texts_take_the_place_of_whole_sublayers(name: str) -> None:
    """What a module of torch hands out is heard by a hook and averaged by hand; a hook puts it into every row of a text."""
    checkpoint, trace = made(name)
    stack = "decoder" if checkpoint.model.decoder is not None else "encoder"
    block = getattr(checkpoint.model, stack).layers[1]
    modules = {"self": block.self_attention, "cross": block.cross_attention, "feedforward": block.feedforward}
    for kind, module in modules.items():
        if module is None:
            continue
        part = Part(f"{stack}.1.{kind}")
        heard = list[torch.Tensor]()
        handle = module.register_forward_hook(lambda *call, heard=heard: heard.append(call[2][0]))
        others = [again(checkpoint, trace, ids) for ids in ([4, 5], [9, 8, 7])]
        handle.remove()
        means = mean_outputs(checkpoint, others)
        tiny.assert_close(means[part], torch.cat(heard).mean(0))
        handle = module.register_forward_hook(lambda *call, row=means[part]: row.expand_as(call[2]))
        replaced = again(checkpoint, trace).logits
        handle.remove()
        found = without(checkpoint, trace, [part], means).logits
        tiny.assert_close(found, replaced)
        assert not torch.allclose(found, without(checkpoint, trace, [part]).logits)


def again(checkpoint, trace, last=None):
    """The same tokens once more, or others in the last stack."""
    ids = {stack: [token.id for token in tokens] for stack, tokens in trace.tokens.items()}
    ids[list(ids)[-1]] = last or list(ids.values())[-1]
    more = dict(target_ids=ids["decoder"]) if len(ids) == 2 else {}
    return checkpoint.trace(ids=next(iter(ids.values())), **more)


def test_a_mean_of_no_text_is_refused() -> None:
    with pytest.raises(TraceError, match="There is no other text"):
        mean_outputs(made("pre-norm")[0], [])


@pytest.mark.parametrize(
    "part",
    [
        Part("decoder.9.self"),
        Part("decoder.0.self", 4),
        Part("decoder.0.cross"),
        Part("decoder.0.feedforward", 1),
        Part("x"),
    ],
)
def test_a_part_that_is_not_there_is_refused(part: Part) -> None:
    checkpoint, trace = made("pre-norm")
    with pytest.raises(TraceError, match=r"nothing called|no cell \[4\]"):
        without(checkpoint, trace, [part])


def test_generation_goes_on_without_the_part() -> None:
    checkpoint, _ = made("pre-norm")
    edit = edit_without([Part("decoder.0.self", 1)])
    prompt = "a"
    steps = list(checkpoint.stream(prompt, max_new=4, edit=edit))
    ids = [token.id for token in checkpoint.opening(prompt)[1]]
    for step in steps:
        trace = checkpoint.trace(ids=ids, edit=edit)
        tiny.assert_close(step.probabilities, trace.logits[-1].softmax(-1))
        ids.append(step.id)


def test_the_sweep_names_the_two_heads_of_the_circuit_that_was_built_by_hand() -> None:
    checkpoint = load("induction-by-hand")
    text = "a b c d a b c"
    trace = checkpoint.trace(text)
    row = len(trace.tokens["decoder"]) - 1
    token = int(trace.logits[row].argmax())
    effects = sweep(checkpoint, trace, row, token)
    heads = sorted((one for one in effects if one.part.head is not None), key=lambda one: one.probability)
    named = {(one.part.sublayer, one.part.head) for one in heads[:2]}
    assert {name for name, _ in named} == {"decoder.0.self", "decoder.1.self"}
    assert all(one.probability < -0.3 for one in heads[:2])
    assert all(abs(one.probability) < 0.05 for one in heads[2:])
    table = by_head({one.part: one.divergence for one in effects}, "decoder")
    assert table.shape == (2, trace["decoder.0.self"].n_heads)
    assert {(f"decoder.{layer}.self", int(table[layer].argmax())) for layer in range(2)} == named
