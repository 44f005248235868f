"""What heads and keys add, against the model's own sublayer."""

import numpy as np
import pytest
import torch

from tests import tiny
from vizformer.analysis.attribution.backward import mean_row
from vizformer.analysis.head_outputs import contributions, key_contributions
from vizformer.errors import TraceError
from vizformer.model import Cell, Edit

KINDS = [
    ("encoder-decoder", {}),
    ("decoder-only", tiny.LLAMA),
    ("encoder-only", tiny.BERT),
    ("decoder-only", tiny.ALIBI),
    ("decoder-only", tiny.SCALED),
    ("encoder-decoder", {"norm_order": "none"}),
    ("encoder-decoder", {"residual": "none"}),
    ("decoder-only", {"residual": "none", "norm_order": "none"}),
]


def traced(architecture: str, options: dict[str, object]):
    checkpoint = tiny.checkpoint(architecture, **options)
    return checkpoint, checkpoint.trace("我有一只猫。", target="a cat" if architecture == "encoder-decoder" else None)


@pytest.mark.parametrize(("architecture", "options"), KINDS)
def test_the_parts_sum_to_what_the_sublayer_adds(architecture: str, options: dict[str, object]) -> None:
    checkpoint, trace = traced(architecture, options)
    for site in trace.sites:
        found = contributions(checkpoint, trace, site, 1)
        assert found.proof.holds
        total = found.parts.sum(0) + (0.0 if found.bias is None else found.bias)
        np.testing.assert_allclose(total, found.slices.out, atol=1e-12)
        assert found.shares.sum() + found.bias_share == pytest.approx(1.0)
        np.testing.assert_allclose(found.norms, np.linalg.norm(found.parts, axis=1))
        others = found.parts[1:].sum(0) + (0.0 if found.bias is None else found.bias)
        np.testing.assert_allclose(found.without(0), others, atol=1e-12)
        assert found.bias_norm == pytest.approx(0.0 if found.bias is None else float(np.sqrt(found.bias @ found.bias)))


def test_a_wrong_part_would_be_found() -> None:
    """The proof is no tautology: with another W_O it fails."""
    checkpoint, trace = traced("decoder-only", tiny.LLAMA)
    with torch.no_grad():
        checkpoint.model.decoder.layers[1].self_attention.W_O.weight[0, 0] += 1.0
    assert contributions(checkpoint, trace, "decoder.0.self", 1).proof.holds
    assert not contributions(checkpoint, trace, "decoder.1.self", 1).proof.holds


def test_a_part_is_what_the_others_silenced_leave() -> None:
    """Zeroing the z of all heads but one, by hand, leaves that head's part and the bias."""
    checkpoint, trace = traced("encoder-only", {})
    found = contributions(checkpoint, trace, "encoder.0.self", 2)
    attention = checkpoint.model.encoder.layers[0].self_attention
    z = torch.zeros(4, 4)
    z[3] = trace["encoder.0.self"].z(3)[2]
    np.testing.assert_allclose(attention.W_O(z.flatten()).numpy(), found.parts[3] + found.bias, atol=1e-5)


@pytest.mark.parametrize(("architecture", "options"), KINDS)
def test_the_slices_are_the_recorded_vectors(architecture: str, options: dict[str, object]) -> None:
    checkpoint, trace = traced(architecture, options)
    site, record = trace.sites[0], trace[trace.sites[0]]
    cut, d = contributions(checkpoint, trace, site, 1).slices, record.q.shape[2]
    for head in range(record.n_heads):
        own = slice(head * d, (head + 1) * d)
        np.testing.assert_allclose(cut.q[own], record.q[head, 1].numpy(), atol=1e-6)
        np.testing.assert_allclose(cut.z[own], record.z(head)[1].numpy(), atol=1e-6)
    for group in range(record.k.shape[0]):
        own = slice(group * d, (group + 1) * d)
        np.testing.assert_allclose(cut.k[own], record.k[group, 1].numpy(), atol=1e-6)
        np.testing.assert_allclose(cut.v[own], record.v[group, 1].numpy(), atol=1e-6)
    if checkpoint.model.config.positions not in ("rope",):  # x is what all of them are made from
        attention = getattr(checkpoint.model, site.split(".")[0]).layers[0].self_attention
        np.testing.assert_allclose(attention.W_Q(torch.tensor(cut.x).float()).numpy(), cut.q, atol=1e-5)


