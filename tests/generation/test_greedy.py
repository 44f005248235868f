"""Greedy decoding against full forwards, one by one against padded batches, and where it stops."""

import pytest
import torch

from tests import tiny
from tests.greedy import greedy_steps
from vizformer.errors import TraceError
from vizformer.generation import greedy_batch
from vizformer.model import Transformer


@pytest.mark.parametrize("norm_order", ["post", "pre"])
def test_every_step_is_the_most_probable_token_of_a_full_forward(norm_order: str) -> None:
    model = tiny.model(norm_order=norm_order, eos_id=None)
    source = tiny.ids(7)
    steps = greedy_steps(model, source[0].tolist(), (1,), max_new=9)
    assert len(steps) == 9
    target = [1]
    for step in steps:
        with torch.inference_mode():
            logits = model(source, torch.tensor([target]))[0, -1]
        assert step.id == int(logits.argmax())
        tiny.assert_close(step.probabilities, torch.softmax(logits, -1), 1e-6)
        target.append(step.id)


def test_decoder_only_goes_on_with_its_prompt() -> None:
    model = tiny.model("decoder-only", eos_id=None)
    ids = tiny.ids(5)[0].tolist()
    for step in greedy_steps(model, ids, max_new=6):
        with torch.inference_mode():
            assert step.id == int(model(torch.tensor([ids]))[0, -1].argmax())
        ids.append(step.id)
    assert len(ids) == 11


def steered(*path: int) -> Transformer:
    """Predicts path[i] after i tokens of the target, whatever they are: the positions alone decide."""
    model = tiny.model(
        positions="learned",
        tied_unembedding=False,
        norm_order="pre",
        final_norm=True,
        n_encoder_layers=1,
        n_decoder_layers=1,
    )
    with torch.no_grad():
        model.embedding.weight.zero_()
        for sublayer in (*model.decoder.layers, *model.encoder.layers):
            for name, parameter in sublayer.named_parameters():
                if "W_O" in name or "W_out" in name:
                    parameter.zero_()  # nothing is added to the residual stream
        model.position_embedding.weight.zero_()
        model.position_embedding.weight[: len(path), : len(path)] = 9 * torch.eye(len(path))
        model.decoder.final_norm.weight.fill_(1.0)
        model.decoder.final_norm.bias.zero_()
        model.unembedding.weight.zero_()
        for place, id in enumerate(path):
            model.unembedding.weight[id, place] += 1.0
    return model


def test_it_stops_at_the_end_mark() -> None:
    steps = greedy_steps(steered(5, 6, 7, 2, 9, 9), [3, 4], (1,), max_new=20)
    assert [step.id for step in steps] == [5, 6, 7, 2]
    assert greedy_batch(steered(5, 6, 7, 2, 9, 9), [[3, 4], [3, 4, 5]], max_new=20) == [[5, 6, 7]] * 2
    assert greedy_batch(steered(2, 9), [[3, 4]], max_new=20) == [[]]


def test_it_stops_after_max_new() -> None:
    path = (5, 6, 7, 8, 9, 2)
    assert [step.id for step in greedy_steps(steered(*path), [3], (1,), max_new=3)] == [5, 6, 7]
    assert greedy_batch(steered(*path), [[3]], max_new=3) == [[5, 6, 7]]
    assert greedy_steps(steered(*path), [3], (1,), max_new=0) == []
    assert greedy_batch(steered(*path), [[3]], max_new=0) == [[]]


def test_it_stops_where_the_positions_end() -> None:
    model = tiny.model(max_positions=8, eos_id=None)
    assert len(greedy_steps(model, [3, 4], (1,), max_new=100)) == 7  # with the start mark: 8
    decoder = tiny.model("decoder-only", max_positions=8, eos_id=None)
    assert len(greedy_steps(decoder, [3, 4, 5], max_new=100)) == 5
    assert greedy_steps(decoder, [3] * 8, max_new=100) == []
    batch = tiny.model(max_positions=8, eos_id=28)
    for row, source in zip(greedy_batch(batch, [[3, 4], [5]], max_new=100), [[3, 4], [5]], strict=True):
        one_by_one = [step.id for step in greedy_steps(batch, source, (1,), max_new=100)]
        assert row == [id for id in one_by_one if id != 28]
        assert len(row) <= 7


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.sample(1)
def test_a_padded_batch_gives_what_each_source_gives_alone(seed: int) -> None:
    model = tiny.model(seed=seed, tied_unembedding=False, norm_order="pre")
    sources = [tiny.ids(n, seed=n)[0].tolist() for n in (9, 1, 4, 6, 2, 9)]
    alone = [[step.id for step in greedy_steps(model, source, (1,), max_new=12)] for source in sources]
    assert greedy_batch(model, sources, max_new=12) == [ids[:-1] if ids[-1] == 2 else ids for ids in alone]
    assert len(set(map(tuple, alone))) > 3  # the sources matter, else this shows nothing


@pytest.mark.parametrize("seed", [4, 21])
def test_a_batch_in_which_some_end_early(seed: int) -> None:
    """What follows a row's end mark, while the others go on, is not part of it."""
    model = tiny.model(seed=seed)
    sources = [tiny.ids(4, seed=s)[0].tolist() for s in range(8)]
    rows = greedy_batch(model, sources, max_new=8)
    assert len({len(row) for row in rows}) > 2  # some did end early, else this shows nothing
    assert not any(2 in row for row in rows)
    alone = [[step.id for step in greedy_steps(model, source, (1,), max_new=8)] for source in sources]
    assert rows == [[id for id in ids if id != 2] for ids in alone]


def test_dropout_is_not_its_business_but_gradients_are_off() -> None:
    steps = greedy_steps(tiny.model(), [3, 4], (1,), max_new=2)
    assert not any(step.probabilities.requires_grad for step in steps)


def test_errors() -> None:
    with pytest.raises(ValueError, match="a start mark, eos_id and pad_id"):
        greedy_batch(tiny.model(pad_id=None), [[3]], max_new=3)
    with pytest.raises(TraceError, match="no token"):
        greedy_steps(tiny.model(), [], (1,), max_new=3)
    with pytest.raises(TraceError, match="outside the vocabulary"):
        greedy_steps(tiny.model(), [99], (1,), max_new=3)
