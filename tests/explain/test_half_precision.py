"""Every number is proved in bfloat16 and float16 too, as sharply as they are written, and errors are caught."""

from functools import cache

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests import tiny
from tests.explain.running import run
from vizformer.analysis.head_outputs import contributions
from vizformer.analysis.scores.qk_circuit import bilinear
from vizformer.analysis.scores.soft_lookup import head_look_up
from vizformer.checkpoints import Checkpoint
from vizformer.explain import attention_steps, layer_steps, output_steps
from vizformer.explain.arrays import stored
from vizformer.explain.step import ROUNDINGS, Proof, limit
from vizformer.messages import N_

DTYPES = (torch.bfloat16, torch.float16)
KINDS = {**tiny.KINDS, "gpt": ("decoder-only", {})}
EACH = pytest.mark.parametrize("dtype", DTYPES, ids=["bfloat16", "float16"])


def made(kind, dtype):
    architecture, options = KINDS[kind]
    found = tiny.checkpoint(architecture, **options)
    found.model.to(dtype)
    found.model.materialise_buffers()  # `to` rounds them, loading does not
    return found


def traced(checkpoint):
    both = checkpoint.model.config.architecture == "encoder-decoder"
    return checkpoint.trace("I have a cat.", target="She has two dogs." if both else None)


@cache
def pair(kind, dtype):
    checkpoint = made(kind, dtype)
    return checkpoint, traced(checkpoint)


def layers(checkpoint):
    config = checkpoint.model.config
    depths = {"encoder": config.n_encoder_layers, "decoder": config.n_decoder_layers}
    return [f"{stack}.{n}" for stack, depth in depths.items() for n in range(depth)]


def all_proofs(checkpoint: Checkpoint, trace) -> list[tuple[str, Proof]]:
    found = []
    for site in trace.sites:
        last = trace[site].q.shape[1] - 1
        for head in range(0, trace[site].n_heads, 3):
            found += [
                (f"{site} {step.key}", step.proof) for step in attention_steps(checkpoint, trace, site, head, last)
            ]
            found.append((f"{site} look-up", head_look_up(trace, site, head, last).proof))
            if not site.endswith("cross") and (of_matrices := bilinear(checkpoint, trace, site, head).proof):
                found.append((f"{site} bilinear", of_matrices))
        found.append((f"{site} contributions", contributions(checkpoint, trace, site, last).proof))
    for layer in layers(checkpoint):
        found += [(f"{layer} {step.key}", step.proof) for step in layer_steps(checkpoint, trace, layer)]
    steps = output_steps(checkpoint, trace, trace.logits.shape[0] - 1)
    return [*found, *((f"output {step.key}", step.proof) for step in steps)]


@pytest.mark.sample(6)
@pytest.mark.slow
@EACH
@pytest.mark.parametrize("kind", KINDS)
def test_every_number_is_proved(kind, dtype):
    found = all_proofs(*pair(kind, dtype))
    assert not [(where, proof.difference) for where, proof in found if not proof.holds]
    assert {proof.precision for __, proof in found} == {str(dtype).removeprefix("torch.")}


@pytest.mark.slow
@EACH
@pytest.mark.parametrize("kind", ["encoder-decoder", "bert", "llama", "t5", "turned"])
@pytest.mark.sample(5)
def test_a_wrong_number_is_caught(kind, dtype):
    """Each of these changes numbers by a few per cent of their size, far less than half precision can hide."""
    kept = made(kind, dtype)
    trace = traced(kept)
    for stack in ("encoder", "decoder"):
        for name, parameter in kept.model.named_parameters():
            if not name.startswith(f"{stack}.layers.0.") or "weight" not in name or "relative" in name:
                continue
            with torch.no_grad():
                before = parameter.clone()
                parameter.mul_(1 + 12 * torch.finfo(dtype).eps)
            steps = layer_steps(kept, trace, f"{stack}.0")
            assert not all(step.proof.holds for step in steps), name
            parameter.data = before
    assert all(step.proof.holds for layer in layers(kept) for step in layer_steps(kept, trace, layer))


@EACH
def test_another_heads_matrices_are_caught(dtype):
    checkpoint, trace = pair("gpt", dtype)
    right = attention_steps(checkpoint, trace, "decoder.1.self", 0, 3)
    other = attention_steps(checkpoint, trace, "decoder.1.self", 1, 3)
    for mine, theirs in zip(right, other, strict=True):
        if mine.key in ("q", "k", "v", "z"):
            assert not Proof.compare(mine.proof.anchor, theirs.result, torch.from_numpy(mine.result).to(dtype)).holds


@EACH
@pytest.mark.parametrize("kind", ["encoder-decoder", "bert", "llama", "t5", "turned", "alibi"])
@pytest.mark.sample(4)
def test_the_code_computes_the_same(kind, dtype):
    """The lines on screen, run as one program in the model's own precision; they round more often than its kernels."""
    checkpoint, trace = pair(kind, dtype)
    programs = [attention_steps(checkpoint, trace, site, 1, 2) for site in trace.sites[:2]]
    programs += [layer_steps(checkpoint, trace, layer) for layer in layers(checkpoint)[-1:]]
    for steps in programs:
        scope = run(steps)
        last = steps[-1]
        found = scope[last.variable].detach().double().numpy()
        assert np.all(np.abs(found - last.result) <= 4 * limit(last.result, dtype)), last.key


@EACH
def test_the_limit_is_a_few_units_in_the_last_place(dtype):
    eps = torch.finfo(dtype).eps
    recorded = np.array([[1.0, -1.0], [1e-3, 1e-3]])
    np.testing.assert_allclose(limit(recorded, dtype), ROUNDINGS * eps * np.abs(recorded))
    assert limit(np.array([1000.0, 0.0]), dtype)[0] == ROUNDINGS * eps * 1000
    assert limit(np.array([0.0, 0.0]), dtype, terms=3.0)[0] == ROUNDINGS * eps * 3
    np.testing.assert_allclose(limit(recorded, torch.float32), 1e-5)


def test_nan_is_no_agreement():
    recorded = torch.tensor([1.0, torch.nan]).bfloat16()
    assert not Proof.compare(N_("x"), np.array([1.0, np.nan]), recorded).holds
    assert not Proof.compare(N_("x"), np.array([1.0, 1.0]), recorded).holds


@EACH
def test_what_a_tensor_keeps(dtype):
    numbers = np.array([1 / 3, -2.7, 1e-8, 0.0, 300.3])
    np.testing.assert_array_equal(stored(numbers, dtype), torch.tensor(numbers).to(dtype).double().numpy())
    assert stored(numbers, torch.float32) is numbers


@EACH
def test_scores_and_patterns_are_what_the_fused_kernel_has_inside(dtype):
    record = pair("gpt", dtype)[1]["decoder.0.self"]
    assert record.pattern(0).dtype == torch.float32
    torch.testing.assert_close(record.pattern(0).sum(-1), torch.ones(record.q.shape[1]), rtol=0, atol=1e-6)
    z = (record.pattern(0) @ record.v[0].float()).to(dtype)
    assert F.cosine_similarity(z.float().flatten(), record.z(0).float().flatten(), dim=0) > 0.9999
