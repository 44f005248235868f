"""Disentangled attention: the rows of distances, its three terms, and that they follow edits, batches and padding."""

from typing import Any

import pytest
import torch

from tests import eager_transformer, tiny
from vizformer.model import Cell, Edit, Trace
from vizformer.model.disentangled_attention import relative_rows, table_rows
from vizformer.model.positions import relative_positions

KINDS: dict[str, dict[str, Any]] = {
    "v1": tiny.DEBERTA,
    "v3": tiny.DEBERTA_V3,
    "c2p": {**tiny.DEBERTA, "disentangled": "c2p"},
    "p2c": {**tiny.DEBERTA_V3, "disentangled": "p2c", "disentangled_shared": False, "bias": False},
}
EACH = pytest.mark.parametrize("options", KINDS.values(), ids=KINDS)
IDS = torch.tensor([5, 9, 4, 11, 7, 5, 8, 6, 10])


@pytest.mark.parametrize(
    ("span", "furthest"), [(4, None), (512, None), (4, 7), (5, 9), (8, 20), (2, 9), (256, 512), (256, 300), (64, 1000)]
)
def test_rows_of_distances(span: int, furthest: int | None) -> None:
    """Of float32 and of Python's float64, in which every stretch ends at the same distance."""
    reach = (furthest or span) + 9
    relative = torch.arange(-reach, reach + 1)  # j - i
    found = relative_rows(relative, span, furthest).tolist()
    assert found == [eager_transformer.distance_row(-r, span, furthest) for r in relative.tolist()]
    assert found == sorted(found, reverse=True)  # keys before the query have the higher rows
    assert found[reach] == span
    assert (min(found), max(found)) == (0 if furthest is None else found[-1], 2 * span - 1)
    assert set(found[reach - span // 2 : reach + span // 2 + 1]) == set(range(span - span // 2, span + span // 2 + 1))


@pytest.mark.parametrize("n", [1, 2, 5, 9, 40])
@pytest.mark.parametrize(("span", "furthest"), [(4, None), (8, 20)])
def test_only_the_rows_that_a_text_needs(n: int, span: int, furthest: int | None) -> None:
    rows = relative_rows(relative_positions(n, n), span, furthest)
    needed = table_rows(n, span, furthest)
    assert (needed.start, needed.stop) == (int(rows.min()), int(rows.max()) + 1)


@EACH
@pytest.mark.sample(1)
def test_the_forward_is_that_of_plain_loops(options: dict[str, Any]) -> None:
    model, trace = tiny.model("encoder-only", **options), Trace()
    logits = model(IDS[None], trace=trace)
    plain = eager_transformer.Eager(model).run(IDS)
    tiny.assert_close(logits[0].double(), plain.logits)
    for site in trace.sites:
        for head in range(4):
            tiny.assert_close(trace[site].scores(head).double(), plain.calls[site].scores[head])
            tiny.assert_close(trace[site].pattern(head).double(), plain.calls[site].pattern[head])


@EACH
def test_a_trace_changes_no_bit(options: dict[str, Any]) -> None:
    model = tiny.model("encoder-only", **options)
    assert torch.equal(model(IDS[None]), model(IDS[None], trace=Trace()))
    trace = Trace()
    model(IDS[None], trace=trace)
    record = trace["encoder.1.self"]
    for head in range(4):
        tiny.assert_close(record.pattern(head) @ record.v[head], record.z(head))


@EACH
def test_texts_of_a_batch_do_not_see_each_other_nor_padding(options: dict[str, Any]) -> None:
    model = tiny.model("encoder-only", **options)
    both = torch.stack([IDS, torch.cat([IDS[3:], torch.zeros(3, dtype=torch.long)])])
    padding = torch.zeros(2, 9, dtype=torch.bool)
    padding[1, 6:] = True
    found = model(both, padding=padding)
    tiny.assert_close(found[0], model(IDS[None])[0])
    tiny.assert_close(found[1, :6], model(IDS[None, 3:])[0])


@EACH
def test_the_terms_follow_queries_keys_and_scale_that_are_set_by_hand(options: dict[str, Any]) -> None:
    model, plain, other = tiny.model("encoder-only", **options), Trace(), Trace()
    site, c2p, p2c = "encoder.0.self", options["disentangled"] != "p2c", options["disentangled"] != "c2p"
    model(IDS[None], trace=plain)
    edit = Edit((Cell(f"{site}.q", (1, 2, 0), 3.0), Cell(f"{site}.k", (2, 4, 1), -2.0)), temperatures={site: 2.0})
    model(IDS[None], trace=other, edit=edit)
    before, after = plain[site].position_bias, other[site].position_bias
    assert before is not None
    assert after is not None
    tiny.assert_close(after[0], before[0] / 2)  # a head that keeps its queries and keys
    assert torch.allclose(after[1, 2], before[1, 2] / 2) != c2p
    tiny.assert_close(after[1, 3:], before[1, 3:] / 2)
    assert torch.allclose(after[2, :, 4], before[2, :, 4] / 2) != p2c
    tiny.assert_close(after[2, :, 5:], before[2, :, 5:] / 2)


def test_gradients_reach_the_vectors_and_their_matrices() -> None:
    model = tiny.model("encoder-only", **tiny.DEBERTA).requires_grad_()
    model(IDS[None]).square().sum().backward()
    for name, parameter in model.named_parameters():
        if ("distances" in name or "relative" in name) and name != "encoder.layers.0.self_attention.relative.W_Q.bias":
            assert parameter.grad is not None, name
            assert parameter.grad.any(), name
