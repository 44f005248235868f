"""The recipe of the small recurrent model that the lesson "The map" sets beside the Transformers.

    python -m recipes.gru --data DATA --out assets/lessons/map

A language model like `stories`, on the same tokens and the same data, with one GRU layer instead of attention: what it
knows of the words before has to pass through h, one word at a time.
"""

import argparse
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from recipes.batches import Row, row_batches
from recipes.bundled_models.stories import CHINESE_TIMES, next_token_row
from recipes.corpus import SOURCES, Corpus, read_corpus
from recipes.notes import machine, save_notes
from recipes.vocabulary import EOS, PAD
from vizformer.checkpoints.files.weights import write_weights
from vizformer.freed_memory import keep_freed_memory
from vizformer.text import Tokenizer
from vizformer.training.loss import IGNORED, RowBatch
from vizformer.training.repeater import TOKENIZER, WEIGHTS, GRULanguageModel

NOTES, CARD, STATE = "gru.json", "README.md", "state.pt"


@dataclass(frozen=True)
class GRURecipe:
    """Everything that, with the data, decides the trained weights.

    Attributes:
        d_x, d_h: length of a token's vector and of the hidden state.
        context: longest row; longer texts are cut into rows that each begin with an empty state.
        epochs: passes over the data.
        rate, warmup: the largest learning rate, reached after `warmup` updates; then half a cosine down to 0.
        clip: largest norm of the gradient.
    """

    d_x: int = 80
    d_h: int = 176
    context: int = 96
    epochs: int = 3
    rate: float = 4e-3
    warmup: int = 100
    tokens_per_batch: int = 4096
    clip: float = 1.0
    seed: int = 0


def training_rows(corpus: Corpus, tokenizer: Tokenizer, context: int) -> list[Row]:
    """Every sentence as in `stories`, and the paragraphs of the books, cut into rows of `context` tokens."""
    chinese = list(dict.fromkeys(pair.source for pair in corpus.pairs))
    books = [paragraph for book in corpus.books.values() for paragraph in book]
    rows = _sentences(tokenizer, corpus.english, context) + _paragraphs(tokenizer, books, context)
    return rows + _sentences(tokenizer, chinese, context) * CHINESE_TIMES


def held_out_rows(corpus: Corpus, tokenizer: Tokenizer, context: int) -> dict[str, list[Row]]:
    """The validation book and Chinese sentences, the same that `stories` is measured on."""
    chinese = list(dict.fromkeys(pair.source for pair in corpus.held_out_pairs))
    return {
        "book": _paragraphs(tokenizer, corpus.valid_book, context),
        "chinese": _sentences(tokenizer, chinese, context),
    }


def _sentences(tokenizer: Tokenizer, texts: Sequence[str], context: int) -> list[Row]:
    eos = tokenizer.id_of(EOS)
    assert eos is not None
    return [next_token_row([*ids, eos][: context + 1]) for ids in tokenizer.encode_ids(texts)]


def _paragraphs(tokenizer: Tokenizer, paragraphs: Sequence[str], context: int) -> list[Row]:
    rows = []
    for ids in tokenizer.encode_ids([paragraph + "\n" for paragraph in paragraphs]):
        bos, *rest = ids
        # each row begins with the start mark: every token is asked for exactly once
        rows += [next_token_row([bos, *rest[at : at + context]]) for at in range(0, len(rest), context)]
    return rows


def row_loss(model: GRULanguageModel, batch: RowBatch, reduction: str = "mean") -> tuple[Tensor, int]:
    """Cross-entropy of the next tokens in nats, and their number.  Padding is on the right: no real state sees it."""
    real = batch.labels.ne(IGNORED)
    states = model(batch.ids)[real]
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=model.training):
        logits = model.logits(states)  # [n_real, vocab_size]
    return F.cross_entropy(logits.float(), batch.labels[real], reduction=reduction), int(real.sum())


def learning_rate(step: int, steps: int, recipe: GRURecipe) -> float:
    """Linear to the largest, then half a cosine down to 0 (Loshchilov & Hutter 2017)."""
    down = 0.5 * (1 + math.cos(math.pi * min(step, steps) / steps))
    return recipe.rate * min(step / recipe.warmup, 1.0) * down


