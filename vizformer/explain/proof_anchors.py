"""The names of the tensors that proofs compare with, which several steps share."""

from vizformer.explain.operands import Operands
from vizformer.explain.site_words import in_words
from vizformer.messages import N_, Message


def recorded(name: str) -> Message:
    return N_("the rows recorded at {place}", place=in_words(name))


def recorded_head(letter: str, o: Operands) -> Message:
    head = o.head if letter == "q" else o.kv_head
    return N_("{letter} of head {head} recorded in {place}", letter=letter, head=head, place=in_words(o.site.name))


def fused(o: Operands) -> Message:
    return N_("z from the model's own attention: {place}, head {head}", place=in_words(o.site.name), head=o.head)
