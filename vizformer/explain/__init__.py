"""The arithmetic behind a trace, step by step, each step proved.

a head and a query    attention, softmax_steps, rope_steps, position_bias_steps, qk_norms, mixing;
                      position_terms and rope recompute what positions do
a whole layer         layer, layer_projections, attention_layer, feedforward_layer, sublayer;
                      block_rows, norm_rows and feedforward_rows: one row on its way through it
the prediction        mlm_head, loss_parts, adam_numbers
a recorded model      recorded_calls: the calls of its author's code as steps, recorded_words
without a trace       toy_model, paper_calculations, softmax_in_blocks, attention_without_softmax, mask_over_head
as code               snippets, head_code, forward_code, toy_model
what steps are        step (with `Proof`), operands, arrays, latex, site

A site, layer, head or position that the model or the trace does not have is a `TraceError`.
"""

from typing import TYPE_CHECKING

from vizformer import lazy

if TYPE_CHECKING:
    from vizformer.explain import examples
    from vizformer.explain.attention import attention_steps
    from vizformer.explain.layer import candidates, layer_steps, output_steps
    from vizformer.explain.mask_over_head import Masked, masked_attention
    from vizformer.explain.recorded_calls import recorded_layer_steps, recorded_steps
    from vizformer.explain.snippets import Snippet, light, snippet, standalone
    from vizformer.explain.step import TOLERANCE, Axis, Contraction, Made, Operand, Proof, Step
    from vizformer.explain.toy_model import Toy, toy
    from vizformer.explain.toy_model import tensors as toy_tensors

__getattr__, __dir__, __all__ = lazy.names(__name__, __file__)
