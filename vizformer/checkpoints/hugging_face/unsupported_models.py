"""Types of `transformers` that predict tokens and do not open, each with what it has that is not here.

A test holds the lists against the classes of the installed `transformers`; docs/reference.md shows them.
"""

from collections.abc import Mapping

from vizformer.messages import Message
from vizformer.word_tables import words_of

WHY = tuple((Message(why), kinds) for kinds, why in words_of(__file__).items())
BECAUSE: Mapping[str, Message] = {kind: why for why, kinds in WHY for kind in kinds.split()}

# Those whose tensors may have the names and shapes of GPT-2's and mean something else: never opened by names alone.
SAME_NAMES = ("imagegpt",)
