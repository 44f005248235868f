"""Five models by somebody who has not seen the recorder: each call is what the model computed, or it is named."""

import importlib
from functools import cache

import pytest
import torch
from torch.testing import assert_close

import vizformer as vf
from vizformer.errors import TraceError
from vizformer.recorder import check

SITES = {"cls_attn": "cls_attn.mha", "block1.att": "block1.att.heads"}  # where a truth has another name than the module

SAID = {
    1: [],
    2: [],
    3: [f"stage1.{block}.attn has 16 queries for 96 tokens: they are not its tokens one by one" for block in (0, 1)],
    4: [
        "z at blocks.3.core is scaled by numbers made of its own scores: the weights are shares of what is drawn",
    ],
    5: ["a softmax at attention was followed by no product with values that is known"],
}
NAMED = {4: {"blocks.3.core"}, 5: {"attention"}}  # the sites of these sentences whose weights are not in the recording
CHECKED = {1: (True, True, True), 2: (True, True, True)} | dict.fromkeys((3, 4, 5), (True, False, False))
ALSO_SAID = {
    3: [
        "at row, col, cls_attn.mha attention lies outside of the repeated blocks: whether tokens mix elsewhere there was "
        "not tested",
        "at stage1.0.attn, stage1.1.attn, row, col, cls_attn.mha the rows of queries, keys or values do not match the "
        "tokens of the block one to one: whether they contain other tokens was not tested",
    ],
    4: [
        "at blocks.3.core the rows of queries, keys or values do not match the tokens of "
        "the block one to one: whether they contain other tokens was not tested"
    ],
    5: ["no repeated blocks were found: whether tokens mix elsewhere was not tested"],
}


@cache
def recorded(number):
    model, args, kwargs, truth = importlib.import_module(f"tests.recorder.strangers.model_{number}").build()
    return vf.record(model, *args, **kwargs), truth


def joined(parts, n_k):
    """Maps [h, n_q, n_k] of queries that were read in pieces, each with as many keys as it needed."""
    return torch.cat([torch.nn.functional.pad(one, (0, n_k - one.shape[-1])) for one in parts], 1)


@pytest.mark.parametrize("number", SAID)
def test_each_call_is_the_truth_or_named(number):
    trace, truth = recorded(number)
    assert [str(said) for said in trace.escaped] == SAID[number]
    assert_close(trace.output, truth["result"], rtol=0, atol=0)
    names = dict.fromkeys(call["name"] for call in truth["calls"])
    for name in names.keys() - NAMED.get(number, set()):
        calls = [call for call in truth["calls"] if call["name"] == name]
        runs = [trace.of_item(item).runs(SITES.get(name, name)) for item in range(trace.calls[0].batch)]
        for at, call in enumerate(calls):
            n_k = call["weights"].shape[-1]
            for item, own in enumerate(runs):
                mine = own if len(calls) == 1 else own[at : at + 1]
                heads = range(mine[0].n_heads)
                weights, z = (
                    call[part].unflatten(0, (len(runs), -1))[item].flatten(0, 1) for part in ("weights", "output")
                )
                close = {"rtol": 0, "atol": 1e-5} if z.dtype == torch.float32 else {"rtol": 0, "atol": 0}
                assert_close(joined([one.maps() for one in mine], n_k), weights, check_dtype=False, **close)
                assert_close(torch.cat([torch.stack([one.z(head) for head in heads]) for one in mine], 1), z, **close)
                for head in heads:
                    alone = joined([one.pattern(head)[None] for one in mine], n_k)[0]
                    assert_close(alone, weights[head], check_dtype=False, **close)
    assert len(trace.sites) == len(names) - (number == 5)


@pytest.mark.parametrize("number", SAID)
def test_the_three_checks_say_what_was_found(number):
    model, args, kwargs, _ = importlib.import_module(f"tests.recorder.strangers.model_{number}").build()
    found = check(model, *args, **kwargs)
    assert (found.exact, found.whole, found.tokenwise) == CHECKED[number]
    assert [str(said) for said in found.said] == SAID[number] + ALSO_SAID.get(number, [])


def test_heads_are_drawn_that_the_pictures_can_show_and_no_others():
    assert len(recorded(1)[0].as_trace().sites) == 6
    assert recorded(5)[0].as_trace().sites == ("encoder.0.self", "encoder.1.self")
    assert not recorded(5)[0].streams  # heads side by side are no blocks
    said = {
        2: "other tokens than the layers before it",
        3: "other tokens than the layers before it",
        4: "no attention weights",
    }
    for number, match in said.items():
        with pytest.raises(TraceError, match=match):
            recorded(number)[0].as_trace()
    assert recorded(4)[0]["blocks.1.core"].record is None  # signed weights are no attention weights
