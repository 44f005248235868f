"""The steps of a recorded model on a page: its author's lines, numbers that lead to the recorded map, sums term by term."""

import numpy as np
import pytest
import torch

import vizformer as vf
from tests.recorder.hand_written import GPT, KINDS
from vizformer.errors import TraceError
from vizformer.model import Cell, Edit


class Letters:
    def encode(self, text):
        return [ord(letter) % 29 for letter in text]

    def decode(self, ids):
        return "".join(chr(97 + id % 26) for id in ids)


@pytest.fixture(scope="module", params=["Separate", "Sdpa", "Torch"])
def read(request):
    checkpoint = vf.wrap(GPT(KINDS[request.param]), Letters())
    return checkpoint, checkpoint.trace("the cat sat")


def test_steps_lead_to_the_map_and_are_proved(read):
    checkpoint, trace = read
    steps = vf.explain.recorded_steps(checkpoint, trace, "decoder.1.self", 2, -4)
    weights = next(step for step in steps[::-1] if str(step.title).startswith("Softmax"))
    pattern = trace["decoder.1.self"].pattern(2)[-4].numpy()
    np.testing.assert_allclose(weights.result, pattern, atol=1e-6)
    assert weights.axes == ("keys",)
    assert list(weights.blocked) == [False] * 8 + [True] * 3
    z = next(step for step in steps if str(step.title).startswith("Weighted sum"))
    np.testing.assert_allclose(z.result, trace["decoder.1.self"].z(2)[-4].numpy(), atol=1e-6)
    np.testing.assert_allclose(z.contraction.total()[0], z.result, atol=1e-5)
    assert all(step.proof.holds and step.difference < 1e-5 for step in steps)
    assert len({step.key for step in steps}) == len(steps)


def test_a_step_shows_the_line_and_the_module(read):
    checkpoint, trace = read
    step = vf.explain.recorded_steps(checkpoint, trace, "decoder.0.self", 0, 3)[-1]
    assert step.code == step.written.line == "x = x + self.attn(self.ln_1(x))"
    assert "tests/recorder/hand_written.py, line " in str(step.written.where)
    assert "h.0 (Block)" in str(step.written.where)


def test_a_layer_is_a_row_on_its_way(read):
    checkpoint, trace = read
    steps = vf.explain.recorded_layer_steps(checkpoint, trace, "decoder.1", 3)
    np.testing.assert_allclose(steps[-1].result, trace.residuals["decoder.final"][3].numpy(), atol=1e-6)
    names = [str(step.title) for step in steps]
    assert "ln_2: layer_norm" in names
    assert "mlp: gelu" in names
    up = steps[names.index("mlp: linear")]
    np.testing.assert_allclose(up.contraction.total()[0], up.result, atol=1e-5)
    with pytest.raises(TraceError, match=r"decoder\.7"):
        vf.explain.recorded_layer_steps(checkpoint, trace, "decoder.7", 0)


def test_a_call_without_a_float64_kernel_says_so():
    class Half(torch.nn.Module):
        """Computes in bfloat16 alone."""

        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(16, 16)

        def forward(self, x):
            return x + Only.run(x)

    class Only:
        @staticmethod
        def run(x):
            return torch._grouped_mm(
                x[0].bfloat16(),
                torch.eye(16)[None].bfloat16(),
                offs=torch.tensor([x.shape[1]], dtype=torch.int32),
            ).float()[None]

    model = GPT()
    model.h[1].mlp = Half()
    checkpoint = vf.wrap(model, Letters())
    try:
        trace = checkpoint.trace("the cat sat on it")
    except TraceError as error:
        pytest.skip(f"this build of torch has no grouped product here: {error}")
    steps = vf.explain.recorded_layer_steps(checkpoint, trace, "decoder.1", 3)
    grouped = next(step for step in steps if "grouped_mm" in str(step.title))
    assert "Not computed again in float64" in str(grouped.written.unproved)


def test_numbers_set_by_hand_take_effect_at_z(read):
    checkpoint, plain = read
    edit = Edit(cells=(Cell("decoder.0.self.q", (1, 3, 0), 9.0),))
    trace = checkpoint.trace("the cat sat", edit=edit)
    steps = vf.explain.recorded_steps(checkpoint, trace, "decoder.0.self", 1, 3)
    z = next(step for step in steps if str(step.title).startswith("Weighted sum"))
    np.testing.assert_allclose(z.result, trace["decoder.0.self"].z(1)[3].numpy(), atol=1e-5)
    assert np.abs(z.result - plain["decoder.0.self"].z(1)[3].numpy()).max() > 1e-3
    assert z.edited
    assert "take effect" in str(z.written.unproved)
    assert all(step.proof.holds for step in steps if not step.edited)
