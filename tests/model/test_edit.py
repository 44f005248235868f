"""Numbers set by hand: exactly those change, what follows is worked out from them, and nothing is left behind."""

import math
from typing import Any

import pytest
import torch

from tests import tiny
from vizformer.errors import TraceError
from vizformer.model import Cell, Edit, Reason, Trace

SOURCE, TARGET = tiny.ids(6), tiny.ids(5, seed=1)


def forward(edit: Edit | None = None, **options: Any) -> Trace:
    model = tiny.model(**options)
    with torch.inference_mode():
        model(SOURCE, TARGET, trace=(trace := Trace()), edit=edit)
    return trace


def changed(trace: Trace, plain: Trace) -> list[str]:
    """The points of the residual stream that differ, in order."""
    return [name for name in plain.residuals if not torch.equal(trace.residual(name), plain.residual(name))]


def test_no_edit_changes_nothing() -> None:
    plain = forward()
    for edit in (None, Edit(), Edit(temperatures={"decoder.0.self": 1.0})):
        assert changed(forward(edit), plain) == []
        assert torch.equal(forward(edit).logits, plain.logits)


@pytest.mark.parametrize("name", ["q", "k", "v"])
def test_one_number_of_one_head(name: str) -> None:
    plain, trace = forward(), forward(Edit((Cell(f"decoder.0.cross.{name}", (2, 3, 1), 2.5),)))
    expected = getattr(plain["decoder.0.cross"], name).clone()
    expected[2, 3, 1] = 2.5
    assert torch.equal(getattr(trace["decoder.0.cross"], name), expected)
    assert changed(trace, plain)[0] == "decoder.0.mid_cross"  # nothing before it moves, everything after it does
    assert changed(trace, plain) == list(plain.residuals)[list(plain.residuals).index("decoder.0.mid_cross") :]
    assert not torch.equal(trace["decoder.0.cross"].z(2), plain["decoder.0.cross"].z(2))
    assert torch.equal(trace["decoder.0.cross"].z(1), plain["decoder.0.cross"].z(1))


@pytest.mark.parametrize(
    "name", ["encoder.1.pre", "encoder.final", "decoder.0.mid_self", "decoder.1.post", "decoder.final"]
)
def test_one_number_of_the_residual_stream(name: str) -> None:
    plain, trace = forward(), forward(Edit((Cell(name, (2, 7), -4.0),)))
    expected = plain.residual(name).clone()
    expected[2, 7] = -4.0
    assert torch.equal(trace.residual(name), expected)
    assert changed(trace, plain)[0] == name
    assert not torch.equal(trace.logits, plain.logits)


def test_blocking_a_key_by_hand_is_like_padding_it() -> None:
    """In every site that sees the encoder's last token: the same logits, bit for bit but for the kernel."""
    sites = [("encoder.0.self", 6), ("encoder.1.self", 6), ("decoder.0.cross", 5), ("decoder.1.cross", 5)]
    cells = tuple(Cell(f"{site}.mask", (query, 5), -math.inf) for site, n in sites for query in range(n))
    trace = forward(Edit(cells))
    model = tiny.model()
    with torch.inference_mode():
        padded = model(SOURCE, TARGET, padding=tiny.right_padded([5], 6))
    tiny.assert_close(trace.logits, padded[0], 1e-6)
    for head in range(4):
        assert (trace["decoder.1.cross"].pattern(head)[:, 5] == 0).all()
        assert (trace["decoder.1.cross"].reason(head)[:, 5] == Reason.PAINTED).all()
        assert (trace["decoder.1.cross"].reason(head)[:, :5] == Reason.VISIBLE).all()


def test_opening_the_future() -> None:
    trace = forward(Edit((Cell("decoder.0.self.mask", (1, 3), 0.0),)))
    record = trace["decoder.0.self"]
    for head in range(4):
        assert record.pattern(head)[1, 3] > 0
        assert record.reason(head)[1].tolist() == [0, 0, 2, 0, 2]
        tiny.assert_close(record.pattern(head).sum(-1), torch.ones(5), 1e-6)


def test_a_row_blocked_by_hand_gives_zero() -> None:
    cells = tuple(Cell("decoder.1.cross.mask", (2, key), -math.inf) for key in range(6))
    trace = forward(Edit(cells))
    assert (trace["decoder.1.cross"].pattern(0)[2] == 0).all()
    assert trace.logits.isfinite().all()


def test_temperature_and_scale() -> None:
    plain = forward()
    trace = forward(Edit(unscaled=frozenset({"decoder.0.self"}), temperatures={"encoder.0.self": 4.0}))
    for site, factor in (("encoder.0.self", 0.25), ("decoder.0.self", 2.0)):  # sqrt(d_head) is 2
        assert trace[site].scale == plain[site].scale * factor
    tiny.assert_close(trace["encoder.0.self"].scores(1), plain["encoder.0.self"].scores(1) / 4, 1e-6)
    pattern = trace["encoder.0.self"].pattern(1)
    tiny.assert_close(pattern, torch.softmax(plain["encoder.0.self"].scores(1) / 4, -1), 1e-6)
    tiny.assert_close(pattern @ trace["encoder.0.self"].v[1], trace["encoder.0.self"].z(1), 1e-6)
    assert trace["encoder.1.self"].scale == plain["encoder.1.self"].scale


