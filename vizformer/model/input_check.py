"""Checks that a model can read these token ids and so many of them."""

from operator import index

import torch
from jaxtyping import Int
from torch import Tensor

from vizformer.errors import TraceError


def check_ids(ids: Int[Tensor, "b n"], first: int, limit: int, n_ids: int) -> None:
    """Refuses ids, which begin at position `first`, that a model of `limit` positions and `n_ids` ids cannot read.

    Raises:
        TraceError: there is no token, there are too many, or one is outside the vocabulary.
    """
    last = n_ids - 1
    check_length(ids.shape[1], limit, first)
    if torch.compiler.is_compiling():
        return  # looking at the values would break the compiled graph
    lowest, highest = int(ids.min()), int(ids.max())
    if lowest < 0 or highest > last:
        raise TraceError(
            "Token id {id} is outside the vocabulary: ids go from 0 to {last}.",
            id=lowest if lowest < 0 else highest,
            last=last,
        )


def row_at(position: int, n: int) -> int:
    """`position` as an index from 0 to n - 1; a negative one counts from the end: -1 is the last row.

    Raises:
        TraceError: there is no such row, or `position` is not an integer.
    """
    at = _whole(position)
    if at is None or not -n <= at < n:
        raise TraceError(
            "There is no position {position}: choose 0 to {last}, or -1 for the last.", position=position, last=n - 1
        )
    return at % n


def check_head(head: int, n_heads: int, site: str) -> None:
    """Raises TraceError where an attention call has no such head."""
    if not 0 <= head < n_heads:
        raise TraceError(
            "There is no head {head} at {site}: choose 0 to {last}.", head=head, site=site, last=n_heads - 1
        )


def token_id(token: int, n_ids: int) -> int:
    """`id` as an int, once it is checked.

    Raises:
        TraceError: the id is outside the vocabulary, or not an integer.
    """
    id = _whole(token)
    if id is None or not 0 <= id < n_ids:
        raise TraceError(
            "There is no token {id}: give its id, 0 to {last}. checkpoint.encode(text) has the ids of a text.",
            id=repr(token)[:60],
            last=n_ids - 1,
        )
    return id


def _whole(value: object) -> int | None:
    try:
        return index(value)  # type: ignore[arg-type]  # which is what it finds out
    except TypeError:
        return None


def check_length(n_tokens: int, limit: int, first: int = 0) -> None:
    """Refuses a text of tokens, which begins at position `first`, that a model of `limit` positions cannot read.

    Raises:
        TraceError: there is no token, or there are too many.
    """
    n = first + n_tokens
    if n_tokens == 0:
        raise TraceError("There is no token to look at: type at least one word.")
    if n > limit:
        raise TraceError(
            "The text has {n} tokens; this model accepts {limit}. Shorten it by {over}.",
            n=n,
            limit=limit,
            over=n - limit,
        )
