"""Files to models: a checkpoint is a model with its tokenizer."""

from vizformer.checkpoints.checkpoint import Checkpoint, Generation
from vizformer.checkpoints.folder import load, save

__all__ = ["Checkpoint", "Generation", "load", "save"]
