"""A model of ours with its tokenizer: what the pages and notebooks work with."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import torch

from vizformer.checkpoints.any_checkpoint import AnyCheckpoint
from vizformer.errors import CheckpointError, TraceError
from vizformer.generation import GREEDY, BeamTree, GenerationStep, Hypothesis, Sampling, beam_search, stream
from vizformer.model import Edit, Trace, Transformer
from vizformer.model.head_weights import HeadWeights, own_head_weights
from vizformer.options.shape import ModelShape
from vizformer.text import Token, Tokenizer


@dataclass(frozen=True, eq=False, repr=False)
class Checkpoint(AnyCheckpoint):
    """A loaded model: frozen weights, its tokenizer, its name (`AnyCheckpoint`).

    Raises:
        CheckpointError: a source_tokenizer for a model whose stacks share one table of embeddings.
    """

    name: str
    model: Transformer
    tokenizer: Tokenizer
    source_tokenizer: Tokenizer | None = field(default=None, kw_only=True)
    is_own: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self.model.eval().requires_grad_(False)
        rows = self.model.config.source_vocab_size
        if rows is not None:  # a table of its own needs no vocabulary of its own
            source = self.tokenizer if self.source_tokenizer is None else self.source_tokenizer
            object.__setattr__(self, "source_tokenizer", source.with_rows(rows))
        elif self.source_tokenizer is not None:
            raise CheckpointError(
                "{name} has one table of embeddings for both stacks: a tokenizer of its own for the source would "
                "mean other tokens by the same ids. Leave out source_tokenizer.",
                name=self.name,
            )
        object.__setattr__(self, "tokenizer", self.tokenizer.with_rows(self.model.config.vocab_size))

    @property
    def shape(self) -> ModelShape:
        return self.model.config.shape

    @property
    def dtype(self) -> torch.dtype:
        return self.model.embedding.weight.dtype

    @property
    def device(self) -> torch.device:
        return self.model.embedding.weight.device

    @cached_property
    def key(self) -> str:
        """A hash of options, weights and tokenizer."""
        digest = hashlib.blake2b(str(self.model.config).encode(), digest_size=12)
        digest.update(self.tokenizer.to_json().encode() + self.tokenizer.target_json.encode())
        if self.source_tokenizer is not None:
            digest.update(b"source" + self.source_tokenizer.to_json().encode())
        if first_tokens := self.tokenizer_of("encoder").first_tokens:
            digest.update(repr(sorted(first_tokens.items())).encode())
        for name, tensor in sorted(self.model.state_dict().items()):
            digest.update(name.encode())
            digest.update(tensor.cpu().contiguous().view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()

    def trace(
        self,
        text: str | None = None,
        *,
        target: str | None = None,
        ids: Sequence[int] | None = None,
        target_ids: Sequence[int] | None = None,
        edit: Edit | None = None,
        heard: Callable[[int, int], None] | None = None,
    ) -> Trace:
        read = self._read(text, target, ids, target_ids, edit)
        trace = Trace(tokens=read, assumed=self.assumed, heard=self._heard(heard))
        given = [self.tensor(tokens) for tokens in read.values()]
        segments = self.segments(next(iter(read.values()))) if len(read) == 1 else None
        with torch.inference_mode():
            self.model(*given, segments=segments, trace=trace, edit=edit)
        return _finished(trace)

    def stream(
        self,
        text: str,
        *,
        target: str = "",
        sampling: Sampling | None = None,
        max_new: int = 100,
        instead: Mapping[int, int] | None = None,
        edit: Edit | None = None,
    ) -> Iterator[GenerationStep]:
        first, prefix = self._sequences(text, target)
        sampling = sampling or GREEDY
        return stream(self.model, first, prefix, max_new=max_new, sampling=sampling, instead=instead, edit=edit)

    def beam(
        self,
        text: str,
        *,
        target: str = "",
        width: int = 4,
        alpha: float = 0.6,
        max_new: int = 100,
        tree: BeamTree | None = None,
    ) -> list[tuple[str, Hypothesis]]:
        first, prefix = self._sequences(text, target)
        found = beam_search(self.model, first, prefix, width=width, alpha=alpha, max_new=max_new, tree=tree)
        return [(self.tokenizer.decode(list(h.ids)).strip(), h) for h in found]

    def _sequences(self, text: str, target: str) -> tuple[list[int], list[int]]:
        """What the first stack reads, and what the decoder behind it begins with."""
        prompt, beginning = ([token.id for token in tokens] for tokens in self.opening(text, target))
        return (prompt, beginning) if self.model.encoder is not None else (beginning, [])

    def _steps(self, prompt: list[int], prefix: list[int], max_new: int, edit: Edit | None) -> Iterator[GenerationStep]:
        return stream(self.model, prompt, prefix, max_new=max_new, edit=edit)

    def embeddings(self, trace: Trace) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
        found = {}
        for stack, tokens in trace.tokens.items():
            table = self.model.token_table(stack)  # type: ignore[arg-type]
            found[stack] = table(self.tensor(tokens)).detach().clone(), table.weight.detach()
        return found

    def logits_of(self, trace: Trace, rows: Mapping[str, torch.Tensor], position: int) -> torch.Tensor:
        model, memory = self.model, None
        first = next(iter(rows))
        ids = {stack: self.tensor(tokens).expand(len(rows[first]), -1) for stack, tokens in trace.tokens.items()}
        segments = self.segments(trace.tokens[first])
        segments = None if segments is None else segments.expand(len(rows[first]), -1)
        x = rows[first]
        if model.encoder is not None:
            run = model.forward_pass("encoder", ids["encoder"])
            x = memory = model.encoder(model.place(rows["encoder"], segments=segments, stack="encoder"), run)
        if model.decoder is not None:
            own = segments if memory is None else None
            run = model.forward_pass("decoder", ids["decoder"], memory=memory)
            x = model.decoder(model.place(rows["decoder"], segments=own, stack="decoder"), run)
        return model.logits(x[:, position])

    def head_weights(self, trace: Trace, site: str) -> HeadWeights:
        return own_head_weights(self.model, trace, site)

    def segments(self, tokens: Sequence[Token]) -> torch.Tensor | None:
        """Which sentence a token belongs to, where the model has segments: a [SEP] in the text begins the next one."""
        config = self.model.config
        if not config.n_segments:
            return None
        ended = [token.id == config.eos_id for token in tokens]
        rows = [[min(sum(ended[:i]), config.n_segments - 1) for i in range(len(tokens))]]
        return torch.tensor(rows, device=self.device)  # [1, n]


def _finished(trace: Trace) -> Trace:
    trace.heard = None
    if trace.edit is not None:
        trace.edit.check(trace.editable())
    elif trace.logits.dtype == torch.float16 and not bool(torch.isfinite(trace.logits).all()):
        raise TraceError(
            "Some numbers of this model grow above 65504, which float16 cannot hold: after that the "
            "results are NaN or infinite. Compute in bfloat16 or float32."
        )
    return trace
