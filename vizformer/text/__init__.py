"""Text to tokens and back."""

from vizformer.text.id_tokenizer import IdTokenizer
from vizformer.text.tokenizer import Token, Tokenizer
