"""The settings of the generation as a text for the link."""

import pytest

from vizformer.web.link import generation_settings
from vizformer.web.link.generation_settings import Settings, changed, read, write
from vizformer.web.link.link_settings import UnusableError


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (Settings(), ""),
        (Settings(strategy="sampling"), "sampling"),
        (Settings(strategy="sampling", temperature=1.0, top_k=0, seed=7), "sampling,t1,k0,s7"),
        (Settings(strategy="beam", width=2, alpha=0.0, new=9), "beam,n9,w2,a0"),
        (Settings(top_p=0.25, min_p=0.05, penalty=1.15), "p0.25,m0.05,r1.15"),
        (Settings(seed=generation_settings.LARGEST_SEED), f"s{generation_settings.LARGEST_SEED}"),
    ],
)
def test_there_and_back(settings: Settings, text: str) -> None:
    assert write(settings) == text
    assert read(text) == settings
    assert type(read(text).top_k) is int
    assert type(read(text).temperature) is float


@pytest.mark.parametrize(
    "nonsense",
    ["t", "t-1", "t9", "tx", "k2.5", "z3", "sampling,beam", "t1,t1", "n0", "n999999", "w0", "p1.5", ",", "t1e3"],
)
def test_nonsense_is_refused(nonsense: str) -> None:
    with pytest.raises(UnusableError):
        read(nonsense)


def test_a_change_keeps_the_rest() -> None:
    assert changed("sampling,t1,s7", temperature=0.0) == "sampling,t0,s7"
    assert changed("sampling,t0.5", strategy="greedy") == "t0.5"
    assert changed("t0.5", temperature=0.8) == ""


def test_every_setting_is_a_legal_sampling() -> None:
    for text in ("", "sampling", "sampling,t0,k99999,p0,m1,r0.5", "r2"):
        read(text).sampling  # noqa: B018  (raises where it is not)
    assert read("t1.5,k3").sampling.is_greedy  # greedy, whatever stands beside it
