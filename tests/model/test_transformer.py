"""The whole model: against plain loops in float64, its two halves, its padding, its errors."""

from itertools import product
from typing import Any

import pytest
import torch

from tests import tiny
from tests.eager_transformer import Eager
from vizformer.errors import TraceError
from vizformer.model import Transformer
from vizformer.model.forward_pass import ForwardPass
from vizformer.model.masks import Reason
from vizformer.model.trace import Trace

VARIANTS: list[dict[str, Any]] = [
    dict(positions="sinusoidal", norm_order="post", activation="relu", scaled_embedding=True),
    dict(positions="learned", norm_order="pre", activation="gelu_tanh", final_norm=True),
    dict(positions="learned", norm_order="post", final_norm=True, bias=False, tied_unembedding=False),
    dict(positions="sinusoidal", norm_order="pre", bias=False, scaled_embedding=True, norm_eps=1e-2),
    tiny.LLAMA,
    tiny.BERT,
    tiny.ALIBI,
    {**tiny.ALIBI, "n_kv_heads": 2, "norm_order": "pre"},
    tiny.T5,
    {**tiny.T5, "n_kv_heads": 2, "bias": True},
    dict(positions="none", n_kv_heads=1, norm="rms_norm", norm_order="post", feedforward="gated", activation="gelu"),
]
everything = pytest.mark.parametrize(
    ("architecture", "options"), list(product(tiny.STACKS, VARIANTS)), ids=lambda value: str(value)[:40]
)


def inputs(architecture: str, n: int = 7, m: int = 5) -> tuple[torch.Tensor, ...]:
    return (tiny.ids(n), tiny.ids(m, seed=1)) if architecture == "encoder-decoder" else (tiny.ids(n),)


@everything
@pytest.mark.sample(11)
def test_against_plain_loops(architecture: str, options: dict[str, Any]) -> None:
    model = tiny.model(architecture, **options)
    ids, trace = inputs(architecture), Trace()
    with torch.inference_mode():
        logits = model(*ids, trace=trace)
    eager = Eager(model).run(*(row[0] for row in ids))
    tiny.assert_close(logits[0].double(), eager.logits)
    assert set(trace.residuals) == set(eager.residuals)
    for name, expected in eager.residuals.items():
        tiny.assert_close(trace.residual(name).double(), expected)
    assert set(trace.sites) == set(eager.calls)
    for site, call in eager.calls.items():
        for head in range(4):
            record = trace[site]
            for found, expected in (
                (record.q[head], call.q[head]),
                (record.k[record.kv_head(head)], call.k[head]),
                (record.v[record.kv_head(head)], call.v[head]),
                (record.scores(head), call.scores[head]),
                (record.pattern(head), call.pattern[head]),
                (record.z(head), call.z[head]),
            ):
                tiny.assert_close(found.double(), expected)


@everything
@pytest.mark.sample(11)
def test_padding_changes_nothing_for_real_rows(architecture: str, options: dict[str, Any]) -> None:
    """A row of a padded batch gives what it gives alone, whatever the padding tokens are."""
    model = tiny.model(architecture, **options)
    ids = inputs(architecture, n=9, m=8)
    lengths = [[4, 9], [8, 3]]
    masks = [tiny.right_padded(of, row.shape[1]) for row, of in zip(ids, lengths, strict=False)]
    arguments = dict(padding=masks[0]) | (dict(target_padding=masks[1]) if len(ids) == 2 else {})
    batch = [row.repeat(2, 1) for row in ids]
    for filler in (0, 27):
        filled = [rows.masked_fill(mask, filler) for rows, mask in zip(batch, masks, strict=True)]
        logits = model(*filled, **arguments)
        for item in range(2):
            alone = model(*(row[:, : of[item]] for row, of in zip(ids, lengths, strict=False)))
            tiny.assert_close(logits[item, : alone.shape[1]], alone[0])


def test_the_reasons_of_a_padded_batch() -> None:
    model, trace = tiny.model(), Trace()
    model(
        tiny.ids(4),
        tiny.ids(3),
        padding=tiny.right_padded([2], 4),
        target_padding=tiny.right_padded([2], 3),
        trace=trace,
    )
    assert trace["encoder.0.self"].reason(1).tolist() == [[0, 0, 1, 1]] * 4
    assert trace["decoder.0.self"].reason(3).tolist() == [[0, 2, 1], [0, 0, 1], [0, 0, 1]]
    assert trace["decoder.1.cross"].reason(0).tolist() == [[0, 0, Reason.PADDING, Reason.PADDING]] * 3


def test_encode_and_decode_are_the_two_halves_of_the_forward() -> None:
    model, (source, target) = tiny.model(), inputs("encoder-decoder")
    padding = tiny.right_padded([5], 7)
    memory = model.encode(source, padding=padding)
    halves = model.logits(model.decode(target, memory, memory_padding=padding))
    assert torch.equal(halves, model(source, target, padding=padding))
    assert not torch.equal(halves, model(source, target))  # the padding reached the cross-attention


