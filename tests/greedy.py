"""Greedy decoding of one sequence, all of its steps at once."""

from collections.abc import Sequence

from vizformer.generation import GenerationStep, stream
from vizformer.model import Transformer


def greedy_steps(
    model: Transformer, prompt: Sequence[int], prefix: Sequence[int] = (), *, max_new: int
) -> list[GenerationStep]:
    return list(stream(model, prompt, prefix, max_new=max_new))
