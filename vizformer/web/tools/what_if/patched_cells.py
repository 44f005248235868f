"""Cached computations of the patches between two prompts."""

from dataclasses import dataclass

from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from vizformer.analysis import Kind, Patched, attribution_patches, patch_of, patch_runs
from vizformer.analysis.attribution.predictions import writable
from vizformer.analysis.causes.patching import What
from vizformer.analysis.heads.maps import n_layers
from vizformer.analysis.masks.runs import rerun
from vizformer.model import Edit
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.long_work import HEARD
from vizformer.web.catalogue.subject import Subject
from vizformer.web.tools.what_if.prompts import Prompts
from vizformer.web.widgets import watched_work


@dataclass(frozen=True)
class Asked:
    what: What
    kind: Kind
    layer: int | None = None  # of heads one position at a time; None for all layers

    @property
    def layers(self) -> list[int] | None:
        return None if self.layer is None else [self.layer]


@cached
def measured(prompts: Prompts, asked: Asked) -> Patched:
    return patch_runs(
        prompts.clean.checkpoint, prompts.pair, asked.what, asked.kind, layers=asked.layers, heard=HEARD.get()
    )


@cached
def estimated(prompts: Prompts, asked: Asked) -> Float[ndarray, "*shape"]:
    return attribution_patches(prompts.clean.checkpoint, prompts.pair, asked.what, asked.kind, layers=asked.layers)


def is_estimated(prompts: Prompts) -> bool:
    """Whether there is a gradient, as there is none of recorded code, and it takes no long time."""
    checkpoint = prompts.clean.checkpoint
    return checkpoint.is_own and watched_work.cost(prompts.clean, 3) < watched_work.AT_ONCE  # it takes three runs


@dataclass(frozen=True)
class Said:
    """The predictions of a run at the row where the answers are compared."""

    # answer, other: the logits of the two tokens
    answer: float
    other: float
    best: str  # the most probable token, and its probability
    probability: float

    @property
    def difference(self) -> float:
        return self.answer - self.other


@cached
def said(prompts: Prompts, asked: Asked, cell: tuple[int, ...]) -> tuple[Said, Said, Said]:
    """The corrupted run, the same with the patch of one cell of the whole table, and the clean run."""
    checkpoint, pair = prompts.clean.checkpoint, prompts.pair
    edit = Edit(patches=(patch_of(pair, asked.what, asked.kind, cell),))
    patched = rerun(checkpoint, pair.corrupted.tokens, edit)
    first, second, third = (_say(prompts, one.logits) for one in (pair.corrupted, patched, pair.clean))
    return first, second, third


def _say(prompts: Prompts, logits: Tensor) -> Said:
    """The predictions in these logits at the row where the answers are compared."""
    row = logits[prompts.row]
    best = int(writable(prompts.clean.checkpoint, row).argmax())
    probability = float(row.double().softmax(-1)[best])
    return Said(float(row[prompts.answer]), float(row[prompts.other]), text_of(prompts, best), probability)


def text_of(prompts: Prompts, token: int) -> str:
    """How a token of the vocabulary reads."""
    return prompts.clean.checkpoint.tokenizer.tokens([token])[0].text


def runs(subject: Subject, asked: Asked) -> int:
    """How many cells the table has: one run of the model for each."""
    trace = subject.trace
    n = len(trace.tokens["encoder" if asked.kind == "encoder" else "decoder"])
    layers, heads = n_layers(trace, asked.kind), subject.shape.n_heads
    return {"stream": (layers + 1) * n, "heads_by_position": heads * n}.get(asked.what, layers * heads)
