"""What an exercise is made of: what is to be written, a solution, the cases it is tried on, and mistakes in its lines."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from vizformer.assets import bundled_models
from vizformer.checkpoints import Checkpoint, load
from vizformer.config import ModelConfig
from vizformer.messages import N_, Message
from vizformer.model import Trace, Transformer
from vizformer.text import IdTokenizer

Function = Callable[..., Any]
Results = dict[str, Any]
Kept = list[Tensor]  # a cache: tensors with a row for each hypothesis

MODEL = "zh-en"
SENTENCE = "我有一只猫。"


@dataclass(frozen=True)
class Reading:
    """A model that has read something: its numbers are what a function is tried on."""

    title: Message
    checkpoint: Checkpoint
    trace: Trace

    def at(self, site: str) -> Message:
        """The title of a case at a site, or in a layer."""
        return N_("{where}: {site}", where=self.title, site=site)

    def weights(self, layer: str) -> dict[str, Tensor]:
        """Those of "encoder.0" as a checkpoint names them: "self_attention.W_Q.weight", ..."""
        stack, number = layer.split(".")
        return below(self.checkpoint.model.state_dict(), f"{stack}.layers.{number}.")


@lru_cache(maxsize=4)
def random_reading(norm_eps: float = 1e-5) -> Reading:
    """A small model of random numbers, no two of its sizes the same, so that nothing fits by accident."""
    config = ModelConfig(
        vocab_size=23, d_model=18, n_heads=3, d_ff=20, n_encoder_layers=1, n_decoder_layers=1, max_positions=16,
        scaled_embedding=True, pad_id=0, bos_id=1, eos_id=2, norm_eps=norm_eps,
    )  # fmt: skip
    model, generator = Transformer(config), torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, parameter in sorted(model.named_parameters()):
            noise = torch.randn(parameter.shape, generator=generator)
            if parameter.dim() > 1:
                parameter.copy_(noise * parameter.shape[-1] ** -0.5)
            else:  # no norm and no bias is what it is before a training
                parameter.copy_(0.3 * noise + (1.0 if name.endswith("weight") else 0.0))
    checkpoint = Checkpoint("random", model, IdTokenizer(config.vocab_size))
    return Reading(N_("random numbers"), checkpoint, checkpoint.trace(ids=[5, 9, 3, 21, 2], target_ids=[1, 7, 12, 4]))


@lru_cache(maxsize=4)
def bundled_reading(text: str) -> Reading:
    """The bundled translator and a sentence.

    Raises:
        TraceError: nothing to read, or too much.
    """
    assert MODEL in bundled_models()
    checkpoint = load(MODEL)
    title = N_("{model} with “{text}”", model=MODEL, text=text)
    return Reading(title, checkpoint, checkpoint.trace(text))


def readings(text: str) -> tuple[Reading, Reading]:
    """Random numbers, and the bundled model with a sentence."""
    return random_reading(), bundled_reading(text)


@dataclass(frozen=True)
class Place:
    """Where a result stands among the steps of a layer (`vizformer.analysis.other_programs`), whose mistakes are known."""

    step: str
    agreed: str  # a step before it, from which on mistakes are looked for
    brought: Callable[[Tensor], Tensor] = lambda result: result  # makes of the result what the step has


@dataclass(frozen=True)
class Case:
    title: Message
    # the arguments; or what makes them, where a copy is not enough
    given: tuple[Any, ...] | Callable[[], tuple[Any, ...]]
    # reading, places: where the results stand in a layer of a model, if they do
    reading: Reading | None = None
    places: Mapping[str, Place] = field(default_factory=dict)

    def arguments(self) -> tuple[Any, ...]:
        """The arguments for one call, which may change them."""
        return tuple(map(copied, self.given)) if isinstance(self.given, tuple) else self.given()


def slipped(solutions: tuple[Function, ...], slip: str) -> tuple[Function, ...]:
    """Solutions with a mistake in their lines; what is run are constants of this room.

    Args:
        slip: in each line a piece of the solution, an arrow, and what stands there in its place.

    Raises:
        ValueError: a piece that is there not at all, or several times.
    """
    source = "\n\n".join(inspect.getsource(solution) for solution in solutions)
    for right, wrong in (line.split(" ⟶ ") for line in slip.split("\n")):
        if source.count(right) != 1:
            raise ValueError(f"{right!r} stands {source.count(right)} times in the solution")
        source = source.replace(right, wrong)
    names = dict(solutions[0].__globals__)
    exec(compile(source, "<slip>", "exec"), names)
    return tuple(names[solution.__name__] for solution in solutions)


class UnusableError(Exception):
    """A result that cannot be compared at all, or a call that no result can come of; told to the student."""

    def __init__(self, said: Message) -> None:
        self.said = said
        super().__init__(str(said))


def named(value: object, *names: str) -> Results:
    """What a function returned, by names; a tuple where there are several.

    Raises:
        UnusableError: nothing was returned, or not so many things.
    """
    if value is None:
        raise UnusableError(N_("It returns nothing (None). End it with return."))
    if len(names) == 1:
        return {names[0]: value}
    if not isinstance(value, tuple) or len(value) != len(names):
        what = f"{len(value)} × …" if isinstance(value, tuple) else type(value).__name__
        raise UnusableError(N_("It returns {what}; a tuple is needed: {names}.", what=what, names=", ".join(names)))
    return dict(zip(names, value, strict=True))


@dataclass(frozen=True)
class Task:
    """An exercise, whoever reads it in whatever language."""

    name: str  # by which it is asked for
    # its table in words.toml: its title, the statement of what is to be written, and the slips: what stands in place of
    # which lines of the solution (`slipped`), and what is said of it
    told: Mapping[str, Any]
    # formula, shapes: the same in symbols, one line each
    formula: tuple[str, ...]
    shapes: tuple[str, ...]
    solutions: tuple[Function, ...]  # the functions, as they could be written
    returns: tuple[str, ...]  # the names of what they return, in the order in which it comes to be
    cases: Callable[[str], Iterator[Case]]  # what it is tried on, for a sentence of the reader's
    # calls functions with the arguments of a case, where that is not one function called once
    run: Callable[[tuple[Function, ...], tuple[Any, ...]], Results] | None = None
    uses: tuple[str, ...] = ()  # exercises whose functions it may use
    helpers: tuple[Function, ...] = ()  # functions that are given with it
    trains: bool = False  # whether its arguments change, and gradients are needed

    @property
    def title(self) -> Message:
        return Message(self.told["title"])

    @property
    def statement(self) -> Message:
        return Message(self.told["statement"])

    @property
    def slips(self) -> dict[str, Message]:
        """Known mistakes that are none of the steps of a layer."""
        return {slip: Message(said) for slip, said in self.told.get("slips", {}).items()}

    def results(self, functions: tuple[Function, ...], arguments: tuple[Any, ...]) -> Results:
        """What functions give for arguments, by names.

        Raises:
            UnusableError: what cannot be compared; what they raise themselves.
        """
        with torch.set_grad_enabled(self.trains):
            if self.run is not None:
                return self.run(functions, arguments)
            return named(functions[0](*arguments), *self.returns)


def copied(argument: Any) -> Any:
    """A tensor, or a dict of them, that a function may change without harm to others."""
    if isinstance(argument, Tensor):
        return argument.detach().clone()
    return {name: copied(x) for name, x in argument.items()} if isinstance(argument, dict) else argument


def below(w: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors whose names begin so, without that beginning: of a layer, or of a part of it."""
    return {name.removeprefix(prefix): x for name, x in w.items() if name.startswith(prefix)}
