"""The first step at which somebody's numbers depart from a trace."""

import numpy as np
import pytest
import torch

from tests.bundled import load
from vizformer.analysis.other_programs import first_departure as steps
from vizformer.analysis.other_programs import known_mistakes
from vizformer.analysis.other_programs.known_mistakes import hints
from vizformer.errors import TraceError
from vizformer.model.positions import sinusoidal_encoding

TEXTS = {"zh-en": "他喜欢喝水。", "stories": "The cat sat on the chair.", "cloze": "She opened the door."}


@pytest.fixture(scope="module", params=TEXTS)
def read(request):
    checkpoint = load(request.param)
    return checkpoint, checkpoint.trace(TEXTS[request.param])


@pytest.mark.slow
def test_every_step_has_a_name_and_agrees_with_itself(read):
    checkpoint, trace = read
    offered = steps.named(checkpoint, trace)
    assert len({step.name for step in offered}) == len(offered) > 40
    once = steps.steps_of(checkpoint, trace)
    right = {step.name: steps.expected(checkpoint, trace, step.name, once) for step in offered}
    assert {step.name: step.shape for step in offered} == {name: value.shape for name, value in right.items()}
    found = steps.compare(checkpoint, trace, right)
    assert [step.name for step in found.steps] == [step.name for step in offered]  # in the order of a forward
    assert found.first is None
    assert not found.unknown
    assert max(step.difference for step in found.steps) == 0


def test_the_first_that_departs_is_found_whatever_comes_after(read):
    checkpoint, trace = read
    names = [step.name for step in steps.named(checkpoint, trace)]
    given = {name: steps.expected(checkpoint, trace, name) for name in (names[3], names[9], names[-1])}
    given[names[9]] = given[names[9]] + 0.01
    given[names[-1]] = -given[names[-1]]
    found = steps.compare(checkpoint, trace, given)
    assert found.first is not None
    assert found.first.name == names[9]
    assert found.agreed == (names[3],)
    assert found.first.difference == pytest.approx(0.01, rel=1e-6)
    assert steps.compare(checkpoint, trace, given, 0.02).first.name == names[-1]


def test_batches_blocked_cells_and_names_that_are_not_known():
    checkpoint = load("zh-en")
    trace = checkpoint.trace(TEXTS["zh-en"])
    name = "decoder.0.self.mask"
    right = steps.expected(checkpoint, trace, name)
    assert np.isneginf(right).any()
    given = {
        name: np.where(np.isneginf(right), -1e9, right)[None],
        "mine": np.zeros(2),
        "encoder.9.self.z": np.zeros(2),
    }
    for low in (-1e8, -3e38):  # what blocks as well
        assert steps.compare(checkpoint, trace, {name: np.where(np.isneginf(right), low, right)}).first is None
    assert steps.compare(checkpoint, trace, {name: np.where(np.isneginf(right), -9e7, right)}).first is not None
    found = steps.compare(checkpoint, trace, given)
    assert found.first is None
    assert found.unknown == ("mine", "encoder.9.self.z")


def test_another_shape_and_numbers_that_are_none():
    checkpoint = load("zh-en")
    trace = checkpoint.trace(TEXTS["zh-en"])
    right = steps.expected(checkpoint, trace, "encoder.0.self.z")
    (found,) = steps.compare(checkpoint, trace, {"encoder.0.self.z": right[:, :2]}).steps
    assert (found.problem, found.departs) == ("shape", True)
    broken = right.copy()
    broken[0, 0, 0] = np.nan
    (found,) = steps.compare(checkpoint, trace, {"encoder.0.self.z": broken}).steps
    assert (found.problem, found.departs) == ("nan", True)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda x: 3 * x, "Every number is 3 times"),
        (lambda x: x.T, "the last two axes exchanged"),
        (lambda x: x[::-1], "in another order"),
        (lambda x: x.reshape(-1), "in another shape"),
    ],
)
@pytest.mark.sample(1)
def test_what_can_be_said_without_knowing_how_the_numbers_were_made(change, words):
    checkpoint = load("zh-en")
    trace = checkpoint.trace(TEXTS["zh-en"])
    name = "encoder.1.feedforward.hidden"
    wrong = change(steps.expected(checkpoint, trace, name))
    said = hints(checkpoint, trace, name, wrong, (), 1e-4)
    assert any(words in str(hint) for hint in said), said


def test_of_a_single_number_no_factor_is_named():
    for right in (np.array(2.0), np.array([2.0]), np.array([[0.0, 2.0]])):
        assert known_mistakes.general(np.asarray(3 * right), right, 1e-4) == ()
    pair = np.array([1.0, 2.0])
    assert "3 times" in str(known_mistakes.general(3 * pair, pair, 1e-4)[0])


def test_a_turned_matrix_and_another_norm_are_recognised():
    checkpoint = load("zh-en")
    trace = checkpoint.trace(TEXTS["zh-en"])
    block = checkpoint.model.encoder.layers[0]
    joined = steps.expected(checkpoint, trace, "encoder.0.self.concat")
    W, b = (block.self_attention.W_O.weight.double().numpy(), block.self_attention.W_O.bias.double().numpy())
    np.testing.assert_allclose(steps.expected(checkpoint, trace, "encoder.0.self.out"), joined @ W.T + b, atol=1e-5)
    said = hints(checkpoint, trace, "encoder.0.self.out", joined @ W + b, (), 1e-4)
    assert any("W is transposed" in str(hint) for hint in said), said
    summed = torch.from_numpy(steps.expected(checkpoint, trace, "encoder.0.self.add"))
    norm = block.self_norm
    deviation = (summed.var(-1, keepdim=True) + norm.eps).sqrt()
    wrong = (summed - summed.mean(-1, keepdim=True)) / deviation * norm.weight.double() + norm.bias.double()
    said = hints(checkpoint, trace, "encoder.0.self.norm", wrong.numpy(), (), 1e-4)
    assert any("deviation with n − 1" in str(hint) for hint in said), said