def test_in_cross_attention_keys_belong_to_other_tokens() -> None:
    checkpoint, trace = traced("encoder-decoder", {})
    cut = contributions(checkpoint, trace, "decoder.0.cross", 1).slices
    assert cut.k is None
    assert cut.v is None


@pytest.mark.parametrize(("architecture", "options"), KINDS)
def test_what_the_keys_bring(architecture: str, options: dict[str, object]) -> None:
    checkpoint, trace = traced(architecture, options)
    site = trace.sites[-1]
    record = trace[site]
    found = key_contributions(checkpoint, trace, site, 3, 1)
    np.testing.assert_allclose(found.weights, record.pattern(3)[1].numpy(), atol=1e-7)
    name = site.split(".")
    block = getattr(checkpoint.model, name[0]).layers[int(name[1])]
    W_O = (block.cross_attention if name[2] == "cross" else block.self_attention).W_O.weight.double().numpy()
    d, v = record.q.shape[2], record.v[record.kv_head(3)].double().numpy()
    arriving = found.weights[:, None] * (v @ W_O[:, 3 * d : 4 * d].T)  # [n_k, d_model]
    np.testing.assert_allclose(found.norms, np.linalg.norm(arriving, axis=1), atol=1e-9)
    np.testing.assert_allclose(
        arriving.sum(0), contributions(checkpoint, trace, site, 1).parts[3], atol=1e-5
    )  # the keys' parts are the head's
    seen = found.weights > 0
    np.testing.assert_allclose(found.value_norms[seen], np.linalg.norm(v @ W_O[:, 3 * d : 4 * d].T, axis=1)[seen])
    assert (found.value_norms[~seen] == 0).all()
    assert found.longest == np.linalg.norm(arriving, axis=1).argmax()
    first, second = found.leading(2)
    assert found.weights[first] == found.weights.max()
    assert found.weights[second] == np.sort(found.weights)[-2]


def test_an_edit_is_in_the_parts() -> None:
    checkpoint = tiny.checkpoint("encoder-only")
    trace = checkpoint.trace("我有一只猫。", edit=Edit((Cell("encoder.0.self.v", (2, 1, 0), 40.0),)))
    plain = contributions(checkpoint, checkpoint.trace("我有一只猫。"), "encoder.0.self", 1)
    found = contributions(checkpoint, trace, "encoder.0.self", 1)
    assert found.proof.holds
    assert found.norms[2] > plain.norms[2]
    np.testing.assert_allclose(found.parts[[0, 1, 3]], plain.parts[[0, 1, 3]])


def test_queries_that_are_not_there() -> None:
    checkpoint, trace = traced("encoder-only", {})
    for call in (
        lambda: contributions(checkpoint, trace, "encoder.0.self", 99),
        lambda: key_contributions(checkpoint, trace, "encoder.0.self", 0, -99),
    ):
        with pytest.raises(TraceError, match="no position"):
            call()


def test_the_mean_row_follows_what_a_table_becomes() -> None:
    first, second = torch.randn(7, 3), torch.randn(7, 3)
    for table in (first, second, first):
        np.testing.assert_allclose(mean_row(table), table.double().mean(0), rtol=1e-12)
    first[0] += 1
    np.testing.assert_allclose(mean_row(first), first.double().mean(0), rtol=1e-12)
    with torch.inference_mode():
        unwatched = torch.ones(2, 3)
        assert mean_row(unwatched).tolist() == [1, 1, 1]
        unwatched += 1
        assert mean_row(unwatched).tolist() == [2, 2, 2]
