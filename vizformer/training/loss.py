"""The training objective of a translator."""

import torch
import torch.nn.functional as F
from torch import Tensor

from vizformer.model import Transformer
from vizformer.training.batches import PairBatch


def translation_loss(
    model: Transformer, batch: PairBatch, *, label_smoothing: float, autocast: bool, reduction: str = "mean"
) -> tuple[Tensor, int]:
    """Cross-entropy of the next target token, teacher-forced, and the number of predicted tokens.

    The target distribution gives 1 - eps to the right token and eps / vocab_size to every token (label smoothing;
    Szegedy et al. 2016; Vaswani et al. 2017, 5.4).  Logits are computed only where there is something to predict:
    they are the most expensive product of a small model with a large vocabulary.
    """
    pad = model.config.pad_id
    inputs, labels = batch.target[:, :-1], batch.target[:, 1:]  # [b, m-1]
    if pad is None:
        raise ValueError("a translator needs a pad_id")
    real = labels.ne(pad)
    source_padding = batch.source.eq(pad)
    with torch.autocast(batch.source.device.type, dtype=torch.bfloat16, enabled=autocast):
        memory = model.encode(batch.source, padding=source_padding)
        # Right padding of the target needs no mask: a real position sees only earlier, real ones.
        x = model.decode(inputs, memory, memory_padding=source_padding)
        logits = model.logits(x[real])  # [n_real, vocab_size]
    loss = F.cross_entropy(logits.float(), labels[real], label_smoothing=label_smoothing, reduction=reduction)
    return loss, int(real.sum())
