"""A model on another device: every tensor is made where it is needed, and the numbers are the processor's.

Where these tests run there is no GPU as a rule: `tests.pretend_device` stands in for one, and notices what a GPU would.
Where there is one, the same is done on it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from tests import pretend_device, tiny
from tests.checkpoints import folders as made
from vizformer.analysis import head_outputs, masks
from vizformer.analysis import positions as of_positions
from vizformer.analysis.heads import induction
from vizformer.analysis.heads import maps as heads
from vizformer.analysis.one_forward import predictions as following
from vizformer.analysis.scores.qk_circuit import bilinear, score_forms
from vizformer.analysis.scores.score_scaling import score_scale
from vizformer.analysis.scores.soft_lookup import head_look_up
from vizformer.analysis.vectors import contextual as in_contexts
from vizformer.analysis.vectors import embeddings
from vizformer.checkpoints import load, save
from vizformer.errors import CheckpointError
from vizformer.explain import attention_steps, layer_steps, masked_attention, output_steps
from vizformer.generation import Sampling
from vizformer.model import Cell, Edit
from vizformer.model.masks import window_mask

TEXT, TARGET = "I have a cat.", "She has two dogs."
KINDS = tiny.KINDS


def everything(checkpoint: Any) -> dict[str, Any]:
    """What a Checkpoint does, and what is computed of its trace, as plain numbers."""
    model, config = checkpoint.model, checkpoint.model.config
    both, generates = config.architecture == "encoder-decoder", config.n_decoder_layers > 0
    target = TARGET if both else None
    trace = checkpoint.trace(TEXT, target=target)
    assert trace.logits.device == checkpoint.device == trace[trace.sites[0]].q.device
    last, ids = trace.logits.shape[0] - 1, [token.id for token in checkpoint.encode(TEXT)]
    found: dict[str, Any] = {"key": checkpoint.key, "logits": trace.logits.float().cpu().numpy()}
    edit = Edit(
        (Cell(f"{trace.sites[0]}.q", (0, 1, 0), 2.0), Cell(f"{trace.sites[0]}.mask", (1, 0), -np.inf)),
        temperatures={trace.sites[-1]: 2.0},
    )
    found["edited"] = checkpoint.trace(TEXT, target=target, edit=edit).logits.float().cpu().numpy()
    if generates:
        found["greedy"] = checkpoint.generate(TEXT, max_new=6).ids
        drawn = Sampling(temperature=1.3, top_k=20, top_p=0.9, min_p=0.01, repetition_penalty=1.2, seed=1)
        found["drawn"] = checkpoint.generate(TEXT, max_new=6, sampling=drawn).ids
        found["beam"] = [h.ids for __, h in checkpoint.beam(TEXT, width=3, max_new=5)]
    for number, site in enumerate(dict.fromkeys((trace.sites[0], trace.sites[-1]))):
        steps = attention_steps(checkpoint, trace, site, 1, 2)
        found[f"{site} steps"] = [step.result for step in steps]
        assert all(step.proof.holds for step in steps)
        found[f"{site} map"] = trace[site].pattern(1).float().cpu().numpy()
        found[f"{site} parts"] = head_outputs.contributions(checkpoint, trace, site, 1).parts
        found[f"{site} keys"] = head_outputs.key_contributions(checkpoint, trace, site, 0, 1).norms
        found[f"{site} look-up"] = head_look_up(trace, site, 1, 2).found.soft
        found[f"{site} scale"] = score_scale(trace, site, 0).largest
        n = trace[site].q.shape[1]
        own = masked_attention(trace[site], 1)
        assert own.own
        assert own.proof.holds
        if not site.endswith("cross"):
            other = masked_attention(trace[site], 1, window_mask(n, 1))
            assert other.proof.holds
            found[f"{site} window"] = other.weights
            found[f"{site} forms"] = score_forms(checkpoint, trace, site, 1).learned
            found[f"{site} rank"] = bilinear(checkpoint, trace, site, 1).singular
            if number == 0:
                found["notations"] = masks.agreement(trace[site], 0, np.triu(np.ones((n, n), dtype=bool), 1))
    for stack in trace.tokens:
        steps = layer_steps(checkpoint, trace, f"{stack}.1")
        assert all(step.proof.holds for step in steps)
        found[stack] = steps[-1].result
    found["output"] = [step.result for step in output_steps(checkpoint, trace, last)]
    for kind in heads.kinds(trace):
        found[f"maps {kind}"] = heads.head_maps(trace, kind).weights
    found["next"] = [p.token.id for p in following.next_tokens(checkpoint, trace, last)]
    second = checkpoint.trace("I have two dogs and a cat.", target=target)
    found["padded"] = masks.padded_run(checkpoint, trace, second).difference
    found["leak"] = masks.leak(trace, trace, "encoder" if config.n_encoder_layers else "decoder").outputs
    i, j = in_contexts.shared(trace, second)[0]
    found["contexts"] = in_contexts.contexts(checkpoint, trace, second, i, j).same
    found["row"] = embeddings.lookup(checkpoint, 5).row
    found["near"] = embeddings.neighbours(embeddings.directions(checkpoint, centred=True), 5).ids
    found["norms"] = embeddings.norms(checkpoint, np.array(ids)).tokens
    found["twin"] = (
        embeddings.with_scale(checkpoint, not config.scaled_embedding)
        .trace(ids=ids[:3], **({"target_ids": ids[:2]} if both else {}))
        .logits.float()
        .cpu()
        .numpy()
    )
    if not both:
        found["shuffled"] = of_positions.shuffle(model, ids[:4], [1, 0, 3, 2]).moved
        found["induction"] = induction.head_scores(model, torch.tensor([ids[:4] * 2]), 4).previous_token
        if config.positions in ("alibi", "relative"):
            found["bias"] = of_positions.bias_by_distance(model, 5)
    if config.mask_id is not None:
        found["guesses"] = following.guesses(checkpoint, checkpoint.encode(TEXT))
        found["guess"] = following.guess(following.hide(checkpoint, checkpoint.encode(TEXT), [1]), 1, 7).probability
    return found


def same(found: Any, expected: Any, tolerance: float, where: str) -> None:
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for name in expected:
            same(found[name], expected[name], tolerance, f"{where} {name}")
    elif isinstance(expected, (list, tuple)):
        assert len(found) == len(expected), where
        for one, other in zip(found, expected, strict=True):
            same(one, other, tolerance, where)
    elif isinstance(expected, (str, int)):
        assert found == expected, where
    else:
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance, err_msg=where)


def saved(kind: str, folder: Any) -> Any:
    architecture, options = KINDS[kind]
    save(tiny.checkpoint(architecture, **options), folder / kind, dtype=torch.float32)
    return folder / kind


@pytest.mark.sample(1)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        *((kind, "float32") for kind in KINDS),
        ("encoder-decoder", "float16"),
        ("llama", "bfloat16"),
    ],
)
def test_every_tensor_is_made_where_it_is_needed(kind: str, dtype: str, tmp_path: Any) -> None:
    folder = saved(kind, tmp_path)
    expected = everything(load(folder, dtype=dtype))
    with pretend_device.device() as device:
        checkpoint = load(folder, dtype=dtype, device=device)
        assert all(isinstance(tensor.data, pretend_device.There) for tensor in checkpoint.model.state_dict().values())
        found = everything(checkpoint)
    same(found, expected, 1e-6, kind)  # (float64 algebra differs in the last bit between memory layouts)


@pytest.mark.sweep
@pytest.mark.parametrize("name", ["gpt2", "marian"])
def test_folders_of_others_are_opened_there(name: str, tmp_path: Any) -> None:
    folder = getattr(made, name)(tmp_path / name)
    with pretend_device.device() as device:
        opened = load(folder, device=device)
        assert {str(tensor.device) for tensor in opened.model.state_dict().values()} == {str(device)}
        logits = opened.trace(TEXT).logits.cpu()
    torch.testing.assert_close(logits, load(folder).trace(TEXT).logits, rtol=0, atol=0)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x: x + torch.zeros(3),
        lambda x: x.numpy(),
        lambda x: x[:, None] @ torch.ones(1, 3),
        lambda x: torch.where(x > 0, x, torch.zeros(3)),
        lambda x: x.masked_fill(torch.tensor([True, False, True]), 0.0),
        lambda x: torch.cat([x, torch.ones(2)]),
        lambda x: torch.nn.functional.embedding(torch.tensor([0]), x[:, None]),
        lambda x: torch.nn.functional.layer_norm(x, (3,), torch.ones(3), torch.zeros(3)),
        lambda x: torch.nn.functional.scaled_dot_product_attention(x[None], x[None], x[None], torch.zeros(1, 1)),
    ],
)
def test_the_pretended_device_notices_what_a_gpu_would(wrong: Callable[[torch.Tensor], Any]) -> None:
    with pretend_device.device() as device:
        x = torch.arange(3.0, device=device)
        assert (x * 2 + 1.0 + torch.tensor(1.0)).cpu().tolist() == [2, 4, 6]
        assert x[torch.tensor([2])].tolist() == [2]
        with pytest.raises((RuntimeError, TypeError), match=f"same device|{pretend_device.NAME}"):
            wrong(x)


def test_a_device_that_is_not_there_is_refused() -> None:
    for wanted in ("cuda:77", "nonsense", "meta", torch.device("cuda", 77)):
        with pytest.raises(CheckpointError, match="There is: cpu"):
            load("stories", device=wanted)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("kind", KINDS)
def test_on_a_gpu(kind: str, dtype: str, tmp_path: Any) -> None:
    """All proofs hold there (asserted on the way), and the logits are the processor's but for rounding."""
    folder = saved(kind, tmp_path)
    found, expected = everything(load(folder, dtype=dtype, device="cuda")), everything(load(folder, dtype=dtype))
    assert found["key"] == expected["key"]
    assert found.keys() == expected.keys()
    eps = torch.finfo(getattr(torch, dtype)).eps
    tolerance = 1e-4 if dtype == "float32" else 16 * eps  # kernels sum in other orders; in half, layers of roundings
    np.testing.assert_allclose(found["logits"], expected["logits"], rtol=tolerance, atol=tolerance)
