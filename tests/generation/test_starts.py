"""What a decoder begins with, and the padding that some models never generate."""

import pytest
import torch

from tests import tiny
from tests.greedy import greedy_steps
from vizformer.errors import TraceError
from vizformer.generation import GREEDY, Cut, Sampling, beam_search, greedy_batch, next_token, stream

PAD, END = 0, 2
SOURCE = [5, 6, 7, 8]


@pytest.mark.parametrize(
    ("options", "start"),
    [
        (dict(bos_id=1), (1,)),
        (dict(bos_id=None), ()),
        (dict(bos_id=None, decoder_start_id=PAD), (PAD,)),
        (dict(bos_id=1, decoder_start_id=END), (END,)),
        (dict(bos_id=1, decoder_start_id=END, forced_bos_id=1), (END, 1)),
        (dict(bos_id=1, forced_bos_id=9), (1, 9)),
    ],
    ids=str,
)
@pytest.mark.sample(2)
def test_the_start(options: dict[str, int | None], start: tuple[int, ...]) -> None:
    checkpoint = tiny.checkpoint(**options)
    assert checkpoint.model.config.start_ids == start
    assert [token.id for token in checkpoint.encode_target("cat")][: len(start)] == list(start)
    assert len(checkpoint.encode_target("cat")) > len(start)
    if start:
        prompt, beginning = checkpoint.opening("我有 cat")
        assert tuple(token.id for token in beginning) == start
        traced = checkpoint.trace("我有 cat")
        assert tuple(token.id for token in traced.tokens["decoder"])[: len(start)] == start
        found = greedy_steps(checkpoint.model, [token.id for token in prompt], start, max_new=3)
        assert [step.id for step in checkpoint.generate("我有 cat", max_new=3).steps] == [step.id for step in found]
    else:
        for ask in (checkpoint.opening, checkpoint.trace, checkpoint.generate):
            with pytest.raises(TraceError, match="the start token of the decoder of tiny: give a target"):
                ask("我有 cat")
        assert checkpoint.trace("我有 cat", target="cat").tokens["decoder"]


def insisting(**options: object) -> torch.nn.Module:
    """A model whose best token is padding, whatever it reads."""
    model = tiny.model(logit_bias=True, eos_id=None, decoder_start_id=PAD, **options)
    with torch.no_grad():
        model.logit_bias[PAD] = 99.0
    return model


@pytest.mark.parametrize("sampling", [GREEDY, Sampling(seed=1), Sampling(top_k=3, repetition_penalty=1.5)], ids=str)
def test_padding_that_is_never_generated(sampling: Sampling) -> None:
    always = list(stream(insisting(), SOURCE, [PAD], max_new=6, sampling=sampling))
    assert {step.id for step in always} == {PAD}
    never = list(stream(insisting(never_pad=True), SOURCE, [PAD], max_new=6, sampling=sampling))
    assert len(never) == 6
    for step in never:
        assert step.id != PAD
        assert step.filtered[PAD] == 0
        assert step.cut[PAD] == Cut.NEVER
        assert step.probabilities[PAD] > 0.99  # what the model says stays what it says
        tiny.assert_close(step.filtered.sum(), torch.tensor(1.0))


def test_neither_in_a_batch_nor_in_a_beam() -> None:
    options = dict(logit_bias=True, decoder_start_id=PAD, bos_id=None)
    for never in (False, True):
        model = tiny.model(never_pad=never, **options)
        with torch.no_grad():
            model.logit_bias[PAD] = 99.0
        batch = greedy_batch(model, [SOURCE, SOURCE[:2]], max_new=5)
        assert all((PAD in row) is not never for row in batch)
        alone = [[step.id for step in greedy_steps(model, row, [PAD], max_new=5)] for row in (SOURCE, SOURCE[:2])]
        assert batch == [[id for id in row if id != END] for row in alone]
        best = beam_search(model, SOURCE, [PAD], width=3, max_new=5)[0]
        assert (PAD in best.ids) is not never


def test_a_batch_that_begins_with_the_end_mark() -> None:
    """BART's decoder does: it ends nothing there."""
    model = tiny.model(decoder_start_id=END, forced_bos_id=1, seed=4)
    sources = [tiny.ids(4, seed=seed)[0].tolist() for seed in range(6)]
    rows = greedy_batch(model, sources, max_new=8)
    alone = [[step.id for step in greedy_steps(model, source, (END, 1), max_new=8)] for source in sources]
    assert rows == [[id for id in ids if id != END] for ids in alone]
    assert any(rows)


def test_next_tokens_without_one() -> None:
    logits = torch.tensor([3.0, 1.0, 2.0])
    choice = next_token(logits, (), Sampling(), never=0)
    tiny.assert_close(choice.filtered[1:], torch.softmax(logits[1:], -1))
    assert choice.cut.tolist() == [Cut.NEVER, Cut.KEPT, Cut.KEPT]
    assert next_token(logits, (), GREEDY, never=0).cut.tolist() == [Cut.NEVER, Cut.GREEDY, Cut.KEPT]