def test_a_position_does_not_see_the_future() -> None:
    for architecture in ("decoder-only", "encoder-decoder"):
        model, ids = tiny.model(architecture), list(inputs(architecture))
        before = model(*ids)
        ids[-1] = ids[-1].clone()
        ids[-1][0, 3] += 1 if ids[-1][0, 3] < 28 else -1
        after = model(*ids)
        tiny.assert_close(after[:, :3], before[:, :3], 1e-6)
        assert (after[:, 3:] - before[:, 3:]).abs().amax(-1).min() > 1e-3
    encoder = tiny.model("encoder-only")
    assert (encoder(tiny.ids(5)) - encoder(tiny.ids(5).flip(1)).flip(1)).abs().max() > 1e-3  # positions count
    changed = tiny.ids(5)
    changed[0, 4] = 3 + (changed[0, 4] - 2) % 26
    assert (encoder(tiny.ids(5))[0, 0] - encoder(changed)[0, 0]).abs().max() > 1e-4  # and the future is seen


def test_dropout_acts_in_training_only() -> None:
    model, ids = tiny.model("decoder-only", dropout=0.5), tiny.ids(6)
    assert torch.equal(model(ids), model(ids))
    model.train()
    torch.manual_seed(0)
    first, second = model(ids), model(ids)
    assert not torch.equal(first, second)
    still = tiny.model("decoder-only", dropout=0.0).train()
    assert torch.equal(still(ids), still(ids))
    # It acts on x_0 (embedding plus position) and leaves what survives scaled by 1 / (1 - p).
    x, kept = model.embed(ids), model.eval().embed(ids)
    survived = x != 0
    assert 0.25 < survived.float().mean() < 0.75
    tiny.assert_close(x[survived], 2 * kept[survived], 1e-6)


def test_dropout_acts_on_every_sublayers_output() -> None:
    """Not on attention weights: the same residual minus the sublayer's input holds zeros and doubled values only."""
    model = tiny.model("decoder-only", dropout=0.5, norm_order="pre", n_decoder_layers=1)
    layer = model.decoder.layers[0]
    layer.train()
    x = torch.randn(1, 6, 16, generator=torch.Generator().manual_seed(0))
    torch.manual_seed(0)
    trace = Trace()
    layer(x, ForwardPass(trace=trace), "decoder.0")
    added = trace.residual("decoder.0.mid") - x[0]
    layer.eval()
    layer(x, ForwardPass(trace=(still := Trace())), "decoder.0")
    whole = still.residual("decoder.0.mid") - x[0]
    dropped = added.abs() < 1e-6
    assert 0.2 < dropped.float().mean() < 0.8
    tiny.assert_close(added[~dropped], 2 * whole[~dropped])


@pytest.mark.parametrize("options", [{}, tiny.LLAMA, tiny.T5], ids=["sinusoidal", "rope", "relative"])
@pytest.mark.parametrize("architecture", ["encoder-only", "decoder-only"])
@torch.inference_mode()
def test_what_accompanies_a_pass_is_not_used_up(architecture: str, options: dict[str, object]) -> None:
    """The same value accompanies the stack as often as one likes, and it is the one that the whole model makes."""
    model, ids, padding = tiny.model(architecture, **options), tiny.ids(6), tiny.right_padded([4], 6)
    stack, whole = ("encoder", model.encode) if model.encoder is not None else ("decoder", model.decode)
    run = model.forward_pass(stack, ids, padding=padding)
    for _ in range(2):
        assert torch.equal(getattr(model, stack)(model.embed(ids, stack=stack), run), whole(ids, padding=padding))


ERRORS = [
    ("decoder-only", dict(ids=tiny.ids(33)), ["33 tokens", "accepts 32", "Shorten it by 1"]),
    ("decoder-only", dict(ids=tiny.ids(0)), ["no token", "type at least one word"]),
    ("encoder-only", dict(ids=torch.tensor([[3, 29]])), ["29", "outside the vocabulary", "0 to 28"]),
    ("encoder-only", dict(ids=torch.tensor([[-1, 29]])), ["-1", "outside the vocabulary", "0 to 28"]),
    ("encoder-decoder", dict(ids=tiny.ids(3)), ["needs target_ids", "encoder-decoder"]),
    ("decoder-only", dict(ids=tiny.ids(3), target_ids=tiny.ids(3)), ["the others take none", "decoder-only"]),
    ("encoder-decoder", dict(ids=tiny.ids(3), target_ids=tiny.ids(40)), ["40 tokens", "Shorten it by 8"]),
]


@pytest.mark.parametrize(("architecture", "arguments", "said"), ERRORS, ids=lambda value: str(value)[:30])
def test_errors_name_value_rule_and_way_out(architecture: str, arguments: dict[str, Any], said: list[str]) -> None:
    with pytest.raises(TraceError) as caught:
        tiny.model(architecture)(**arguments)
    for part in said:
        assert part in str(caught.value)


def test_a_stack_that_is_not_there() -> None:
    with pytest.raises(TraceError, match="no encoder"):
        tiny.model("decoder-only").encode(tiny.ids(3))
    with pytest.raises(TraceError, match="no decoder"):
        tiny.model("encoder-only").decode(tiny.ids(3))
    with pytest.raises(ValueError, match="memory"):
        tiny.model("encoder-decoder").decode(tiny.ids(3))


def test_a_fresh_model_starts_at_a_sensible_scale() -> None:
    torch.manual_seed(0)
    config = tiny.config(vocab_size=2000, d_model=64, scaled_embedding=True)
    model = Transformer(config)
    assert 0.9 < float((model.embedding.weight.detach() * 8).std()) < 1.1
    assert float(Transformer(tiny.config(vocab_size=2000)).embedding.weight.detach().std()) < 0.03
    biases = [p for name, p in model.named_parameters() if name.endswith("bias")]
    assert biases
    assert all(bool((bias == 0).all()) for bias in biases)
