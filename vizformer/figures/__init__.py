"""Plotly figures for curves, small matrices, notebooks and exports: numpy arrays and strings in, a Figure out.

    vf.figures.attention_heatmap(pattern, query_tokens, key_tokens).show()

Rows are queries, columns are keys, counted from 0.  Every function says its texts (`style.ENGLISH`) in the language of
`word_tables.speak` and takes its `title` as plain text, leaves the background transparent and the colour of the letters to
the template, escapes every token, and raises ValueError where shapes, names or numbers do not fit each other.

    figure, style, axes       plain dicts of Plotly's schema; colours, scales and words; what rows and columns are called
    svg/, files               a figure on paper; SVG, PNG and PDF (by typst), CSV, npz and HTML of it
    sentences, tables         a figure told to those who do not see it, read off its traces and hovers
"""

from typing import TYPE_CHECKING

from vizformer import lazy

if TYPE_CHECKING:
    from vizformer.figures.attention import added_mask, attention_heatmap
    from vizformer.figures.curves import (
        changes,
        line_curves,
        named_points,
        saturation_curves,
        score_against_cost,
        variance_growth,
    )
    from vizformer.figures.embeddings import embedding_map, neighbour_bars, norm_bars, similarity_curves, stream_points
    from vizformer.figures.head_report import (
        eigenvalue_plane,
        head_scatter,
        marked_map,
        measure_of_heads,
        weight_histogram,
    )
    from vizformer.figures.heads import head_grid, head_parts, head_slices, shared_heads
    from vizformer.figures.leakage import change_bars, change_map
    from vizformer.figures.logit_bars import logit_terms, next_token_bars, score_terms
    from vizformer.figures.matrix import matrix_heatmap, token_pairs
    from vizformer.figures.patches import patch_map
    from vizformer.figures.positions import position_clocks, positional_heatmap, turned_arrows
    from vizformer.figures.reach import cache_growth, gradient_reach, multiplications, path_picture
    from vizformer.figures.side_by_side import difference_map, stream_map
    from vizformer.figures.style import ENGLISH
    from vizformer.figures.text import attention_lines, coloured_text
    from vizformer.figures.training import answer_map, score_curves, training_curves

__getattr__, __dir__, __all__ = lazy.names(__name__, __file__)