def train_gru(
    recipe: GRURecipe,
    rows: Sequence[Row],
    valid: dict[str, list[Row]],
    vocab_size: int,
    pad_id: int,
    state_file: Path,
    say: Callable[[str], None],
) -> tuple[GRULanguageModel, dict[str, Any]]:
    """Trains, or goes on from `state_file`, which is written after every epoch; the model and notes on the training."""
    keep_freed_memory()
    torch.manual_seed(recipe.seed)
    model = GRULanguageModel(vocab_size, recipe.d_x, recipe.d_h)
    optimizer = torch.optim.Adam(model.parameters(), lr=recipe.rate, betas=(0.9, 0.98), fused=True)

    def batches(epoch: int) -> Iterator[RowBatch]:
        return row_batches(rows, tokens_per_batch=recipe.tokens_per_batch, pad_id=pad_id, seed=epoch)

    steps = recipe.epochs * sum(1 for _ in batches(0))
    done: dict[str, Any] = dict(epoch=0, step=0, seconds=0.0, held_out={})
    if state_file.is_file():
        state = torch.load(state_file, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        done = state["done"]
    for epoch in range(done["epoch"], recipe.epochs):
        started = time.perf_counter()
        model.train()
        step, total, before = done["step"], 0.0, 0.0
        for index, batch in enumerate(batches(epoch)):
            step += 1
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(step, steps, recipe)
            loss, _ = row_loss(model, batch)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
            optimizer.step()
            total += float(loss.detach())
            if (index + 1) % 100 == 0:
                seconds = done["seconds"] + time.perf_counter() - started
                say(f"epoch {epoch + 1}, step {step}/{steps}, loss {(total - before) / 100:.3f}, {seconds:.0f} s")
                before = total
        model.eval()
        held_out = {name: mean_loss(model, found, pad_id) for name, found in valid.items()}
        seconds = done["seconds"] + time.perf_counter() - started
        done = dict(epoch=epoch + 1, step=step, seconds=seconds, held_out=held_out)
        state_file.parent.mkdir(parents=True, exist_ok=True)
        torch.save(dict(model=model.state_dict(), optimizer=optimizer.state_dict(), done=done), state_file)
        say(f"epoch {epoch + 1}, held out {held_out}, {seconds / 60:.1f} min")
    return model.eval(), done


@torch.inference_mode()
def mean_loss(model: GRULanguageModel, rows: Sequence[Row], pad_id: int) -> float:
    """Mean cross-entropy of the next token, in nats."""
    total, count = 0.0, 0
    for batch in row_batches(rows, tokens_per_batch=8192, pad_id=pad_id, seed=None):
        loss, n = row_loss(model, batch, reduction="sum")
        total, count = total + float(loss), count + n
    return total / count


def save_gru(model: GRULanguageModel, notes: dict[str, Any], out: Path) -> None:
    """Weights (float16), notes and card."""
    out.mkdir(parents=True, exist_ok=True)
    write_weights({name: tensor.half().contiguous() for name, tensor in model.state_dict().items()}, out / WEIGHTS)
    save_notes(out, NOTES, notes)
    (out / CARD).write_text(_card(model, notes, (out / WEIGHTS).stat().st_size), encoding="utf-8")


def _card(model: GRULanguageModel, notes: dict[str, Any], size: int) -> str:
    sources = "\n".join(f"- {line}" for line in SOURCES)
    recipe = notes["recipe"]
    return f"""# The GRU of the lesson "The map"

One layer of gated recurrent units (Cho et al. 2014) that continues simple English and Chinese text, token by token.
The lesson measures on it how much a word still counts in the hidden state many words later.

| | |
|---|---|
| parameters | {sum(p.numel() for p in model.parameters()):,} |
| token vector, hidden state | {recipe["d_x"]}, {recipe["d_h"]} |
| vocabulary | the {model.embedding.num_embeddings:,} tokens of the bundled model `stories` |
| file | {size / 1e6:.2f} MB, float16 safetensors |

## Data and licence

{sources}

The weights are published under the licence of the sentences, CC BY 2.0 FR, with attribution to tatoeba.org and its
contributors. Held out as for `stories`: two books and a selection of Chinese sentences.

## Training

    python -m recipes.gru --data DATA --out assets/lessons/map

{notes["epochs"]} epochs of {notes["tokens"]:,} tokens, {notes["steps"]:,} updates, rows of up to {recipe["context"]}
tokens that each begin with an empty state, {notes["minutes"]:.0f} minutes {notes["machine"]}
for the logits.
Adam (0.9, 0.98), learning rate {recipe["rate"]:g} with a warm-up of {recipe["warmup"]} updates and half a cosine down
to 0, gradients clipped at {recipe["clip"]:g}.

Held-out cross-entropy in nats per token: **{notes["held_out"]["chinese"]:.3f}** on Chinese sentences, \
**{notes["held_out"]["book"]:.3f}** on a book.
"""


def main() -> None:
    """Trains the bundled model anew; goes on where it was interrupted."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with books.txt, cmn.txt and fra.txt")
    parser.add_argument("--out", type=Path, required=True, help="where the model goes")
    parser.add_argument("--work", type=Path, default=Path("gru-work"), help="where the unfinished training is kept")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    recipe, tokenizer, corpus = GRURecipe(), Tokenizer.from_file(TOKENIZER), read_corpus(arguments.data)
    rows = training_rows(corpus, tokenizer, recipe.context)
    pad_id = tokenizer.id_of(PAD)
    assert pad_id is not None
    model, done = train_gru(
        recipe,
        rows,
        held_out_rows(corpus, tokenizer, recipe.context),
        tokenizer.vocab_size,
        pad_id,
        arguments.work / STATE,
        lambda line: print(line, flush=True),
    )
    notes = dict(
        recipe=asdict(recipe),
        machine=machine(),
        tokens=sum(len(row.ids) for row in rows),
        epochs=done["epoch"],
        steps=done["step"],
        minutes=round(done["seconds"] / 60, 1),
        held_out=done["held_out"],
    )
    save_gru(model, notes, arguments.out)


if __name__ == "__main__":
    main()
