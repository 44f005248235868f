"""The PyTorch lines of the lesson Masks: what builds each mask, what each notation is for, how each mistake is made.

Each is pasted as it stands (`lesson.pasteable`), with the numbers that it reads written out before it.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from vizformer.explain.snippets import Given
from vizformer.model.mask_recipe import MaskKind, MaskRecipe
from vizformer.web.words.i18n import _

_PLACES = "i, j = torch.arange(n)[:, None], torch.arange(n)[None, :]\n"
_SOFTMAX = "weights = torch.softmax(scores + M, dim=-1)"
_PADDING = (
    "is_padding = torch.arange(n_k) >= n_real\n"
    "M = torch.zeros(n_q, n_k).masked_fill(is_padding[None, :], -math.inf)\n" + _SOFTMAX
)
CODES: dict[MaskKind, str] = {
    "causal": "M = torch.full((n, n), -math.inf).triu(1)\n" + _SOFTMAX,
    "padding": _PADDING,
    "cross": _PADDING,
    "prefix": _PLACES + "M = torch.zeros(n, n).masked_fill((j > i) & (j >= p), -math.inf)\n" + _SOFTMAX,
    "window": _PLACES + "M = torch.zeros(n, n).masked_fill((j - i).abs() > w, -math.inf)\n" + _SOFTMAX,
    "bigbird": _PLACES + "visible = ((j - i).abs() <= w) | (i < g) | (j < g)\n"
    "generator = torch.Generator().manual_seed(seed)\n"
    "for row in range(g, n):\n"
    "    left = torch.nonzero(~visible[row])[:, 0]\n"
    "    visible[row, left[torch.randperm(len(left), generator=generator)[:r]]] = True\n"
    "M = torch.zeros(n, n).masked_fill(~visible, -math.inf)\n" + _SOFTMAX,
}
"""What computes each mask; run in a test with the names of the formula (and, in a causal model, `CAUSAL_TOO`)."""

CAUSAL_TOO = "M = M + torch.full((n, n), -math.inf).triu(1)\n"


def code(recipe: MaskRecipe, causal: bool, window: int | None = None) -> str:
    """The PyTorch lines of a mask; `causal` where the future is blocked besides, and what a `window` hides."""
    written = CODES[recipe.kind]
    if not causal:
        return written
    if window is not None:
        written = written.replace(_SOFTMAX, f"M = M + torch.full((n, n), -math.inf).tril(-{window})\n" + _SOFTMAX)
    written = written.replace("~visible[row])", "~visible[row, : row + 1])")  # what is drawn is not after the query
    return written.replace(_SOFTMAX, CAUSAL_TOO + _SOFTMAX)


def given(recipe: MaskRecipe, scores: np.ndarray, is_padding: Sequence[bool]) -> dict[str, Given]:
    """The numbers that the code of a mask reads, by its names for them; what is padding comes after all that is not."""
    (n_q, n_k), (p, w, g, r) = scores.shape, (recipe.prefix, recipe.reach, recipe.n_global, recipe.n_random)
    sizes: dict[str, Given] = {"n": n_q, "n_q": n_q, "n_k": n_k, "p": p, "w": w, "g": g, "r": r, "seed": recipe.seed}
    return sizes | {"n_real": n_k - sum(is_padding), "scores": scores}


# --- four notations of the causal mask --------------------------------------------------------------------------------

NOTATIONS: dict[str, str] = {
    "tutorial": "mask = torch.ones(n, n, dtype=torch.long).tril()",
    "module": "mask = torch.ones(n, n, dtype=torch.bool).triu(1)",
    "fused": "mask = torch.ones(n, n, dtype=torch.bool).tril()",
    "additive": "mask = torch.full((n, n), -math.inf).triu(1)",
}
"""The causal mask of n tokens as each notation writes it."""

_CALLS = """# {tutorial}
{tutorial_mask}
weights = torch.softmax(scores.masked_fill(mask == 0, -math.inf), dim=-1)

# {identity}
q, k, v = scores * n**0.5, torch.eye(n), torch.eye(n)

# {module}
{module_mask}
attention = torch.nn.MultiheadAttention(n, 1, bias=False)
with torch.no_grad():  # {matrices}
    attention.in_proj_weight.copy_(torch.eye(n).repeat(3, 1))
    attention.out_proj.weight.copy_(torch.eye(n))
    by_module, _ = attention(q, k, v, attn_mask=mask)

# {fused}
{fused_mask}
by_fused = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

# {additive}
{additive_mask}
by_additive = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)"""


def notation_calls(names: Mapping[str, str]) -> str:
    """Every notation with the call that reads it so, for the `scores` [n, n] of a head: four times the same weights.

    PyTorch's calls take q, k and v, which would be long to write out.  With q = scores * sqrt(n) and k = v = I they
    give softmax(scores + mask), the weights that the page shows.

    Args:
        names: of the notations, in words.
    """
    return _CALLS.format(
        identity=_(
            "the calls take q, k and v: where k and v are the identity they give the weights; they divide by √n"
        ),
        matrices=_("its four matrices: the identity"),
        **names,
        **{f"{name}_mask": line for name, line in NOTATIONS.items()},
    )


# --- four mistakes ----------------------------------------------------------------------------------------------------

_BLOCKED = "blocked = torch.ones(n, n, dtype=torch.bool).triu(1)\n"


def mistake_code(mistake: str) -> str:
    """What each mistake looks like, or the way out of it; `scores` are those of one query ("half") or of all."""
    wrong, right = _("wrong"), _("right in every precision")
    return {
        "after": f"{_BLOCKED}weights = torch.softmax(scores, dim=-1).masked_fill(blocked, 0.0)  # {wrong}",
        "zero": f"{_BLOCKED}weights = torch.softmax(scores.masked_fill(blocked, 0.0), dim=-1)  # {wrong}",
        "half": "blocked = torch.arange(n) > row\n"
        f"weights = torch.softmax(scores.masked_fill(blocked, -math.inf), dim=-1)  # {right}",
        "blind": f"{_BLOCKED}blocked[row] = True\n"
        "weights = torch.softmax(scores.masked_fill(blocked, -math.inf), dim=-1).nan_to_num(0.0)",
    }[mistake]
