"""The cuts of a distribution against the logits processors of `transformers`."""

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


def test_a_whole_greedy_generation() -> None:
    """With the penalty, token by token, against `generate` itself."""
    transformers = pytest.importorskip("transformers")
    from tests import tiny
    from tests.parity.test_gpt2 import copied
    from vizformer.generation import stream
    from vizformer.model import Transformer

    config = transformers.GPT2Config(
        vocab_size=29, n_embd=16, n_head=4, n_layer=2, n_positions=32, n_inner=24, bos_token_id=1, eos_token_id=None,
        pad_token_id=0,
    )  # fmt: skip
    reference = tiny.randomise(transformers.GPT2LMHeadModel(config)).eval()
    same = tiny.config(
        "decoder-only", positions="learned", norm_order="pre", final_norm=True, activation="gelu_tanh", eos_id=None
    )
    ours = Transformer(same).eval()
    copied(reference, ours)
    prompt = tiny.ids(5)
    for penalty in (1.0, 1.5):
        expected = reference.generate(
            prompt, attention_mask=torch.ones_like(prompt), do_sample=False, max_new_tokens=20,
            repetition_penalty=penalty,
        )[0, 5:]  # fmt: skip
        sampling = Sampling(temperature=0.0, repetition_penalty=penalty)
        steps = stream(ours, prompt[0].tolist(), max_new=20, sampling=sampling)
        assert [step.id for step in steps] == expected.tolist()
