"""The design of `stories` against a causal `torch.nn.TransformerEncoder` of equal size: same bytes, same updates.

    python -m tests.benchmarks.stories --data DATA                    # both, the recipe's first epoch
    python -m tests.benchmarks.stories --data DATA --updates 200      # a first impression

Both are trained on the recipe's batches with its loss, optimizer, learning rates and weight average; reported are bits
per byte of the held-out book.  The other model has what `nn.TransformerEncoderLayer` offers: LayerNorm before each
sublayer, GELU, biases, all heads with keys and values of their own, and learned positions around it.  `--out` writes
what the model's card quotes (baseline.json in its folder).
"""

import json
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import click
import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from recipes.batches import row_batches
from recipes.bundled_models.stories import STORIES, learn_tokenizer, story_rows
from recipes.bundled_models.text_measures import bits_per_byte, windows
from recipes.corpus import read_corpus
from recipes.loss import token_loss
from vizformer.checkpoints import Checkpoint
from vizformer.config import ModelConfig
from vizformer.freed_memory import keep_freed_memory
from vizformer.model import Transformer
from vizformer.training.loss import fast_short_attention, inverse_square_root

D_FF = 832  # makes the parameters of a layer as many as the recipe's: no gate, but full keys and values


class TorchLanguageModel(nn.Module):
    """`nn.TransformerEncoder` with a causal mask, behind the interface that the loss uses."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.decoder = self  # what tells the loss that the next token is to be predicted
        self.embedding = nn.Embedding(config.vocab_size, config.d_model)
        self.position_embedding = nn.Embedding(config.max_positions, config.d_model)
        layer = nn.TransformerEncoderLayer(
            config.d_model, config.n_heads, D_FF, config.dropout, "gelu", batch_first=True, norm_first=True
        )
        self.core = nn.TransformerEncoder(
            layer, config.n_decoder_layers, norm=nn.LayerNorm(config.d_model), enable_nested_tensor=False
        )
        for table in (self.embedding, self.position_embedding):
            nn.init.normal_(table.weight, std=0.02)
        for name, parameter in self.core.named_parameters():
            if parameter.dim() > 1 and "norm" not in name:
                nn.init.xavier_uniform_(parameter)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "decoder":
            object.__setattr__(self, name, value)  # not a submodule: it is the model itself
        else:
            super().__setattr__(name, value)

    def decode(self, ids: Tensor, segments: Tensor | None = None) -> Tensor:
        n = ids.shape[1]
        x = self.embedding(ids) + self.position_embedding.weight[:n]
        mask = nn.Transformer.generate_square_subsequent_mask(n)
        return self.core(x, mask=mask, is_causal=True)

    def logits(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.embedding.weight)


MODELS = {"VizFormer": Transformer, "torch.nn.TransformerEncoder": TorchLanguageModel}


def measure(name: str, data: Path, updates: int | None, threads: int) -> tuple[int, int, float]:
    """Trains one of the models: updates made, parameters, bits per byte."""
    torch.set_num_threads(threads)
    keep_freed_memory()
    corpus = read_corpus(data)
    tokenizer = learn_tokenizer(corpus)
    rows = story_rows(corpus, tokenizer)(0)
    ids = dict(pad_id=0, bos_id=1, eos_id=2)
    config = ModelConfig.from_dict({"vocab_size": tokenizer.vocab_size, **STORIES.model, **ids})
    batches = list(
        islice(row_batches(rows, tokens_per_batch=STORIES.tokens_per_batch, pad_id=0, seed=0), updates or None)
    )
    torch.manual_seed(STORIES.loop.seed)
    model: Any = MODELS[name](config)
    size = sum(p.numel() for p in model.parameters())
    average: Any = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(STORIES.loop.average_decay))
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9, fused=True)
    for step, batch in enumerate(batches, start=1):
        for group in optimizer.param_groups:
            group["lr"] = inverse_square_root(step, d_model=config.d_model, warmup=STORIES.loop.warmup)
        with fast_short_attention(torch.device("cpu")):
            loss, _ = token_loss(model, batch, autocast=True)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), STORIES.loop.clip)
        optimizer.step()
        average.update_parameters(model)
        if step % 50 == 0:
            click.echo(f"{name} ({size:,} parameters): {step}/{len(batches)} updates, loss {loss.item():.3f}")
    book = "\n".join(corpus.test_book)
    plain = Checkpoint("plain", Transformer(config), tokenizer)  # for its tokenizer
    with torch.inference_mode():
        bits = bits_per_byte(average.module.eval(), windows(plain, book), len(book.encode()), 0)
    click.echo(f"{name}: {bits:.3f} bits per byte")
    return len(batches), size, round(bits, 3)


@click.command()
@click.option("--data", required=True, type=click.Path(path_type=Path))
@click.option("--updates", type=int, help="How many.  [default: the recipe's first epoch]")
@click.option("--threads", default=1, show_default=True, help="For each of the two, which run side by side.")
@click.option("--out", type=click.Path(path_type=Path), help="Where baseline.json goes.")
def main(data: Path, updates: int | None, threads: int, out: Path | None) -> None:
    with ProcessPoolExecutor(len(MODELS), mp_context=get_context("spawn")) as pool:
        jobs = [pool.submit(measure, name, data, updates, threads) for name in MODELS]
        (made, ours, our_bits), (_, theirs, their_bits) = (job.result() for job in jobs)
    result = dict(
        updates=made, parameters=ours, bits_per_byte=our_bits, torch_parameters=theirs, torch_bits_per_byte=their_bits
    )
    click.echo(json.dumps(result))
    if out is not None:
        out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
