"""What it costs to run a model on every prompt of a set, before any of them is run."""

from contextlib import suppress

from vizformer.analysis import PromptSet
from vizformer.analysis.causes.asked_prompts import MOST_TOKENS
from vizformer.errors import TraceError
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.widgets import watched_work

MOST_COUNTED = 100_000  # characters of a set whose tokens are counted while somebody waits: half a second at most
SPECIAL = 4  # tokens beside those of the characters: marks of both stacks
OF_ROW = 1.5e8  # multiplications that take as long as what is done for a prompt beside its runs, 15 ms


def cost(model: Subject, prompts: PromptSet, of_row: int) -> float:
    """Multiplications of `of_row` runs of every prompt of a set, and of two more with which it is read."""
    rows = len(prompts.rows)
    others = watched_work.beside(model, (of_row + 2) * (rows - 1))
    return watched_work.cost(model, of_row + 2, tokens(model, prompts)) + others + OF_ROW * rows


@cached
def tokens(model: Subject, prompts: PromptSet) -> int:
    """How many tokens, or more, a model reads of all prompts of a set, both stacks together; of `model` only the model
    counts.

    They are counted as far as MOST_COUNTED characters; after that each character may be one.
    """
    checkpoint, left, found = model.checkpoint, MOST_COUNTED, 0
    for row in prompts.rows:
        characters = len(row.clean) + len(row.target)
        left, n = left - characters, characters + SPECIAL
        if left >= 0:
            with suppress(TraceError):  # more than the model's positions hold
                n = len(checkpoint.encode(row.clean)) + (len(checkpoint.encode_target(row.target)) if row.target else 0)
        found += min(n, MOST_TOKENS)
    return found
