"""A row of scores beside a sink: as the softmax with one more logit, and where nothing is wanted."""

import numpy as np
import torch

from tests import tiny
from vizformer.explain.mixers_by_hand import sink_row


def test_the_weights_are_those_of_one_more_logit_without_a_value() -> None:
    checkpoint = tiny.checkpoint("decoder-only", **tiny.LLAMA)
    record = checkpoint.trace("I have two cats")["decoder.1.self"]
    found = sink_row(record, 2, 3, 0.5, 0.7)
    logits = record.scores(2)[3].double() - 0.5
    logits = torch.cat([logits.masked_fill(record.reason(2)[3] > 0, -torch.inf), torch.tensor([0.7]).double()])
    *weights, share = torch.softmax(logits, dim=-1)
    np.testing.assert_allclose(found.weights, torch.stack(weights).numpy(), atol=1e-6)
    np.testing.assert_allclose(found.share, share, atol=1e-6)
    np.testing.assert_allclose(found.plain, record.pattern(2)[3].numpy(), atol=1e-6)
    length = (torch.stack(weights) @ record.v[record.kv_head(2)].double()).norm()
    np.testing.assert_allclose(found.length, length, rtol=1e-5)


def test_low_scores_are_felt_with_a_sink_alone() -> None:
    record = tiny.checkpoint("decoder-only", **tiny.LLAMA).trace("I have two cats")["decoder.0.self"]
    high, low = sink_row(record, 0, 3, 0.0, 0.0), sink_row(record, 0, 3, 10.0, 0.0)
    np.testing.assert_allclose(high.plain, low.plain)
    assert low.share > 0.99 > high.share
    assert low.length < 0.01 * low.plain_length
