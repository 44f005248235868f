"""Sentences of Multi-head attention in which one word decides whom a pronoun means (see `analysis.heads.minimal_pairs`)."""

from typing import Literal, get_args

from vizformer.word_tables import data_of

Pronoun = Literal["he", "he_first", "it", "it_noun", "ta_form", "ta_meaning"]

_SENTENCES = data_of(__file__)
PAIRS: dict[Pronoun, tuple[str, ...]] = {kind: tuple(_SENTENCES[kind]) for kind in get_args(Pronoun)}
"""The first word in braces means the first noun in brackets, the second word the second noun.

In "it_noun" are nouns that the translator saw in no sentence of this kind (`assets/prompts/reference.zh-en.txt` has the same
sentences).  In "he" and "ta_form" man and woman come first equally often: a head cannot do well by place.  In "he_first" the
man always comes first, which is the mistake that the lesson shows.
"""
