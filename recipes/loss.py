"""The training objectives: the next token of a translation, the next token of a text, the masked tokens of a text."""

import torch
import torch.nn.functional as F
from torch import Tensor

from vizformer.model import Transformer
from vizformer.training.loss import PairBatch, RowBatch, token_logits, translation_logits


def translation_loss(
    model: Transformer, batch: PairBatch, *, label_smoothing: float, autocast: bool, reduction: str = "mean"
) -> tuple[Tensor, int]:
    """Cross-entropy of the next target token, teacher-forced, and the number of predicted tokens.

    The target distribution gives 1 - eps to the right token and eps / vocab_size to every token (label smoothing;
    Szegedy et al. 2016; Vaswani et al. 2017, 5.4).
    """
    with torch.autocast(batch.source.device.type, dtype=torch.bfloat16, enabled=autocast):
        logits, labels = translation_logits(model, batch)
    loss = F.cross_entropy(logits.float(), labels, label_smoothing=label_smoothing, reduction=reduction)
    return loss, len(labels)


def token_loss(model: Transformer, batch: RowBatch, *, autocast: bool, reduction: str = "mean") -> tuple[Tensor, int]:
    """Cross-entropy at the positions that have a label, and their number: of decoder-only and encoder-only models."""
    with torch.autocast(batch.ids.device.type, dtype=torch.bfloat16, enabled=autocast):
        logits, labels = token_logits(model, batch)
    return F.cross_entropy(logits.float(), labels, reduction=reduction), len(labels)
