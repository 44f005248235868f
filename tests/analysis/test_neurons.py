"""Neurons: which fire, how many are silent, what raises each of them most."""

import numpy as np
import pytest

from tests import tiny
from vizformer.analysis.vectors import neurons

TEXTS = [(text, None) for text in tiny.TEXTS[:4]]


@pytest.mark.parametrize("options", [{}, tiny.LLAMA], ids=["plain", "gated"])
def test_the_neurons_that_add_most_come_first(options: dict[str, object]) -> None:
    checkpoint = tiny.checkpoint("decoder-only", **options)
    trace = checkpoint.trace("I have a cat.")
    found = neurons.firing(checkpoint, trace, "decoder", 1, 2, count=4)
    network = checkpoint.model.decoder.layers[1].feedforward
    inner = neurons.layer_numbers(checkpoint, trace, "decoder", 1).inner[2]
    written = [float(np.linalg.norm(a * network.W_out.weight[:, m].double().numpy())) for m, a in enumerate(inner)]
    assert found.written == pytest.approx(sorted(written, reverse=True)[:4])
    assert [written[m] for m in found.neurons] == pytest.approx(found.written)
    assert found.given["W_2"].shape == (len(inner), network.W_out.out_features)


def test_silent_neurons_are_counted_in_every_layer() -> None:
    checkpoint = tiny.checkpoint("encoder-decoder")
    trace = checkpoint.trace("我有一只猫。")
    shares = neurons.silent_by_layer(checkpoint, trace, "encoder")
    for layer, share in enumerate(shares):
        active = neurons.layer_numbers(checkpoint, trace, "encoder", layer).active
        assert share == pytest.approx((active == 0).mean())  # this model has ReLU
    assert len(shares) == 2


def test_what_raises_a_neuron_is_found_by_looking_everywhere() -> None:
    checkpoint = tiny.checkpoint("decoder-only")
    found = neurons.raised_most(checkpoint, TEXTS, "decoder")
    every = []
    for index, (text, __) in enumerate(TEXTS):
        trace = checkpoint.trace(text)
        inner = neurons.layer_numbers(checkpoint, trace, "decoder", 1).inner
        every += [
            (float(inner[position, 3]), (index, position))
            for position, token in enumerate(trace.tokens["decoder"])
            if not token.special
        ]
    expected = sorted(every, key=lambda pair: -pair[0])[: neurons.MOST]
    assert [value for value, __ in found.of(1, 3)] == pytest.approx([value for value, __ in expected])
    value, place = found.of(1, 3)[0]
    assert value > 0
    assert (place.text, place.position) == expected[0][1]
    assert (
        found.tokens[place.text][place.position]
        == checkpoint.trace(TEXTS[place.text][0]).tokens["decoder"][place.position].text
    )
