"""Beam search against brute force, and its scores against full forwards."""

import itertools
import math

import pytest
import torch

from tests import tiny
from tests.greedy import greedy_steps
from vizformer.generation import BeamTree, beam_search, length_penalty

EOS, VOCAB, LONGEST = 2, 5, 4


@pytest.fixture(params=["decoder-only", "encoder-decoder"], scope="module")
def model(request):
    return tiny.model(request.param, vocab_size=VOCAB, eos_id=EOS, bos_id=1, pad_id=0)


def arguments(model):
    return ([3, 4], (1,)) if model.encoder is not None else ([1, 3], ())


def log_probability(model, ids) -> float:
    prompt, prefix = arguments(model)
    start = list(prefix) if model.encoder is not None else prompt
    whole = torch.tensor([[*start, *ids]])
    logits = model(torch.tensor([prompt]), whole) if model.encoder is not None else model(whole)
    log_p = torch.log_softmax(logits[0].double(), -1)
    return sum(log_p[len(start) - 1 + i, token].item() for i, token in enumerate(ids))


def everything():
    """All continuations: ended ones, and ones cut off at the limit."""
    for length in range(1, LONGEST + 1):
        for ids in itertools.product(range(VOCAB), repeat=length):
            if EOS in ids[:-1] or (length < LONGEST and ids[-1] != EOS):
                continue
            yield ids


@pytest.fixture(scope="module")
def log_probabilities(model):
    """Of all continuations, one forward each."""
    return {ids: log_probability(model, ids) for ids in everything()}


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.5])
@pytest.mark.sample(1)
def test_a_wide_beam_finds_the_best_of_all(model, log_probabilities, alpha):
    prompt, prefix = arguments(model)
    found = beam_search(model, prompt, prefix, width=VOCAB**LONGEST, max_new=LONGEST, alpha=alpha)
    scored = {ids: log_p / length_penalty(len(ids), alpha) for ids, log_p in log_probabilities.items()}
    best = max(scored, key=scored.__getitem__)
    assert found[0].ids == best
    assert found[0].score == pytest.approx(scored[best], abs=1e-5)
    assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)


def test_scores_are_those_of_full_forwards(model):
    prompt, prefix = arguments(model)
    for hypothesis in beam_search(model, prompt, prefix, width=3, max_new=LONGEST):
        assert hypothesis.log_probability == pytest.approx(log_probability(model, hypothesis.ids), abs=1e-5)
        assert hypothesis.score == hypothesis.log_probability / length_penalty(len(hypothesis.ids), 0.6)
        assert EOS not in hypothesis.ids[:-1]


def test_a_beam_is_not_worse_than_greedy_without_penalty(model):
    prompt, prefix = arguments(model)
    greedy = tuple(step.id for step in greedy_steps(model, prompt, prefix, max_new=LONGEST))
    best = beam_search(model, prompt, prefix, width=VOCAB**LONGEST, max_new=LONGEST, alpha=0.0)[0]
    assert best.log_probability >= log_probability(model, greedy) - 1e-6


def test_length_penalty():
    assert length_penalty(1, 0.6) == 1.0
    assert length_penalty(7, 1.0) == 2.0
    assert length_penalty(30, 0.0) == 1.0
    assert math.isclose(length_penalty(7, 0.6), 2**0.6)


def test_a_beam_needs_a_width(model):
    with pytest.raises(ValueError, match="width=0"):
        beam_search(model, [3], (1,), width=0, max_new=2)


def test_the_tree_holds_what_the_search_looked_at(model):
    prompt, prefix = arguments(model)
    tree, width = BeamTree(), 2
    found = beam_search(model, prompt, prefix, width=width, max_new=LONGEST, tree=tree)
    assert found == beam_search(model, prompt, prefix, width=width, max_new=LONGEST)  # looking changes nothing
    for index, node in enumerate(tree.nodes):
        ids, at = [], index
        while at is not None:
            ids.append(tree.nodes[at].id)
            assert tree.nodes[at].parent is None or tree.nodes[at].parent < at
            assert at == index or tree.nodes[at].fate == "kept"  # only what was kept goes on
            at = tree.nodes[at].parent
        ids.reverse()
        assert node.step == len(ids) - 1
        assert node.log_probability == pytest.approx(log_probability(model, ids), abs=1e-5)
        assert node.score == pytest.approx(node.log_probability / length_penalty(len(ids), 0.6))
        assert (node.fate == "finished") <= (node.id == EOS)
    for step in {node.step for node in tree.nodes}:
        here = [node for node in tree.nodes if node.step == step]
        assert len(here) <= 2 * width
        assert sum(node.fate == "kept" for node in here) <= width
        assert [n.log_probability for n in here] == sorted((n.log_probability for n in here), reverse=True)
    for hypothesis in found:
        path = tree.path(hypothesis.ids)
        assert tuple(tree.nodes[at].id for at in path) == hypothesis.ids
        assert tree.nodes[path[-1]].log_probability == hypothesis.log_probability
