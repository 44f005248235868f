"""The Transformer and the trace of its forward pass.

the network    embedding, positions (fixed_positions), norms, attention, mixing, feedforward,
               block, mlm_head, transformer, initialisation
masks          masks, self_masks, sparse_masks, mask_recipe
beside x       forward_pass, input_check, cache; records, trace and trace_file; head_weights;
               edit and patch, numbers set in a forward
"""

from vizformer.model.cache import Cache
from vizformer.model.edit import Cell, Edit
from vizformer.model.initialisation import without_memory
from vizformer.model.masks import Mask, Reason
from vizformer.model.patch import Patch
from vizformer.model.records import AttentionRecord
from vizformer.model.trace import Trace
from vizformer.model.transformer import Transformer, count_parameters
