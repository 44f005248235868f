"""Cached computations of the lesson Costs, variants, results."""

import json
from typing import Any

import numpy as np

from vizformer.analysis.costs import layer_complexity as complexity
from vizformer.analysis.costs import model_costs, own_ablations, paper_results, sparse_reach
from vizformer.analysis.costs.experts import Mixture
from vizformer.analysis.costs.layer_complexity import Complexity
from vizformer.analysis.costs.model_costs import ModelCost
from vizformer.analysis.costs.own_ablations import OwnRow
from vizformer.analysis.costs.paper_results import RECIPES, Variant
from vizformer.analysis.costs.sparse_reach import (
    SPARSE_KINDS,
    Cells,
    SparseCost,
    SparseKind,
    SparseSettings,
    cell_count,
    multiplications,
    sparse_cost,
)
from vizformer.assets import asset
from vizformer.config import ModelConfig
from vizformer.explain import Step
from vizformer.explain.attention_without_softmax import LinearAttention, state
from vizformer.explain.softmax_in_blocks import OnlineSoftmax
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject


def table_one(n: int, d: int, k: int, r: int) -> tuple[Complexity, ...]:
    return complexity.table_one(n, d, k, r)


@cached
def model_cost(config: ModelConfig, n: int) -> ModelCost:
    return model_costs.model_cost(config, n)


@cached
def online_softmax(subject: Subject, site: str, head: int, query: int, tile: int) -> OnlineSoftmax:
    from vizformer.explain.softmax_in_blocks import online_softmax

    return online_softmax(subject.trace[site], head, query, tile)


@cached
def online_softmax_steps(subject: Subject, site: str, head: int, query: int, tile: int) -> list[Step]:
    from vizformer.explain.softmax_in_blocks import online_softmax_steps

    return online_softmax_steps(online_softmax(subject, site, head, query, tile))


@cached
def linear_attention(subject: Subject, site: str, head: int) -> LinearAttention:
    from vizformer.explain.attention_without_softmax import linear_attention

    return linear_attention(subject.trace[site], head)


@cached
def linear_state(subject: Subject, site: str, head: int, query: int) -> np.ndarray:
    return state(subject.trace[site], head, query)


# --- sparse masks -----------------------------------------------------------------------------------------------------


@cached
def sparse_cells(kind: SparseKind, n: int, settings: SparseSettings) -> Cells:
    return sparse_reach.sparse_cells(kind, n, settings)


@cached
def sparse_costs(n: int, settings: SparseSettings) -> tuple[SparseCost, ...]:
    return tuple(sparse_cost(kind, sparse_cells(kind, n, settings).open) for kind in SPARSE_KINDS)


@cached
def sparse_products(kind: SparseKind, n: int, settings: SparseSettings, config: ModelConfig) -> int:
    """Multiplications of all heads of a layer, of the cells that a mask leaves."""
    return multiplications(cell_count(kind, n, settings), config.d_head, config.n_heads)


# --- family and results -----------------------------------------------------------------------------------------------


@cached
def mixture(config: ModelConfig, experts: int, top_k: int) -> Mixture:
    from vizformer.analysis.costs.experts import mixture

    return mixture(config, experts, top_k)


@cached
def own_mixture(config: ModelConfig) -> Mixture | None:
    from vizformer.analysis.costs.experts import own_mixture

    return own_mixture(config)


def parameters(preset: str) -> int:
    """Of a model of the literature."""
    return model_cost(ModelConfig.preset(preset), 1).total


def base_training() -> float:
    """FLOPs of the base model's training, counted: 100,000 steps of 25,000 target tokens in sentences of 25."""
    return model_cost(ModelConfig.preset("transformer-base"), 25).training_flops(25_000 * RECIPES[0].steps)


@cached
def ablation_notes() -> dict[str, Any]:
    """Bundled measurements: see assets/lessons/costs/README.md."""
    found: dict[str, Any] = json.loads(asset("lessons", "costs", "ablations.json").read_text(encoding="utf-8"))
    return found


@cached
def own_rows() -> tuple[OwnRow, ...]:
    return own_ablations.own_rows(ablation_notes())


@cached
def counted(row: Variant) -> int:
    return paper_results.counted(row)
