"""The toy's layer as a program: it runs after every line, and ends in a comparison that holds."""

from typing import Any

import numpy as np

from vizformer.explain import layer_steps, standalone, toy
from vizformer.explain.toy_model import toy_difference, toy_program


def pasted(lines: int) -> tuple[str, dict[str, Any]]:
    code, given = toy_program(lines)
    found, names = standalone(code, given), dict[str, Any]()
    assert found.exact  # every number is written out
    exec(found.text(), names)
    return code, names


def test_after_every_line_the_result_is_the_steps() -> None:
    run = toy()
    steps = layer_steps(run.checkpoint, run.trace, "encoder.0")
    for index, step in enumerate(steps):
        __, names = pasted(index + 1)
        np.testing.assert_allclose(names[step.variable].detach().numpy(), step.result, rtol=1e-4, atol=1e-4)


def test_the_whole_program_ends_in_allclose() -> None:
    run = toy()
    code, names = pasted(len(layer_steps(run.checkpoint, run.trace, "encoder.0")))
    assert code.endswith("same = torch.allclose(x, expected, atol=1e-5)")
    assert names["same"] is True
    np.testing.assert_allclose(names["expected"].detach().numpy(), run.encoder_output.numpy(), atol=1e-5)
    assert toy_difference() < 1e-6
    exec(code.rpartition("layer = ")[0].replace("/ math.sqrt(2)", ""), names)  # a line of it forgotten
    assert not np.allclose(names["x"].detach().numpy(), run.encoder_output.numpy(), atol=1e-3)
