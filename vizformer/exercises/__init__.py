"""Exercises: twelve functions of a Transformer, each checked against the app's own numbers, in the reader's own process.

path         the exercises in order; an exercise in a language
task         what an exercise is made of; checking: what a function of a student's gives, and which mistake gives it
own_transformer   the functions as one Transformer; folder: the exercises as files and as a notebook
in order     softmax_with_mask, sines_and_cosines, one_head, split_and_join, add_norm, feedforward, attention_over_source,
             encoder, decoder, shift_and_loss, greedy_and_beam, one_update
"""

from typing import TYPE_CHECKING

from vizformer import lazy

if TYPE_CHECKING:
    from vizformer.exercises.checking import Checked
    from vizformer.exercises.own_transformer import OwnTransformer, OwnTranslation
    from vizformer.exercises.path import TASKS, Exercise, exercise

__getattr__, __dir__, __all__ = lazy.names(__name__, __file__)
