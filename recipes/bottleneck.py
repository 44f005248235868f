"""The recipe of the two small networks of the lesson "Cross-attention": symbols are read, and said again.

    python -m recipes.bottleneck --out assets/lessons/cross

Both are the same network with the same parameters to train and see the same random symbols in the same order.  One
decoder gets the last state of the encoder alone, one vector however long the text was; the other one looks at the state
after every symbol.  Random symbols can only be remembered, not guessed.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor

from recipes.gru import GRURecipe, learning_rate
from recipes.notes import machine, save_notes
from vizformer.checkpoints.files.weights import write_weights
from vizformer.training.repeater import MEMORIES, START, SYMBOLS, Memory, Repeater, load_repeater

END = SYMBOLS + 1
NOTES, CARD = "bottleneck.json", "README.md"


@dataclass(frozen=True)
class RepeatRecipe:
    """Everything that decides the trained weights.

    Attributes:
        d_x, d_h: length of a symbol's vector and of the states.
        longest: symbols of a text; the texts of an update have one length, all lengths from 1 on are as frequent.
        steps, batch: updates, and texts in each.
        rate, warmup: the largest learning rate, reached after `warmup` updates; then half a cosine down to 0.
        clip: largest norm of the gradient.
        measured: new texts of each length that are measured afterwards.
    """

    d_x: int = 32
    d_h: int = 64
    longest: int = 32
    steps: int = 3600
    batch: int = 128
    rate: float = 4e-3
    warmup: int = 200
    clip: float = 1.0
    measured: int = 200
    seed: int = 0


@dataclass(frozen=True)
class Texts:
    """Symbols of some length: what is read, what is fed to the decoder, what is to be said, [b, n], [b, n + 1] twice."""

    ids: Int[Tensor, "b n"]
    fed: Int[Tensor, "b m"]
    asked: Int[Tensor, "b m"]


def texts_of(ids: Int[Tensor, "b n"]) -> Texts:
    """Symbols as texts: the decoder is fed the start mark and them, and is to say them and the end mark."""
    start, end = (torch.full((len(ids), 1), mark) for mark in (START, END))
    return Texts(ids, torch.cat([start, ids], 1), torch.cat([ids, end], 1))


def random_texts(count: int, length: int, generator: torch.Generator) -> Texts:
    """Texts of random symbols."""
    return texts_of(torch.randint(SYMBOLS, (count, length), generator=generator))


def repeat_loss(model: Repeater, texts: Texts) -> Tensor:
    """Cross-entropy of the text with its end mark, every symbol before it given, in nats a symbol."""
    logits, _, _ = model.write(texts.fed, model.read(texts.ids))
    return F.cross_entropy(logits.flatten(0, 1), texts.asked.flatten())


def train_repeater(recipe: RepeatRecipe, memory: Memory, say: Callable[[str], None]) -> tuple[Repeater, dict[str, Any]]:
    """The trained network and notes: updates, seconds, and the loss of the last hundred updates."""
    torch.manual_seed(recipe.seed)
    model, schedule = Repeater(recipe.d_x, recipe.d_h, memory), GRURecipe(rate=recipe.rate, warmup=recipe.warmup)
    optimizer = torch.optim.Adam(model.parameters(), lr=recipe.rate, betas=(0.9, 0.98), fused=True)
    generator = torch.Generator().manual_seed(recipe.seed)
    started, losses = time.perf_counter(), list[float]()
    for step in range(1, recipe.steps + 1):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, recipe.steps, schedule)
        length = int(torch.randint(1, recipe.longest + 1, (), generator=generator))
        loss = repeat_loss(model, random_texts(recipe.batch, length, generator))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
        optimizer.step()
        losses = [*losses[-99:], float(loss.detach())]
        if step % 100 == 0:
            say(f"{memory}: step {step}/{recipe.steps}, loss {sum(losses) / len(losses):.3f}")
    seconds = time.perf_counter() - started
    return model.eval(), dict(steps=recipe.steps, seconds=round(seconds, 1), loss=round(sum(losses) / len(losses), 4))


@torch.inference_mode()
def measure(model: Repeater, recipe: RepeatRecipe) -> dict[str, list[float]]:
    """For every length from 1 on, over new texts: the share of symbols that are right at their place, and of texts that
    are right from the first symbol to the last.
    """
    generator = torch.Generator().manual_seed(recipe.seed + 1)
    right, whole = [], []
    for length in range(1, recipe.longest + 1):
        ids = random_texts(recipe.measured, length, generator).ids
        same = model.repeat(ids, length)[0] == ids
        right.append(round(float(same.double().mean()), 4))
        whole.append(round(float(same.all(-1).double().mean()), 4))
    return dict(right=right, whole=whole)


def save_repeater(model: Repeater, folder: Path) -> None:
    """The weights, float16."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = {name: tensor.half().contiguous() for name, tensor in model.state_dict().items()}
    write_weights(weights, folder / f"{model.memory}.safetensors")


