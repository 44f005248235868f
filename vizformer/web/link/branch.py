"""Tokens taken by hand on the page Generation, as a text for the link: "3:17,8:254", a new token and the id taken there.

The player itself writes the same text (`vizformer.components.player`), since a click in the browser changes it.
"""

from typing import TYPE_CHECKING

from vizformer.components.player import branch_text, read_branch
from vizformer.messages import N_
from vizformer.web.link.link_settings import UnusableError

if TYPE_CHECKING:
    from vizformer.components.player import Taken


def read(text: str) -> "tuple[Taken, ...]":
    """Reads the tokens taken by hand with their steps, in order."""
    if (taken := read_branch(text)) is None:
        raise UnusableError(N_("it must be a list such as 3:17,8:254: a new token and the id taken there"))
    return taken


def write(taken: "tuple[Taken, ...]") -> str:
    return branch_text(taken)
