"""A model with its tokenizer: what the pages and notebooks work with."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch

from vizformer.errors import TraceError
from vizformer.generation import GenerationStep, Hypothesis, beam_search, greedy_steps
from vizformer.messages import N_
from vizformer.model import Edit, Trace, Transformer
from vizformer.text import Token, Tokenizer

MAX_TARGET = 100  # tokens that `trace` generates at most where no target is given
MAX_CHARACTERS = 20_000  # before tokenizing: far above any context here, far below what would stall a server


class Generation(NamedTuple):
    """What a model made of a text: the new text, its token ids (end mark included), and every step."""

    text: str
    ids: tuple[int, ...]
    steps: tuple[GenerationStep, ...]


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A loaded model: frozen weights, its tokenizer, its name.

    One checkpoint may serve many threads: nothing in it changes after loading.
    """

    name: str
    model: Transformer
    tokenizer: Tokenizer

    def __post_init__(self) -> None:
        self.model.eval().requires_grad_(False)

    @cached_property
    def key(self) -> str:
        """A hash of options, weights and tokenizer: caches keyed by it can never confuse two models."""
        digest = hashlib.blake2b(str(self.model.config).encode(), digest_size=12)
        digest.update(self.tokenizer.to_json().encode())
        for name, tensor in sorted(self.model.state_dict().items()):
            digest.update(name.encode())
            digest.update(tensor.contiguous().view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()

    def encode(self, text: str) -> tuple[Token, ...]:
        """The tokens the model reads for `text`.

        Raises:
            TraceError: nothing to read, or more than the model's positions can hold.
        """
        return self._checked(self._tokens(text))

    def encode_target(self, text: str) -> tuple[Token, ...]:
        """The tokens an encoder-decoder's decoder reads for a given translation: start mark, then the text."""
        bos = self.model.config.bos_id
        start = () if bos is None else self.tokenizer.tokens([bos])
        return self._checked((*start, *self._tokens(text, special=False)))

    def trace(
        self,
        text: str | None = None,
        *,
        target: str | None = None,
        ids: Sequence[int] | None = None,
        target_ids: Sequence[int] | None = None,
        edit: Edit | None = None,
    ) -> Trace:
        """One full forward over a text (or token ids), with everything kept that the pages need.

        An encoder-decoder needs a target; without one it generates it (greedily, without the end mark).  `edit` sets
        numbers by hand, also while the target is generated.

        Raises:
            TraceError: empty or too long input, a target for a model that has none, an edit of what is not there.
            TokenizerError: an id outside the vocabulary.
        """
        if (text is None) == (ids is None):
            raise TraceError(N_("Give either a text or token ids."))
        tokens = self.encode(text) if text is not None else self._checked(self.tokenizer.tokens(list(ids or ())))
        if self.model.encoder is None or self.model.decoder is None:
            if (target and target.strip()) or target_ids is not None:
                raise TraceError(
                    N_("{name} has one stack and takes no target; leave the target empty.", name=self.name)
                )
            stack = "encoder" if self.model.encoder is not None else "decoder"
            trace = Trace(tokens={stack: tokens})
            with torch.inference_mode():
                self.model(_tensor(tokens), trace=trace, edit=edit)
            return _with_known_edits(trace)
        if target_ids is not None:
            target_tokens = self._checked(self.tokenizer.tokens(list(target_ids)))
        elif target is not None and target.strip():
            target_tokens = self.encode_target(target)
        else:
            target_tokens = self._generated_target(tokens, edit)
        trace = Trace(tokens={"encoder": tokens, "decoder": target_tokens})
        with torch.inference_mode():
            self.model(_tensor(tokens), _tensor(target_tokens), trace=trace, edit=edit)
        return _with_known_edits(trace)

    def generate(self, text: str, *, max_new: int = 100, edit: Edit | None = None) -> Generation:
        """Greedy translation or continuation of `text`.

        Raises:
            TraceError: empty or too long input, or a model without a decoder.
        """
        if self.model.decoder is None:
            raise TraceError(N_("{name} has no decoder: it fills in, it does not generate.", name=self.name))
        return self._generate(self.encode(text), max_new, edit)

    def beam(
        self, text: str, *, width: int = 4, alpha: float = 0.6, max_new: int = 100
    ) -> list[tuple[str, Hypothesis]]:
        """The best translations or continuations that beam search finds, best first, with their scores.

        Raises:
            TraceError: as `generate`.
        """
        if self.model.decoder is None:
            raise TraceError(N_("{name} has no decoder: it fills in, it does not generate.", name=self.name))
        tokens, bos = self.encode(text), self.model.config.bos_id
        prefix = () if self.model.encoder is None or bos is None else (bos,)
        found = beam_search(
            self.model, [token.id for token in tokens], prefix, width=width, alpha=alpha, max_new=max_new
        )
        return [(self.tokenizer.decode(list(h.ids)).strip(), h) for h in found]

    def _generate(self, tokens: Sequence[Token], max_new: int, edit: Edit | None) -> Generation:
        bos = self.model.config.bos_id
        prefix = () if self.model.encoder is None or bos is None else (bos,)
        steps = greedy_steps(self.model, [token.id for token in tokens], prefix, max_new=max_new, edit=edit)
        ids = tuple(step.id for step in steps)
        return Generation(self.tokenizer.decode(list(ids)).strip(), ids, tuple(steps))

    def _generated_target(self, tokens: Sequence[Token], edit: Edit | None) -> tuple[Token, ...]:
        config = self.model.config
        limit = min(MAX_TARGET, config.max_positions - 1)
        ids = [id for id in self._generate(tokens, limit, edit).ids if id != config.eos_id]
        start = [] if config.bos_id is None else [config.bos_id]
        return self.tokenizer.tokens([*start, *ids])

    def _tokens(self, text: str, *, special: bool = True) -> tuple[Token, ...]:
        if not text.strip():
            raise TraceError(N_("There is no text yet: type a sentence."))
        if len(text) > MAX_CHARACTERS:
            raise TraceError(
                N_("The text has {n:,} characters; at most {limit:,} can be read at once. Paste a shorter part.",
                   n=len(text), limit=MAX_CHARACTERS)
            )  # fmt: skip
        return self.tokenizer.encode(text, special=special)

    def _checked(self, tokens: tuple[Token, ...]) -> tuple[Token, ...]:
        n, limit = len(tokens), self.model.config.max_positions
        if n == 0:
            raise TraceError(N_("There is no token to look at: type at least one word."))
        if n > limit:
            raise TraceError(
                N_("The text has {n} tokens; this model accepts {limit}. Shorten it by {over}.", n=n, limit=limit,
                   over=n - limit)
            )  # fmt: skip
        return tokens


def _tensor(tokens: Sequence[Token]) -> torch.Tensor:
    return torch.tensor([[token.id for token in tokens]])  # [1, n]


def _with_known_edits(trace: Trace) -> Trace:
    if trace.edit is not None:
        trace.edit.check(trace.editable())
    return trace