def layer_norm(x, norm, eps):
    scaled = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps)
    return scaled * norm.weight.numpy() + norm.bias.numpy()


@pytest.mark.parametrize("eps", [1.0, 1e-3])
def test_an_eps_that_is_far_off_is_recognised_and_the_right_one_is_told(eps):
    checkpoint = load("zh-en")
    trace = checkpoint.trace(TEXTS["zh-en"])
    norm = checkpoint.model.encoder.layers[0].self_norm
    summed = steps.expected(checkpoint, trace, "encoder.0.self.add")
    name = "encoder.0.self.norm"
    np.testing.assert_allclose(steps.expected(checkpoint, trace, name), layer_norm(summed, norm, 1e-5), atol=1e-5)
    (said,) = hints(checkpoint, trace, name, layer_norm(summed, norm, eps), (), 1e-4)
    assert f"ε is {eps:g}; here it is 1e-05" in str(said)


@pytest.mark.parametrize(("layer", "kind"), [("encoder.1", "feedforward"), ("decoder.0", "cross")])
def test_a_residual_from_the_input_of_the_layer_is_recognised(layer, kind):
    checkpoint = load("zh-en")
    trace = checkpoint.trace(TEXTS["zh-en"])
    stack, number = layer.split(".")
    norm = getattr(getattr(checkpoint.model, stack).layers[int(number)], f"{kind}_norm")
    out = steps.expected(checkpoint, trace, f"{layer}.{kind}.{'out' if kind == 'cross' else 'narrow'}")
    wrong = trace.residual(f"{layer}.pre").double().numpy() + out
    (said,) = hints(checkpoint, trace, f"{layer}.{kind}.add", wrong, (), 1e-4)
    assert str(said).startswith("The residual connection comes from the layer's input")
    (said,) = hints(checkpoint, trace, f"{layer}.{kind}.norm", layer_norm(wrong, norm, 1e-5), (), 1e-4)
    assert str(said).startswith(f"{layer}.{kind}.add: The residual connection comes from the layer's input")


def test_a_part_that_is_missing_is_recognised():
    checkpoint = load("zh-en")
    trace = checkpoint.trace(TEXTS["zh-en"])
    joined = steps.expected(checkpoint, trace, "encoder.0.self.concat")
    said = hints(checkpoint, trace, "encoder.0.self.out", joined, (), 1e-4)
    assert any("The output matrix W_O is missing" in str(hint) for hint in said), said
    x = trace.residual("decoder.0.mid_self")
    without = x + checkpoint.model.decoder.layers[0].feedforward(x)
    said = hints(checkpoint, trace, "decoder.0.feedforward.add", without.double().numpy(), (), 1e-4)
    assert any("decoder.0.cross.norm: This sublayer is left out" in str(hint) for hint in said), said


@pytest.mark.parametrize("change", ["counted from 1", "another order"])
def test_wrong_positions_are_recognised(change):
    checkpoint = load("zh-en")
    trace = checkpoint.trace(TEXTS["zh-en"])
    model, tokens = checkpoint.model, trace.tokens["encoder"]
    rows = model.embedding.weight[[token.id for token in tokens]].double() * model.config.d_model**0.5
    n, d = rows.shape
    right = steps.expected(checkpoint, trace, "encoder.0.input")
    np.testing.assert_allclose(right, rows + model.positions(n, "encoder").double(), atol=1e-4)
    waves = sinusoidal_encoding(n, d, "interleaved" if model.config.sinusoids == "halves" else "halves")
    wrong = rows + (model.positions(n + 1, "encoder")[1:] if change == "counted from 1" else waves).double()
    said = hints(checkpoint, trace, "encoder.0.input", wrong.numpy(), (), 1e-4)
    assert any(change in str(hint) for hint in said), said


@pytest.mark.sample(1)
def test_right_numbers_get_no_hint_that_a_mistake_gives_them(read):
    """A mistake that changes nothing here (a mask that blocks nothing) may be named; none that changes something is."""
    checkpoint, trace = read
    once = steps.steps_of(checkpoint, trace)
    for step in steps.named(checkpoint, trace, once)[:16]:
        wrong = steps.expected(checkpoint, trace, step.name, once) + np.random.default_rng(0).normal(size=step.shape)
        assert not hints(checkpoint, trace, step.name, wrong, (), 1e-4, once), step.name


def test_the_picture_is_cut_around_the_worst_cell():
    value = np.zeros((2, 5, 300))
    given = value.copy()
    given[1, 3, 250] = 2.0
    found = steps.picture(given, value, columns=48)
    assert found.head == 1
    assert found.values.shape == (5, 48)
    assert found.worst == (3, 250)
    assert found.values[3, 250 - found.first_column] == 2.0
    assert steps.picture(given[1, 3], value[1, 3]).values.shape == (1, 48)


def test_a_long_text_is_refused():
    checkpoint = load("stories")
    trace = checkpoint.trace(ids=[5] * (steps.LONGEST + 1))
    with pytest.raises(TraceError, match="Choose a shorter one"):
        steps.compare(checkpoint, trace, {})
