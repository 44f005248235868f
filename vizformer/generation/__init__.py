"""Generation: from a prompt to new tokens.

sampling      from logits to what is drawn from
reading       what is asked of a model: the logits after a sequence
streaming     one token at a time, with the KV cache; candidates: what each step was chosen from
greedy, beam  many sources at once; beam search with its tree
"""

from typing import TYPE_CHECKING

from vizformer import lazy

if TYPE_CHECKING:
    from vizformer.generation.beam import BeamNode, BeamTree, Hypothesis, beam_search, beam_search_of, length_penalty
    from vizformer.generation.candidates import Candidates, leading_candidates
    from vizformer.generation.greedy import greedy_batch
    from vizformer.generation.reading import Reading
    from vizformer.generation.sampling import GREEDY, Cut, NextToken, Sampling, next_token
    from vizformer.generation.streaming import End, GenerationStep, stream, stream_of

__getattr__, __dir__, __all__ = lazy.names(__name__, __file__)
