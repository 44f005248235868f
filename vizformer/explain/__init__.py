"""A trace to the arithmetic behind it, step by step, each step proved."""

from vizformer.explain import examples
from vizformer.explain.attention import attention_steps
from vizformer.explain.layer import candidates, layer_steps, output_steps
from vizformer.explain.mask_over_head import Masked, masked_attention
from vizformer.explain.snippets import Snippet, light, snippet, standalone
from vizformer.explain.step import TOLERANCE, Axis, Contraction, Made, Operand, Proof, Step
from vizformer.explain.toy_model import Toy, toy
from vizformer.explain.toy_model import tensors as toy_tensors

__all__ = [
    "TOLERANCE",
    "Axis",
    "Contraction",
    "Made",
    "Masked",
    "Operand",
    "Proof",
    "Snippet",
    "Step",
    "Toy",
    "attention_steps",
    "candidates",
    "examples",
    "layer_steps",
    "light",
    "masked_attention",
    "output_steps",
    "snippet",
    "standalone",
    "toy",
    "toy_tensors",
]
