"""Generation one token at a time: a stream of steps, each with the distribution that its token was chosen from."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from vizformer.errors import GenerationError
from vizformer.generation.sampling import GREEDY, Sampling, draw, next_token
from vizformer.model import Cache, Edit, Transformer

End = Literal["eos", "limit", "context"]


@dataclass(frozen=True)
class GenerationStep:
    """One generated token, and what it was chosen from.

    Attributes:
        id: the token.
        probabilities: what the model said, softmax(logits) [vocab_size].
        filtered: what was drawn from, after penalty, temperature and cuts [vocab_size].
        cut: what took each token out, `vizformer.generation.Cut` as uint8 [vocab_size].
        length: positions that the decoder had read when it chose.
        cache_bytes: keys and values kept of them (and of the encoder's memory); 0 without a cache.
        by_hand: whether the token was given (`instead`) and not the model's choice.
        end: why the text ends with this token: end mark, limit reached, no position left; None while it goes on.
    """

    id: int
    probabilities: Tensor
    filtered: Tensor
    cut: Tensor
    length: int
    cache_bytes: int
    by_hand: bool = False
    end: End | None = None


@torch.inference_mode()
def stream(
    model: Transformer,
    prompt: Sequence[int],
    prefix: Sequence[int] = (),
    *,
    max_new: int,
    sampling: Sampling = GREEDY,
    instead: Mapping[int, int] | None = None,
    edit: Edit | None = None,
) -> Iterator[GenerationStep]:
    """Generates one sequence; each step decodes only the newest token, the rest is in the KV cache.

    With an `edit` every step is a full forward instead: its cells are counted from the start of the sequence.

    Args:
        prompt: what the encoder reads (encoder-decoder) or what the text starts with (decoder-only).
        prefix: what the target starts with (encoder-decoder; its start mark comes first).
        max_new: at most this many new tokens; fewer when the end mark comes or the positions run out.
        sampling: how a token is chosen.
        instead: step -> id of the token to take there, whatever the model would choose.  The random numbers go on as
            if nothing had happened: naming the tokens that were drawn anyway changes nothing.
        edit: numbers set by hand in every forward.

    Raises:
        GenerationError: an id of `instead` outside the vocabulary.
        TraceError: an empty or too long prompt, an id outside the vocabulary.
    """
    config, device = model.config, model.embedding.weight.device
    instead = _checked(instead or {}, config.vocab_size)
    memory = None
    ids = list(prompt)
    if model.encoder is not None:
        memory = model.encode(torch.tensor([ids], dtype=torch.long, device=device), edit=edit)  # [1, n, d_model]
        ids = list(prefix)
    generator = torch.Generator().manual_seed(sampling.seed)
    cache = Cache() if edit is None else None
    room = config.max_positions - len(ids)
    for number in range(min(max_new, room)):
        new = torch.tensor([ids if cache is None else ids[cache.length :]], dtype=torch.long, device=device)
        x = model.decode(new, memory, edit=edit, cache=cache)  # [1, n_new, d_model]
        choice = next_token(model.logits(x[0, -1]), ids, sampling, never=config.never_written)
        id = int(choice.filtered.argmax()) if sampling.is_greedy else draw(choice.filtered, generator)
        id = instead.get(number, id)
        length = len(ids)
        ids.append(id)
        end: End | None = None
        if id == config.eos_id:
            end = "eos"
        elif number + 1 == min(max_new, room):
            end = "context" if room <= max_new else "limit"
        yield GenerationStep(
            id, *choice, length, 0 if cache is None else cache.nbytes, by_hand=number in instead, end=end
        )
        if end is not None:
            return


def _checked(instead: Mapping[int, int], vocab_size: int) -> Mapping[int, int]:
    for id in instead.values():
        if not 0 <= id < vocab_size:
            raise GenerationError(
                "Token id {id} is outside the vocabulary: ids go from 0 to {last}.", id=id, last=vocab_size - 1
            )
    return instead
