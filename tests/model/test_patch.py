"""Parts of a forward replaced or added to: exactly those change, for the batch items that are named."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from tests import tiny
from vizformer.errors import TraceError
from vizformer.model import Edit, Patch, Trace

KINDS_OF_MODEL: dict[str, dict[str, Any]] = {
    "post-norm": dict(architecture="encoder-decoder"),
    "pre-norm": dict(architecture="encoder-decoder", norm_order="pre"),
    "LLaMA": dict(architecture="decoder-only", **tiny.LLAMA),
    "encoder": dict(architecture="encoder-only"),
}


def batch(name: str, items: int = 1) -> tuple[Tensor, ...]:
    both = KINDS_OF_MODEL[name]["architecture"] == "encoder-decoder"
    source, target = tiny.ids(6).repeat(items, 1), tiny.ids(5, seed=1).repeat(items, 1)
    return (source, target) if both else (source,)


def run(name: str, *patches: Patch, skipped: frozenset[str] = frozenset()) -> Trace:
    with torch.inference_mode():
        tiny.model(**KINDS_OF_MODEL[name])(
            *batch(name), trace=(trace := Trace()), edit=Edit(patches=patches, skipped=skipped)
        )
    return trace


def zs(trace: Trace, site: str) -> Tensor:
    return torch.stack([trace[site].z(head) for head in range(trace[site].n_heads)])  # [n_heads, n, d_head]


@pytest.mark.parametrize("name", KINDS_OF_MODEL)
def test_no_patch_is_bitwise_the_same_forward(name: str) -> None:
    model = tiny.model(**KINDS_OF_MODEL[name])
    with torch.inference_mode():
        assert torch.equal(model(*batch(name), edit=Edit()), model(*batch(name)))


@pytest.mark.parametrize("name", KINDS_OF_MODEL)
def test_what_a_head_gave_put_back_changes_nothing(name: str) -> None:
    plain = run(name)
    for site in plain.sites:
        z, record = zs(plain, site), plain[site]
        tiny.assert_close(run(name, Patch(f"{site}.z", (), z)).logits, plain.logits, 1e-6)
        pattern = torch.stack([record.pattern(head) for head in range(record.n_heads)])
        tiny.assert_close(run(name, Patch(f"{site}.pattern", (), pattern)).logits, plain.logits, 1e-5)
        tiny.assert_close(run(name, Patch(f"{site}.pattern", (2, 3), pattern[2, 3])).logits, plain.logits, 1e-5)


@pytest.mark.parametrize("name", KINDS_OF_MODEL)
def test_a_pattern_set_by_hand_mixes_the_values_of_its_group(name: str) -> None:
    """As an edit of z does, with pattern v worked out here."""
    plain = run(name)
    site = plain.sites[-1]
    record = plain[site]
    weights = torch.rand(record.q.shape[1], record.k.shape[1], generator=torch.Generator().manual_seed(3))
    mixed = weights @ record.v[record.kv_head(3)]
    by_hand = run(name, Patch(f"{site}.pattern", (3,), weights)).logits
    tiny.assert_close(by_hand, run(name, Patch(f"{site}.z", (3,), mixed)).logits, 1e-5)
    assert not torch.allclose(by_hand, plain.logits)
    one = run(name, Patch(f"{site}.pattern", (3, 2), weights[2])).logits
    tiny.assert_close(one, run(name, Patch(f"{site}.z", (3, 2), mixed[2])).logits, 1e-5)
    added = run(name, Patch(f"{site}.pattern", (3,), weights, adds=True)).logits
    tiny.assert_close(added, run(name, Patch(f"{site}.z", (3,), mixed, adds=True)).logits, 1e-5)


@pytest.mark.parametrize("name", KINDS_OF_MODEL)
def test_a_neuron_set_to_zero_is_its_column_out_of_w_2(name: str) -> None:
    stack = "encoder" if name == "encoder" else "decoder"
    changed, plain = [], run(name).logits
    for neuron in (3, 10, 17):
        without = tiny.model(**KINDS_OF_MODEL[name])
        with torch.no_grad():
            getattr(without, stack).layers[1].feedforward.W_out.weight[:, neuron] = 0.0
        with torch.inference_mode():
            expected = without(*batch(name))[0]
        found = run(name, Patch(f"{stack}.1.feedforward.hidden", (None, neuron))).logits
        tiny.assert_close(found, expected, 1e-6)
        changed.append(not torch.allclose(found, plain))
    assert any(changed)  # (a ReLU may be silent at every position)


@pytest.mark.parametrize("name", KINDS_OF_MODEL)
def test_a_layer_that_is_skipped_hands_on_what_it_got(name: str) -> None:
    stack = "encoder" if name == "encoder" else "decoder"
    trace, plain = run(name, skipped=frozenset({f"{stack}.0"})), run(name)
    assert torch.equal(trace.residual(f"{stack}.0.post"), plain.residual(f"{stack}.0.pre"))
    assert torch.equal(trace.residual(f"{stack}.1.pre"), plain.residual(f"{stack}.0.pre"))
    assert not torch.equal(trace.logits, plain.logits)


def test_a_row_of_the_stream_is_set_or_added_to() -> None:
    plain, row = run("pre-norm"), torch.arange(16.0)
    for adds in (False, True):
        trace = run("pre-norm", Patch("encoder.1.pre", (4,), row, adds=adds))
        expected = plain.residual("encoder.1.pre").clone()
        expected[4] = expected[4] + row if adds else row
        assert torch.equal(trace.residual("encoder.1.pre"), expected)


@pytest.mark.parametrize("name", KINDS_OF_MODEL)
def test_every_item_of_a_batch_has_its_own_patch(name: str) -> None:
    """Many interventions in one forward are what one after the other is."""
    stack = "encoder" if name == "encoder" else "decoder"
    site = f"{stack}.1.self"
    patches = [Patch(f"{site}.z", (head,)) for head in range(4)]
    together = tuple(Patch(f"{site}.z", (head,), item=head) for head in range(4))
    with torch.inference_mode():
        logits = tiny.model(**KINDS_OF_MODEL[name])(*batch(name, 5), edit=Edit(patches=together))
    for item, patch in enumerate(patches):
        tiny.assert_close(logits[item], run(name, patch).logits, 1e-5)
    tiny.assert_close(logits[4], run(name).logits, 1e-5)


def test_a_gradient_reaches_what_is_added() -> None:
    """Against finite differences: of a head's output, of its pattern, of the stream."""
    model = tiny.model(**KINDS_OF_MODEL["post-norm"]).double()
    for tensor, shape in (
        ("decoder.0.cross.z", (4, 5, 4)),
        ("decoder.0.cross.pattern", (4, 5, 6)),
        ("encoder.1.pre", (6, 16)),
    ):

        def logit(value: Tensor, tensor: str = tensor) -> Tensor:
            return model(*batch("post-norm"), edit=Edit(patches=(Patch(tensor, (), value, adds=True),)))[0, -1, 7]

        nothing = torch.zeros(shape, dtype=torch.float64, requires_grad=True)
        (gradient,) = torch.autograd.grad(logit(nothing), nothing)
        step = torch.zeros(shape, dtype=torch.float64)
        step[2, 3] = 1e-5
        with torch.no_grad():
            slope = (logit(step) - logit(-step)) / 2e-5
        tiny.assert_close(gradient[2, 3].sum(), slope, 1e-6)
        assert abs(float(slope)) > 1e-4


