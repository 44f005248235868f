"""Work that is watched on a page: what goes wrong in it stays said."""

from types import SimpleNamespace

import pytest

from vizformer.errors import VizformerError
from vizformer.messages import N_
from vizformer.web.catalogue.bounded_cache import Cache, Cached
from vizformer.web.widgets import watched_work


class _RerunError(BaseException):
    pass


def test_what_went_wrong_is_said_by_the_page_and_not_by_the_part_that_looks_again(monkeypatch) -> None:
    def rerun() -> None:
        raise _RerunError

    def look(*_: object) -> None:
        raise VizformerError(N_("Take a longer text."))

    monkeypatch.setattr(watched_work, "st", SimpleNamespace(session_state={}, rerun=rerun))
    monkeypatch.setattr(watched_work.WORK, "look", look)
    work = Cached(lambda text: 0, Cache(limit=lambda: 2**20))
    with pytest.raises(_RerunError):
        watched_work._watch(work, ("a",), 10, "stop", watched_work.runs_said)
    monkeypatch.setattr(watched_work.WORK, "look", lambda *_: pytest.fail("it is said before anybody looks again"))
    with pytest.raises(VizformerError, match=r"Take a longer text\."):
        watched_work.watched(work, ("a",), quick=False, runs=10, begin="Begin", key="begin")
