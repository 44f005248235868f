"""The recipe of `hybrid`: three layers of the gated delta rule and one of softmax attention, on the rows of `stories`."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from recipes.bundled_models.stories import STORIES, train_stories
from recipes.corpus import Corpus
from recipes.loop import LoopOptions, Progress
from vizformer.checkpoints.own.checkpoint import Checkpoint

# Every fourth layer has attention, as in Qwen3-Next (Qwen Team 2025); a head is as wide in both kinds of layers.  The rows
# of the table begin at unit scale: a delta layer's norm makes its output as large as this, whatever it has read (after 150
# updates the loss was 5.8, with rows of 0.02 as in `stories` 6.2).  In bfloat16 the rule's triangular systems would be
# solved with three digits.
HYBRID = replace(
    STORIES,
    name="hybrid",
    model={
        **STORIES.model,
        "d_model": 128,
        "n_heads": 4,
        "n_kv_heads": None,
        "d_ff": 320,
        "n_decoder_layers": 4,
        "state_layers": (0, 1, 2),
        "scaled_embedding": True,
    },
    loop=LoopOptions(epochs=2, warmup=300, factor=0.6),
    tokens_per_batch=2048,
    autocast=False,
)


def train_hybrid(corpus: Corpus, work: Path, report: Callable[[Progress], None]) -> Checkpoint:
    return train_stories(corpus, work, report, HYBRID)