def _card(notes: dict[str, Any], size: int) -> str:
    recipe, measured = notes["recipe"], notes["measured"]
    lines = ["| symbols | one vector | one after every symbol |", "|---:|---:|---:|"]
    for length in (4, 8, 12, 16, 20, 24, 28, 32):
        shares = "".join(f" | {measured[memory]['right'][length - 1]:.1%}" for memory in MEMORIES)
        lines.append(f"| {length}{shares} |")
    table = "\n".join(lines)
    return f"""# The two networks of the lesson "Cross-attention"

Each reads symbols with a GRU and says them again with another one. The decoder of `one` gets the encoder's last state,
{recipe["d_h"]} numbers; that of `every` looks at the state after every symbol. Nothing else differs: {notes["parameters"]:,}
parameters each, the same random symbols in the same order.

| | |
|---|---|
| symbols | {SYMBOLS}, drawn at random, 1 to {recipe["longest"]} of them in a text |
| vector of a symbol, state | {recipe["d_x"]}, {recipe["d_h"]} |
| files | {size / 1e3:.0f} kB together, float16 safetensors |

There is no data: the texts are random numbers of a fixed seed.

## Training

    python -m recipes.bottleneck --out assets/lessons/cross

{recipe["steps"]:,} updates of {recipe["batch"]} texts for each network, {notes["minutes"]:.0f} minutes for both
{notes["machine"]}.
Adam (0.9, 0.98), learning rate {recipe["rate"]:g} with a warm-up of {recipe["warmup"]} updates and half a cosine down
to 0, gradients clipped at {recipe["clip"]:g}.

## Evaluation

{recipe["measured"]} new texts of each length said again, the most probable symbol each time: the share of symbols that
are right at their place.

{table}
"""


def main() -> None:
    """Trains the bundled networks anew."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--out", type=Path, required=True, help="where the networks go")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    recipe = RepeatRecipe()
    notes: dict[str, Any] = dict(recipe=asdict(recipe), machine=machine(), minutes=0.0, trained={}, measured={})
    notes["machine"] = notes["machine"].removesuffix(", bfloat16 autocast")
    for memory in MEMORIES:
        model, notes["trained"][memory] = train_repeater(
            recipe,
            memory,
            lambda line: print(line, flush=True),
        )
        save_repeater(model, arguments.out)
        notes["minutes"] += notes["trained"][memory]["seconds"] / 60
        notes["measured"][memory] = measure(load_repeater(arguments.out, memory), recipe)
        notes["parameters"] = model.n_parameters
    notes["minutes"] = round(notes["minutes"], 1)
    save_notes(arguments.out, NOTES, notes)
    size = sum((arguments.out / f"{memory}.safetensors").stat().st_size for memory in MEMORIES)
    (arguments.out / CARD).write_text(_card(notes, size), encoding="utf-8")


if __name__ == "__main__":
    main()
