"""What is inside the boxes of the picture: a vector leads to the next by what is written, and the last is the model's."""

import re

import numpy as np
import pytest

from tests.bundled import load
from tests.explain.variants import VARIANTS, traced
from vizformer.analysis.one_forward.box_numbers import BOXES, numbers_of_box
from vizformer.analysis.one_forward.picture_numbers import CELLS
from vizformer.errors import TraceError


@pytest.mark.parametrize("name", VARIANTS)
def test_every_box_of_every_kind_of_model_is_proved(name):
    checkpoint, trace, __ = traced(*VARIANTS[name])
    for stack, tokens in trace.tokens.items():
        kinds = [stack, "cross"] if stack == "decoder" and "encoder" in trace.tokens else [stack]
        for kind in kinds:
            for box in BOXES:
                if box == "output" and stack != list(trace.tokens)[-1]:
                    continue
                found = numbers_of_box(checkpoint, trace, box, kind, 1, len(tokens) - 1)
                assert all(np.isfinite(one.values).all() for one in found.vectors), (kind, box)
                for one in found.vectors:
                    assert len(one.written) in (0, min(CELLS, len(one.values) - one.first))
                    for i, line in enumerate(one.written):
                        said = float(line.rpartition(" = ")[2].replace("−", "-"))
                        assert said == pytest.approx(one.values[one.first + i], abs=1e-4)
                assert found.proof is not None, (kind, box)
                assert found.proof.holds, (kind, box, found.proof)


def test_the_numbers_are_the_models_own():
    checkpoint = load("zh-en")
    trace = checkpoint.trace("我有一只猫。")
    norm = numbers_of_box(checkpoint, trace, "norm", "cross", 1, 3)
    enters, attended, total, normed = (one.values for one in norm.vectors)
    np.testing.assert_array_equal(enters, trace.residual("decoder.1.mid_self")[3].numpy())
    np.testing.assert_allclose(enters + attended, total)
    np.testing.assert_allclose(normed, trace.residual("decoder.1.mid_cross")[3].numpy(), atol=1e-5)
    last = numbers_of_box(checkpoint, trace, "last_norm", "encoder", 2, 0).vectors[-1].values
    np.testing.assert_allclose(last, trace.residual("encoder.2.post")[0].numpy(), atol=1e-5)
    output = numbers_of_box(checkpoint, trace, "output", "decoder", 0, 3)
    logits, probabilities = output.vectors[-2:]
    assert probabilities.names[0] == "cat"
    p = trace.logits[3].double().softmax(0)
    np.testing.assert_allclose(probabilities.values, np.sort(p.numpy())[::-1][:5], atol=1e-6)
    np.testing.assert_allclose(logits.values, np.sort(trace.logits[3].numpy())[::-1][:5], atol=1e-5)


def test_what_is_written_can_be_worked_out():
    checkpoint = load("zh-en")
    trace = checkpoint.trace("我有一只猫。")
    for box, names in (("norm", ["sum", "normed"]), ("positions", ["position", "together"]), ("embedding", ["scaled"])):
        vectors = {one.name: one for one in numbers_of_box(checkpoint, trace, box, "decoder", 0, 2).vectors}
        for name in names:
            for line in vectors[name].written:
                left, right = line.replace("−", "-").replace("×", "*").replace("^", "**").split(" = ")
                left = re.sub(r"10⁻⁵", "0.00001", left).replace("√", "np.sqrt").replace("sin", "np.sin")
                left = left.replace("cos", "np.cos")
                assert eval(left, {"np": np}) == pytest.approx(float(right), abs=2e-3), line


def test_a_neuron_that_is_at_work_is_shown():
    checkpoint = load("zh-en")
    trace = checkpoint.trace("我有一只猫。")
    found = numbers_of_box(checkpoint, trace, "feedforward", "decoder", 1, 3)
    hidden, active = found.vectors[1:3]
    assert active.values.argmax() == active.first + found.look
    assert hidden.first == active.first
    assert active.values[active.first + found.look] > 0


def test_what_is_not_there_is_refused():
    checkpoint = load("zh-en")
    trace = checkpoint.trace("我有一只猫。")
    for where in (("norm", "encoder", 3, 0), ("feedforward", "decoder", 0, 99), ("embedding", "decoder", 0, 6)):
        with pytest.raises(TraceError):
            numbers_of_box(checkpoint, trace, *where)
