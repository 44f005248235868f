"""A model with its tokenizer: what the pages and notebooks work with."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import index
from typing import Literal, NamedTuple

import torch

from vizformer.errors import CheckpointError, GenerationError, TraceError
from vizformer.generation import GREEDY, BeamTree, GenerationStep, Hypothesis, Sampling, beam_search, stream
from vizformer.model import Edit, Trace, Transformer
from vizformer.model.input_check import check_length
from vizformer.text import Token, Tokenizer

MAX_TARGET = 100  # tokens that `trace` generates at most where no target is given
MAX_CHARACTERS = 20_000  # before tokenizing: far above any context here, far below what would stall a server


class Generation(NamedTuple):
    """What a model made of a text: the new text, its token ids (end mark included), and every step."""

    text: str
    ids: tuple[int, ...]
    steps: tuple[GenerationStep, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Checkpoint:
    """A loaded model: frozen weights, its tokenizer, its name.

    One checkpoint may serve many threads: nothing in it changes after loading.

    Attributes:
        tokenizer: of texts and targets; of targets alone, where the encoder's ids are another vocabulary's.
        source_tokenizer: of texts, where they are; None: `tokenizer` serves both stacks.

    Raises:
        CheckpointError: a source_tokenizer for a model whose stacks share one table of embeddings.
    """

    name: str
    model: Transformer
    tokenizer: Tokenizer
    source_tokenizer: Tokenizer | None = field(default=None, kw_only=True)

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

    def __repr__(self) -> str:
        """One line: what it is, how large, and what is assumed of it."""
        config = self.model.config
        layers = " + ".join(str(count) for count in (config.n_encoder_layers, config.n_decoder_layers) if count)
        assumed = f"; assumes {', '.join(self.assumed)}" if self.assumed else ""
        return (
            f"<{type(self).__name__} {self.name}: {config.architecture}, {layers} layers, d_model {config.d_model}, "
            f"{config.n_heads} heads, {config.vocab_size:,} tokens, {str(self.dtype)[6:]} on {self.device}{assumed}>"
        )

    @property
    def dtype(self) -> torch.dtype:
        """What the model computes in."""
        return self.model.embedding.weight.dtype

    @property
    def device(self) -> torch.device:
        """Where the model computes, and where its traces lie."""
        return self.model.embedding.weight.device

    def tokenizer_of(self, stack: Literal["encoder", "decoder"]) -> Tokenizer:
        """The tokenizer whose ids a stack reads."""
        return self.tokenizer if self.source_tokenizer is None or stack == "decoder" else self.source_tokenizer

    @property
    def assumed(self) -> tuple[str, ...]:
        """What was assumed of the model, as "n_heads = 4"; nothing of one that says itself what it is."""
        return ()

    @property
    def has_head(self) -> bool:
        """Whether the weights predict tokens; if not, the logits mean nothing."""
        return True

    @cached_property
    def key(self) -> str:
        """A hash of options, weights and tokenizer: caches keyed by it can never confuse two models."""
        digest = hashlib.blake2b(str(self.model.config).encode(), digest_size=12)
        digest.update(self.tokenizer.to_json().encode() + self.tokenizer.target_json.encode())
        if self.source_tokenizer is not None:
            digest.update(b"source" + self.source_tokenizer.to_json().encode())
        if first_tokens := self.tokenizer_of("encoder").first_tokens:
            digest.update(repr(sorted(first_tokens.items())).encode())
        for name, tensor in self.model.tensors():
            digest.update(name.encode())
            digest.update(tensor.cpu().contiguous().view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()

    def encode(self, text: str) -> tuple[Token, ...]:
        """The tokens the model reads for `text`.

        Raises:
            TraceError: nothing to read, or more than the model's positions can hold.
        """
        return self._checked(self.tokenizer_of("encoder").encode(readable(text)))

    def encode_target(self, text: str) -> tuple[Token, ...]:
        """The tokens an encoder-decoder's decoder reads for a given translation: start mark, then the text."""
        start = self.tokenizer.tokens(list(self.model.config.start_ids))
        return self._checked((*start, *self.tokenizer.encode_target(readable(text))))

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
        """One full forward over a text (or token ids), with everything kept that the pages need.

        What is kept lies where the model computed it (`device`) and in its precision (`dtype`); `explain` and
        `analysis` bring what they compute to the processor.

        An encoder-decoder needs a target; without one it generates it (greedily, without the end mark).  `edit` sets
        numbers by hand, also while the target is generated.  `heard` is called after every attention call with how many
        are done, and how many there are; what it raises ends the forward.

        Raises:
            TraceError: empty or too long input, a target for a model that has none, an edit of what is not there.
            TokenizerError: an id outside the vocabulary.
        """
        if (text is None) == (ids is None):
            raise TraceError("Give either a text or token ids.")
        reader = self.tokenizer_of("encoder")
        tokens = self.encode(text) if text is not None else self._checked(reader.tokens(_plain(ids)))
        if self.model.encoder is None or self.model.decoder is None:
            if (target and target.strip()) or target_ids is not None:
                raise TraceError("{name} has one stack and takes no target; leave the target empty.", name=self.name)
            stack = "encoder" if self.model.encoder is not None else "decoder"
            trace = Trace(tokens={stack: tokens}, assumed=self.assumed, heard=self._counted(heard))
            with torch.inference_mode():
                self.model(self.tensor(tokens), segments=self.segments(tokens), trace=trace, edit=edit)
            return _finished(trace)
        if target_ids is not None:
            target_tokens = self._checked(self.tokenizer.tokens(_plain(target_ids)))
        elif target is not None and target.strip():
            target_tokens = self.encode_target(target)
        else:
            target_tokens = self._generated_target(tokens, edit)
        read = {"encoder": tokens, "decoder": target_tokens}
        trace = Trace(tokens=read, assumed=self.assumed, heard=self._counted(heard))
        with torch.inference_mode():
            self.model(self.tensor(tokens), self.tensor(target_tokens), trace=trace, edit=edit)
        return _finished(trace)

    def _counted(self, heard: Callable[[int, int], None] | None) -> Callable[[int], None] | None:
        """What a trace tells of its attention calls, told with how many there will be."""
        config = self.model.config
        both = self.model.encoder is not None and self.model.decoder is not None
        total = config.n_encoder_layers + config.n_decoder_layers * (2 if both else 1)
        return None if heard is None else lambda done: heard(done, total)

    def opening(self, text: str, target: str = "") -> tuple[tuple[Token, ...], tuple[Token, ...]]:
        """What generation starts from: what the prompt becomes, and what the decoder's own sequence begins with.

        An encoder-decoder reads `text` and begins with the start mark and then `target`, where one is given.  A
        decoder-only model begins with the text itself; an end mark that its tokenizer adds is left out.

        Raises:
            TraceError: empty or too long input; a model without a decoder.
            GenerationError: a beginning that leaves no position for a new token.
        """
        model = self.model
        if model.decoder is None:
            raise TraceError("{name} has no decoder: it fills in, it does not generate.", name=self.name)
        if model.encoder is None:
            prompt: tuple[Token, ...] = ()
            beginning = self.encode(text)
            if len(beginning) > 1 and beginning[-1].special and beginning[-1].id == model.config.eos_id:
                beginning = beginning[:-1]
        else:
            prompt = self.encode(text)
            beginning = self.encode_target(target) if target.strip() else self.tokenizer.tokens(self._start())
        if len(beginning) >= (limit := model.config.max_positions):
            raise GenerationError(
                "The text fills all {limit} positions of this model: there is no room for a new token. Shorten it.",
                limit=limit,
            )
        return prompt, beginning

    def stream(
        self,
        text: str,
        *,
        target: str = "",
        sampling: Sampling = GREEDY,
        max_new: int = 100,
        instead: Mapping[int, int] | None = None,
        edit: Edit | None = None,
    ) -> Iterator[GenerationStep]:
        """Translation or continuation of `text`, token by token, each with the distribution it was chosen from.

        `target` is what the translation begins with; the rest is as in `vizformer.generation.streaming`.

        Raises:
            TraceError, GenerationError: as `opening`; before the first token.
        """
        prompt, beginning = ([token.id for token in tokens] for tokens in self.opening(text, target))
        first, prefix = (prompt, beginning) if self.model.encoder is not None else (beginning, [])
        return stream(self.model, first, prefix, max_new=max_new, sampling=sampling, instead=instead, edit=edit)

    def generate(
        self, text: str, *, max_new: int = 100, sampling: Sampling = GREEDY, edit: Edit | None = None
    ) -> Generation:
        """Translation or continuation of `text`; greedy unless `sampling` says otherwise.

        Raises:
            TraceError: empty or too long input, or a model without a decoder.
            GenerationError: a prompt that leaves no room for a new token.
        """
        steps = tuple(self.stream(text, max_new=max_new, sampling=sampling, edit=edit))
        ids = tuple(step.id for step in steps)
        return Generation(self.tokenizer.decode(list(ids)).strip(), ids, steps)

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
        """The best translations or continuations that beam search finds, best first, with their scores.

        `target` is what the translation begins with; `tree` records what the search looked at.

        Raises:
            TraceError, GenerationError: as `generate`.
        """
        prompt, beginning = ([token.id for token in tokens] for tokens in self.opening(text, target))
        first, prefix = (prompt, beginning) if self.model.encoder is not None else (beginning, [])
        found = beam_search(self.model, first, prefix, width=width, alpha=alpha, max_new=max_new, tree=tree)
        return [(self.tokenizer.decode(list(h.ids)).strip(), h) for h in found]

    def _generated_target(self, tokens: Sequence[Token], edit: Edit | None) -> tuple[Token, ...]:
        config = self.model.config
        limit = min(MAX_TARGET, config.max_positions - 1)
        start = self._start()
        steps = stream(self.model, [token.id for token in tokens], start, max_new=limit, edit=edit)
        return self.tokenizer.tokens([*start, *(step.id for step in steps if step.id != config.eos_id)])

    def _start(self) -> list[int]:
        """What a decoder behind an encoder begins with, where nothing is given."""
        if not self.model.config.start_ids:
            raise TraceError(
                "Nothing says which token the decoder of {name} begins with: give a target, or open the model with "
                "bos_id.",
                name=self.name,
            )
        return list(self.model.config.start_ids)

    def segments(self, tokens: Sequence[Token]) -> torch.Tensor | None:
        """Which sentence a token belongs to, where the model has segments: a [SEP] in the text begins the next one."""
        config = self.model.config
        if not config.n_segments:
            return None
        ended = [token.id == config.eos_id for token in tokens]
        rows = [[min(sum(ended[:i]), config.n_segments - 1) for i in range(len(tokens))]]
        return torch.tensor(rows, device=self.device)  # [1, n]

    def tensor(self, tokens: Sequence[Token]) -> torch.Tensor:
        """Their ids as the model takes them: [1, n], where the model is."""
        return torch.tensor([[token.id for token in tokens]], device=self.device)

    def _checked(self, tokens: tuple[Token, ...]) -> tuple[Token, ...]:
        check_length(len(tokens), self.model.config.max_positions)
        return tokens


