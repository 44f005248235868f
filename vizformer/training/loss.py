"""The training objectives: the next token of a translation, the next token of a text, the masked tokens of a text."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from vizformer.model import Transformer
from vizformer.training.batches import IGNORED, PairBatch, RowBatch


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


def token_loss(model: Transformer, batch: RowBatch, *, autocast: bool, reduction: str = "mean") -> tuple[Tensor, int]:
    """Cross-entropy at the positions that have a label, and their number: of decoder-only and encoder-only models.

    A decoder's labels are the next tokens (Radford et al. 2018), an encoder's are the tokens that were masked
    (Devlin et al. 2018, 3.1).
    """
    real = batch.labels.ne(IGNORED)
    with torch.autocast(batch.ids.device.type, dtype=torch.bfloat16, enabled=autocast):
        if model.decoder is not None:  # padding stands on the right, where no real position looks
            x = model.decode(batch.ids, segments=batch.segments)
        else:
            x = model.encode(batch.ids, padding=batch.padding, segments=batch.segments)
        logits = model.logits(x[real])  # [n_real, vocab_size]
    loss = F.cross_entropy(logits.float(), batch.labels[real], reduction=reduction)
    return loss, int(real.sum())


def smoothing_floor(vocab_size: int, smoothing: float) -> float:
    """The least loss that there can be with label smoothing: the entropy of the target, in nats.

    H(q) = -sum_j q_j ln q_j,  q_j = (1 - eps) [j is right] + eps / vocab_size;  a model that gives exactly q has it.
    Source: Szegedy et al. 2016, section 7.
    """
    rest = smoothing / vocab_size
    right = 1 - smoothing + rest
    return -sum(count * q * math.log(q) for q, count in ((right, 1), (rest, vocab_size - 1)) if q > 0)
