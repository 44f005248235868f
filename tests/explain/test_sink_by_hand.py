"""A row of scores beside a sink: as a head with a sink computes it, and where nothing is wanted."""

from dataclasses import replace

import numpy as np
import torch

from tests import tiny
from vizformer.explain.mixers_by_hand import sink_row


def test_the_weights_are_those_of_a_head_with_that_sink() -> None:
    checkpoint = tiny.checkpoint("decoder-only", **tiny.LLAMA)
    record = checkpoint.trace("I have two cats")["decoder.1.self"]
    with_sink = replace(record, scoring=replace(record.scoring, sinks=torch.full((record.n_heads,), 0.7)))
    found = sink_row(record, 2, 3, 0.0, 0.7)
    np.testing.assert_allclose(found.weights, with_sink.pattern(2)[3].numpy(), atol=1e-6)
    np.testing.assert_allclose(found.plain, record.pattern(2)[3].numpy(), atol=1e-6)
    np.testing.assert_allclose(found.length, with_sink.z(2)[3].norm(), rtol=1e-5)


def test_low_scores_are_felt_with_a_sink_alone() -> None:
    record = tiny.checkpoint("decoder-only", **tiny.LLAMA).trace("I have two cats")["decoder.0.self"]
    high, low = sink_row(record, 0, 3, 0.0, 0.0), sink_row(record, 0, 3, 10.0, 0.0)
    np.testing.assert_allclose(high.plain, low.plain)
    assert low.share > 0.99 > high.share
    assert low.length < 0.01 * low.plain_length
