"""Text to tokens and back."""

from vizformer.text.tokenizer import Token, Tokenizer

__all__ = ["Token", "Tokenizer"]
