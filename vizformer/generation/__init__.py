"""Generation: from a prompt to new tokens.

sampling      from logits to what is drawn from
streaming     what is asked of a model (the logits after a sequence); one token at a time, with the KV cache;
              what each step was chosen from
search        greedy, many sources at once; beam search with its tree
"""

from typing import TYPE_CHECKING

from vizformer import lazy

if TYPE_CHECKING:
    from vizformer.generation.sampling import GREEDY, Cut, NextToken, Sampling, next_token
    from vizformer.generation.search import (
        BeamNode,
        BeamTree,
        Hypothesis,
        beam_search,
        beam_search_of,
        greedy_batch,
        length_penalty,
    )
    from vizformer.generation.streaming import (
        Candidates,
        End,
        GenerationStep,
        Reading,
        leading_candidates,
        stream,
        stream_of,
    )

__getattr__, __dir__, __all__ = lazy.names(__name__, __file__)
