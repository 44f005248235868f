"""Files to models: a checkpoint is a model with its tokenizer.

A file that is damaged, too large, not supported, or does not fit the others is a `CheckpointError` wherever it is read; its
message names the file, what was found there, and the way out.
"""

from typing import TYPE_CHECKING

from vizformer import lazy

if TYPE_CHECKING:
    from vizformer.checkpoints.any_checkpoint import AnyCheckpoint, Generation
    from vizformer.checkpoints.export import save
    from vizformer.checkpoints.opening import Opened, inspect, load
    from vizformer.checkpoints.own import Checkpoint
    from vizformer.checkpoints.recorded.checkpoint import RecordedCheckpoint
    from vizformer.checkpoints.tensors.questions import Question, UnansweredError
    from vizformer.checkpoints.tensors.report import Report, TensorFate, describe

__getattr__, __dir__, __all__ = lazy.names(__name__, __file__)
