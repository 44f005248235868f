"""Hand-written models with tensors renamed, reordered, turned or dropped: right, asked about or refused, never wrong unsaid.

What opens under the answers that were true of the model gives its numbers; where it gives others, the report says
something that it did not say before.
"""

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from tests import tiny
from tests.handmade_models import MODELS
from vizformer.checkpoints import Opened, UnansweredError, load
from vizformer.errors import CheckpointError

IDS, TARGET = [3, 7, 1, 12, 0], [1, 5, 4]
WORDS = (
    "alpha",
    "proj",
    "x",
    "thing",
    "net",
    "fc",
    "query",
    "norm",
    "out",
    "attn",
    "emb",
    "layer_9",
    "module",
    "7",
    "ü",
)
Weights = dict[str, Tensor]
Change = Callable[[Weights, random.Random], Weights]


def one_renamed(weights: Weights, dice: random.Random) -> Weights:
    old = dice.choice(sorted(weights))
    parts = old.split(".")
    parts[dice.randrange(len(parts))] = dice.choice(WORDS)
    return {".".join(parts) if name == old else name: tensor for name, tensor in weights.items()}


def module_renamed(weights: Weights, dice: random.Random) -> Weights:
    """Wherever it occurs, as its author may have called it."""
    parts = sorted({part for name in weights for part in name.split(".")[:-1] if not part.isdecimal()})
    old, new = dice.choice(parts), dice.choice(WORDS)
    return {".".join(new if part == old else part for part in name.split(".")): t for name, t in weights.items()}


def reordered(weights: Weights, dice: random.Random) -> Weights:
    names = list(weights)
    dice.shuffle(names)
    return {name: weights[name] for name in names}


def dropped(weights: Weights, dice: random.Random) -> Weights:
    gone = dice.choice(sorted(weights))
    return {name: tensor for name, tensor in weights.items() if name != gone}


def dropped_in_all_layers(weights: Weights, dice: random.Random) -> Weights:
    def kind(name: str) -> str:
        return ".".join("#" if part.isdecimal() else part for part in name.split("."))

    gone = kind(dice.choice(sorted(weights)))
    return {name: tensor for name, tensor in weights.items() if kind(name) != gone}


def turned(weights: Weights, dice: random.Random) -> Weights:
    """One matrix that is not square (a square one could be any)."""
    name = dice.choice(sorted(n for n, t in weights.items() if t.dim() == 2 and t.shape[0] != t.shape[1]))
    return {**weights, name: weights[name].T.contiguous()}


def cut(weights: Weights, dice: random.Random) -> Weights:
    name = dice.choice(sorted(n for n, t in weights.items() if t.dim()))
    return {**weights, name: weights[name][:-1].clone()}


CHANGES: tuple[Change, ...] = (one_renamed, module_renamed, reordered, dropped, dropped_in_all_layers, turned, cut)
NAMES = (
    "raw heads",
    "attention only",
    "fused",
    "turned",
    "modern",
    "course",
    "gamma and beta",
    "one matrix for all heads",
    "classifier",
    "TransformerLens",
)


def shown(ours: Opened) -> Tensor:
    return ours.trace(ids=IDS, **({"target_ids": TARGET} if ours.model.encoder and ours.model.decoder else {})).logits


def said(ours: Opened) -> set[str]:
    return {str(message) for message in ours.report.assumptions}


@pytest.mark.sample(1)
@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_never_wrong_without_saying_so(name: str, tmp_path: Path) -> None:
    dice = random.Random(name)
    path, outcomes = tmp_path / "model.pt", Counter[str]()
    weights = tiny.randomise(MODELS[name].make()).state_dict()
    torch.save(weights, path)
    reference = load(path, **MODELS[name].answers)
    expected = shown(reference)
    for number in range(56):
        change = CHANGES[number % len(CHANGES)]
        changed = change(weights, dice)
        torch.save(changed, path)
        given = dict(MODELS[name].answers)
        try:
            ours = load(path, **given)
        except UnansweredError:
            outcomes["asked"] += 1
            continue
        except CheckpointError:
            outcomes["refused"] += 1
            continue
        found = shown(ours)
        if found.shape == expected.shape and torch.allclose(found, expected, atol=1e-5):
            outcomes["right"] += 1
            continue
        lost = sorted(weights.keys() - changed.keys())
        new = said(ours) - said(reference)
        what = f"{change.__name__}: {lost[:3]} {sorted(changed.keys() - weights.keys())[:3]}"
        assert change is not reordered, what
        assert new or not ours.report.has_head or ours.report.config != reference.report.config, what
        if not new and ours.report.has_head:  # a layer without this tensor is a layer too: only biases are such
            assert all(key.rpartition(".")[2].startswith(("b", "pe")) for key in lost), what
        outcomes["other, and said"] += 1
    assert outcomes["right"] >= 56 // len(CHANGES), outcomes
    assert outcomes["refused"] > 14, outcomes


SHAPES = ((), (0,), (1,), (1, 0), (1, 1), (1, 1, 1), (16,), (16, 16), (16, 16, 1), (48, 16), (2, 2, 2, 2), (4, 16, 4))


@pytest.mark.sample(1)
@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_odd_shapes_and_names_are_refused_in_words(name: str, tmp_path: Path) -> None:
    """Also numbers that are no floats: nothing but an error of ours comes of it."""
    dice = random.Random(name)
    weights = tiny.randomise(MODELS[name].make()).state_dict()
    outcomes, unprintable = Counter[str](), list[str]()
    for _ in range(40):
        changed = dict(weights)
        for old in dice.sample(sorted(weights), dice.choice((1, 1, 2, 6))):
            tensor = changed.pop(old)
            kind = dice.randrange(5)
            if kind == 0:
                changed[old] = torch.zeros(
                    dice.choice(SHAPES), dtype=dice.choice((torch.float32, torch.int8, torch.bool))
                )
            elif kind == 1:
                changed[old[: dice.randrange(len(old) + 1)]] = tensor
            elif kind == 2:
                changed[old + dice.choice((".", ".weight", ".0", "{x}", "\x1b", " " * 3))] = tensor
            elif kind == 3:
                changed[dice.choice(sorted(weights))] = tensor
            else:
                changed[old] = tensor.repeat(*[2] * max(tensor.dim(), 1))
        torch.save(changed, tmp_path / "model.pt")
        try:
            load(tmp_path / "model.pt", **MODELS[name].answers)
            outcomes["opens"] += 1
        except CheckpointError as error:
            outcomes["refused or asked"] += 1
            unprintable += [str(error)] * (not str(error).isprintable())
    assert not unprintable
    assert outcomes["refused or asked"] > 20, outcomes
