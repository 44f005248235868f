"""The effect of every head on the logit of the next token of a text."""

from contextlib import suppress

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from vizformer.analysis.attribution.backward import HeadsBackward
from vizformer.analysis.attribution.lens import predicting_stack
from vizformer.analysis.corpus_heads.corpus import Corpus
from vizformer.analysis.corpus_heads.one_text import heads_of, read_tokens
from vizformer.analysis.heads.maps import Kind, kind_of
from vizformer.analysis.masks.runs import rerun
from vizformer.checkpoints import AnyCheckpoint
from vizformer.errors import VizformerError

TEXTS, TOKENS, ROWS = 6, 64, 24  # of the corpus, of a text, and of all of them, evenly: each is a way back


def next_token_effects(
    checkpoint: AnyCheckpoint, corpus: Corpus
) -> dict[Kind, Float[ndarray, "rows n_layers n_heads"]]:
    """The direct effects on ROWS rows of the first texts; empty of a model that does not predict what comes next, of
    recorded code, and where the logit is no sum of what the parts write.

    effect = z_i W_O . g_i(t) for the token t after row i, less the mean logit of all tokens: its term of the logit of t
    (`attribution.direct`).  What later parts make of it is not in it.

    Source: Wang et al. 2022, "Interpretability in the Wild", section 3.1.
    """
    stack = predicting_stack(checkpoint)
    if not checkpoint.has_head or stack == "encoder" or not checkpoint.is_own:
        return {}
    traces = []
    for passage in corpus.passages[: 2 * TEXTS]:
        with suppress(VizformerError):
            tokens = {name: row[:TOKENS] for name, row in read_tokens(checkpoint, passage).items()}
            traces.append(rerun(checkpoint, tokens, None))
        if len(traces) == TEXTS:
            break
    rows = [(trace, row) for trace in traces for row in range(len(trace.tokens[stack]) - 1)]
    kept = np.unique(np.linspace(0, len(rows) - 1, ROWS).round().astype(int)) if rows else ()
    found: dict[Kind, ndarray] = {
        kind: np.full((len(kept), *shape), np.nan) for kind, shape in heads_of(checkpoint).items() if kind != "encoder"
    }
    for number, at in enumerate(kept):
        trace, row = rows[at]
        with suppress(VizformerError):  # of a part that is not linear
            back = HeadsBackward(checkpoint, trace, row)
            back.head(trace.tokens[stack][row + 1].id, "mean")
            back.stack()
            for term in back.terms:
                if term.part == "head" and (kind := kind_of(term.place)) in found:
                    found[kind][number, term.layer, term.head] = term.value
    return found
