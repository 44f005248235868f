"""Tokenizers: from a text to tokens and back."""

from typing import TYPE_CHECKING

from vizformer import lazy

if TYPE_CHECKING:
    from vizformer.text.tokenizer import IdTokenizer, Token, Tokenizer

__getattr__, __dir__, __all__ = lazy.names(__name__, __file__)
