"""What the tensors of a hand-written model leave open: only what has answers under which the model opens."""

from collections.abc import Sequence

from vizformer.checkpoints.tensors import questions
from vizformer.checkpoints.tensors.questions import Question
from vizformer.messages import N_

NORM = Question("norm", N_("Which norm do the layers have?"), ("layer_norm", "rms_norm"))
OWN_NORM = Question(
    "norm",
    N_("What does the norm, which its author wrote, divide by: the root of variance + ε, or deviation + ε?"),
    ("layer_norm", "deviation_norm"),
)
ROWS = Question("qkv_rows", N_("How do query, key and value lie in their common matrix?"), ("q_k_v", "by_head"))
MATRICES = Question("matrices", N_("How are the matrices multiplied?"), ("x_W", "W_x"))
SCALE = Question(
    "score_scale",
    N_("What are the scores divided by?"),
    ("root_of_d_head", "root_of_d_model", "nothing"),
    usual="root_of_d_head",
)
NORM_PLACE = Question("norm_place", N_("Where does the norm beside the layers stand?"), ("last", "first"))
ROPE_THETA = Question(
    "rope_theta", N_("What is the base of rotary positions?"), usual=10_000, whole=True, lowest=2, highest=10**9
)


def first_norm(names: tuple[str, str]) -> Question:
    return Question("first_norm", N_("Which of the two norms of a layer belongs to attention?"), names)


def heads(queries: int, keys: int) -> Question:
    """Whole numbers of heads, of query heads and of those of keys."""
    possible = [h for h in questions.divisors(queries) if keys % (queries // h) == 0]
    return Question("n_heads", N_("How many attention heads has a layer?"), tuple(possible))


def positions(width: int, *, both: bool, heads: Sequence[int], found: bool | None, theta: bool) -> Question:
    """How positions may be told where there is no table of them.

    `found`: whether rotary positions turn pairs, where their frequencies lie in the file (`theta`) and say so.
    """
    if theta:
        choices: tuple[str, ...] = ("rope_pairs",) if found else ("rope", "rope_pairs")
        return Question("positions", N_("What tells the model where a token stands?"), choices)
    choices = ("sinusoidal",) if width % 2 == 0 else ()
    if not both and any(width // h % 2 == 0 for h in heads):
        choices += ("rope", "rope_pairs")
    if not both:
        choices += ("alibi",)
    return Question("positions", N_("What tells the model where a token stands?"), (*choices, "none"))
