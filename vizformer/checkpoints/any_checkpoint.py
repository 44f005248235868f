"""What pages and analyses may ask of a model with its tokenizer, whoever wrote its arithmetic: one protocol.

`own.checkpoint.Checkpoint` answers with our own Transformer, `recorded.checkpoint.RecordedCheckpoint` with somebody's
own code, recorded while it runs.  What only the first can answer is asked of `checkpoint.model`, after `is_own`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import index
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import torch

from vizformer.config import ModelShape
from vizformer.errors import GenerationError, TraceError
from vizformer.model.input_check import check_length
from vizformer.text import Token, Tokenizer

if TYPE_CHECKING:
    from vizformer.generation import BeamTree, GenerationStep, Hypothesis, Sampling
    from vizformer.model import Edit, Trace, Transformer
    from vizformer.model.head_weights import HeadWeights

MAX_TARGET = 100  # tokens that `trace` generates at most where no target is given
MAX_CHARACTERS = 20_000  # before tokenizing: far above any context here, far below what would stall a server


class Generation(NamedTuple):
    """What a model made of a text: the new text, its token ids (end mark included), and every step."""

    text: str
    ids: tuple[int, ...]
    steps: "tuple[GenerationStep, ...]"


class AnyCheckpoint(ABC):
    """A model with its tokenizer and its name.

    One checkpoint may serve many threads: nothing in it changes after loading.

    Attributes:
        tokenizer: of texts and targets; of targets alone, where the encoder's ids are another vocabulary's.
        source_tokenizer: of texts, where they are; None: `tokenizer` serves both stacks.
        is_own: whether the model is our own Transformer, so that there is `model`, with its weights by role.
    """

    name: str
    tokenizer: Tokenizer
    source_tokenizer: Tokenizer | None
    is_own: ClassVar[bool]

    if TYPE_CHECKING:

        @property
        def model(self) -> "Transformer":
            """Our own Transformer; recorded code raises an OwnArithmeticError."""

    # what a model is ------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def shape(self) -> ModelShape:
        """The sizes of the model and its special tokens."""

    @property
    @abstractmethod
    def key(self) -> str:
        """A hash of all that decides its numbers: caches keyed by it can never confuse two models."""

    @property
    @abstractmethod
    def dtype(self) -> torch.dtype:
        """The dtype in which the model computes."""

    @property
    @abstractmethod
    def device(self) -> torch.device:
        """The device on which the model computes and its traces lie."""

    @property
    def assumed(self) -> tuple[str, ...]:
        """What was assumed of the model, as "n_heads = 4"; nothing of one that says itself what it is."""
        return ()

    @property
    def has_head(self) -> bool:
        """Whether the weights predict tokens; if not, the logits mean nothing."""
        return True

    def __repr__(self) -> str:
        """One line: what it is, how large, and what is assumed of it."""
        shape = self.shape
        layers = " + ".join(str(count) for count in (shape.n_encoder_layers, shape.n_decoder_layers) if count)
        assumed = f"; assumes {', '.join(self.assumed)}" if self.assumed else ""
        return (
            f"<{type(self).__name__} {self.name}: {shape.architecture}, {layers} layers, d_model {shape.d_model}, "
            f"{shape.n_heads} heads, {shape.vocab_size:,} tokens, {str(self.dtype)[6:]} on {self.device}{assumed}>"
        )

    # runs -----------------------------------------------------------------------------------------------------

    def trace(
        self,
        text: str | None = None,
        *,
        target: str | None = None,
        ids: Sequence[int] | None = None,
        target_ids: Sequence[int] | None = None,
        edit: "Edit | None" = None,
        heard: Callable[[int, int], None] | None = None,
    ) -> "Trace":
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
        return self._trace(self._read(text, target, ids, target_ids, edit), edit, self._heard(heard))

    @abstractmethod
    def _trace(
        self, read: dict[str, tuple[Token, ...]], edit: "Edit | None", heard: Callable[[int], None] | None
    ) -> "Trace":
        """One full forward over the tokens of each stack."""

    def stream(
        self,
        text: str,
        *,
        target: str = "",
        sampling: "Sampling | None" = None,
        max_new: int = 100,
        instead: Mapping[int, int] | None = None,
        edit: "Edit | None" = None,
    ) -> "Iterator[GenerationStep]":
        """Translation or continuation of `text`, token by token, each with the distribution it was chosen from.

        `target` is what the translation begins with; the rest is as in `vizformer.generation.streaming`; greedy unless
        `sampling` says otherwise.

        Raises:
            TraceError, GenerationError: as `opening`; before the first token.
        """
        prompt, beginning = self._sequences(text, target)
        return self._stream(prompt, beginning, max_new=max_new, sampling=sampling, instead=instead, edit=edit)

    @abstractmethod
    def _stream(self, prompt: list[int], beginning: list[int], **options: Any) -> "Iterator[GenerationStep]":
        """The steps of a decoder that begins with `beginning`, behind an encoder that reads `prompt` where there is one.

        `options` are max_new and edit, and sampling and instead where they are not usual.
        """

    def beam(
        self,
        text: str,
        *,
        target: str = "",
        width: int = 4,
        alpha: float = 0.6,
        max_new: int = 100,
        tree: "BeamTree | None" = None,
    ) -> "list[tuple[str, Hypothesis]]":
        """The best translations or continuations that beam search finds, best first, with their scores.

        `target` is what the translation begins with; `tree` records what the search looked at.

        Raises:
            TraceError, GenerationError: as `generate`.
        """
        found = self._beam(*self._sequences(text, target), width=width, alpha=alpha, max_new=max_new, tree=tree)
        return [(self.tokenizer.decode(list(h.ids)).strip(), h) for h in found]

    @abstractmethod
    def _beam(self, prompt: list[int], beginning: list[int], **options: Any) -> "Sequence[Hypothesis]":
        """What beam search finds, from what `_stream` begins with, with the options of `beam`."""

    @abstractmethod
    def embeddings(self, trace: "Trace") -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
        """The embedding rows [1, n, d_model] of each stack's tokens, and the embedding table [vocab_size, d_model].

        Raises:
            TraceError: a table that is not found in somebody's own code.
        """

    @abstractmethod
    def logits_of(self, trace: "Trace", rows: Mapping[str, torch.Tensor], position: int) -> torch.Tensor:
        """The logits [b, vocab_size] of one position with other rows [b, n, d] in the place of `embeddings`.

        Numbers set by hand in the trace are not part of it; gradients by the rows are known where PyTorch keeps them.

        Raises:
            TraceError: as `embeddings`.
        """

    @abstractmethod
    def head_weights(self, trace: "Trace", site: str) -> "HeadWeights":
        """W_Q, W_K, W_V with biases and the rows that they read, and W_O, of the heads of a site.

            v_j = x_j W_V + b_V      sum_h z_h W_O,h + b_O = what the attention makes

        W_Q, W_K and W_V are [n_heads, d_in, d_head], W_O is [n_heads, d_head, d_model]; heads that share keys and values
        have the same ones each.  Our own Transformer gives its parameters; where positions or a norm change queries and
        keys, q and k are what W_Q and W_K make before that.  A recorded model runs twice more and gives what its code was
        found to apply, to 1e-5 of its numbers; the others, also W_O where a norm follows the sum, are None.

        Source: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits", for the sum over heads.

        Raises:
            TraceError: no such site; of a recorded model also what its code raises when it runs again.
        """

    def generate(
        self, text: str, *, max_new: int = 100, sampling: "Sampling | None" = None, edit: "Edit | None" = None
    ) -> Generation:
        """Translation or continuation of `text`; greedy unless `sampling` says otherwise.

        Raises:
            TraceError: empty or too long input, or a model without a decoder.
            GenerationError: a prompt that leaves no room for a new token.
        """
        steps = tuple(self.stream(text, max_new=max_new, sampling=sampling, edit=edit))
        ids = tuple(step.id for step in steps)
        return Generation(self.tokenizer.decode(list(ids)).strip(), ids, steps)

    # texts ----------------------------------------------------------------------------------------------------

    def tokenizer_of(self, stack: Literal["encoder", "decoder"]) -> Tokenizer:
        """The tokenizer whose ids a stack reads."""
        return self.tokenizer if self.source_tokenizer is None or stack == "decoder" else self.source_tokenizer

    def encode(self, text: str) -> tuple[Token, ...]:
        """The tokens the model reads for `text`.

        Raises:
            TraceError: nothing to read, or more than the model's positions can hold.
        """
        return self._checked(self.tokenizer_of("encoder").encode(readable(text)))

    def encode_target(self, text: str) -> tuple[Token, ...]:
        """The tokens an encoder-decoder's decoder reads for a given translation: start mark, then the text."""
        start = self.tokenizer.tokens(list(self.shape.start_ids))
        return self._checked((*start, *self.tokenizer.encode_target(readable(text))))

    def opening(self, text: str, target: str = "") -> tuple[tuple[Token, ...], tuple[Token, ...]]:
        """What generation starts from: what the prompt becomes, and what the decoder's own sequence begins with.

        An encoder-decoder reads `text` and begins with the start mark and then `target`, where one is given.  A
        decoder-only model begins with the text itself; an end mark that its tokenizer adds is left out.

        Raises:
            TraceError: empty or too long input; a model without a decoder.
            GenerationError: a beginning that leaves no position for a new token.
        """
        shape = self.shape
        if shape.architecture == "encoder-only":
            raise TraceError("{name} has no decoder, so it cannot generate text.", name=self.name)
        if shape.architecture == "decoder-only":
            prompt: tuple[Token, ...] = ()
            beginning = self.encode(text)
            if len(beginning) > 1 and beginning[-1].special and beginning[-1].id == shape.eos_id:
                beginning = beginning[:-1]
        else:
            prompt = self.encode(text)
            beginning = self.encode_target(target) if target.strip() else self.tokenizer.tokens(self._start())
        if len(beginning) >= (limit := shape.max_positions):
            raise GenerationError(
                "The text fills all {limit} positions of this model: there is no room for a new token. Shorten it.",
                limit=limit,
            )
        return prompt, beginning

    def _sequences(self, text: str, target: str) -> tuple[list[int], list[int]]:
        """The token ids of `opening`."""
        prompt, beginning = ([token.id for token in tokens] for tokens in self.opening(text, target))
        return prompt, beginning

    def _read(
        self,
        text: str | None,
        target: str | None,
        ids: Sequence[int] | None,
        target_ids: Sequence[int] | None,
        edit: "Edit | None",
    ) -> dict[str, tuple[Token, ...]]:
        """The tokens of each stack, as `trace` was asked for them."""
        if (text is None) == (ids is None):
            raise TraceError("Give either a text or token ids.")
        reader = self.tokenizer_of("encoder")
        tokens = self.encode(text) if text is not None else self._checked(reader.tokens(_plain(ids)))
        if self.shape.architecture != "encoder-decoder":
            if (target and target.strip()) or target_ids is not None:
                raise TraceError("{name} has one stack and takes no target; leave the target empty.", name=self.name)
            return {self.shape.last_stack: tokens}
        if target_ids is not None:
            target_tokens = self._checked(self.tokenizer.tokens(_plain(target_ids)))
        elif target is not None and target.strip():
            target_tokens = self.encode_target(target)
        else:
            target_tokens = self._generated_target(tokens, edit)
        return {"encoder": tokens, "decoder": target_tokens}

    def _generated_target(self, tokens: Sequence[Token], edit: "Edit | None") -> tuple[Token, ...]:
        start, eos = self._start(), self.shape.eos_id
        limit = min(MAX_TARGET, self.shape.max_positions - 1)
        steps = self._stream([token.id for token in tokens], start, max_new=limit, edit=edit)
        return self.tokenizer.tokens([*start, *(step.id for step in steps if step.id != eos)])

    def _start(self) -> list[int]:
        """The start tokens of a decoder behind an encoder, where no target is given."""
        if not self.shape.start_ids:
            raise TraceError(
                "No file gives the start token of the decoder of {name}: give a target, or open the model with bos_id.",
                name=self.name,
            )
        return list(self.shape.start_ids)

    def _heard(self, heard: Callable[[int, int], None] | None) -> Callable[[int], None] | None:
        """A callback for the attention calls done, which passes their number and the total on to `heard`."""
        shape = self.shape
        total = len(shape.encoder_heads) + len(shape.decoder_heads) + len(shape.cross_heads)
        return None if heard is None else lambda done: heard(done, total)

    def segments(self, tokens: Sequence[Token]) -> torch.Tensor | None:
        """The segment ids of the tokens [1, n]; None where the model has no segments."""
        return None

    def tensor(self, tokens: Sequence[Token]) -> torch.Tensor:
        """The token ids as a tensor [1, n] on the model's device."""
        return torch.tensor([[token.id for token in tokens]], device=self.device)

    def _checked(self, tokens: tuple[Token, ...]) -> tuple[Token, ...]:
        check_length(len(tokens), self.shape.max_positions)
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
