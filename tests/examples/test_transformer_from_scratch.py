"""The Transformer from scratch is what the app computes; what is broken in it is found, and named, at its first step."""

import math

import pytest
import torch
from safetensors.numpy import load_file

from examples import transformer_from_scratch as scratch
from tests.bundled import load
from vizformer.analysis.other_programs.first_departure import compare, named
from vizformer.analysis.other_programs.known_mistakes import hints
from vizformer.analysis.other_programs.submitted_steps import read_file

SENTENCE = "他喜欢喝水。"


def steps_of(model):
    """The steps of the sentence, with the translation that the app has for it."""
    checkpoint = load("zh-en")
    trace = checkpoint.trace(SENTENCE)
    return checkpoint, trace, run(model, trace)


def run(model, trace):
    ids, target = (torch.tensor([token.id for token in trace.tokens[stack]]) for stack in ("encoder", "decoder"))
    steps: scratch.Steps = {}
    with torch.no_grad():
        model(ids, target, steps)
    return {name: x.numpy() for name, x in steps.items()}


def test_the_script_translates_and_agrees_with_every_step(tmp_path, capsys):
    saved = tmp_path / "steps.safetensors"
    text, differences = scratch.main([SENTENCE, "--save", str(saved)])
    assert text == load("zh-en").generate(SENTENCE).text
    assert "every step agrees" in capsys.readouterr().out
    steps = load_file(saved)
    for name, difference in differences.items():  # float32: eight of its roundings, of numbers of up to 280
        assert difference < 1e-6 * max(1.0, abs(steps[name]).max()), name
    assert set(steps) == set(differences) == set(read_file(saved.name, saved.read_bytes()))
    checkpoint = load("zh-en")
    offered = {step.name: step.shape for step in named(checkpoint, checkpoint.trace(SENTENCE))}
    assert all(offered[name] == x.shape for name, x in steps.items())
    assert len(steps) > 100


def test_the_model_is_read_without_anything_left_over():
    model = scratch.bundled()
    assert sum(p.numel() for p in model.parameters()) == sum(p.numel() for p in load("zh-en").model.parameters())


def attention_with(scale, axis=-1):
    def attention(q, k, v, mask, steps, name):
        scores = q @ k.transpose(-2, -1) / scale(q.shape[-1], 256)
        steps[f"{name}.scores"] = scores
        if mask is not None:
            scores = scores + mask
        weights = torch.softmax(scores, dim=axis)
        steps[f"{name}.weights"], steps[f"{name}.z"] = weights, weights @ v
        return weights @ v

    return attention


def encoding(first=0, halves=False):
    def positions(n, d):
        angle = torch.arange(first, first + n)[:, None] / 10_000 ** (torch.arange(0, d, 2) / d)
        waves = torch.stack([angle.sin(), angle.cos()], dim=1 if halves else 2)
        return waves.reshape(n, d)

    return positions


BROKEN = {
    "no scale of the embedding": ("embed", lambda t, ids: t[ids], "encoder.0.input", "not multiplied by √d_model"),
    "positions from 1": ("positional_encoding", encoding(first=1), "encoder.0.input", "counted from 1"),
    "sines first": ("positional_encoding", encoding(halves=True), "encoder.0.input", "another order"),
    "no positions": ("positional_encoding", lambda n, d: torch.zeros(n, d), "encoder.0.input", "Nothing is added"),
    "heads cut without transposing": (
        "split_heads",
        lambda x, h: x.reshape(h, len(x), -1),
        "encoder.0.self.heads.q",
        "cut with reshape or view alone",
    ),
    "heads joined without transposing": (
        "join_heads",
        lambda z: z.reshape(z.shape[1], -1),
        "encoder.0.self.concat",
        "joined with reshape or view alone",
    ),
    "no root": ("attention", attention_with(lambda d_k, d: 1.0), "encoder.0.self.scores", "not divided by √d_k"),
    "the wrong root": (
        "attention",
        attention_with(lambda d_k, d: math.sqrt(d)),
        "encoder.0.self.scores",
        "divided by √d_model",
    ),
    "the wrong axis": (
        "attention",
        attention_with(lambda d_k, d: math.sqrt(d_k), axis=-2),
        "encoder.0.self.weights",
        "wrong axis",
    ),
    "no mask": ("causal_mask", lambda n: torch.zeros(n, n), "decoder.0.self.mask", "The mask is missing"),
    "the past masked": (
        "causal_mask",
        lambda n: torch.full((n, n), -torch.inf).tril(-1),
        "decoder.0.self.mask",
        "blocks the past",
    ),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("broken", BROKEN)
def test_what_is_broken_is_found_at_its_first_step_and_named(monkeypatch, broken):
    name, instead, first, words = BROKEN[broken]
    monkeypatch.setattr(scratch, name, instead)
    checkpoint, trace, steps = steps_of(scratch.bundled())
    found = compare(checkpoint, trace, steps)
    assert found.first is not None
    assert found.first.name == first
    said = hints(checkpoint, trace, first, steps[first], found.agreed, 1e-4)
    assert any(words in str(hint) for hint in said), [str(hint) for hint in said]


@pytest.mark.sweep
def test_other_layers_that_are_broken(monkeypatch):
    for owner, name, instead, first, words in (
        (scratch.F, "relu", torch.nn.functional.gelu, "encoder.0.feedforward.activation", "is GELU"),
        (scratch.F, "relu", lambda x: x, "encoder.0.feedforward.activation", "function is missing"),
        (torch.nn.LayerNorm, "forward", lambda self, x: x, "encoder.0.self.norm", "The norm is missing"),
        (
            torch.nn.LayerNorm,
            "forward",
            lambda self, x: (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True) * self.weight + self.bias,
            "encoder.0.self.norm",
            "deviation with n − 1",
        ),
    ):
        checkpoint, model = load("zh-en"), scratch.bundled()
        trace = checkpoint.trace(SENTENCE)
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, instead)
            steps = run(model, trace)
        found = compare(checkpoint, trace, steps)
        assert found.first is not None
        assert found.first.name == first
        assert any(words in str(hint) for hint in hints(checkpoint, trace, first, steps[first], found.agreed, 1e-4))


def test_a_mistake_between_two_steps_that_were_given_is_named():
    """The weights alone were handed in: the missing root is found in a step that was not."""
    checkpoint, trace, steps = steps_of(scratch.bundled())
    name = "decoder.1.self.weights"
    wrong = torch.softmax(
        torch.from_numpy(steps["decoder.1.self.scores"]) * 8 + scratch.causal_mask(len(trace.tokens["decoder"])), -1
    )
    said = hints(checkpoint, trace, name, wrong.numpy(), (), 1e-4)
    assert any("not divided by √d_k" in str(hint) for hint in said)
