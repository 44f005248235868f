"""The errors of VizFormer. Each names the value, the rule that it breaks and the way out."""

from typing import LiteralString

from vizformer.messages import N_, Message, as_message


class VizformerError(Exception):
    """Base of every error that VizFormer raises about what it was given.

    `message` can be shown in the reader's language; `str(error)` is English.  `passing` is True where the same may go
    well at another time, or for another visitor: such an error is not cached.

    Args:
        said: a message, or the English source text of one, written out where the error is made: the extractor of the
            catalogues knows these errors by name as it knows `N_`.  What comes from outside belongs into `values`.
        values: the values of the text's placeholders.
    """

    passing = False

    def __init__(self, said: Message | LiteralString, /, **values: object) -> None:
        self.message = as_message(said, values)
        super().__init__(str(self.message))


class ConfigError(VizformerError):
    """An option of a model that is not allowed."""


class CheckpointError(VizformerError):
    """A checkpoint that cannot be found, read or trusted."""


class TokenizerError(VizformerError):
    """A text or token id that the tokenizer cannot represent."""


class TraceError(VizformerError):
    """A forward, a site, a head or a position that does not exist."""


class OwnArithmeticError(TraceError):
    """A model that its own code computes was asked for something that only our own Transformer has.

    Attributes:
        instead: the bundled model of the same architecture.
    """

    def __init__(self, name: str, architecture: str) -> None:
        super().__init__(
            N_(
                "This needs every weight by its role, which is known of models that VizFormer computes itself; {name} runs "
                "by its own code, of which the attention and the residual stream are recorded.",
                name=name,
            )
        )
        self.instead = {"encoder-only": "cloze", "decoder-only": "stories"}.get(architecture, "zh-en")


class ImageError(VizformerError):
    """An image that cannot be read or is not read."""


class GenerationError(VizformerError):
    """Options or a prompt with which nothing can be generated."""