@pytest.mark.parametrize(
    ("patch", "said"),
    [
        (Patch("decoder.9.self.z"), "nothing called decoder.9.self.z"),
        (Patch("decoder.0.feedforward.q"), "nothing called decoder.0.feedforward.q"),
        (Patch("decoder.0.self.k", (0, 99)), "there is no position 99"),
        (Patch("decoder.0.self.mask"), "nothing called decoder.0.self.mask"),
        (Patch("encoder.0.feedforward.z"), "nothing called encoder.0.feedforward.z"),
        (Patch("nowhere"), "nothing called nowhere"),
        (Patch("decoder.0.self.z", (4,)), r"no cell \[4\] in it"),
        (Patch("decoder.0.feedforward.hidden", (None, 24)), r"no cell \[None, 24\] in it"),
        (Patch("decoder.0.self.z", (0, 5)), "5 positions; there is no position 5"),
        (Patch("encoder.0.pre", (6,)), "6 positions; there is no position 6"),
        (Patch("encoder.0.pre", (-1,)), r"no cell \[-1\] in it"),
        (Patch("encoder.0.pre", (0, 0, 0)), r"no cell \[0, 0, 0\] in it"),
        (Patch("encoder.0.pre", (), torch.ones(7, 16)), "does not fit"),
        (Patch("decoder.0.cross.pattern", (0, 0, 0)), "Only whole rows"),
        (Patch("encoder.0.pre", (), item=1), "no cell"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_patches_of_what_is_not_there_are_refused(patch: Patch, said: str) -> None:
    checkpoint = tiny.checkpoint()
    with pytest.raises(TraceError, match=said):
        checkpoint.trace(ids=tiny.ids(6)[0].tolist(), target_ids=tiny.ids(5)[0].tolist(), edit=Edit(patches=(patch,)))


def test_a_layer_that_is_not_there_cannot_be_skipped() -> None:
    with pytest.raises(TraceError, match=r"nothing called decoder\.7"):
        Edit(skipped=frozenset({"decoder.7"})).check(run("post-norm").editable())


@pytest.mark.parametrize("value", [math.nan, math.inf, torch.tensor([1.0, math.nan])])
def test_values_that_are_not_finite_are_refused(value: Tensor | float) -> None:
    with pytest.raises(TraceError, match="a number that is not finite"):
        Patch("encoder.0.pre", (), value)
