"""One head on one passage of the corpus, with the cells of a target marked."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, UInt8
from numpy import ndarray

from vizformer.analysis.corpus_heads.corpus import Passage
from vizformer.analysis.corpus_heads.measures import TARGETS, layer_patterns, targets, visible_keys
from vizformer.analysis.corpus_heads.one_text import is_delimiter, read_tokens, run, stacks_of
from vizformer.analysis.heads.maps import Kind, site_name
from vizformer.checkpoints import AnyCheckpoint
from vizformer.text import Token


@dataclass(frozen=True)
class HeadOnPassage:
    queries: tuple[Token, ...]
    keys: tuple[Token, ...]
    pattern: Float[ndarray, "n_q n_k"]
    reasons: UInt8[ndarray, "n_q n_k"]
    # the visible cells of the target; of what is no target, the strongest key of each query
    marked: Bool[ndarray, "n_q n_k"]
    # the head's "Q", "K" and "V" of each token as the scores read them, after norms and rotary positions, and "O", the
    # sum of the values that it makes, z = pattern V
    vectors: Mapping[str, Float[ndarray, "n d"]]


def head_on_passage(
    checkpoint: AnyCheckpoint, passage: Passage, kind: Kind, layer: int, head: int, measure: str
) -> HeadOnPassage:
    """The map of a head on the tokens that the report read of a passage: the first ones of a long passage."""
    read = read_tokens(checkpoint, passage)
    record = run(checkpoint, read)[site_name(kind, layer)]
    queries, keys = (read[stack] for stack in stacks_of(kind))
    pattern, visible = layer_patterns(record)[head].cpu(), visible_keys(record).cpu()
    if measure in TARGETS:
        cross = kind == "cross"
        found = targets(
            torch.tensor([token.id for token in queries]),
            torch.tensor([token.id for token in keys]),
            torch.tensor([is_delimiter(token) for token in keys]),
            cross=cross,
            same=not cross or checkpoint.source_tokenizer is None,
        )
        marked = (found.keys[TARGETS.index(measure)] & visible).numpy()
    else:
        marked = np.eye(len(keys), dtype=bool)[pattern.argmax(-1).numpy()]
    kv = record.kv_head(head)
    parts = {"Q": record.q[head], "K": record.k[kv], "V": record.v[kv], "O": record.z(head)}
    vectors = {name: rows.float().cpu().numpy() for name, rows in parts.items()}
    return HeadOnPassage(queries, keys, pattern.numpy(), record.reason(head).cpu().numpy(), marked, vectors)
