"""The boxes of the drawing: every parameter in exactly one, every shape the one that the model really has."""

from typing import Any

import pytest
import torch
from torch import nn

from tests import tiny
from tests.bundled import load
from vizformer.analysis.costs.model_boxes import Box, architecture
from vizformer.model import Trace, Transformer

VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("encoder-decoder", {}),
    ("encoder-decoder", {"tied_unembedding": False, "positions": "learned", "final_norm": True}),
    ("encoder-decoder", tiny.T5),
    ("encoder-decoder", {"norm_order": "pre", "embedding_norm": True, "n_segments": 2}),
    ("encoder-decoder", {"norm_order": "none"}),
    ("encoder-decoder", {"residual": "none"}),
    ("decoder-only", {"norm_order": "none", "residual": "none"}),
    ("encoder-decoder", tiny.MARIAN),
    ("encoder-decoder", tiny.BART),
    ("encoder-decoder", tiny.T5_1),
    ("encoder-decoder", {"source_vocab_size": 50}),
    ("encoder-decoder", {"source_vocab_size": 29, "tied_unembedding": False}),
    ("decoder-only", tiny.LLAMA),
    ("decoder-only", tiny.ALIBI),
    ("encoder-only", tiny.BERT),
    ("encoder-only", {"positions": "none"}),
]


def boxes(model: Transformer) -> tuple[Box, ...]:
    return architecture(model, 7, 5 if model.config.architecture == "encoder-decoder" else 0)


@pytest.mark.parametrize(("name", "options"), VARIANTS)
@pytest.mark.sample(10)
def test_every_parameter_is_in_exactly_one_box(name: str, options: dict[str, Any]) -> None:
    model = tiny.model(name, **options)
    assert sum(box.parameters for box in boxes(model)) == sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize(("options", "first"), [(tiny.BERT, "transform"), ({}, "unembedding")])
def test_what_comes_before_the_table_is_drawn_before_it(options: dict[str, Any], first: str) -> None:
    model = tiny.model("encoder-only" if options is tiny.BERT else "decoder-only", **options)
    order = [box.key for box in boxes(model) if box.section == "prediction"]
    assert order[0] == f"prediction.{first}"
    assert order[-1] == "prediction.softmax"
    assert order[order.index("prediction.unembedding") + 1 :] in (
        ["prediction.softmax"],
        ["prediction.bias", "prediction.softmax"],
    )


@pytest.mark.parametrize("name", ["zh-en", "stories", "cloze"])
def test_the_bundled_models_add_up(name: str) -> None:
    model = load(name).model
    assert sum(box.parameters for box in boxes(model)) == sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize(("name", "options"), VARIANTS)
@pytest.mark.sample(10)
def test_the_shapes_are_those_of_a_forward(name: str, options: dict[str, Any]) -> None:
    model = tiny.model(name, **options)
    seen: dict[str, tuple[int, ...]] = {}
    watched = {}
    for box in boxes(model):
        if box.module and not box.shared:
            module = eval(f"model.{box.module}")
            watched[box.key] = module
            # the path that is shown leads to the parameters that are counted
            assert box.copy == sum(p.numel() for p in module.parameters())

    def watch(key: str, module: nn.Module) -> Any:
        return module.register_forward_hook(lambda *call: seen.setdefault(key, tuple(call[2].shape[1:])) and None)

    handles = [watch(key, module) for key, module in watched.items()]
    target = tiny.ids(5) if name == "encoder-decoder" else None
    trace = Trace()
    logits = model(tiny.ids(7), target, trace=trace)
    for handle in handles:
        handle.remove()
    found = {box.key: box for box in boxes(model)}
    for key, shape in seen.items():
        if found[key].kind in (
            "attention",
            "cross",
            "feedforward",
            "norm",
            "add_norm",
            "transform",
            "embedding",
        ):
            assert found[key].output == shape, key
    assert found["prediction.softmax"].output == tuple(logits.shape[1:])
    stack = "decoder" if model.decoder is not None else "encoder"
    record = trace[f"{stack}.0.self"]
    if "decoder.rotation" in found:
        assert found["decoder.rotation"].output == tuple(record.q.shape)
    for inside in ("alibi", "relative"):
        if f"{stack}.{inside}" in found:
            assert found[f"{stack}.{inside}"].output == (model.config.n_heads, *record.pattern(0).shape)


@pytest.mark.parametrize(("name", "options"), VARIANTS)
def test_the_stream_goes_past_each_sublayer(name: str, options: dict[str, Any]) -> None:
    """A line leads past exactly one sublayer, and past its norm where that comes first."""
    found = boxes(tiny.model(name, **options))
    keys = [box.key for box in found]
    assert len(set(keys)) == len(keys)
    for box in found:
        assert (box.skip != "") == (box.kind in ("add", "add_norm"))
        if box.skip:
            passed = [b.kind for b in found[keys.index(box.skip) + 1 : keys.index(box.key)] if not b.inside]
            sublayer = [kind for kind in passed if kind != "norm"]
            assert sublayer[0] in ("attention", "cross", "feedforward")
            assert len(sublayer) == 1
            before = ["norm"] if options.get("norm_order") == "pre" else []
            assert passed == [*before, *sublayer]
        assert box.inside in ("", *keys)


def test_a_layer_is_counted_as_often_as_it_is_there() -> None:
    model = tiny.model("encoder-decoder", n_encoder_layers=3, n_decoder_layers=1)
    found = {box.key: box for box in boxes(model)}
    assert found["encoder.attention"].copies == 3
    assert found["decoder.attention"].copies == 1
    assert found["encoder.attention"].parameters == 3 * found["decoder.attention"].parameters
    assert found["decoder.embedding"].shared
    assert found["decoder.embedding"].parameters == 0
    assert found["decoder.cross"].inputs == ((5, 16), (7, 16))
    assert torch.Size(found["decoder.mask"].output) == (5, 5)
