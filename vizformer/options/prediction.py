"""The station of the prediction: from the last row to logits."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from vizformer.messages import N_, Message
from vizformer.options.common import CommonOptions
from vizformer.options.kinds import Positive

Head = Literal["linear", "transform"]


@dataclass(frozen=True, kw_only=True)
class PredictionOptions(CommonOptions):
    """(row * scale) W_U + bias, after what the head has made of the row. Nothing here changes what is before it.

    Attributes:
        tied_unembedding: the logits are computed with the embedding table (Press & Wolf 2017).
        head: what turns the last row into logits: "linear" is the unembedding alone; "transform" has a dense layer, the
            activation and a norm before it and a bias after it (BERT's masked-language-model head).
        logit_scale: what the last row is multiplied by before the unembedding (T5: d_model^-0.5).
        logit_bias: a learned number for every token, added to its logit (BART, Marian); "transform" has one anyway.
    """

    tied_unembedding: bool = True
    head: Head = "linear"
    logit_scale: Positive = 1.0
    logit_bias: bool = False

    def rules(self) -> Iterator[Message]:
        if self.logit_bias and self.head == "transform":
            yield N_("logit_bias=True: head='transform' has one of its own, leave it out")

    def details(self) -> Iterator[Message]:
        if self.logit_scale != 1:
            yield N_("the last row is multiplied by {scale} before the unembedding", scale=f"{self.logit_scale:.4g}")
        if self.logit_bias:
            yield N_("logits have a bias for every token")
