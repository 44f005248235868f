"""A stream of tokens: with the cache as without it, the same seed the same text, and why it ends."""

import itertools

import pytest
import torch

from tests import tiny
from tests.generation.test_greedy import steered
from vizformer.analysis.costs.generation_cost import cache_bytes
from vizformer.errors import GenerationError, TraceError
from vizformer.generation import Sampling, next_token, stream
from vizformer.model import Edit

LOOSE = Sampling(temperature=1.5, top_k=12, top_p=0.9, repetition_penalty=1.2, seed=3)
POSITIONS = {
    "sinusoidal": dict(positions="sinusoidal"),
    "learned": dict(positions="learned"),
    "rope": dict(positions="rope"),
    "alibi": tiny.ALIBI,
    "T5": tiny.T5,
    "none": dict(positions="none"),
    "LLaMA style with shared heads": tiny.LLAMA,
    "one key/value head": dict(positions="rope", n_kv_heads=1),
}


def start(model) -> tuple[list[int], list[int]]:
    return ([5, 6, 7, 8], [1]) if model.encoder is not None else ([1, 5, 6, 7], [])


def ids(steps) -> list[int]:
    return [step.id for step in steps]


@pytest.mark.sample(6)
@pytest.mark.parametrize("architecture", ["decoder-only", "encoder-decoder"])
@pytest.mark.parametrize("options", POSITIONS.values(), ids=POSITIONS)
@pytest.mark.parametrize("sampling", [Sampling(temperature=0.0), LOOSE], ids=["greedy", "drawn"])
def test_cached_equals_uncached(architecture, options, sampling) -> None:
    model = tiny.model(architecture, eos_id=None, **options)
    cached = list(stream(model, *start(model), max_new=9, sampling=sampling))
    uncached = list(stream(model, *start(model), max_new=9, sampling=sampling, edit=Edit()))
    assert ids(cached) == ids(uncached)
    for a, b in zip(cached, uncached, strict=True):
        tiny.assert_close(a.probabilities, b.probabilities)
        tiny.assert_close(a.filtered, b.filtered)
        assert a.length == b.length
        assert b.cache_bytes == 0


@pytest.mark.parametrize("architecture", ["decoder-only", "encoder-decoder"])
def test_what_a_step_says(architecture) -> None:
    """Probabilities of a full forward, and the bytes of the formula."""
    model = tiny.model(architecture, eos_id=None)
    prompt, prefix = start(model)
    text = list(prefix or prompt)
    memory = 4 if model.encoder is not None else 0
    for step in stream(model, prompt, prefix, max_new=5, sampling=LOOSE):
        assert step.length == len(text)
        assert step.cache_bytes == cache_bytes(model.config, len(text), memory)
        with torch.inference_mode():
            inputs = (torch.tensor([prompt]), torch.tensor([text])) if memory else (torch.tensor([text]),)
            tiny.assert_close(step.probabilities, torch.softmax(model(*inputs)[0, -1], -1))
        assert step.filtered[step.id] > 0
        text.append(step.id)


@pytest.mark.sweep
def test_the_same_seed_the_same_text() -> None:
    model = tiny.model("decoder-only", eos_id=None)
    texts = {seed: ids(stream(model, [1, 5], max_new=20, sampling=Sampling(seed=seed))) for seed in range(5)}
    assert len(set(map(tuple, texts.values()))) == 5
    torch.manual_seed(99)  # nothing outside decides
    for seed, text in texts.items():
        assert ids(stream(model, [1, 5], max_new=20, sampling=Sampling(seed=seed))) == text
        assert ids(stream(model, [1, 5], max_new=7, sampling=Sampling(seed=seed))) == text[:7]


def test_nothing_is_drawn_where_nobody_asks_for_it() -> None:
    model = tiny.model(eos_id=None)
    steps = list(stream(model, [5, 6], [1], max_new=6))
    assert all(step.filtered[step.id] == 1 and step.probabilities.argmax() == step.id for step in steps)


def test_it_comes_one_at_a_time() -> None:
    model = tiny.model("decoder-only", eos_id=None)
    first = list(itertools.islice(stream(model, [1, 5], max_new=30), 3))
    assert ids(first) == ids(stream(model, [1, 5], max_new=3))
    assert torch.is_grad_enabled()  # between the steps, too, nothing is switched off for others
    for _ in stream(model, [1, 5], max_new=2):
        assert not torch.is_inference_mode_enabled()


@pytest.mark.parametrize(
    ("path", "max_new", "expected"),
    [
        ((5, 6, 2, 9), 20, [None, None, "eos"]),
        ((5, 6, 7, 8), 3, [None, None, "limit"]),
        ((5, 6, 2, 8), 3, [None, None, "eos"]),
        ((5,), 1, ["limit"]),
    ],
)
def test_why_it_ends(path, max_new, expected) -> None:
    assert [step.end for step in stream(steered(*path), [3, 4], [1], max_new=max_new)] == expected


def test_it_ends_where_the_positions_end() -> None:
    model = tiny.model("decoder-only", max_positions=8, eos_id=None)
    assert [step.end for step in stream(model, [3] * 5, max_new=100)] == [None, None, "context"]
    assert [step.end for step in stream(model, [3] * 5, max_new=3)] == [None, None, "context"]
    assert [step.end for step in stream(model, [3] * 5, max_new=2)] == [None, "limit"]
    assert list(stream(model, [3] * 8, max_new=5)) == []


def test_another_token_instead() -> None:
    model = tiny.model("decoder-only", eos_id=None)
    plain = list(stream(model, [1, 5], max_new=12, sampling=LOOSE))
    same = list(stream(model, [1, 5], max_new=12, sampling=LOOSE, instead={2: plain[2].id, 5: plain[5].id}))
    assert ids(same) == ids(plain)
    assert [step.by_hand for step in same] == [i in (2, 5) for i in range(12)]
    other = next(id for id in range(3, 29) if id != plain[4].id)
    branch = list(stream(model, [1, 5], max_new=12, sampling=LOOSE, instead={4: other}))
    assert ids(branch)[:4] == ids(plain)[:4]
    assert branch[4].id == other
    tiny.assert_close(branch[4].probabilities, plain[4].probabilities)  # what it was chosen from is the same
    (after,) = stream(model, [1, 5, *ids(branch)[:5]], max_new=1)
    tiny.assert_close(branch[5].probabilities, after.probabilities)
    with pytest.raises(GenerationError, match="29 is outside"):
        list(stream(model, [1, 5], max_new=3, instead={0: 29}))


def test_an_end_mark_by_hand_ends_it() -> None:
    steps = list(stream(steered(5, 6, 7, 8), [3, 4], [1], max_new=9, instead={1: 2}))
    assert ids(steps) == [5, 2]
    assert steps[-1].end == "eos"


def test_the_penalty_counts_the_prompt() -> None:
    model = tiny.model("decoder-only", eos_id=None)
    strong = Sampling(temperature=0.7, repetition_penalty=5.0)
    (step,) = stream(model, [1, 5, 6], max_new=1, sampling=strong)
    with torch.inference_mode():
        logits = model(torch.tensor([[1, 5, 6]]))[0, -1]
    tiny.assert_close(step.filtered, next_token(logits, (1, 5, 6), strong).filtered)
    assert not torch.allclose(step.filtered, next_token(logits, (1, 5), strong).filtered)


def test_wrong_ids() -> None:
    with pytest.raises(TraceError, match="outside the vocabulary"):
        list(stream(tiny.model("decoder-only"), [99], max_new=2))
