"""The recipe of the two small networks of the lesson "Encoder meets decoder": symbols are read, and said again.

    python -m vizformer.training.bottleneck --out assets/lessons/cross

Both are the same network with the same parameters to train and see the same random symbols in the same order.  One
decoder gets the last state of the encoder alone, one vector however long the text was; the other one looks at the state
after every symbol.  Random symbols can only be remembered, not guessed.
"""

import argparse
import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from safetensors.torch import load_file
from torch import Tensor, nn

from vizformer.checkpoints.files.writing import write_weights
from vizformer.training.evaluation import machine, save_notes

Memory = Literal["one", "every"]
"""What the decoder gets of the text: the last state alone, or the state after every symbol."""

MEMORIES: tuple[Memory, ...] = ("one", "every")
SYMBOLS = 32
START, END = SYMBOLS, SYMBOLS + 1
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


class Repeater(nn.Module):
    """h_t = GRU(x_t, h_(t-1));  s_i = GRU'(y_i, s_(i-1)), s_(-1) = h_(n-1);  logits_i = [s_i; z_i] W_o + b_o

    one:    z_i = h_(n-1)                                                     whatever the text was, one vector
    every:  z_i = sum_t a_it h_t,  a_i = softmax((s_i W_a) h^T / sqrt(d_h))   the state after each symbol, looked up anew

    y_0 is the start mark, y_i the symbol said before.

    Source: Cho et al. 2014 and Sutskever et al. 2014 (one vector); Luong et al. 2015, "general" (a look-up).
    """

    def __init__(self, recipe: RepeatRecipe, memory: Memory) -> None:
        super().__init__()
        self.memory = memory
        self.embedding = nn.Embedding(SYMBOLS + 2, recipe.d_x)
        self.encoder = nn.GRU(recipe.d_x, recipe.d_h, batch_first=True)
        self.decoder = nn.GRU(recipe.d_x, recipe.d_h, batch_first=True)
        self.look = nn.Linear(recipe.d_h, recipe.d_h, bias=False)
        self.output = nn.Linear(2 * recipe.d_h, SYMBOLS + 2)

    @property
    def n_parameters(self) -> int:
        """How many numbers are trained."""
        return sum(parameter.numel() for parameter in self.parameters())

    def read(self, ids: Int[Tensor, "b n"]) -> Float[Tensor, "b n d_h"]:
        """The state after every symbol."""
        states: Tensor = self.encoder(self.embedding(ids))[0]
        return states

    def write(
        self,
        ids: Int[Tensor, "b m"],
        states: Float[Tensor, "b n d_h"],
        before: Float[Tensor, "1 b d_h"] | None = None,
    ) -> tuple[Float[Tensor, "b m v"], Float[Tensor, "1 b d_h"], Float[Tensor, "b m n"]]:
        """The logits of the next symbol, the decoder's last state, and the weights a.

        `ids` is what has been said so far, `before` the state at which the decoder left off (None: at the beginning).
        """
        last = states[:, -1]  # [b, d_h]
        s, after = self.decoder(self.embedding(ids), last[None] if before is None else before)  # [b, m, d_h]
        if self.memory == "one":
            weights = torch.zeros(*s.shape[:2], states.shape[1])
            weights[..., -1] = 1
            z = last[:, None].expand_as(s)
        else:
            scores = self.look(s) @ states.mT / states.shape[-1] ** 0.5  # [b, m, n]
            weights = scores.softmax(-1)
            z = weights @ states
        return self.output(torch.cat([s, z], -1)), after, weights

    @torch.inference_mode()
    def repeat(self, ids: Int[Tensor, "b n"], count: int) -> tuple[Int[Tensor, "b count"], Float[Tensor, "b count n"]]:
        """What is said, the most probable symbol each time, and where the decoder looked."""
        states = self.read(ids)
        new, state = torch.full((len(ids), 1), START), None
        said, looked = [], []
        for _ in range(count):
            logits, state, weights = self.write(new, states, state)
            new = logits.argmax(-1)  # [b, 1]
            said.append(new)
            looked.append(weights)
        return torch.cat(said, 1), torch.cat(looked, 1)


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
    from vizformer.training.gru import GRURecipe, learning_rate

    torch.manual_seed(recipe.seed)
    model, schedule = Repeater(recipe, memory), GRURecipe(rate=recipe.rate, warmup=recipe.warmup)
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


@dataclass(frozen=True)
class Said:
    """A text said again.

    Attributes:
        symbols: as many as were read; the end mark too, where the network ends early.
        looked: where the decoder looked, [said, read]; with one vector always at the last state.
    """

    symbols: tuple[int, ...]
    looked: Float[np.ndarray, "n n"]


def say_again(model: Repeater, symbols: Sequence[int]) -> Said:
    """One text of at least one symbol, numbers from 0 to `SYMBOLS` - 1."""
    said, looked = model.repeat(torch.tensor([list(symbols)]), len(symbols))
    return Said(tuple(said[0].tolist()), looked[0].numpy())


def share_right(said: Sequence[int], symbols: Sequence[int]) -> float:
    """The share of places at which both are the same."""
    return sum(a == b for a, b in zip(said, symbols, strict=True)) / len(symbols)


def as_symbols(ids: Sequence[int], seed: int = 0) -> tuple[int, ...]:
    """Token ids as symbols: every different id becomes a symbol of its own, drawn at random; as many as there are for.

    The text ends before the first token for which no symbol is left.
    """
    drawn = torch.randperm(SYMBOLS, generator=torch.Generator().manual_seed(seed)).tolist()
    names: dict[int, int] = {}
    for id in ids:
        if id not in names and len(names) == SYMBOLS:
            break
        names.setdefault(id, drawn[min(len(names), SYMBOLS - 1)])
    return tuple(names[id] for id in itertools.takewhile(names.__contains__, ids))


def save_repeater(model: Repeater, folder: Path) -> None:
    """The weights, float16."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = {name: tensor.half().contiguous() for name, tensor in model.state_dict().items()}
    write_weights(weights, folder / f"{model.memory}.safetensors")


def load_repeater(folder: Path, memory: Memory) -> Repeater:
    """The network that `main` wrote."""
    weights = {name: tensor.float() for name, tensor in load_file(folder / f"{memory}.safetensors").items()}
    d_x, d_h = weights["embedding.weight"].shape[1], weights["look.weight"].shape[0]
    model = Repeater(RepeatRecipe(d_x=d_x, d_h=d_h), memory)
    model.load_state_dict(weights)
    return model.eval().requires_grad_(False)


def _card(notes: dict[str, Any], size: int) -> str:
    recipe, measured = notes["recipe"], notes["measured"]
    lines = ["| symbols | one vector | one after every symbol |", "|---:|---:|---:|"]
    for length in (4, 8, 12, 16, 20, 24, 28, 32):
        shares = "".join(f" | {measured[memory]['right'][length - 1]:.1%}" for memory in MEMORIES)
        lines.append(f"| {length}{shares} |")
    table = "\n".join(lines)
    return f"""# The two networks of the lesson "Encoder meets decoder"

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

    python -m vizformer.training.bottleneck --out assets/lessons/cross

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
            lambda line: print(line, flush=True),  # noqa: T201
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
