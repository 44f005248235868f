"""How many browsers listen for news of the classes, and how many of them come from one network."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from vizformer.web.networks import network

if TYPE_CHECKING:
    from starlette.requests import Request

MOST = 2000  # at once
MOST_OF_ONE = MOST // 2  # of one network, which may be a school


class Listeners:
    """Requests that stay open.  One network has at most half of the places, so that it takes no news from other classes."""

    def __init__(self) -> None:
        self._of: Counter[str] = Counter()

    @property
    def count(self) -> int:
        return self._of.total()

    def full(self, request: "Request") -> bool:
        """Whether there is no place for this request.  A proxy that names no visitors counts as many networks."""
        of = _network(request)
        return self.count >= MOST or (bool(of) and self._of[of] >= MOST_OF_ONE)

    @contextmanager
    def listening(self, request: "Request") -> Iterator[None]:
        of = _network(request)
        self._of[of] += 1
        try:
            yield
        finally:
            self._of[of] -= 1
            if not self._of[of]:
                del self._of[of]


def _network(request: "Request") -> str:
    return network(request.client.host if request.client else None)
