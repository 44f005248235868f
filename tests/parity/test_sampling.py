"""The cuts of a distribution against the logits processors of `transformers`."""

from pathlib import Path

import pytest
import torch

from vizformer.generation import Sampling, next_token

processors = pytest.importorskip("transformers.generation.logits_process")

SETTINGS = [
    Sampling(temperature=0.7),
    Sampling(top_k=5),
    Sampling(top_p=0.8),
    Sampling(min_p=0.1),
    Sampling(repetition_penalty=1.3),
    Sampling(temperature=1.4, top_k=20, top_p=0.9, min_p=0.02, repetition_penalty=0.8),
    Sampling(temperature=0.5, top_k=3, top_p=0.3, repetition_penalty=2.0),
    Sampling(temperature=3.0, top_p=0.999, min_p=0.3),
]


def theirs(logits: torch.Tensor, previous: list[int], s: Sampling) -> torch.Tensor:
    """In the order in which `generate` puts them."""
    chain = [processors.TemperatureLogitsWarper(s.temperature)]
    if s.repetition_penalty != 1:
        chain.insert(0, processors.RepetitionPenaltyLogitsProcessor(s.repetition_penalty))
    if s.top_k:
        chain.append(processors.TopKLogitsWarper(s.top_k))
    if s.top_p < 1:
        chain.append(processors.TopPLogitsWarper(s.top_p))
    if s.min_p > 0:
        chain.append(processors.MinPLogitsWarper(s.min_p))
    scores = logits[None].clone()
    for processor in chain:
        scores = processor(torch.tensor([previous]), scores)
    return torch.softmax(scores[0], -1)


@pytest.mark.parametrize("sampling", SETTINGS, ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_what_is_drawn_from_is_the_same(sampling: Sampling, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(200, generator=generator)
    previous = torch.randint(200, (30,), generator=generator).tolist()
    found = next_token(logits, previous, sampling).filtered
    expected = theirs(logits, previous, sampling)
    assert torch.equal(found > 0, expected > 0)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)


def test_a_whole_greedy_generation(tmp_path: Path) -> None:
    """With the penalty, token by token, against `generate` itself."""
    pytest.importorskip("transformers")
    from tests import tiny
    from tests.checkpoints import folders
    from tests.parity.against_transformers import theirs as their_model
    from vizformer.checkpoints import load
    from vizformer.generation import stream

    # (no end mark: both write the same number of tokens)
    folder = folders.gpt2(tmp_path, eos_token_id=None)
    reference, ours = their_model(folder, "GPT2LMHeadModel"), load(folder).model
    assert ours.config.eos_id is None
    prompt = tiny.ids(5)
    for penalty in (1.0, 1.5):
        expected = reference.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            do_sample=False,
            max_new_tokens=20,
            pad_token_id=0,
            repetition_penalty=penalty,
        )[0, 5:]
        sampling = Sampling(temperature=0.0, repetition_penalty=penalty)
        steps = stream(ours, prompt[0].tolist(), max_new=20, sampling=sampling)
        assert [step.id for step in steps] == expected.tolist()
