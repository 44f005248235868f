"""What a model of a task makes of a question: against its own forward, generation and head scores."""

import numpy as np
import pytest
import torch

from tests.tiny import randomise
from vizformer.analysis.training.small_trainings import position_rows, repetition_scores, task_answer
from vizformer.checkpoints import Checkpoint
from vizformer.errors import VizformerError
from vizformer.model import Transformer
from vizformer.options import Architecture, Positions
from vizformer.training.live import Plan
from vizformer.training.tasks import BOS, EOS


def made(architecture: Architecture, positions: Positions = "learned") -> tuple[Checkpoint, Plan]:
    plan = Plan(task="reverse", architecture=architecture, n_layers=1, n_heads=2, d_model=16, positions=positions)
    model = randomise(Transformer(plan.config)).eval()
    return Checkpoint("task", model, plan.on.tokenizer(architecture)), plan


@pytest.mark.parametrize("architecture", ["encoder-decoder", "decoder-only"])
def test_the_probabilities_are_those_at_the_places_of_the_right_answer(architecture: Architecture) -> None:
    checkpoint, plan = made(architecture)
    found, vocabulary = task_answer(checkpoint, plan, "b a c"), plan.on.vocabulary
    ends = plan.on.ends
    assert found.right == ("c", "a", "b", *([EOS] if ends else []))
    answer = [vocabulary.index(symbol) for symbol in found.right]
    with torch.no_grad():
        if architecture == "encoder-decoder":
            read = checkpoint.encode("bac")
            start = [vocabulary.index(BOS), *answer[:-1]]
            logits = checkpoint.model(torch.tensor([[t.id for t in read]]), torch.tensor([start]))[0]
        else:
            read = checkpoint.encode("bac" + plan.on.separator)
            logits = checkpoint.model(torch.tensor([[*(t.id for t in read), *answer[:-1]]]))[0, -len(answer) :]
    p = logits.softmax(-1)
    for place in range(len(answer)):
        for row, symbol in enumerate(found.symbols):
            expected = float(p[place, vocabulary.index(symbol)])
            assert found.probabilities[row, place] == pytest.approx(expected, abs=1e-5)
    prompt = "bac" if architecture == "encoder-decoder" else "bac" + plan.on.separator
    assert found.own == checkpoint.generate(prompt, max_new=len(answer) + (4 if ends else 0)).text
    kind = next(iter(found.maps))
    n = len(found.tokens["encoder" if architecture == "encoder-decoder" else "decoder"])
    assert found.maps[kind].weights.shape[-2:] == (n, n)


def test_a_text_that_is_no_question_is_refused() -> None:
    with pytest.raises(VizformerError, match="knows only"):
        task_answer(*made("decoder-only"), "7?")


def test_position_rows_are_those_that_the_model_adds() -> None:
    checkpoint, plan = made("decoder-only")
    found = position_rows(checkpoint, plan)
    assert found is not None
    assert np.array_equal(found, checkpoint.model.position_embedding.weight[: plan.longest].detach().numpy())
    assert position_rows(*made("decoder-only", "rope")) is None


def test_repetition_scores_are_shares_for_every_head_and_repeat_themselves() -> None:
    checkpoint, plan = made("decoder-only")
    found, again = (repetition_scores(checkpoint, plan) for _ in range(2))
    for scores, others in ((found.previous_token, again.previous_token), (found.induction, again.induction)):
        assert np.array_equal(scores, others)
        assert scores.shape == (1, 2)
        assert (scores >= 0).all()
        assert (scores <= 1).all()
