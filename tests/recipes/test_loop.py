"""The training loop: it learns, averages, goes on after a kill as if nothing had happened, and says when it fails."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from recipes.batches import pair_batches
from recipes.loop import LoopOptions, Progress, fit
from recipes.loss import translation_loss
from tests import tiny
from vizformer.errors import VizformerError
from vizformer.generation import greedy_batch
from vizformer.model import Transformer
from vizformer.training.loss import PairBatch, inverse_square_root

OPTIONS = LoopOptions(epochs=3, warmup=10, average_decay=0.9, factor=0.5)
Batches = Callable[[int], Iterator[PairBatch]]


def pairs(n: int, seed: int) -> list[tuple[list[int], list[int]]]:
    """The task: say the sentence backwards."""
    rows = torch.randint(3, 11, (n, 4), generator=torch.Generator().manual_seed(seed)).tolist()
    return [([*row, 2], [1, *reversed(row), 2]) for row in rows]


def batches(n: int = 40) -> Batches:
    return lambda epoch: pair_batches(pairs(n, seed=0), tokens_per_batch=110, pad_id=0, seed=epoch)


def loss(model: Transformer, batch: PairBatch) -> tuple[Tensor, int]:
    return translation_loss(model, batch, label_smoothing=0.1, autocast=False)


def new_model(dropout: float = 0.2) -> Transformer:
    torch.manual_seed(0)
    return Transformer(tiny.config(vocab_size=11, dropout=dropout, n_encoder_layers=1, n_decoder_layers=1))


def run(
    folder: Path,
    options: LoopOptions = OPTIONS,
    *,
    model: Transformer | None = None,
    data: Batches | None = None,
    report: Callable[[Progress], None] = lambda progress: None,
    objective: Callable[[Transformer, PairBatch], tuple[Tensor, int]] = loss,
) -> Transformer:
    return fit(
        model or new_model(),
        options,
        batches=data or batches(),
        loss=objective,
        state_file=folder / "state.pt",
        validate=lambda averaged: {"loss": 1.0},
        report=report,
    )


def same(one: Transformer, other: Transformer) -> bool:
    weights = zip(one.state_dict().items(), other.state_dict().items(), strict=True)
    return all(name == other_name and torch.equal(a, b) for (name, a), (other_name, b) in weights)


@pytest.mark.slow
@pytest.mark.sweep
def test_it_learns_to_say_a_sentence_backwards(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Transformer(
        tiny.config(
            vocab_size=11,
            d_model=32,
            d_ff=64,
            n_encoder_layers=1,
            n_decoder_layers=1,
            dropout=0.0,
            scaled_embedding=True,
        )
    )
    losses: list[float] = []
    trained = fit(
        model,
        LoopOptions(epochs=6, warmup=60, average_decay=0.97),
        batches=lambda epoch: pair_batches(pairs(1200, seed=1), tokens_per_batch=400, pad_id=0, seed=epoch),
        loss=lambda model, batch: translation_loss(model, batch, label_smoothing=0.0, autocast=False),
        validate=lambda averaged: {},
        state_file=tmp_path / "state.pt",
        report=lambda p: losses.append(p.loss),
    )
    assert losses[0] > 1.0
    assert losses[-1] < 0.1
    unseen = [pair for pair in pairs(60, seed=2) if pair not in pairs(1200, seed=1)]
    said = greedy_batch(trained, [source for source, _ in unseen], max_new=8)
    right = sum(row == target[1:-1] for row, (_, target) in zip(said, unseen, strict=True))
    assert right >= 0.9 * len(unseen) > 30


def test_it_returns_the_average_of_the_weights(tmp_path: Path) -> None:
    """average <- decay * average + (1 - decay) * weights after every step, from the first step's weights on."""
    model, seen = new_model(), []

    def watched(model: Transformer, batch: PairBatch) -> tuple[Tensor, int]:
        seen.append({name: p.detach().clone() for name, p in model.named_parameters()})
        return loss(model, batch)

    averaged = run(tmp_path, model=model, objective=watched)
    after = [*seen[1:], {name: p.detach().clone() for name, p in model.named_parameters()}]
    assert len(after) > 9
    for name, parameter in averaged.named_parameters():
        expected = after[0][name]
        for step in after[1:]:
            expected = 0.9 * expected + 0.1 * step[name]
        tiny.assert_close(parameter.detach(), expected, 1e-5)
        assert not torch.equal(parameter, after[-1][name])
    assert not averaged.training


def test_the_learning_rate_follows_the_schedule(tmp_path: Path) -> None:
    """Adam's first step moves every weight that has a gradient by the learning rate."""
    model = new_model(dropout=0.0)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    one = lambda epoch: iter(list(batches()(epoch))[:1])  # noqa: E731
    reports: list[Progress] = []
    run(tmp_path, replace(OPTIONS, epochs=1), model=model, data=one, report=reports.append)
    rate = inverse_square_root(1, d_model=16, warmup=10, factor=0.5)
    moved = torch.cat([(p.detach() - before[name]).abs().flatten() for name, p in model.named_parameters()])
    assert float(moved.max()) == pytest.approx(rate, rel=1e-3)
    assert float(moved.median()) == pytest.approx(rate, rel=0.05)
    assert reports[-1].learning_rate == rate


