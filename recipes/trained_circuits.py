"""Four small models that are trained on a task whose answer needs a known thing: circuits that methods are held against.

    brackets            how many brackets are open: "(()(" is 2
    modular_addition    (a + b) mod 31, of symbols 0 to u: "7b" is i
    sorting             the digits in order: "31415" is 11345
    two_step_look_up    a table f of six digits, f(0) to f(5), and x: f(f(x)); "3025141" is 3, for f(1) = 0, f(0) = 3

Decoders of one layer, the last one of two, with four heads in each, all of which are trained, and a token for each symbol.
The squares of all weights are part of the loss: without them sums that were never seen are not learned.

    python -m recipes.trained_circuits tests/trained_circuits      # three minutes on one core

Source: Nanda et al. 2023, "Progress measures for grokking via mechanistic interpretability" (modular addition,
weight decay).
"""

import random
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from recipes.arguments import paths
from recipes.loop import LoopOptions, Progress, fit
from vizformer.checkpoints import Checkpoint, save
from vizformer.config import ModelConfig
from vizformer.model import Transformer
from vizformer.options import Architecture
from vizformer.training.loss import RowBatch
from vizformer.training.tasks import DIGITS, TASKS, Batch, Example, Task, batch_of, examples, loss_of, marks

KIND: Architecture = "decoder-only"
ADDED, LOOKED_UP = "0123456789abcdefghijklmnopqrstu", "012345"
HELD_OUT = 300  # questions that are measured, of those that are not trained on
EPOCH = 300  # batches


def _depth(question: str) -> str:
    return str(question.count("(") - question.count(")"))


def _brackets(rng: random.Random) -> Example:
    question = ""
    for _ in range(rng.randint(2, 9)):
        question += "(" if _depth(question) == "0" else rng.choice("()")
    return Example(question, _depth(question))


def _sum(question: str) -> str:
    return ADDED[sum(map(ADDED.index, question)) % len(ADDED)]


def _looked_up(question: str) -> str:
    return question[int(question[int(question[-1])])]


def _drawn(symbols: str, length: int, solve: Callable[[str], str]) -> Callable[[random.Random], Example]:
    def sample(rng: random.Random) -> Example:
        question = "".join(rng.choices(symbols, k=length))
        return Example(question, solve(question))

    return sample


@dataclass(frozen=True)
class Trained:
    """What is trained, and how long.

    Attributes:
        epochs: of EPOCH batches.
        batch: questions in one.
    """

    task: Task
    layers: int
    d_model: int
    epochs: int
    batch: int

    @property
    def config(self) -> ModelConfig:
        return ModelConfig(
            vocab_size=len(self.task.vocabulary),
            d_model=self.d_model,
            n_heads=4,
            d_ff=2 * self.d_model,
            n_decoder_layers=self.layers,
            max_positions=20,
            positions="learned",
            norm_order="pre",
            final_norm=True,
            tied_unembedding=False,
            dropout=0.0,
            pad_id=0,
            bos_id=1,
            eos_id=2 if self.task.ends else None,
        )


_BRACKETS = Task("brackets", f"(){DIGITS}", "=", False, (KIND,), 9, _brackets, _depth, "(()(")
_ADDITION = Task("modular_addition", ADDED, "=", False, (KIND,), 2, _drawn(ADDED, 2, _sum), _sum, "7b")
_LOOK_UP = Task(
    "two_step_look_up", LOOKED_UP, "", False, (KIND,), 7, _drawn(LOOKED_UP, 7, _looked_up), _looked_up, "3025141"
)
MODELS = {
    "brackets": Trained(_BRACKETS, layers=1, d_model=16, epochs=2, batch=64),
    "modular_addition": Trained(_ADDITION, layers=1, d_model=32, epochs=10, batch=128),
    "sorting": Trained(TASKS["sort"], layers=1, d_model=32, epochs=8, batch=64),
    "two_step_look_up": Trained(_LOOK_UP, layers=2, d_model=32, epochs=6, batch=128),
}
DECAY = 1e-4  # times the sum of the squares of all weights


def train(name: str, report: Callable[[Progress], None], seed: int = 0) -> Checkpoint:
    """One of MODELS, with numbers that float16 holds."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    wanted = MODELS[name]
    held_out = batch_of(wanted.task, KIND, examples(wanted.task, random.Random(1), HELD_OUT, held_out=True))

    def batches(epoch: int) -> Iterator[Batch]:
        rng = random.Random(f"{seed} {epoch}")
        for _ in range(EPOCH):
            yield batch_of(wanted.task, KIND, examples(wanted.task, rng, wanted.batch, held_out=False))

    def loss(model: Transformer, batch: Batch) -> tuple[Tensor, int]:
        assert isinstance(batch, RowBatch)
        squares = torch.stack([parameter.square().sum() for parameter in model.parameters()]).sum()
        return loss_of(model, batch) + DECAY * squares, batch.ids.numel()

    with tempfile.TemporaryDirectory() as folder:
        model = fit(
            Transformer(wanted.config),
            LoopOptions(epochs=wanted.epochs, warmup=200, factor=0.5, average_decay=0.99, seed=seed),
            batches=batches,
            loss=loss,
            validate=lambda model: marks(model, held_out)._asdict(),
            state_file=Path(folder) / "state",
            report=report,
        ).requires_grad_(False)
    for parameter in model.parameters():
        parameter.copy_(parameter.half())
    return Checkpoint(name, model, wanted.task.tokenizer(KIND))


def _say(progress: Progress) -> None:
    print(f"step {progress.step}: {progress.validation['accuracy']:.1%} right, {progress.seconds:.0f} s", flush=True)


if __name__ == "__main__":
    (out,) = paths(1, __doc__)
    for each in MODELS:
        print(each)
        save(train(each, _say), out / each)
