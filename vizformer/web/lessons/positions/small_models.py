"""What the laboratories share that compare ways to tell positions: these, and small models that differ in them alone."""

from collections.abc import Sequence

from vizformer.analysis.positions.effects import small_model
from vizformer.assets import asset
from vizformer.checkpoints import Checkpoint, load
from vizformer.model import Transformer
from vizformer.options.positions import Positions
from vizformer.text import Token
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.widgets.lab import Laboratory

MOST = 32  # tokens in the pictures of whole matrices
SCHEMES: tuple[Positions, ...] = ("none", "sinusoidal", "learned", "rope", "alibi", "relative")


def words_only(subject: Subject) -> tuple[Token, ...]:
    """The first tokens without start and end marks, which would stay where they are; all, if there is nothing else."""
    return (tuple(token for token in subject.tokens if not token.special) or subject.tokens)[:MOST]


@cached
def tiny(scheme: Positions) -> Checkpoint:
    """The trained language model over bytes with this way to tell positions."""
    return load(asset("lessons", "positions", scheme))


@cached
def small(scheme: Positions, vocab_size: int, causal: bool, trained: bool = False) -> Transformer:
    """The untrained model; `trained`: with the trained model's tables of positions."""
    tables = tiny(scheme).model if trained and scheme in ("learned", "relative") else None
    return small_model(scheme, vocab_size, causal=causal, tables_of=tables)


def choose_pair(lab: Laboratory, numbered: Sequence[str]) -> tuple[int, int]:
    """The boxes for a query and for a key that is not after it."""
    m = lab.box("query", numbered, len(numbered) - 1)
    return m, lab.box("key", numbered[: m + 1], 0)