def test_gradients_are_clipped(tmp_path: Path) -> None:
    def large(model: Transformer, batch: PairBatch) -> tuple[Tensor, int]:
        value, tokens = loss(model, batch)
        return 1e6 * value, tokens

    model = new_model()
    run(tmp_path, replace(OPTIONS, epochs=1), model=model, objective=large)
    norm = torch.stack([p.grad.norm() for p in model.parameters()]).norm()
    assert float(norm) == pytest.approx(1.0, rel=1e-3)


def test_reports(tmp_path: Path) -> None:
    reports: list[Progress] = []
    run(tmp_path, report=reports.append)
    n = len(list(batches()(0)))
    assert [report.epoch for report in reports] == [0, 1, 2]
    assert [report.epochs for report in reports] == [3, 3, 3]
    assert reports[-1].step == 3 * n
    assert all(report.validation == {"loss": 1.0} for report in reports)
    assert all(0 < report.loss < 2 * math.log(11) for report in reports)
    assert all(report.tokens_per_second > 0 for report in reports)
    assert [report.seconds for report in reports] == sorted(report.seconds for report in reports)


class Killed(BaseException):
    """Like a kill: nothing gets the chance to tidy up."""


def killed_in(epoch: int, after: int) -> Batches:
    def until(now: int) -> Iterator[PairBatch]:
        for index, batch in enumerate(batches()(now)):
            if (now, index) == (epoch, after):
                raise Killed
            yield batch

    return until


@pytest.mark.sweep
@pytest.mark.parametrize(("epoch", "after"), [(0, 1), (1, 0), (1, 3), (2, 2)])
def test_going_on_after_a_kill_changes_nothing(tmp_path: Path, epoch: int, after: int) -> None:
    """Bit for bit the weights of a run that nobody disturbed, dropout included."""
    undisturbed = new_model()
    averaged = run(tmp_path / "whole", model=undisturbed)
    with pytest.raises(Killed):
        run(tmp_path / "killed", data=killed_in(epoch, after))
    resumed, reports = new_model(), list[Progress]()
    torch.manual_seed(999)  # whatever happened in between
    again = run(tmp_path / "killed", model=resumed, report=reports.append)
    assert [report.epoch for report in reports] == list(range(epoch, 3))
    assert same(resumed, undisturbed)
    assert same(again, averaged)


@pytest.mark.sweep
def test_a_kill_while_the_state_is_written_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    averaged = run(tmp_path / "whole")
    run(tmp_path / "killed", replace(OPTIONS, epochs=2))

    def half(state: object, path: Path) -> None:
        path.write_bytes(b"half of it")
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(torch, "save", half)
        with pytest.raises(Killed):
            run(tmp_path / "killed")
    assert same(run(tmp_path / "killed"), averaged)


@pytest.mark.sweep
def test_a_finished_training_is_not_repeated_but_can_be_lengthened(tmp_path: Path) -> None:
    first = run(tmp_path)

    def none(epoch: int) -> Iterator[PairBatch]:
        raise AssertionError("there is nothing left to train")

    assert same(run(tmp_path, data=none), first)
    longer = replace(OPTIONS, epochs=4)
    assert same(run(tmp_path, longer), run(tmp_path / "at once", longer))


@pytest.mark.sweep
@pytest.mark.parametrize(
    "changes", [dict(warmup=11), dict(factor=1.0), dict(seed=1), dict(clip=2.0), dict(average_decay=0.5)], ids=str
)
def test_the_state_of_other_options_is_refused(tmp_path: Path, changes: dict[str, float]) -> None:
    run(tmp_path, replace(OPTIONS, epochs=1))
    with pytest.raises(
        VizformerError, match=r"state.pt was written by a training with other options. Delete it or choose"
    ):
        run(tmp_path, replace(OPTIONS, **changes))


def test_the_state_of_another_model_is_refused(tmp_path: Path) -> None:
    run(tmp_path, replace(OPTIONS, epochs=1))
    with pytest.raises(VizformerError, match="other options"):
        run(tmp_path, model=new_model(dropout=0.3))


@pytest.mark.sweep
def test_the_seed_decides_the_dropout(tmp_path: Path) -> None:
    first, second = run(tmp_path / "a"), run(tmp_path / "b")
    assert same(first, second)
    assert not same(first, run(tmp_path / "c", replace(OPTIONS, seed=1)))


@pytest.mark.parametrize("factor", [1e30, float("nan")])
def test_divergence_is_said_and_not_saved(tmp_path: Path, factor: float) -> None:
    run(tmp_path, replace(OPTIONS, epochs=1))
    before = (tmp_path / "state.pt").read_bytes()

    def broken(model: Transformer, batch: PairBatch) -> tuple[Tensor, int]:
        value, tokens = loss(model, batch)
        return value * float("inf") if factor > 1 else value * factor, tokens

    with pytest.raises(VizformerError, match=r"diverged in epoch 1: the loss is not a number. Lower the learning rate"):
        run(tmp_path, objective=broken)
    assert (tmp_path / "state.pt").read_bytes() == before


def test_a_learning_rate_that_is_far_too_high(tmp_path: Path) -> None:
    with pytest.raises(
        VizformerError, match=r"diverged in epoch \d: .* Lower the learning rate or lengthen the warm-up"
    ):
        run(tmp_path, replace(OPTIONS, factor=1e30, epochs=2))
    assert not (tmp_path / "state.pt").exists()
