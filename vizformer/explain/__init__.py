"""The arithmetic behind a trace, step by step, each step proved.

the numbers           attention_numbers: those of a head and a query are a slice of those of a layer;
                      position_terms recompute what positions do
a head and a query    attention, softmax_steps; rope_steps, position_bias_steps, qk_norms: of a layer too
a whole layer         layer, attention_layer, feedforward_rows, sublayer;
                      block_rows: one row on its way through it
the prediction        loss_parts
a recorded model      recorded_calls: the calls of its author's code as steps
without a trace       toy_model, paper_calculations, softmax_in_blocks, attention_without_softmax, encoder_decoder
as code               snippets, head_code, toy_model
what steps are        step (with `Proof`), arrays, latex

A site, layer, head or position that the model or the trace does not have is a `TraceError`.
"""

from typing import TYPE_CHECKING

from vizformer import lazy

if TYPE_CHECKING:
    from vizformer.explain import examples
    from vizformer.explain.attention import attention_steps
    from vizformer.explain.encoder_decoder import Masked, masked_attention
    from vizformer.explain.layer import candidates, layer_steps, output_steps
    from vizformer.explain.recorded_calls import recorded_layer_steps, recorded_steps
    from vizformer.explain.snippets import Snippet, light, snippet, standalone
    from vizformer.explain.step import TOLERANCE, Axis, Contraction, Made, Operand, Proof, Step
    from vizformer.explain.toy_model import Toy, toy
    from vizformer.explain.toy_model import tensors as toy_tensors

__getattr__, __dir__, __all__ = lazy.names(__name__, __file__)
