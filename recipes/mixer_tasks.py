"""Small models that mix tokens in four ways learn to look up and to copy: what does a state of fixed size give up?

    python -m recipes.mixer_tasks assets/lessons/mixers/tasks.json     # 12 minutes on one core

All models have two layers: softmax attention, the gated delta rule, a state space, or the delta rule and then attention.
Two tasks, a training each, of up to `longest` tokens to be remembered; only the answers are asked for:

    recall    n tokens bring a key and a value each (two embeddings, added); then the keys come in another order,
              and at each its value is to be said
    copy      n different tokens, an end mark, and then the same tokens again

Source: Arora et al. 2023, "Zoology: Measuring and Improving Recall in Efficient Language Models"; Jelassi et al. 2024,
"Repeat After Me: Transformers are Better than State Space Models at Copying".
"""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from recipes.arguments import paths
from recipes.gru import GRURecipe, learning_rate
from vizformer.config import ModelConfig
from vizformer.freed_memory import keep_freed_memory
from vizformer.model import Transformer
from vizformer.training.speed import fast_short_attention

Task = Literal["recall", "copy"]
STATES: dict[str, dict[str, Any]] = {
    "softmax": {},
    "hybrid": {"state_layers": (0,)},
    "delta": {"state_layers": (0, 1)},
    "space": {"state_layers": (0, 1), "state_rule": "space"},
}


class TaskBatch(NamedTuple):
    """Rows with what is to be said at their last m tokens; `values` are numbered from 1, 0 where there is none."""

    ids: Int[Tensor, "b n"]
    values: Int[Tensor, "b n"] | None
    answers: Int[Tensor, "b m"]


@dataclass(frozen=True, kw_only=True)
class MixerRecipe:
    """What decides the accuracies, with task, mixer and seed.

    Attributes:
        keys, n_values: how many different tokens (keys) and values there are.
        state_key_dim: rows of the state of a head; small, so that its limit lies within `longest`.
        kernels: of the states' short convolution; where a token brings its key itself it needs none.
        longest: pairs or tokens of a row; the longest row of an update grows to it in the first half of the training.
        lengths: that are measured, on `measured` rows each.
        rate, warmup: the largest learning rate, reached after `warmup` updates; then half a cosine down to 0.
        seeds: of the weights and of the rows, a training each.
    """

    d_model: int = 64
    n_heads: int = 2
    d_ff: int = 128
    keys: int = 64
    n_values: int = 16
    state_key_dim: int = 8
    kernels: tuple[tuple[Task, int], ...] = (("recall", 1), ("copy", 4))
    longest: int = 32
    rows: int = 32
    updates: int = 1000
    lengths: tuple[int, ...] = (2, 4, 8, 12, 16, 24, 32)
    measured: int = 256
    rate: float = 4e-3
    warmup: int = 100
    seeds: tuple[int, ...] = (0, 1, 2)

    def config(self, mixer: str, task: Task) -> ModelConfig:
        state = STATES[mixer]
        if state:
            state = {**state, "state_key_dim": self.state_key_dim, "state_kernel": dict(self.kernels)[task]}
        return ModelConfig(
            vocab_size=self.keys + 1,
            n_segments=self.n_values + 1 if task == "recall" else 0,
            d_model=self.d_model,
            n_heads=self.n_heads,
            d_ff=self.d_ff,
            n_encoder_layers=0,
            n_decoder_layers=2,
            max_positions=2 * self.longest,
            positions="rope",
            norm_order="pre",
            norm="rms_norm",
            final_norm=True,
            bias=False,
            dropout=0.0,
            scaled_embedding=True,
            tied_unembedding=False,
            **state,
        )


RECIPE = MixerRecipe()


def rows_of(task: Task, n: int, rows: int, draws: torch.Generator, recipe: MixerRecipe = RECIPE) -> TaskBatch:
    """Rows with n pairs or tokens; none of their keys or tokens comes twice."""
    keys = torch.rand(rows, recipe.keys, generator=draws).argsort(-1)[:, :n]
    if task == "copy":
        end = torch.full((rows, 1), recipe.keys)
        return TaskBatch(torch.cat([keys, end, keys[:, :-1]], 1), None, keys)
    values = torch.randint(recipe.n_values, (rows, n), generator=draws)
    order = torch.rand(rows, n, generator=draws).argsort(-1)
    given = torch.cat([values + 1, torch.zeros_like(values)], 1)
    return TaskBatch(torch.cat([keys, keys.gather(1, order)], 1), given, values.gather(1, order))


def answered(model: Transformer, batch: TaskBatch) -> Float[Tensor, "b m vocab"]:
    """The logits where something is asked for."""
    logits: Tensor = model(batch.ids, segments=batch.values)
    return logits[:, -batch.answers.shape[1] :]


@torch.no_grad()
def accuracy(model: Transformer, task: Task, n: int, recipe: MixerRecipe = RECIPE) -> float:
    """The share of right answers in rows with n pairs or tokens, the same rows for every model."""
    batch = rows_of(task, n, recipe.measured, torch.Generator().manual_seed(n), recipe)
    return float((answered(model.eval(), batch).argmax(-1) == batch.answers).float().mean())


def new_model(mixer: str, task: Task, seed: int, recipe: MixerRecipe = RECIPE) -> Transformer:
    """One whose values begin as large as its keys."""
    torch.manual_seed(seed)
    model = Transformer(recipe.config(mixer, task))
    if model.segment_embedding is not None:
        torch.nn.init.normal_(model.segment_embedding.weight)
    return model


def train(mixer: str, task: Task, seed: int, recipe: MixerRecipe = RECIPE) -> dict[str, Any]:
    """One training: the accuracy at each length, and the seconds it took."""
    keep_freed_memory()
    model = new_model(mixer, task, seed, recipe)
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), fused=True)
    draws, schedule = torch.Generator().manual_seed(seed), GRURecipe(rate=recipe.rate, warmup=recipe.warmup)
    started = time.process_time()
    for update in range(1, recipe.updates + 1):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(update, recipe.updates, schedule)
        longest = max(4, min(recipe.longest, 2 * recipe.longest * update // recipe.updates))
        n = int(torch.randint(1, longest + 1, (), generator=draws))
        batch = rows_of(task, n, recipe.rows, draws, recipe)
        with fast_short_attention(torch.device("cpu")):
            loss = F.cross_entropy(answered(model.train(), batch).flatten(0, 1), batch.answers.flatten())
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    seconds = round(time.process_time() - started, 1)
    found = [round(accuracy(model, task, n, recipe), 4) for n in recipe.lengths]
    return {"seed": seed, "accuracies": found, "seconds": seconds}


def measure(recipe: MixerRecipe = RECIPE, say: Callable[[str], None] = print) -> dict[str, Any]:
    """All trainings: the recipe, and for each task and mixer its options, its parameters and a run for each seed."""
    found = []
    for task, _ in recipe.kernels:
        for mixer in STATES:
            config = recipe.config(mixer, task)
            size = sum(one.numel() for one in Transformer(config).parameters())
            runs = [train(mixer, task, seed, recipe) for seed in recipe.seeds]
            found.append({"task": task, "mixer": mixer, "options": config.unusual(), "parameters": size, "runs": runs})
            say(f"{task}, {mixer}: {size:,} parameters, {[run['accuracies'][-1] for run in runs]}")
    return {"recipe": asdict(recipe), "models": found}


def main(path: Path) -> None:
    torch.set_num_threads(1)
    path.write_text(json.dumps(measure()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*paths(1, __doc__))
