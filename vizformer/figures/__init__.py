"""Plotly figures for curves, small matrices, notebooks and exports: numpy arrays and strings in, a Figure out.

    vf.figures.attention_heatmap(pattern, query_tokens, key_tokens).show()

Rows are queries, columns are keys, counted from 0.  Every function takes its texts as `words` (see `style.ENGLISH`),
leaves the background transparent and the colour of the letters to the template, and escapes every token.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vizformer.figures.attention import attention_heatmap
    from vizformer.figures.generation import cache_growth, multiplications
    from vizformer.figures.heads import head_grid
    from vizformer.figures.matrix import matrix_heatmap
    from vizformer.figures.next_token import next_token_bars
    from vizformer.figures.positions import positional_heatmap, positional_waves
    from vizformer.figures.style import ENGLISH
    from vizformer.figures.training import answer_map, score_curves, training_curves

_WHERE = {
    "ENGLISH": "style",
    "answer_map": "training",
    "attention_heatmap": "attention",
    "cache_growth": "generation",
    "head_grid": "heads",
    "matrix_heatmap": "matrix",
    "multiplications": "generation",
    "next_token_bars": "next_token",
    "positional_heatmap": "positions",
    "positional_waves": "positions",
    "score_curves": "training",
    "training_curves": "training",
}

__all__ = [
    "ENGLISH",
    "answer_map",
    "attention_heatmap",
    "cache_growth",
    "head_grid",
    "matrix_heatmap",
    "multiplications",
    "next_token_bars",
    "positional_heatmap",
    "positional_waves",
    "score_curves",
    "training_curves",
]


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