@pytest.mark.parametrize("options", [tiny.ALIBI, tiny.T5], ids=["alibi", "T5"])
def test_position_biases_are_neither_scaled_nor_masked_by_an_edit(options: dict[str, Any]) -> None:
    """softmax(q k^T * scale / T + position bias + mask): the temperature is for what the content says."""
    site = "encoder.0.self"
    edit = Edit((Cell(f"{site}.mask", (2, 4), -math.inf),), frozenset({site}), {site: 4.0})
    plain, record = forward(**options)[site], forward(edit, **options)[site]
    assert record.scale == 0.25  # 1/sqrt(d_head) is left out
    assert plain.position_bias is not None
    assert torch.equal(record.position_bias, plain.position_bias)
    for head in range(4):
        tiny.assert_close(record.content_scores(head), plain.content_scores(head) / 2, 1e-6)
        scores = plain.content_scores(head) / 2 + plain.position_bias[head]
        tiny.assert_close(record.scores(head), scores, 1e-6)
        scores[2, 4] = -math.inf
        tiny.assert_close(record.pattern(head), torch.softmax(scores, -1), 1e-6)
        tiny.assert_close(record.pattern(head) @ record.v[record.kv_head(head)], record.z(head), 1e-6)
        assert record.reason(head)[2, 4] == Reason.PAINTED
        assert int((record.reason(head) != 0).sum()) == 1


def test_the_later_cell_wins() -> None:
    cells = (Cell("encoder.0.pre", (0, 0), 1.0), Cell("encoder.0.pre", (0, 0), 2.0))
    assert forward(Edit(cells)).residual("encoder.0.pre")[0, 0] == 2.0


def test_the_model_and_the_other_texts_do_not_notice() -> None:
    model, before = tiny.model(), tiny.model().state_dict()
    edit = Edit((Cell("encoder.0.pre", (1, 2), 9.0), Cell("decoder.0.self.mask", (4, 0), -math.inf)))
    batch = (SOURCE.repeat(2, 1), TARGET.repeat(2, 1))
    with torch.inference_mode():
        plain, edited = model(*batch), model(*batch, edit=edit)
        assert torch.equal(model(*batch), plain)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert not torch.equal(edited[0], plain[0])
    tiny.assert_close(edited[1], plain[1], 1e-6)  # only the first text of a batch is edited


def test_what_can_be_edited() -> None:
    plain = forward()
    shapes = plain.editable()
    assert set(plain.residuals) <= set(shapes)
    assert shapes["decoder.1.cross.q"] == (4, 5, 4)
    assert shapes["decoder.1.cross.k"] == (4, 6, 4)
    assert shapes["decoder.1.cross.mask"] == (5, 6)
    assert shapes["encoder.final"] == (6, 16)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (Edit((Cell("decoder.9.self.q", (0, 0, 0), 1.0),)), r"nothing called decoder.9.self.q to edit"),
        (Edit((Cell("decoder.0.self.z", (0, 0, 0), 1.0),)), r"nothing called decoder.0.self.z to edit"),
        (Edit((Cell("encoder.0.pre", (6, 0), 1.0),)), r"encoder.0.pre has the shape \[.*\]; there is no cell \[6, 0\]"),
        (Edit((Cell("encoder.0.pre", (-1, 0), 1.0),)), r"no cell \[-1, 0\]"),
        (Edit((Cell("encoder.0.pre", (0,), 1.0),)), r"no cell \[0\] in it"),
        (Edit(unscaled=frozenset({"decoder.7.self"})), r"nothing called decoder.7.self to edit"),
        (Edit(temperatures={"nowhere": 2.0}), r"nothing called nowhere to edit"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_edits_of_what_is_not_there_are_refused(edit: Edit, said: str) -> None:
    with pytest.raises(TraceError, match=said):
        edit.check(forward().editable())
    checkpoint = tiny.checkpoint()
    ids = dict(ids=SOURCE[0].tolist(), target_ids=TARGET[0].tolist())
    with pytest.raises(TraceError, match=said):
        checkpoint.trace(**ids, edit=edit)


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_temperatures_that_are_none(value: float) -> None:
    with pytest.raises(TraceError, match="must be a number above 0"):
        Edit(temperatures={"decoder.0.self": value})


def test_generation_follows_the_edit() -> None:
    """What is set by hand counts for the translation too, not only for the picture."""
    checkpoint = tiny.checkpoint(tied_unembedding=False, norm_order="pre")
    plain = checkpoint.trace("我有 cat")
    cells = tuple(Cell("encoder.final", (0, component), 3.0 * (-1) ** component) for component in range(16))
    edited = checkpoint.trace("我有 cat", edit=Edit(cells))
    assert edited.tokens["decoder"] != plain.tokens["decoder"]
    chosen = [token.id for token in edited.tokens["decoder"][1:]]
    assert edited.logits.argmax(-1).tolist()[: len(chosen)] == chosen
    assert checkpoint.generate("我有 cat", edit=Edit(cells)).ids[: len(chosen)] == tuple(chosen)
