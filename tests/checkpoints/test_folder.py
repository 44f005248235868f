"""Files to models: what is written is read, and what is damaged is named."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from tests import tiny
from vizformer.assets import bundled_models
from vizformer.checkpoints import load, save
from vizformer.errors import CheckpointError, ConfigError, VizformerError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "mine"
    save(tiny.checkpoint(scaled_embedding=True), path)
    return path


@pytest.mark.parametrize("architecture", tiny.STACKS)
def test_round_trip(architecture: str, tmp_path: Path) -> None:
    original = tiny.checkpoint(architecture, positions="learned", tied_unembedding=False)
    save(original, tmp_path / "a" / "b")
    opened = load(tmp_path / "a" / "b")
    assert opened.name == "b"
    assert opened.model.config == original.model.config
    for name, tensor in original.model.state_dict().items():
        loaded = opened.model.state_dict()[name]
        assert loaded.dtype == torch.float32
        assert torch.equal(loaded, tensor.half().float())
    assert opened.tokenizer.encode("我有 cat") == original.tokenizer.encode("我有 cat")
    trace, expected = opened.trace("我有 cat"), original.trace("我有 cat")
    tiny.assert_close(trace.logits[0], expected.logits[0], 2e-2)  # float16 keeps three digits
    assert len(trace.sites) == len(expected.sites)


@pytest.mark.parametrize("architecture", tiny.STACKS)
@pytest.mark.parametrize("options", [tiny.ALIBI, tiny.T5], ids=["alibi", "T5"])
def test_position_biases_go_and_come_back(architecture: str, options: dict[str, Any], tmp_path: Path) -> None:
    """T5's tables are saved; ALiBi's slopes follow from the options and are computed anew."""
    original = tiny.checkpoint(architecture, **options)
    save(original, tmp_path, dtype=torch.float32)
    opened = load(tmp_path)
    assert opened.model.config == original.model.config
    tables = {name for name in opened.model.state_dict() if "relative_bias" in name or "slopes" in name}
    stacks = [stack for stack in ("encoder", "decoder") if getattr(original.model, stack) is not None]
    assert tables == ({f"{stack}.relative_bias.weight" for stack in stacks} if options is tiny.T5 else set())
    trace, expected = opened.trace("我有 cat"), original.trace("我有 cat")
    assert torch.equal(trace.logits, expected.logits)
    for site in trace.sites:
        assert (trace[site].position_bias is None) == site.endswith("cross")


def test_float32_is_exact(tmp_path: Path) -> None:
    original = tiny.checkpoint()
    save(original, tmp_path, dtype=torch.float32)
    opened = load(str(tmp_path))
    assert opened.key == original.key
    assert torch.equal(opened.trace("猫", target="cat").logits, original.trace("猫", target="cat").logits)


def test_what_is_opened_is_frozen_and_ready(folder: Path) -> None:
    checkpoint = load(folder)
    assert not checkpoint.model.training
    assert not any(parameter.requires_grad for parameter in checkpoint.model.parameters())
    assert not any(tensor.is_meta for tensor in (*checkpoint.model.parameters(), *checkpoint.model.buffers()))


def test_the_files_are_plain_data(folder: Path) -> None:
    """JSON and safetensors: opening a model of somebody else runs none of their code."""
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "model.safetensors", "tokenizer.json"]
    with safe_open(folder / "model.safetensors", "pt") as file:
        assert set(file.keys()) == set(tiny.checkpoint().model.state_dict())
        assert file.metadata() == {"format": "vizformer-1"}
    assert json.loads((folder / "config.json").read_text())["format"] == "vizformer-1"


def test_nothing_is_unpickled(folder: Path, tmp_path: Path) -> None:
    """A pickle under the name of the weights is refused, not run."""
    touched = tmp_path / "touched"

    class Bomb:
        def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
            return Path.touch, (touched,)

    torch.save({"embedding.weight": Bomb()}, folder / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"model.safetensors cannot be read"):
        load(folder)
    assert not touched.exists()


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_missing_files(folder: Path, name: str) -> None:
    (folder / name).unlink()
    said = (
        "whose config.json is missing" if name == "config.json" else f"mine lacks {name}: a model folder needs config"
    )
    with pytest.raises(CheckpointError, match=said):
        load(folder)


@pytest.mark.parametrize("source", ["nothing-here", "", " ", "..", "a\x00b", "x" * 5000, "/nowhere/at/all"])
def test_no_such_model(source: str) -> None:
    with pytest.raises(CheckpointError):
        load(source)
    way_out = r"Give the path of a folder, the name of a hub's model \(owner/name\), or one of: "
    with pytest.raises(CheckpointError, match=rf"no model 'nothing-here'. {way_out}"):
        load("nothing-here")


@pytest.mark.parametrize("cut", [0, 7, 100, -10, None])
def test_truncated_or_padded_weights(folder: Path, cut: int | None) -> None:
    path = folder / "model.safetensors"
    content = path.read_bytes()
    path.write_bytes(content + b"more" if cut is None else content[:cut])
    with pytest.raises(CheckpointError, match=r"model.safetensors cannot be read \(.+\). It is damaged or incomplete"):
        load(folder)


def rewrite(folder: Path, change: Callable[[dict[str, torch.Tensor]], None]) -> None:
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors")


def test_weights_of_another_model(folder: Path) -> None:
    rewrite(folder, lambda weights: weights.update({"embedding.weight": torch.zeros(5, 16)}))
    with pytest.raises(CheckpointError, match=r"does not fit config.json: 1 tensors differ.*'embedding.weight'"):
        load(folder)


def test_weights_that_are_missing_or_too_many(folder: Path) -> None:
    def change(weights: dict[str, torch.Tensor]) -> None:
        del weights["decoder.layers.0.self_norm.bias"]
        weights["decoder.layers.0.extra"] = torch.zeros(1)

    rewrite(folder, change)
    with pytest.raises(CheckpointError, match=r"2 tensors differ, the first is 'decoder.layers.0.extra'"):
        load(folder)


def write_config(folder: Path, **changes: Any) -> None:
    options = json.loads((folder / "config.json").read_text())
    options["model"].update(changes)
    (folder / "config.json").write_text(json.dumps(options))


def test_a_tokenizer_larger_than_the_vocabulary(folder: Path) -> None:
    size = tiny.tokenizer().vocab_size
    write_config(folder, vocab_size=size - 1)
    with pytest.raises(CheckpointError, match=rf"tokenizer.json has {size} tokens .* vocab_size={size - 1}: they"):
        load(folder)


def test_a_vocabulary_with_room_to_spare(tmp_path: Path) -> None:
    """Embedding tables are often rounded up; the tokenizer is then the smaller one."""
    save(tiny.checkpoint(vocab_size=tiny.tokenizer().vocab_size + 5), tmp_path)
    assert load(tmp_path).trace("猫", target="cat").logits.shape[1] == tiny.tokenizer().vocab_size + 5


HUGE_NUMBER = '{"format": "vizformer-1", "model": {"d_ff": ' + "9" * 5000 + "}}"
NOT_JSON = ["", "\x00", "{", "[" * 100_000, '{"a":' * 100_000, "1e999x", HUGE_NUMBER]


@pytest.mark.parametrize("content", NOT_JSON, ids=lambda content: ascii(content[:12]))
def test_a_config_that_is_not_json(folder: Path, content: str) -> None:
    (folder / "config.json").write_text(content)
    with pytest.raises(CheckpointError, match=r"config.json is not JSON \(.+\). Copy it again"):
        load(folder)


def test_a_config_that_is_not_text(folder: Path) -> None:
    (folder / "config.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CheckpointError, match=r"config.json is not JSON"):
        load(folder)


SOMETHING_ELSE = [
    "null",
    "[]",
    "3",
    '"vizformer-1"',
    "{}",
    '{"format": "vizformer-1"}',
    '{"format": "vizformer-1", "model": []}',
    '{"format": "other", "model": {}}',
]


@pytest.mark.parametrize("content", SOMETHING_ELSE)
def test_a_config_of_something_else(folder: Path, content: str) -> None:
    (folder / "config.json").write_text(content)
    with pytest.raises(
        CheckpointError,
        match=r"does not say format 'vizformer-1'|or says something else",
    ):
        load(folder)


def test_options_that_are_unknown(folder: Path) -> None:
    write_config(folder, n_brains=8)
    with pytest.raises(ConfigError, match=r"Unknown option 'n_brains'. Known options are: "):
        load(folder)


def test_options_of_the_wrong_type(folder: Path) -> None:
    write_config(folder, d_model="16", bias=None)
    with pytest.raises(ConfigError, match=r"d_model='16': must be int; bias=None: must be bool"):
        load(folder)


TOO_LARGE = [
    dict(vocab_size=10**30),
    dict(d_ff=10**25),
    dict(max_positions=10**15),
    dict(vocab_size=2**62),
    dict(n_heads=1, d_model=2**40),
    dict(n_encoder_layers=10**9),
    dict(max_positions=10**30),
    dict(max_positions=10**8),
    dict(max_positions=10**8, positions="rope"),
]


@pytest.mark.parametrize("changes", TOO_LARGE, ids=str)
def test_sizes_that_no_machine_holds(folder: Path, changes: dict[str, int]) -> None:
    write_config(folder, **changes)
    with pytest.raises(VizformerError):
        load(folder)


def test_a_tokenizer_that_is_none(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"tokenizer.json cannot be used as a tokenizer"):
        load(folder)


def test_every_bundled_model_opens() -> None:
    for name in bundled_models():
        checkpoint = load(name)
        assert checkpoint.name == name
        assert checkpoint.trace("我有一只猫。").logits.isfinite().all()
