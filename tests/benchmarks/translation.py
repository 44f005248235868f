"""Does our Transformer learn as fast as PyTorch's?  Same size, data, batches, schedule and number of updates.

    python -m tests.benchmarks.translation --data cmn.txt                # the table of README.md
    python -m tests.benchmarks.translation --data cmn.txt --updates 200 --every 100

Both are trained on the bundled recipe's pairs with its loss, learning rates, dropout probability and the same order of
batches, then translate the recipe's validation pairs greedily; reported is corpus BLEU (sacrebleu, 13a) of the weights
as they are (no averaging).  `nn.Transformer` gets the same scaled, tied embeddings and sinusoidal positions around it.
"""

import copy
import math
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import click
import sacrebleu
import torch
from torch import Tensor, nn

from recipes.batches import pair_batches
from recipes.bundled_models.zh_en import ZH_EN, prepare
from recipes.loss import translation_loss
from recipes.translate import translate_all
from vizformer.checkpoints import Checkpoint
from vizformer.config import ModelConfig
from vizformer.freed_memory import keep_freed_memory
from vizformer.model import Transformer
from vizformer.model.positions import sinusoidal_encoding
from vizformer.training.loss import fast_short_attention, inverse_square_root


class TorchTranslator(nn.Module):
    """`nn.Transformer` behind the interface that training and greedy decoding use."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocab_size, config.d_model)
        nn.init.normal_(self.embedding.weight, std=config.d_model**-0.5)
        self.core = nn.Transformer(
            config.d_model,
            config.n_heads,
            config.n_encoder_layers,
            config.n_decoder_layers,
            config.d_ff,
            config.dropout,
            batch_first=True,
        )
        self.core.encoder.norm = self.core.decoder.norm = None  # the recipe has no final norm
        self.dropout = nn.Dropout(config.dropout)
        self.positions: Tensor
        self.register_buffer("positions", sinusoidal_encoding(config.max_positions, config.d_model), persistent=False)

    def embed(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids) * math.sqrt(self.config.d_model) + self.positions[: ids.shape[1]]
        return self.dropout(x)

    def encode(self, ids: Tensor, *, padding: Tensor | None = None) -> Tensor:
        return self.core.encoder(self.embed(ids), src_key_padding_mask=padding)

    def decode(self, ids: Tensor, memory: Tensor, *, memory_padding: Tensor | None = None) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        return self.core.decoder(
            self.embed(ids), memory, tgt_mask=mask, tgt_is_causal=True, memory_key_padding_mask=memory_padding
        )

    def logits(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.embedding.weight)


@click.command()
@click.option("--data", required=True, type=click.Path(path_type=Path))
@click.option("--updates", default=1200, show_default=True)
@click.option("--every", default=300, show_default=True)
@click.option("--threads", default=2, show_default=True)
def main(data: Path, updates: int, every: int, threads: int) -> None:
    torch.set_num_threads(threads)
    keep_freed_memory()
    prepared = prepare(ZH_EN, data)
    train, valid = prepared.encode(prepared.split.train), prepared.split.valid
    ids = dict(pad_id=0, bos_id=1, eos_id=2)
    config = ModelConfig.from_dict({"vocab_size": prepared.tokenizer.vocab_size, **ZH_EN.model, **ids})
    rows: dict[str, list[float]] = {}
    for name, build in (("VizFormer", Transformer), ("torch.nn.Transformer", TorchTranslator)):
        torch.manual_seed(0)
        model: Any = build(config)
        size = sum(p.numel() for p in model.parameters())
        optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9, fused=True)
        epochs = (
            batch
            for epoch in range(updates)
            for batch in pair_batches(train, tokens_per_batch=ZH_EN.tokens_per_batch, pad_id=0, seed=epoch)
        )
        rows[name] = []
        for step, batch in enumerate(islice(epochs, updates), start=1):
            model.train()
            for group in optimizer.param_groups:
                group["lr"] = inverse_square_root(step, d_model=config.d_model, warmup=ZH_EN.loop.warmup)
            with fast_short_attention(torch.device("cpu")):
                loss, _ = translation_loss(model, batch, label_smoothing=ZH_EN.label_smoothing, autocast=True)
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), ZH_EN.loop.clip)
            optimizer.step()
            if step % every == 0:
                model.eval()
                snapshot = Checkpoint(name, copy.deepcopy(model), prepared.tokenizer)  # a checkpoint freezes its model
                outputs = translate_all(snapshot, [pair.source for pair in valid], max_new=30)
                bleu = sacrebleu.corpus_bleu(outputs, [[pair.target for pair in valid]]).score
                rows[name].append(bleu)
                click.echo(f"{name} ({size:,} parameters): {step} updates, loss {loss.item():.3f}, BLEU {bleu:.2f}")
    steps = range(every, updates + 1, every)
    click.echo("\n| updates | " + " | ".join(rows) + " |\n|---|" + "---|" * len(rows))
    for index, step in enumerate(steps):
        click.echo(f"| {step} | " + " | ".join(f"{values[index]:.2f}" for values in rows.values()) + " |")
    ours, theirs = (values[-1] for values in rows.values())
    sys.exit(0 if ours >= theirs else 1)


if __name__ == "__main__":
    main()
