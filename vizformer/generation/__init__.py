"""From a prompt to new tokens."""

from vizformer.generation.greedy import GenerationStep, greedy_batch, greedy_steps

__all__ = ["GenerationStep", "greedy_batch", "greedy_steps"]
