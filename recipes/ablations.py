"""The rows of the paper's Table 3 on a translator of about a tenth of its widths, each one really trained.

    python -m recipes.ablations cmn.txt assets/lessons/costs/ablations.json     # an hour of two processors

Every row changes the base model in one thing, by the factor by which the paper changes its own.  The trainings of a seed
read the same batches in the same order.  What is finished is kept in the file, and a second start goes on after it.

Rows B of the paper (keys that are narrower than values) are left out: the model has one width for both.

Source: Vaswani et al. 2017, section 6.2 and Table 3.
"""

import itertools
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from recipes.arguments import paths
from recipes.bundled_models.zh_en import TranslationData, prepare
from recipes.loss import translation_loss
from recipes.smoothing import SmoothingRecipe, bleu, config_of, endless, held_out_marks
from vizformer.config import ModelConfig
from vizformer.freed_memory import keep_freed_memory
from vizformer.model import Transformer
from vizformer.training.loss import fast_short_attention, inverse_square_root

Options = Mapping[str, Any]


@dataclass(frozen=True)
class Variant:
    """One row.

    Attributes:
        group: of the paper's table, "base" or "A" to "E".
        paper: what the paper's row changes, as `vizformer.analysis.costs.paper_results` names it.
        model: options of `ModelConfig` that differ from the base model.
        smoothing: of the labels.
    """

    group: str
    paper: Options = field(default_factory=dict)
    model: Options = field(default_factory=dict)
    smoothing: float = 0.1


VARIANTS: tuple[Variant, ...] = (
    Variant("base"),
    Variant("A", {"h": 1}, {"n_heads": 1}),
    Variant("A", {"h": 4}, {"n_heads": 2}),
    Variant("A", {"h": 16}, {"n_heads": 8}),
    Variant("A", {"h": 32}, {"n_heads": 16}),
    Variant("C", {"N": 2}, {"n_encoder_layers": 1, "n_decoder_layers": 1}),
    Variant("C", {"N": 8}, {"n_encoder_layers": 3, "n_decoder_layers": 3}),
    Variant("C", {"d_model": 256}, {"d_model": 32}),
    Variant("C", {"d_model": 1024}, {"d_model": 128}),
    Variant("C", {"d_ff": 1024}, {"d_ff": 128}),
    Variant("C", {"d_ff": 4096}, {"d_ff": 512}),
    Variant("D", {"P_drop": 0.0}, {"dropout": 0.0}),
    Variant("D", {"P_drop": 0.2}, {"dropout": 0.2}),
    Variant("D", {"eps": 0.0}, smoothing=0.0),
    Variant("D", {"eps": 0.2}, smoothing=0.2),
    Variant("E", {"positions": "learned"}, {"positions": "learned"}),
)
RECIPE = SmoothingRecipe(updates=1200, measured_every=1200, tokens_per_batch=1024)
"""The small translator of `recipes.smoothing`: d_model 64, d_ff 256, 4 heads, 2 + 2 layers, dropout 0.1."""


def recipe_of(variant: Variant, recipe: SmoothingRecipe) -> SmoothingRecipe:
    """The recipe with what the variant changes."""
    return replace(recipe, model={**recipe.model, **variant.model})


def train(variant: Variant, seed: int, data: TranslationData, recipe: SmoothingRecipe) -> dict[str, Any]:
    """One training.

    Returns:
        perplexity: e^loss of the next right token of held-out pairs, without smoothing.
        right: how often it is the most probable one.
        bleu: of greedy translations of the test pairs.
        parameters: how many the model has.
    """
    keep_freed_memory()
    torch.manual_seed(seed)
    own = recipe_of(variant, recipe)
    config: ModelConfig = config_of(own, data)
    assert config.pad_id is not None
    model = Transformer(config)
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9, fused=True)
    batches = endless(data.encode(data.split.train), own, config.pad_id, seed)
    for step, batch in enumerate(itertools.islice(batches, own.updates), start=1):
        rate = inverse_square_root(step, d_model=config.d_model, warmup=own.warmup, factor=own.factor)
        for group in optimizer.param_groups:
            group["lr"] = rate
        with fast_short_attention(torch.device("cpu")):
            loss, _ = translation_loss(model.train(), batch, label_smoothing=variant.smoothing, autocast=False)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    marks = held_out_marks(model, data.encode(data.split.valid))
    return {
        "seed": seed,
        "perplexity": round(math.exp(marks["loss"]), 3),
        "right": marks["right"],
        "bleu": bleu(model, data, data.split.test),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
    }


def measure(
    file: Path,
    path: Path,
    recipe: SmoothingRecipe = RECIPE,
    variants: tuple[Variant, ...] = VARIANTS,
    say: Callable[[str], None] = print,
) -> dict[str, Any]:
    """All trainings that the file at `path` does not have yet; it is written after each of them."""
    data = prepare(recipe.data, file)
    told = {
        "recipe": json.loads(json.dumps(asdict(recipe))),
        "pairs": {"train": len(data.split.train), "valid": len(data.split.valid), "test": len(data.split.test)},
    }
    rows = [{**json.loads(json.dumps(asdict(variant))), "runs": []} for variant in variants]
    if path.exists():
        before = json.loads(path.read_text(encoding="utf-8"))
        if before["recipe"] == told["recipe"]:
            kept = {json.dumps([row["paper"], row["model"]]): row["runs"] for row in before["rows"]}
            for row in rows:
                row["runs"] = kept.get(json.dumps([row["paper"], row["model"]]), [])
    for seed, (row, variant) in itertools.product(recipe.seeds, zip(rows, variants, strict=True)):
        if seed in [run["seed"] for run in row["runs"]]:
            continue
        run = train(variant, seed, data, recipe)
        row["runs"].append(run)
        path.write_text(json.dumps({**told, "rows": rows}, indent=1) + "\n", encoding="utf-8")
        say(f"{dict(variant.paper)}: {run}")
    return {**told, "rows": rows}


def main(file: Path, path: Path) -> None:
    torch.set_num_threads(1)
    measure(file, path)


if __name__ == "__main__":
    main(*paths(2, __doc__))
