"""A recorded model computes where it lies, and what is made beside it is made there."""

from typing import Any

import pytest
import torch
from torch import nn

import vizformer as vf
from tests import pretend_device, recorded_models
from vizformer import analysis
from vizformer.analysis.causes.ablation import Part, sweep
from vizformer.analysis.corpus_heads.corpus import Corpus
from vizformer.analysis.corpus_heads.running import measure_group
from vizformer.checkpoints import RecordedCheckpoint

TEXT, TARGET = "The dog was tired", "A cat"


def everything(made: RecordedCheckpoint) -> list[Any]:
    both = made.shape.architecture == "encoder-decoder"
    given = {"target": TARGET} if both else {}
    trace = made.trace(TEXT, **given)
    found: list[Any] = [trace.logits, *(trace[site].pattern(1) for site in trace.sites), *trace.residuals.values()]
    site = trace.sites[-1]
    row, best = len(trace.logits) - 1, int(trace.logits[-1].argmax())
    effects = sweep(made, trace, row, best, parts=[Part(site, 0), Part(site, 1)])
    found.append(torch.tensor([one.divergence for one in effects]))
    found.append(torch.tensor([one.probability for one in analysis.next_tokens(made, trace, row)]))
    run = made.again(trace)
    matrices = run.head_weights(run.sites[-1])
    found += [one.weight for one in (matrices.q, matrices.k, matrices.v) if one is not None]
    found += [] if matrices.W_O is None else [matrices.W_O]
    if made.shape.decoder_heads:
        found.append(torch.tensor(made.generate(TEXT, max_new=3).ids))
    texts = Corpus.of([f"{TEXT}\t{TARGET}", "A bird sings in the tree.\tA bird"]).passages
    group = measure_group(made, texts, 0)
    assert group is not None
    found += [torch.from_numpy(sums.total) for sums in group.sums.values()]
    return found


@pytest.mark.parametrize("kind", ["decoder", "encoder", "translator"])
def test_every_tensor_is_made_where_the_module_lies(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, tokenizer = getattr(recorded_models, kind)()
    expected = everything(vf.wrap(module, tokenizer))
    with pretend_device.device() as device:
        for one in module.modules():
            for name, parameter in one._parameters.items():
                if parameter is not None:
                    one._parameters[name] = nn.Parameter(parameter.detach().to(device), requires_grad=False)
            for name, buffer in one._buffers.items():
                if buffer is not None:
                    one._buffers[name] = buffer.to(device)
        made = vf.wrap(module, tokenizer)
        assert made.device == device
        found = [x.cpu() for x in everything(made)]
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other.cpu(), rtol=1e-5, atol=1e-6)
