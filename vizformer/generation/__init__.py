"""From a prompt to new tokens."""

from vizformer.generation.beam import Hypothesis, beam_search, length_penalty
from vizformer.generation.greedy import GenerationStep, greedy_batch, greedy_steps

__all__ = ["GenerationStep", "Hypothesis", "beam_search", "greedy_batch", "greedy_steps", "length_penalty"]
