"""Speculative decoding: what comes out is the whole model's own distribution, whatever the draft is."""

from collections import Counter

import pytest
import torch

from tests import tiny
from vizformer.config import ModelConfig
from vizformer.errors import GenerationError
from vizformer.generation import greedy_steps
from vizformer.generation.sampling import draw
from vizformer.generation.speculative import _verified, checked, next_distributions, speculative_rounds
from vizformer.model import Transformer

P = torch.tensor([0.5, 0.3, 0.15, 0.05, 0.0], dtype=torch.float64)
Q = torch.tensor([0.1, 0.3, 0.4, 0.0, 0.2], dtype=torch.float64)


def small(**options) -> Transformer:
    config = ModelConfig(
        vocab_size=6, d_model=8, n_heads=2, d_ff=8, n_encoder_layers=0, n_decoder_layers=3, max_positions=12, **options
    )
    torch.manual_seed(1)
    return tiny.randomise(Transformer(config)).eval()


@pytest.mark.parametrize("q", [Q, P, P.flip(0), torch.full((5,), 0.2, dtype=torch.float64)])
def test_what_is_kept_and_what_comes_in_its_place_sum_to_the_models_own(q) -> None:
    found = checked(P, q)
    torch.testing.assert_close(found.kept + found.instead, P, rtol=0, atol=1e-15)


def test_a_checked_token_is_distributed_as_the_models_own() -> None:
    generator, n = torch.Generator().manual_seed(0), 20_000
    first, second = Counter(), Counter()
    for _ in range(n):
        found = _verified([draw(Q, generator)], [Q], torch.stack([P, Q]), generator)
        first[found.ids[0]] += 1
        second.update(found.ids[1:])
    for id, share in enumerate(P.tolist()):
        assert first[id] / n == pytest.approx(share, abs=0.015)  # four standard errors
    kept = float(torch.minimum(P, Q).sum())
    assert second.total() / n == pytest.approx(kept, abs=0.015)  # the token after an accepted draft, from the next row
    for id, share in enumerate(Q.tolist()):
        assert second[id] / second.total() == pytest.approx(share, abs=0.02)


@pytest.mark.sweep
def test_two_tokens_in_a_row_are_distributed_as_the_models_own() -> None:
    model, n = small(), 4000
    with torch.inference_mode():
        first = next_distributions(model, [1, 2], None, 1.0)[0]
        wanted = torch.stack([p * next_distributions(model, [1, 2, id], None, 1.0)[0] for id, p in enumerate(first)])
    counts = torch.zeros(6, 6)
    for seed in range(n):
        rounds = speculative_rounds(model, [1, 2], layers=1, drafts=2, max_new=2, seed=seed)
        counts[tuple(id for one in rounds for id in one.ids)] += 1
    assert float((counts / n - wanted).abs().sum()) / 2 < 0.04  # 36 cells: about 0.03 by chance


@pytest.mark.parametrize(("layers", "drafts"), [(1, 1), (1, 4), (2, 3)])
@pytest.mark.parametrize("architecture", ["decoder-only", "encoder-decoder"])
def test_at_temperature_0_the_text_is_the_greedy_one(architecture: str, layers: int, drafts: int) -> None:
    model = tiny.checkpoint(architecture, n_decoder_layers=3).model
    given = [[5, 6, 7]] if architecture == "decoder-only" else [[5, 6, 7], [*model.config.start_ids]]
    greedy = [step.id for step in greedy_steps(model, *given, max_new=9)]
    rounds = list(speculative_rounds(model, *given, layers=layers, drafts=drafts, max_new=9, temperature=0))
    assert [id for one in rounds for id in one.ids] == greedy
    assert all(len(one.drafted) <= drafts for one in rounds)
    assert all(one.is_accepted == (one.p == 1) for found in rounds for one in found.drafted)


def test_a_draft_by_the_whole_model_is_always_accepted() -> None:
    model = small()
    rounds = list(speculative_rounds(model, [1], layers=3, drafts=3, max_new=8, seed=4))
    assert [len(one.ids) for one in rounds] == [4, 4]
    assert all(one.is_accepted and one.p == pytest.approx(one.q) for found in rounds for one in found.drafted)


def test_a_text_ends_with_its_mark_its_limit_or_the_positions() -> None:
    for seed in range(40):
        model = small(eos_id=3)
        ids = [
            id for one in speculative_rounds(model, [1], layers=1, drafts=4, max_new=99, seed=seed) for id in one.ids
        ]
        assert 3 not in ids[:-1]
        assert ids[-1] == 3 or len(ids) == 11
    rounds = list(speculative_rounds(small(), [1], layers=3, drafts=3, max_new=3))
    assert [(len(one.ids), one.own) for one in rounds] == [(3, None)]


@pytest.mark.parametrize(("layers", "drafts"), [(0, 1), (4, 1), (1, 0)])
def test_a_draft_of_nothing_is_refused(layers: int, drafts: int) -> None:
    with pytest.raises(GenerationError, match="at least one token, and 1 to 3"):
        next(speculative_rounds(small(), [1], layers=layers, drafts=drafts, max_new=3))


@torch.inference_mode()
def test_only_the_last_rows_meet_the_vocabulary(monkeypatch) -> None:
    model, read = small(), []
    own = model.logits
    monkeypatch.setattr(model, "logits", lambda x: read.append(x.shape[0]) or own(x))
    whole = next_distributions(model, [1, 2, 4, 5], None, 1.0, last=4)
    assert torch.equal(whole, torch.softmax(own(model.decode(torch.tensor([[1, 2, 4, 5]])))[0].double(), -1))
    assert torch.allclose(next_distributions(model, [1, 2, 4, 5], None, 1.0, last=2), whole[2:], atol=1e-6)
    list(speculative_rounds(model, [1, 2, 4], layers=1, drafts=2, max_new=5))
    assert max(read[1:]) <= 3  # two drafted tokens and the one before them
