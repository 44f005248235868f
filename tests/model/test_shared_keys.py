"""Layers that read the keys and values of an earlier one: what they read, what a hand changes there, what is refused."""

from typing import Any

import pytest
import torch

from tests import tiny
from vizformer.analysis.causes.model_graph import ModelGraph
from vizformer.analysis.heads.qk_circuit import bilinear
from vizformer.errors import ConfigError, TraceError
from vizformer.explain import attention_steps, layer_steps
from vizformer.model import Cell, Edit
from vizformer.model.trace_file import open_trace


@pytest.fixture(scope="module")
def checkpoint() -> Any:
    return tiny.checkpoint("decoder-only", **tiny.SHARED_KEYS)


def test_they_read_what_was_made_there(checkpoint: Any, tmp_path: Any) -> None:
    trace = checkpoint.trace("I have a cat.")
    for layer, of in enumerate(tiny.SHARED_KEYS["kv_layers"]):
        reads, made = trace[f"decoder.{layer}.self"], trace[f"decoder.{of}.self"]
        assert torch.equal(reads.k, made.k)
        assert torch.equal(reads.v, made.v)
    assert not torch.equal(trace["decoder.0.self"].k, trace["decoder.1.self"].k)
    names = dict(checkpoint.model.named_parameters())
    assert not any(
        f"layers.{layer}.self_attention.{part}" in name
        for layer in (2, 3)
        for part in ("W_K", "W_V", "k_norm")
        for name in names
    )
    trace.save(tmp_path / "trace.safetensors")
    again = open_trace(tmp_path / "trace.safetensors")
    assert torch.equal(again["decoder.3.self"].pattern(1), trace["decoder.3.self"].pattern(1))


@pytest.mark.parametrize(("at", "seen"), [("decoder.0.self", (0, 2)), ("decoder.2.self", (2,))])
@pytest.mark.parametrize("part", ["k", "v"])
def test_a_number_set_by_hand_is_read_by_all_that_read_the_layer(
    checkpoint: Any, at: str, seen: tuple[int, ...], part: str
) -> None:
    plain = checkpoint.trace("I have a cat.")
    trace = checkpoint.trace("I have a cat.", edit=Edit(cells=(Cell(f"{at}.{part}", (0, 1, 2), 5.0),)))
    for layer in range(4):
        record = trace[f"decoder.{layer}.self"]
        assert (float(getattr(record, part)[0, 1, 2]) == 5.0) == (layer in seen)
        site = f"decoder.{layer}.self"
        steps = [*attention_steps(checkpoint, trace, site, 0, -1), *layer_steps(checkpoint, trace, f"decoder.{layer}")]
        assert all(step.proof.holds for step in steps)
        assert any(step.edited for step in steps) == (layer in seen)
    assert not torch.equal(plain.logits, trace.logits)


def test_the_steps_say_whose_keys_they_are(checkpoint: Any) -> None:
    trace = checkpoint.trace("I have a cat.")
    said = {step.key: str(step.text) for step in attention_steps(checkpoint, trace, "decoder.3.self", 0, -1)}
    assert "it reads those of decoder layer 1" in said["k"]
    titles = {step.key: str(step.title) for step in layer_steps(checkpoint, trace, "decoder.3")}
    assert titles["self.k"] == "Keys of decoder layer 1"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"kv_layers": (0, 1, 0)}, "an entry for each of the 4 layers"),
        ({"kv_layers": (0, 1, 3, 1)}, "an earlier one that makes its own"),
        ({"kv_layers": (0, 0, 1, 1)}, "an earlier one that makes its own"),
        ({"kv_layers": (0, 1, -1, 1)}, "an earlier one that makes its own"),
        ({"kv_layers": (0, 1, 2, 3)}, "leave it out where all do"),
        ({"sliding_window": 3, "sliding_layers": (0,)}, "alike in sliding_layers"),
        ({"rope_layers": (1, 2, 3)}, "turn alike"),
    ],
)
def test_what_does_not_fit_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        tiny.config("decoder-only", **{**tiny.SHARED_KEYS, **options})


def test_what_is_asked_of_one_layer_alone_is_refused_in_words(checkpoint: Any) -> None:
    trace = checkpoint.trace("I have a cat.")
    assert bilinear(checkpoint, trace, "decoder.1.self", 0).rank > 0
    with pytest.raises(TraceError, match=r"decoder\.3\.self reads the keys and values of layer 1"):
        bilinear(checkpoint, trace, "decoder.3.self", 0)
    with pytest.raises(TraceError, match="of its layers read the keys and values of earlier ones"):
        ModelGraph(checkpoint)