def readable(text: str) -> str:
    if not isinstance(text, str):
        raise TraceError(
            "A text is needed, not {kind}. Token ids are given by name, as ids=[...].", kind=type(text).__name__
        )
    if not text.strip():
        raise TraceError("There is no text yet: type a sentence.")
    check_characters(text)
    return text


def check_characters(text: str, limit: int = MAX_CHARACTERS) -> None:
    """Raises TraceError where a text is longer than `limit`."""
    if len(text) > limit:
        raise TraceError(
            "The text has {n:,} characters; at most {limit:,} can be read at once. Paste a shorter part.",
            n=len(text),
            limit=limit,
        )


def _plain(ids: Sequence[int] | None) -> list[int]:
    """Token ids as numbers of Python, also those of numpy and PyTorch."""
    try:
        return [] if ids is None else [index(id) for id in ids]
    except TypeError as error:
        raise TraceError("Token ids are whole numbers in a list, [3, 14, 15]. A text is given as it is.") from error


def _finished(trace: Trace) -> Trace:
    trace.heard = None
    if trace.edit is not None:
        trace.edit.check(trace.editable())
    elif trace.logits.dtype == torch.float16 and not bool(torch.isfinite(trace.logits).all()):
        raise TraceError(
            "Some numbers of this model grow above 65504, which float16 cannot hold, and from there on nothing is a "
            "number. Compute in bfloat16 or float32."
        )
    return trace
