"""Downloads of the app, against a stand-in for the hub on loopback: how often progress is told and a stop heard."""

from itertools import pairwise

import pytest

from tests.checkpoints.hub_stand_in import serve
from tests.refs import ref
from vizformer.checkpoints.files import hub as library
from vizformer.web.catalogue import hub

NAME = "somebody/large"
SIZE = 3 * 2**20


class Watched(library.Progress):
    """Remembers every number of bytes that was told, and may stop at one."""

    def __init__(self, stop_at=None):
        self.told, self.stop_at = [], stop_at
        super().__init__()

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if name == "done":
            self.told.append(value)
            if self.stop_at is not None and value >= self.stop_at:
                self.stop.set()


@pytest.fixture
def endpoint(tmp_path, monkeypatch):
    """A hub that has one model of 3 MiB, and an empty cache."""
    from huggingface_hub import constants

    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"x" * SIZE)
    with serve(tmp_path, NAME) as running:
        template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, running.url)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "ENDPOINT", running.url)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", constants.DOWNLOAD_CHUNK_SIZE)  # put back afterwards
        monkeypatch.setattr(hub, "_DESK", hub._Desk())
        monkeypatch.setattr(hub, "_SPARE", 0)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        yield running


def test_progress_moves_with_the_bytes(endpoint):
    download = hub.Download(NAME, Watched())
    hub._run(download)
    assert (download.error, download.done) == (None, True)
    told = download.progress.told
    assert told == sorted(told)
    assert told[-1] == SIZE + 2 == download.progress.total
    assert max(b - a for a, b in pairwise(told)) <= hub._PIECE
    assert library.cached(NAME) == hub.locate(ref(f"hub/{NAME}"))


def test_a_stop_is_heard_within_a_piece(endpoint):
    download = hub.Download(NAME, Watched(stop_at=SIZE // 2))
    hub._run(download)
    assert (download.stopped, download.done) == (True, True)
    assert SIZE // 2 <= download.progress.done <= SIZE // 2 + hub._PIECE
    assert hub.locate(ref(f"hub/{NAME}")) is None


def test_what_is_too_large_is_refused_before_the_first_byte(endpoint, monkeypatch):
    monkeypatch.setenv(hub.LIMIT, str(SIZE))
    download = hub.Download(NAME, Watched())
    hub._run(download)
    assert "MiB" in str(download.error)
    assert not any("resolve" in request for request in endpoint.asked)


def test_a_hub_that_tells_no_sizes_passes_no_limit(endpoint, monkeypatch, tmp_path):
    endpoint.mode = "silent"
    download = hub.Download(NAME, Watched())
    hub._run(download)
    assert (download.error, download.progress.total, download.progress.done) == (None, 0, SIZE + 2)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "another"))
    monkeypatch.setenv(hub.LIMIT, str(SIZE // 2))
    download = hub.Download(NAME, Watched())
    hub._run(download)
    assert "more than the 2 MiB that this server fetches" in str(download.error)
    assert download.progress.done <= SIZE // 2 + hub._PIECE
    kept = [file.stat().st_size for file in (tmp_path / "another").rglob("*") if file.is_file()]
    assert sum(kept) < hub._PIECE  # what came of the large file is gone again
