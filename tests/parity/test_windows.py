"""Sliding windows against `transformers`, in texts longer than the window, every parameter randomised."""

from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("transformers")

from tests.checkpoints import folders
from tests.parity.against_transformers import same_continuation, same_numbers, theirs
from vizformer.checkpoints import load, save
from vizformer.checkpoints.tensors.report import describe
from vizformer.errors import CheckpointError

FULL, SLIDING = "full_attention", "sliding_attention"
ROTARY = {"rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 100.0}}


def same(folder: Path, kind: str, window: int | None, layers: set[int]) -> None:
    """All numbers of a text longer than the window, and 20 tokens after it and after a text that is shorter."""
    checkpoint, model = load(folder), theirs(folder, f"{kind}ForCausalLM")
    config = checkpoint.model.config
    assert (config.sliding_window, config.windowed_layers, config.max_positions) == (window, layers, 64)
    for text in folders.TEXTS[:2]:
        same_numbers(checkpoint, model, text)
    assert len(checkpoint.encode(folders.TEXTS[0])) > (window or 0) + 1 > len(checkpoint.encode("x")) * bool(window)
    for text in (folders.TEXTS[0], "x"):
        same_continuation(checkpoint, model, text)


@pytest.mark.parametrize("window", [4, 17])
def test_mistral(window: int, tmp_path: Path) -> None:
    """Every layer has it."""
    same(folders.llama(tmp_path, kind="Mistral", sliding_window=window), "Mistral", window, {0, 1, 2})


def test_a_window_of_one_token(tmp_path: Path) -> None:
    """Query i sees key i alone.  Not continued: the cache of `transformers` keeps the last 1 - 1 keys, read as all."""
    folder = folders.llama(tmp_path, kind="Mistral", sliding_window=1)
    checkpoint = load(folder)
    same_numbers(checkpoint, theirs(folder, "MistralForCausalLM"))
    assert torch.equal(checkpoint.trace("x x")["decoder.2.self"].pattern(0), torch.eye(len(checkpoint.encode("x x"))))


def test_some_layers_of_ministral(tmp_path: Path) -> None:
    kinds = [SLIDING, FULL, SLIDING]
    folder = folders.llama(tmp_path, kind="Ministral", sliding_window=6, layer_types=kinds, head_dim=4)
    same(folder, "Ministral", 6, {0, 2})


LISTED = dict(layer_types=[FULL, SLIDING, FULL], max_window_layers=0)  # the list comes first
QWEN: list[tuple[str, dict[str, Any], set[int]]] = [
    ("Qwen2", dict(max_window_layers=1), {1, 2}),
    ("Qwen2", dict(max_window_layers=0), {0, 1, 2}),
    ("Qwen2", LISTED, {1}),
    ("Qwen3", dict(max_window_layers=2, **ROTARY), {2}),
    ("Qwen3", LISTED, {1}),
]


@pytest.mark.sample(2)
@pytest.mark.parametrize(("kind", "fields", "layers"), QWEN, ids=str)
def test_qwen(kind: str, fields: dict[str, Any], layers: set[int], tmp_path: Path) -> None:
    made = folders.FAMILIES[kind.lower()](tmp_path, use_sliding_window=True, sliding_window=5, **fields)
    same(made, kind, 5, layers)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "fields",
    [
        dict(use_sliding_window=False, sliding_window=5, max_window_layers=0),
        dict(use_sliding_window=True, sliding_window=5, max_window_layers=3),
        dict(use_sliding_window=True, sliding_window=64, max_window_layers=0),
    ],
    ids=["not used", "from a layer that is not there", "as long as any text"],
)
def test_no_window(fields: dict[str, Any], tmp_path: Path) -> None:
    same(folders.qwen2(tmp_path, **fields), "Qwen2", None, set())


def test_the_report_says_which_layers_have_it(tmp_path: Path) -> None:
    every = load(folders.llama(tmp_path / "a", kind="Mistral", sliding_window=5)).report
    assert "sliding window: a query sees only the latest 5 tokens, itself included" in describe(every)
    made = folders.qwen2(tmp_path / "b", use_sliding_window=True, sliding_window=5, max_window_layers=1)
    assert "sliding window (layers: 1–2): a query sees only the latest 5 tokens" in describe(load(made).report)
    assert "window" not in describe(load(folders.qwen2(tmp_path / "c")).report)


def test_files_of_older_versions(tmp_path: Path) -> None:
    """No layer_types; what is left out is as `transformers` has it, and said."""
    folder = folders.qwen2(tmp_path, use_sliding_window=True, sliding_window=5, max_window_layers=1)
    new = load(folder).model.config
    folders.change(folder, layer_types=...)
    assert load(folder).model.config == new
    folders.change(folder, sliding_window=..., max_window_layers=0)
    left_out = load(folder)
    assert left_out.model.config.sliding_window is None  # 4096, beyond any text
    assert any("does not say sliding_window: taken as 4096" in str(a) for a in left_out.report.assumptions)


def test_fields_that_transformers_does_not_read_for_the_family_are_left_alone_and_noted(tmp_path: Path) -> None:
    folder = folders.change(folders.llama(tmp_path), sliding_window=5, layer_types=[FULL, SLIDING, FULL])
    found = load(folder)
    assert not found.model.config.windowed_layers
    same_numbers(found, theirs(folder, "LlamaForCausalLM"))
    notes = [str(note) for note in found.report.assumptions]
    assert sum("is ignored: the layers of this family have no such option" in note for note in notes) == 2


@pytest.mark.parametrize(("kind", "kinds"), [("Mistral", None), ("Ministral", [FULL, SLIDING, SLIDING])])
@pytest.mark.parametrize("head", [True, False])
def test_the_way_back(kind: str, kinds: list[str] | None, head: bool, tmp_path: Path) -> None:
    """Both families write their windows down; the folder opens here and there, with the same numbers."""
    given = {} if kinds is None else {"layer_types": kinds, "head_dim": 6}
    folder = folders.llama(tmp_path / "theirs", kind=kind, sliding_window=5, **given)
    if not head:
        weights = {name: t for name, t in folders.tensors(folder).items() if name != "lm_head.weight"}
        folders.save_tensors(folder, {name.removeprefix("model."): tensor for name, tensor in weights.items()})
        folders.change(folder, architectures=[f"{kind}Model"])
    before = load(folder)
    save(before, tmp_path / "ours", torch.float32, layout="hugging-face")
    after = load(tmp_path / "ours")
    assert after.model.config == before.model.config
    assert after.report.declared == f"{kind}{'ForCausalLM' if head else 'Model'}"
    same_numbers(after, theirs(tmp_path / "ours", after.report.declared))


def test_a_window_is_never_lost_on_the_way_back(tmp_path: Path) -> None:
    """Qwen's biases fit none of the families that are written."""
    found = load(folders.qwen2(tmp_path / "q", use_sliding_window=True, sliding_window=5, max_window_layers=1))
    with pytest.raises(CheckpointError, match=r"apart from .*attention_bias='qkv'"):
        save(found, tmp_path / "out", layout="hugging-face")
