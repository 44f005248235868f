"""Decoding of many sources at once: always the most probable next token, until the end mark or the limit."""

from collections.abc import Sequence

import torch

from vizformer.model import Cache, Transformer


@torch.inference_mode()
def greedy_batch(model: Transformer, sources: Sequence[Sequence[int]], *, max_new: int) -> list[list[int]]:
    """Greedy translations of many sources at once (padded batches), without the end mark."""
    config = model.config
    start = list(config.start_ids)
    if not start or config.eos_id is None or config.pad_id is None:
        raise ValueError("greedy_batch needs a model with a start mark, eos_id and pad_id")
    device = model.embedding.weight.device
    width = max(map(len, sources))
    filling = min(config.pad_id, config.input_vocab_size - 1)  # any id of the source will do: nothing looks at it
    ids = torch.tensor([[*s, *[filling] * (width - len(s))] for s in sources], device=device)  # [b, n]
    padding = torch.tensor([[i >= len(s) for i in range(width)] for s in sources], device=device)  # [b, n]
    memory = model.encode(ids, padding=padding)
    target = torch.tensor([start] * len(sources), device=device)  # [b, 1 or 2]
    done = torch.zeros(len(sources), dtype=torch.bool, device=device)
    cache = Cache()
    for _ in range(min(max_new, config.max_positions - len(start))):
        x = model.decode(target[:, cache.length :], memory, memory_padding=padding, cache=cache)
        logits = model.logits(x[:, -1])  # [b, vocab_size]
        if config.never_written is not None:
            logits[:, config.never_written] = -torch.inf
        following = logits.argmax(-1).masked_fill(done, config.eos_id)  # [b]
        target = torch.cat([target, following[:, None]], dim=1)
        done |= following == config.eos_id
        if done.all():
            break
    found: list[list[int]] = target[:, len(start) :].tolist()
    return [row[: row.index(config.eos_id)] if config.eos_id in row else row for row in found]
