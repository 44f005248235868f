"""The Transformer and the trace of its forward pass.

the network    transformer -> block -> attention, feedforward, norms, positions
beside x       forward_pass: masks, cache; records, trace, edit
around it      initialisation, input_check, head_weights, trace_file
"""

from vizformer.model.edit import Cell, Edit, Patch
from vizformer.model.forward_pass import Cache
from vizformer.model.initialisation import without_memory
from vizformer.model.masks import Mask, Reason
from vizformer.model.records import AttentionRecord
from vizformer.model.trace import Trace
from vizformer.model.transformer import Transformer, count_parameters
