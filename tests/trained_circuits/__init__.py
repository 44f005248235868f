"""The models of `recipes.trained_circuits`, pairs of prompts for each, and every edge cut in a forward of its own.

Which edges an answer needs is not decided by gradients here, but measured: an edge is known where the share of LD that is
lost without it is more than KNOWN.  Of the look-up more is known: the last row alone knows what is asked, so that where f(x)
differs between the prompts, a head of the first layer has to find it, and one of the second has to ask for f(f(x)) with it.
"""

import random
from collections.abc import Callable
from functools import cache
from pathlib import Path

from torch import Tensor

from recipes.trained_circuits import ADDED, LOOKED_UP, MODELS
from vizformer.analysis.causes.asked_prompts import ask
from vizformer.analysis.causes.edge_attribution import Edge
from vizformer.analysis.causes.prompt_sets import PromptRow, PromptSet
from vizformer.checkpoints import Checkpoint, load
from vizformer.model import Edit, Patch, Trace
from vizformer.model.block import Block
from vizformer.model.feedforward import FeedForward

KNOWN = 0.05
PAIRS = 10


@cache
def trained(name: str) -> Checkpoint:
    return load(Path(__file__).parent / name)


def _changed(rng: random.Random, question: str, at: int, symbols: str) -> str:
    return question[:at] + rng.choice(symbols) + question[at + 1 :]


def _brackets(rng: random.Random) -> tuple[str, str]:
    """Of which none is closed that was not open."""
    while True:
        question = "".join(rng.choices("()", k=6))
        other = _changed(rng, question, rng.randrange(6), "()")
        if all(both[:n].count(")") <= both[:n].count("(") for both in (question, other) for n in range(7)):
            return question, other


def _modular_addition(rng: random.Random) -> tuple[str, str]:
    question = "".join(rng.choices(ADDED, k=2))
    return question, _changed(rng, question, rng.randrange(2), ADDED)


def _sorting(rng: random.Random) -> tuple[str, str]:
    question = "".join(rng.choices("0123456789", k=6))
    return question, _changed(rng, question, rng.randrange(6), "0123456789")


def _first_look(rng: random.Random) -> tuple[str, str]:
    """f(x) differs, and is never x itself."""
    question = "".join(rng.choices(LOOKED_UP, k=7))
    x = int(question[-1])
    others = LOOKED_UP.replace(question[-1], "")
    return _changed(rng, question, x, others), _changed(rng, question, x, others)


def _second_look(rng: random.Random) -> tuple[str, str]:
    """f(f(x)) differs, and f(x) is never x itself."""
    question = _first_look(rng)[0]
    return question, _changed(rng, question, int(question[int(question[-1])]), LOOKED_UP)


_DRAWN: dict[str, tuple[str, Callable[[random.Random], tuple[str, str]]]] = {
    "brackets": ("brackets", _brackets),
    "modular_addition": ("modular_addition", _modular_addition),
    "sorting": ("sorting", _sorting),
    "first_look": ("two_step_look_up", _first_look),
    "second_look": ("two_step_look_up", _second_look),
}
SETS = tuple(_DRAWN)


def model_of(name: str) -> Checkpoint:
    """The model that a set is for."""
    return trained(_DRAWN[name][0])


@cache
def prompts_of(name: str) -> PromptSet:
    """PAIRS pairs whose questions differ in one symbol and whose answers differ, read up to the first symbol that does."""
    model, drawn = _DRAWN[name]
    task, rng, rows = MODELS[model].task, random.Random(5), dict[PromptRow, None]()
    while len(rows) < PAIRS:
        clean, corrupted = drawn(rng)
        answer, wrong = task.solve(clean), task.solve(corrupted)
        at = next((at for at, (a, b) in enumerate(zip(answer, wrong, strict=True)) if a != b), None)
        if at is not None:
            begun = task.separator + answer[:at]
            rows[PromptRow(clean + begun, corrupted + begun, answer[at], wrong[at])] = None
    return PromptSet(name, tuple(rows))


def lost_without(checkpoint: Checkpoint, row: PromptRow, edge: Edge) -> float:
    """The share of LD that is lost where one reader reads what a writer wrote in the corrupted run: a forward of the
    model, in which what becomes of this reading is set (the query, key or value, the network's output, the logits).
    """
    pair = ask(checkpoint, row).pair()
    change = _written(checkpoint, pair.corrupted, edge.writer) - _written(checkpoint, pair.clean, edge.writer)
    if edge.reader == "logits":
        assert checkpoint.model.decoder is not None
        assert checkpoint.model.decoder.final_norm is not None
        logits = checkpoint.model.logits(checkpoint.model.decoder.final_norm(_last(checkpoint, pair.clean) + change))
    else:
        _, layer, *part = edge.reader.split(".")
        block = _block(checkpoint, int(layer))
        if part == ["feedforward"]:
            read = pair.clean.residual(f"decoder.{layer}.mid") + change
            patch = Patch(edge.reader, (), _network(block, read))
        else:
            head, letter = int(part[1]), part[2]
            assert block.self_norm is not None
            read = block.self_norm(pair.clean.residual(f"decoder.{layer}.pre") + change)
            made = getattr(block.self_attention, f"W_{letter.upper()}")(read)
            own = made.reshape(len(made), checkpoint.model.config.n_heads, -1)[:, head]
            patch = Patch(f"decoder.{layer}.self.{letter}", (head,), own)
        ids = [token.id for token in pair.clean.tokens["decoder"]]
        logits = checkpoint.trace(ids=ids, edit=Edit(patches=(patch,))).logits
    return 1.0 - float(pair.recovered(logits[None])[0])


def _block(checkpoint: Checkpoint, layer: int) -> Block:
    assert checkpoint.model.decoder is not None
    found = checkpoint.model.decoder.layers[layer]
    assert isinstance(found, Block)
    return found


def _network(block: Block, read: Tensor) -> Tensor:
    assert isinstance(block.feedforward, FeedForward)
    assert block.feedforward_norm is not None
    written: Tensor = block.feedforward(block.feedforward_norm(read))
    return written


def _written(checkpoint: Checkpoint, run: Trace, writer: str) -> Tensor:
    if writer == "embedding":
        return run.residual("decoder.0.pre")
    _, layer, *part = writer.split(".")
    block = _block(checkpoint, int(layer))
    if part == ["feedforward"]:
        return _network(block, run.residual(f"decoder.{layer}.mid"))
    head, d_head = int(part[1]), block.self_attention.d_head
    w_o = block.self_attention.W_O.weight[:, head * d_head : (head + 1) * d_head]
    return run[f"decoder.{layer}.self"].z(head) @ w_o.T


def _last(checkpoint: Checkpoint, run: Trace) -> Tensor:
    """The stream after the last layer, before the final norm."""
    last = checkpoint.model.config.n_decoder_layers - 1
    return run.residual(f"decoder.{last}.mid") + _written(checkpoint, run, f"decoder.{last}.feedforward")
