"""Two small translators, with label smoothing and without.

    python -m recipes.smoothing cmn.txt assets/lessons/training/smoothing.json     # a quarter of an hour

The two of a seed begin with the same weights and read the same batches in the same order.

Source: Szegedy et al. 2016, "Rethinking the Inception Architecture", section 7 (label smoothing); Vaswani et al. 2017,
section 5.4 (its effect on perplexity and BLEU).
"""

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from recipes.arguments import paths
from recipes.batches import pair_batches
from recipes.bundled_models.zh_en import ZH_EN, TranslationData, TranslationRecipe, prepare
from recipes.loss import translation_loss
from recipes.pairs import Pair
from recipes.translate import translate_all
from recipes.vocabulary import BOS, EOS, PAD
from vizformer.checkpoints.own import Checkpoint
from vizformer.config import ModelConfig
from vizformer.freed_memory import keep_freed_memory
from vizformer.model import Transformer
from vizformer.training.loss import PairBatch, fast_short_attention, inverse_square_root, smoothing_floor

SMOOTHINGS = (0.0, 0.1)
LONGEST = 40  # tokens of a translation


@dataclass(frozen=True, kw_only=True)
class SmoothingRecipe:
    """What decides the trained weights, with the data, the seed and the smoothing.

    Attributes:
        model: options of `ModelConfig` except the vocabulary and the special ids.
        updates, measured_every: how many, and after how many the held-out pairs are looked at.
        warmup, factor: of the learning rate (`vizformer.training.loss`).
        seeds: of the weights and of dropout, two trainings each.
    """

    vocab_size: int = 2000
    model: Mapping[str, object] = field(
        default_factory=lambda: dict(
            d_model=64,
            n_heads=4,
            d_ff=256,
            n_encoder_layers=2,
            n_decoder_layers=2,
            dropout=0.1,
            max_positions=128,
            scaled_embedding=True,
        )
    )
    updates: int = 1800
    measured_every: int = 300
    warmup: int = 400
    factor: float = 1.0
    tokens_per_batch: int = 2048
    seeds: tuple[int, ...] = (0, 1)

    @property
    def data(self) -> TranslationRecipe:
        """Which pairs are held out: the same as those of the bundled translator."""
        return TranslationRecipe(name="smoothing", vocab_size=self.vocab_size, model=self.model, loop=ZH_EN.loop)


RECIPE = SmoothingRecipe()


def config_of(recipe: SmoothingRecipe, data: TranslationData) -> ModelConfig:
    """The options of the models."""
    ids = {name: data.tokenizer.id_of(piece) for name, piece in dict(pad_id=PAD, bos_id=BOS, eos_id=EOS).items()}
    return ModelConfig.from_dict({"vocab_size": data.tokenizer.vocab_size, **recipe.model, **ids})


@torch.no_grad()
def held_out_marks(model: Transformer, pairs: Sequence[tuple[list[int], list[int]]]) -> dict[str, float]:
    """Of the next right token of held-out pairs, without smoothing: mean loss (nats), how often it is the most probable
    one, and the mean probability of whichever is.
    """
    model.eval()
    pad = model.config.pad_id
    assert pad is not None
    loss = right = sure = 0.0
    count = 0
    for batch in pair_batches(pairs, tokens_per_batch=8192, pad_id=pad, seed=None):
        labels = batch.target[:, 1:]
        real = labels.ne(pad)
        logits = model(batch.source, batch.target[:, :-1], padding=batch.source.eq(pad))[real]  # [n_real, vocab_size]
        log_p = logits.double().log_softmax(-1)
        best = log_p.max(-1)
        loss -= float(log_p.gather(1, labels[real][:, None]).sum())
        right += float(best.indices.eq(labels[real]).sum())
        sure += float(best.values.exp().sum())
        count += len(log_p)
    return {"loss": round(loss / count, 4), "right": round(right / count, 4), "sure": round(sure / count, 4)}


def bleu(model: Transformer, data: TranslationData, test: Sequence[Pair]) -> float:
    """Corpus BLEU (13a) of greedy translations."""
    import sacrebleu

    checkpoint = Checkpoint("small", model.eval(), data.tokenizer)
    outputs = translate_all(checkpoint, [pair.source for pair in test], max_new=LONGEST)
    return round(sacrebleu.corpus_bleu(outputs, [[pair.target for pair in test]], tokenize="13a").score, 2)


def endless(
    pairs: Sequence[tuple[list[int], list[int]]], recipe: SmoothingRecipe, pad_id: int, seed: int
) -> Iterator[PairBatch]:
    """Batches of all pairs, again and again, each time in another order."""
    for epoch in itertools.count(1000 * seed):
        yield from pair_batches(pairs, tokens_per_batch=recipe.tokens_per_batch, pad_id=pad_id, seed=epoch)


def train(
    smoothing: float, seed: int, data: TranslationData, recipe: SmoothingRecipe, say: Callable[[str], None]
) -> dict[str, Any]:
    """One training: its marks on the way, and those at its end."""
    keep_freed_memory()
    torch.manual_seed(seed)
    config = config_of(recipe, data)
    assert config.pad_id is not None
    model = Transformer(config)
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9, fused=True)
    valid, test = data.encode(data.split.valid), data.split.test
    curve: list[dict[str, float]] = []
    batches = endless(data.encode(data.split.train), recipe, config.pad_id, seed)
    for step, batch in enumerate(itertools.islice(batches, recipe.updates), start=1):
        rate = inverse_square_root(step, d_model=config.d_model, warmup=recipe.warmup, factor=recipe.factor)
        for group in optimizer.param_groups:
            group["lr"] = rate
        with fast_short_attention(torch.device("cpu")):
            loss, _ = translation_loss(model.train(), batch, label_smoothing=smoothing, autocast=False)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if step % recipe.measured_every == 0:
            curve.append({"step": step, "training": round(loss.item(), 4)} | held_out_marks(model, valid))
            say(f"smoothing {smoothing}, seed {seed}: {curve[-1]}")
    last = held_out_marks(model, valid) | {"bleu": bleu(model, data, test)}
    say(f"smoothing {smoothing}, seed {seed}: {last}")
    return {"smoothing": smoothing, "seed": seed, "curve": curve, "last": last}


def measure(file: Path, recipe: SmoothingRecipe = RECIPE, say: Callable[[str], None] = print) -> dict[str, Any]:
    """All trainings, with the recipe and what they were measured on."""
    data = prepare(recipe.data, file)
    config = config_of(recipe, data)
    runs = [train(smoothing, seed, data, recipe, say) for seed in recipe.seeds for smoothing in SMOOTHINGS]
    return {
        "recipe": asdict(recipe),
        "pairs": {"train": len(data.split.train), "valid": len(data.split.valid), "test": len(data.split.test)},
        "parameters": sum(parameter.numel() for parameter in Transformer(config).parameters()),
        "floor": round(smoothing_floor(config.vocab_size, SMOOTHINGS[-1]), 4),
        "runs": runs,
    }


def main(file: Path, path: Path) -> None:
    torch.set_num_threads(1)
    path.write_text(json.dumps(measure(file), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*paths(2, __doc__))
