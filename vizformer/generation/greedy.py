"""Decoding: always the most probable next token, until the end mark or the limit."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from vizformer.model import Cache, Edit, Transformer


@dataclass(frozen=True)
class GenerationStep:
    """One generated token: its id and the whole next-token distribution it was chosen from ([vocab_size])."""

    id: int
    probabilities: Tensor


@torch.inference_mode()
def greedy_steps(
    model: Transformer, prompt: Sequence[int], prefix: Sequence[int] = (), *, max_new: int, edit: Edit | None = None
) -> list[GenerationStep]:
    """Greedy decoding of one sequence; each step decodes only the newest token, the rest is in the KV cache.

    With an `edit` every step is a full forward instead: its cells are counted from the start of the sequence.

    Args:
        prompt: what the encoder reads (encoder-decoder) or what the text starts with (decoder-only).
        prefix: what the target starts with (encoder-decoder; its start mark comes first).
        edit: numbers set by hand in every forward.
        max_new: at most this many new tokens; fewer when the end mark comes or the positions run out.
    """
    device = model.embedding.weight.device
    memory = None
    ids = list(prompt)
    if model.encoder is not None:
        memory = model.encode(torch.tensor([ids], dtype=torch.long, device=device), edit=edit)  # [1, n, d_model]
        ids = list(prefix)
    cache = Cache() if edit is None else None
    steps: list[GenerationStep] = []
    for _ in range(min(max_new, model.config.max_positions - len(ids))):
        new = torch.tensor([ids if cache is None else ids[cache.length :]], dtype=torch.long, device=device)
        x = model.decode(new, memory, edit=edit, cache=cache)  # [1, n_new, d_model]
        probabilities = torch.softmax(model.logits(x[0, -1]).float(), dim=-1)  # [vocab_size]
        ids.append(int(probabilities.argmax()))
        steps.append(GenerationStep(ids[-1], probabilities))
        if ids[-1] == model.config.eos_id:
            break
    return steps


@torch.inference_mode()
def greedy_batch(model: Transformer, sources: Sequence[Sequence[int]], *, max_new: int) -> list[list[int]]:
    """Greedy translations of many sources at once (padded batches), without the end mark."""
    config = model.config
    if config.bos_id is None or config.eos_id is None or config.pad_id is None:
        raise ValueError("greedy_batch needs a model with bos_id, eos_id and pad_id")
    device = model.embedding.weight.device
    width = max(map(len, sources))
    ids = torch.tensor([[*s, *[config.pad_id] * (width - len(s))] for s in sources], device=device)  # [b, n]
    padding = ids == config.pad_id
    memory = model.encode(ids, padding=padding)
    target = torch.full((len(sources), 1), config.bos_id, device=device)  # [b, 1]
    done = torch.zeros(len(sources), dtype=torch.bool, device=device)
    cache = Cache()
    for _ in range(min(max_new, config.max_positions - 1)):
        x = model.decode(target[:, cache.length :], memory, memory_padding=padding, cache=cache)
        following = model.logits(x[:, -1]).argmax(-1).masked_fill(done, config.eos_id)  # [b]
        target = torch.cat([target, following[:, None]], dim=1)
        done |= following == config.eos_id
        if done.all():
            break
    ended = [row.index(config.eos_id) if config.eos_id in row else len(row) for row in target.tolist()]
    return [row[1:end] for row, end in zip(target.tolist(), ended, strict=True)]
