"""Speculative decoding: a cheap draft proposes the next tokens, and the whole model checks all of them in one forward.

    accepted(d) = min(1, p(d) / q(d))         for each drafted token d in turn, up to the first refused one
    in its place: drawn from max(0, p - q) / sum(max(0, p - q)); after a draft that is accepted whole: one more, from p

q is the draft's distribution of the next token, p the whole model's.  What comes out is distributed as p, whatever q is:
x is drafted and accepted with q(x) min(1, p(x) / q(x)) = min(p(x), q(x)); something is refused with 1 - sum(min(p, q)) =
sum(max(0, p - q)), so that x comes in its place with max(0, p(x) - q(x)); and the two sum to p(x).

Here the draft is the model itself, ended after its first layers (the logit lens), so that no second model is needed.

Source: Leviathan, Kalman, Matias 2023, "Fast Inference from Transformers via Speculative Decoding", section 2 and appendix
A.1; Zhang et al. 2024, "Draft & Verify: Lossless Large Language Model Acceleration via Self-Speculative Decoding".
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from vizformer.errors import GenerationError
from vizformer.generation.sampling import draw
from vizformer.model import Transformer


class Drafted(NamedTuple):
    """A drafted token: its probability under the draft (q) and under the whole model (p), and whether it was taken."""

    id: int
    q: float
    p: float
    is_accepted: bool


@dataclass(frozen=True)
class Round:
    """One forward of the whole model.

    `own`: what it chose itself: in the place of a refused token, or after a draft that was accepted whole; None where the
    text has ended with a drafted token.
    """

    drafted: tuple[Drafted, ...]
    own: int | None

    @property
    def ids(self) -> list[int]:
        """The new tokens of this round."""
        taken = [one.id for one in self.drafted if one.is_accepted]
        return taken if self.own is None else [*taken, self.own]


class Checked(NamedTuple):
    """The rule for one place, token by token of the vocabulary: `kept` + `instead` = p."""

    kept: Float[Tensor, " vocab_size"]  # min(p, q), how often a token is drafted there and accepted
    instead: Float[Tensor, " vocab_size"]  # max(0, p - q), how often it is drawn in the place of a refused one


def checked(p: Float[Tensor, " vocab_size"], q: Float[Tensor, " vocab_size"]) -> Checked:
    """Where each token comes from, if one drafted from q is checked by p."""
    return Checked(torch.minimum(p, q), (p - q).clamp(min=0))


@torch.inference_mode()
def speculative_rounds(
    model: Transformer,
    prompt: Sequence[int],
    prefix: Sequence[int] = (),
    *,
    layers: int,
    drafts: int,
    max_new: int,
    temperature: float = 1.0,
    seed: int = 0,
) -> Iterator[Round]:
    """Writes a text round by round; for clarity without a cache.

    Args:
        prompt, prefix: as in `vizformer.generation.streaming.stream`.
        layers: of the decoder, that the draft goes through; at least 1.
        drafts: tokens that are drafted in a round, at least 1.
        max_new: at most this many new tokens; fewer when the end mark comes or the positions run out.
        temperature: 0 takes the most probable token, of the draft and of the model.

    Raises:
        GenerationError: fewer than one token or layer for the draft, or more layers than the decoder has.
        TraceError: an empty or too long prompt.
    """
    config = model.config
    if not 1 <= layers <= config.n_decoder_layers or drafts < 1:
        raise GenerationError(
            "A draft needs at least one token, and 1 to {most} of the decoder's layers.", most=config.n_decoder_layers
        )
    memory, ids = None, list(prompt)
    if model.encoder is not None:
        memory, ids = model.encode(_row(model, ids)), list(prefix)
    generator = torch.Generator().manual_seed(seed)
    left = min(max_new, config.max_positions - len(ids))
    while left > 0:
        proposed: list[int] = []
        guesses: list[Tensor] = []
        while len(proposed) < min(drafts, left) and (not proposed or proposed[-1] != config.eos_id):
            guesses.append(next_distributions(model, [*ids, *proposed], memory, temperature, layers=layers)[0])
            proposed.append(draw(guesses[-1], generator))
        own = next_distributions(model, [*ids, *proposed], memory, temperature, last=len(proposed) + 1)
        found = _verified(proposed, guesses, own, generator)
        if found.own is not None and (len(found.ids) > left or proposed[-1:] == [config.eos_id] == found.ids[-2:-1]):
            found = Round(found.drafted, None)  # no room for one more, or the text is over
        yield found
        ids += found.ids
        left -= len(found.ids)
        if ids[-1] == config.eos_id:
            return


def next_distributions(
    model: Transformer,
    ids: Sequence[int],
    memory: Float[Tensor, "1 m d_model"] | None,
    temperature: float,
    *,
    layers: int | None = None,
    last: int = 1,
) -> Float[Tensor, "last vocab_size"]:
    """P(next token) after each of the last tokens, in float64, on the CPU; of the model ended after so many layers."""
    config, decoder, row = model.config, model.decoder, _row(model, ids)
    assert decoder is not None
    run, x = model.forward_pass("decoder", row, memory=memory), decoder.split(model.embed(row, stack="decoder"))
    for layer in range(config.n_decoder_layers if layers is None else layers):
        x = decoder.layers[layer](x, run, f"decoder.{layer}")
    x = x[0, -last:]  # [last, (s,) d_model]: no other row meets the vocabulary
    logits = model.logits(decoder.end(x)).double().cpu()
    if config.never_written is not None:
        logits[:, config.never_written] = -torch.inf
    if temperature == 0:
        return torch.nn.functional.one_hot(logits.argmax(-1), logits.shape[-1]).double()
    return torch.softmax(logits / temperature, dim=-1)


def _verified(
    proposed: list[int], guesses: list[Tensor], own: Float[Tensor, "n vocab_size"], generator: torch.Generator
) -> Round:
    """The drafted tokens up to the first refused one, and the model's own in its place or after all of them."""
    drafted: list[Drafted] = []
    for id, q, p in zip(proposed, guesses, own, strict=False):
        share, of_draft = float(p[id]), float(q[id])
        is_accepted = float(torch.rand((), generator=generator, dtype=torch.float64)) * of_draft < share
        drafted.append(Drafted(id, of_draft, share, is_accepted))
        if not is_accepted:
            return Round(tuple(drafted), draw((p - q).clamp(min=0), generator))
    return Round(tuple(drafted), draw(own[len(proposed)], generator))


def _row(model: Transformer, ids: Sequence[int]) -> Int[Tensor, "1 n"]:
    return torch.tensor([list(ids)], dtype=torch.long, device=model.embedding.weight.device)
