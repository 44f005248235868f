"""Training that one can watch: a tiny Transformer on a symbolic task, its weights kept along the way."""

import hashlib
import json
import math
import random
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, NamedTuple

import torch
from torch import nn

from vizformer.config import ModelConfig
from vizformer.errors import VizformerError
from vizformer.freed_memory import keep_freed_memory
from vizformer.model import Transformer
from vizformer.options import Architecture, NormOrder, Positions
from vizformer.training.loss import fast_short_attention
from vizformer.training.tasks import REPEATED, TASKS, Marks, Task, batch_of, examples, loss_of, marks

SNAPSHOTS = 24  # kept states of the weights, the untrained ones included
BATCH, MEASURED = 64, 200  # examples per update, and held-out ones that every snapshot answers
POSITIONS = 96  # tokens that the models accept: several times what they are trained on
REPORT_EVERY = 0.3  # seconds
ASTRAY = 4.0  # so many times the untrained loss: the training has diverged

Ending = Literal["done", "stopped", "diverged", "time"]
LIMITS = {
    "n_layers": (1, 4),
    "n_heads": (1, 8),
    "d_model": (8, 128),
    "steps": (5, 5000),
    "learning_rate": (1e-6, 10.0),
    "seed": (0, 9999),
    "warmup": (0.0, 0.9),
}
LATER = (
    "warmup",
    "scaled_embedding",
    "residual",
)  # options that plans may lack; at their defaults they are not written


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Everything that decides a training: the same plan gives the same weights.

    Raises:
        VizformerError: a value outside its limits, or a model that cannot be built.
    """

    task: str  # a name in `TASKS`
    architecture: Architecture
    n_layers: int = 2
    n_heads: int = 4
    d_model: int = 64
    positions: Positions = "learned"
    norm_order: NormOrder = "pre"
    steps: int = 1000
    learning_rate: float = 0.003  # the largest one; see `schedule`
    seed: int = 0
    warmup: float = 0.1  # the share of all steps over which the learning rate grows from 0; 0: it begins at its largest
    # token embeddings are multiplied by sqrt(d_model); else the rows of the table, which begin as short as they do with
    # it, are added to the positions as they are
    scaled_embedding: bool = True
    residual: bool = True  # the output of a sublayer is added to its input; else it replaces it

    def __post_init__(self) -> None:
        if self.task not in TASKS:
            known = ", ".join(TASKS)
            raise VizformerError("There is no task {name!r}; choose one of: {known}.", name=self.task, known=known)
        if self.architecture not in self.on.architectures:
            known = ", ".join(self.on.architectures)
            raise VizformerError("The task {task} is for: {known}.", task=self.task, known=known)
        for name, (low, high) in LIMITS.items():
            if not low <= (value := getattr(self, name)) <= high:
                raise VizformerError(
                    "{name}={value}: choose {low} to {high}.", name=name, value=value, low=low, high=high
                )
        self.config  # noqa: B018  (whatever else is wrong is said before a process is started)

    @property
    def on(self) -> Task:
        return TASKS[self.task]

    @property
    def config(self) -> ModelConfig:
        both = self.architecture == "encoder-decoder"
        return ModelConfig(
            vocab_size=len(self.on.vocabulary),
            d_model=self.d_model,
            n_heads=self.n_heads,
            d_ff=4 * self.d_model,
            n_encoder_layers=self.n_layers if both else 0,
            n_decoder_layers=self.n_layers,
            max_positions=POSITIONS,
            positions=self.positions,
            norm_order=self.norm_order,
            residual="sequential" if self.residual else "none",
            final_norm=self.norm_order == "pre",
            scaled_embedding=self.scaled_embedding,
            dropout=0.0,
            pad_id=0,
            bos_id=1,
            eos_id=2 if self.on.ends else None,
        )

    def build(self) -> Transformer:
        """The untrained model. The same random state gives the same weights, whichever parts the plan leaves out."""
        model = Transformer(replace(self.config, scaled_embedding=True))
        model.config = self.config
        return model

    @property
    def longest(self) -> int:
        """Tokens of the longest sequence in training, marks included; in an encoder-decoder those of one stack."""
        if not self.on.ends:
            return REPEATED
        if self.architecture == "encoder-decoder":
            return self.on.longest + 1
        return 2 * self.on.longest + 2

    @property
    def kept(self) -> tuple[int, ...]:
        """The steps after which the weights are kept: 0, 1, then in equal ratios up to the last one."""
        ratio = math.log(self.steps) / (SNAPSHOTS - 2)
        return tuple(sorted({0, *(round(math.exp(ratio * index)) for index in range(SNAPSHOTS - 1))}))

    @property
    def key(self) -> str:
        """A short hash of the plan; the same plan has the same key in every process."""
        return hashlib.blake2b(self.to_json().encode(), digest_size=5).hexdigest()

    def to_json(self) -> str:
        usual = {field.name: field.default for field in fields(self) if field.name in LATER}
        return json.dumps(
            {name: value for name, value in asdict(self).items() if name not in usual or value != usual[name]},
            sort_keys=True,
        )

    @classmethod
    def from_json(cls, text: str) -> "Plan":
        options: dict[str, Any] = json.loads(text)
        return cls(**options)


class Snapshot(NamedTuple):
    """The model after `step` updates, and its marks on held-out questions."""

    step: int
    marks: Marks
    model: Transformer


def schedule(done: float, warmup: float = 0.1) -> float:
    """The factor of the largest learning rate once the share `done` of all steps is over.

    It grows linearly during `warmup`, where there is one; from its peak it falls along half a cosine to a tenth.
    """
    if done < warmup:
        return done / warmup
    return 0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * (done - warmup) / (1 - warmup)))


def train(
    plan: Plan,
    *,
    keep: Callable[[Snapshot], None],
    report: Callable[[int, float], None],
    stop: Callable[[], bool] = lambda: False,
    seconds: float = math.inf,
) -> Ending:
    """Trains the model of the plan.

    Args:
        keep: gets the snapshots, the untrained model first and, unless the training diverges, the last one.
        report: called with a step and the mean training loss since the last report, several times a second.
        stop: called after every step; True ends the training.
        seconds: the most computing time that this process may use.
    """
    keep_freed_memory()
    torch.manual_seed(plan.seed)
    model, rng = plan.build(), random.Random(plan.seed)
    held_out = batch_of(plan.on, plan.architecture, examples(plan.on, random.Random(1), MEASURED, held_out=True))
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98), weight_decay=0.01, fused=True)
    untrained = marks(model.eval(), held_out)
    keep(Snapshot(0, untrained, model))
    keep_after, losses = set(plan.kept), list[float]()
    ending: Ending | None = None
    started, reported = time.process_time(), time.monotonic()
    for step in range(1, plan.steps + 1):
        for group in optimizer.param_groups:
            group["lr"] = plan.learning_rate * schedule(step / plan.steps, plan.warmup)
        batch = batch_of(plan.on, plan.architecture, examples(plan.on, rng, BATCH, held_out=False))
        with fast_short_attention(torch.device("cpu")):
            loss = loss_of(model.train(), batch)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        losses.append(loss.item())
        if not losses[-1] < math.inf:  # NaN is not smaller than anything either
            report(step, losses[-1])
            return "diverged"
        optimizer.step()
        if stop():
            ending = "stopped"
        elif time.process_time() - started > seconds:
            ending = "time"
        over = ending is not None or step == plan.steps
        if over or step in keep_after or time.monotonic() - reported > REPORT_EVERY:
            mean = sum(losses) / len(losses)
            report(step, mean)
            if mean > ASTRAY * untrained.loss:
                return "diverged"
            losses.clear()
            reported = time.monotonic()
        if over or step in keep_after:
            found = marks(model.eval(), held_out)
            if not found.loss < math.inf:
                return "diverged"
            keep(Snapshot(step, found, model))
        if over:
            break
    return ending or "done"
