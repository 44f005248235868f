"""The generation player and the beam's tree: what travels to the browser, and what is refused."""

from typing import Any

import numpy as np
import pytest

from vizformer.components import player, tree
from vizformer.components.packing import pack_heads
from vizformer.components.player import PlayerSelection, Steps, Taken, Written, branch_text, read_branch


def steps(n: int = 3, **changes: Any) -> Steps:
    candidates = np.tile(np.array([7, 8, 2]), (n, 1))
    values = {
        "ids": [7, 8, 2][:n],
        "candidates": candidates,
        "names": {7: "cat", 8: "<b>", 2: "</s>"},
        "before": np.tile(np.array([0.5, 0.3, 0.1], np.float32), (n, 1)),
        "after": np.tile(np.array([0.625, 0.375, 0.0], np.float32), (n, 1)),
        "cut": np.tile(np.array([0, 0, 2], np.uint8), (n, 1)),
        "kept": [2] * n,
        "by_hand": [False, True, False][:n],
        "vocab_size": 20,
        "end": "eos",
    }
    return Steps(**{**values, **changes})


def written(**changes: Any) -> Written:
    """Two tokens at the start, three new ones; two layers of three heads; four tokens in the source."""
    rng = np.random.default_rng(0)
    causal = np.triu(np.full((4, 4), 2, np.uint8), 1)
    own = np.where(causal > 0, 0, rng.random((2, 3, 4, 4)) + 0.01)
    cross = rng.random((2, 3, 4, 4)) + 0.01
    values = {
        "tokens": [{"text": "<s>", "special": True}, {"text": "A"}, {"text": "cat"}, {"text": "<b>"}, {"text": "</s>"}],
        "start": 2,
        "steps": steps(),
        "kinds": {
            "decoder": pack_heads(own / own.sum(-1, keepdims=True), None, causal),
            "cross": pack_heads(cross / cross.sum(-1, keepdims=True)),
        },
        "source": list("我有猫。"),
        "branch": "1:8",
        "name": "a",
    }
    return Written(**{**values, **changes})


def test_what_travels() -> None:
    data, columns = player._data(written())
    assert data["taken"] == [{"step": 1, "id": 8}]
    assert data["branch"] == "1:8"
    assert data["candidates"] == {"count": 3, "ids": [7, 8, 2] * 3, "names": {"7": "cat", "8": "<b>", "2": "</s>"}}
    assert columns["before"].dtype == np.float32
    assert columns["cut"].tolist() == [0, 0, 2] * 3
    assert set(columns) == {"before", "after", "cut", "decoder_weights", "decoder_reasons", "cross_weights"}
    assert data["kinds"]["cross"] == {"shape": [2, 3, 4, 4], "held": "all", "chosen": None}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (dict(start=3), "5 tokens are not 3 at the start and 3 steps"),
        (dict(start=0), "are not 0 at the start"),
        (dict(steps=steps(2)), "5 tokens are not 2 at the start and 2 steps"),
        (dict(steps=steps(before=np.ones((3, 2)))), "do not fit 3 steps"),
        (dict(source=list("我有")), r"cross heads of 4 x 4 positions do not fit \(4, 2\)"),
    ],
)
def test_parts_that_do_not_fit_are_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        written(**changes)


def test_branches_as_text() -> None:
    assert read_branch("") == ()
    assert read_branch("3:17,8:254") == (Taken(3, 17), Taken(8, 254))
    assert branch_text((Taken(3, 17), Taken(8, 254))) == "3:17,8:254"
    for nonsense in ("3", "3:", ":1", "a:1", "3:-1", "8:1,3:2", "3:1,3:2", "3:1,", "³:1", "1:" + "9" * 20):
        assert read_branch(nonsense) is None, nonsense


@pytest.mark.parametrize("nonsense", [{}, {"step": -1, "kind": 3, "branch": [1]}, {"step": "x", "branch": "1:1,0:0"}])
def test_nonsense_from_a_browser(nonsense: dict[str, Any]) -> None:
    assert PlayerSelection.parse(nonsense) == PlayerSelection()


def test_a_selection_is_cut_to_the_text() -> None:
    found = PlayerSelection(99, "cross", 99, 99, "1:8").within(written())
    assert found == PlayerSelection(2, "cross", 1, 2, "1:8")
    alone = written(kinds={"decoder": written().kinds["decoder"]}, source=[])
    assert PlayerSelection(0, "cross").within(alone).kind == "decoder"


def test_files_are_whole() -> None:
    page = player.to_html(written(tokens=[{"text": "</script>"}] * 5))
    assert page.count("</script>") == 1
    assert "http://" not in page


def node(**changes: Any) -> tree.Node:
    usual = dict(step=0, parent=None, text="a", total=-1.0, score=-1.0, fate="kept", best=False)
    return tree.Node(**{**usual, **changes})  # type: ignore[typeddict-item]


@pytest.mark.parametrize(
    "nodes",
    [
        [node(parent=0)],
        [node(), node(step=1)],
        [node(), node(step=1, parent=1)],
        [node(), node(step=2, parent=0)],
        [node(step=1, parent=-1)],
    ],
)
def test_what_is_no_tree_is_refused(nodes: list[tree.Node]) -> None:
    with pytest.raises(ValueError, match="cannot continue"):
        tree.to_html(nodes)
