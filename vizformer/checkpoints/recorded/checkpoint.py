"""A model of anybody's with its tokenizer: its own code runs, and is recorded."""

import hashlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple, NoReturn

import torch
from torch import Tensor, nn

from vizformer.checkpoints.any_checkpoint import AnyCheckpoint
from vizformer.checkpoints.recorded.edits import Places, as_recorded, edited
from vizformer.checkpoints.recorded.reading import (
    CachedModel,
    Embeddings,
    RecordedReading,
    Run,
    answer_of,
    rows_of,
    usual_run,
)
from vizformer.config import ModelShape
from vizformer.errors import OwnArithmeticError, TraceError, VizformerError
from vizformer.generation import GREEDY, GenerationStep, Hypothesis, beam_search_of, stream_of
from vizformer.model import Edit, Trace
from vizformer.model.head_weights import HeadWeights
from vizformer.recorder.as_trace import app_sites
from vizformer.recorder.checks import MOST, Checked, check_lengths, lengths_of
from vizformer.recorder.head_weights import (
    PROVED,
    WeightsRecorder,
    heard_again,
    is_scaled,
    through_vocabulary,
    weights_of,
)
from vizformer.recorder.op_steps import Again
from vizformer.recorder.recorded_trace import RecordedTrace
from vizformer.recorder.recorder import Recorder
from vizformer.text import Token, Tokenizer

_DRAWN = 1000  # ids of which the texts of the checks consist
_READ = 32  # tokens of the text by which matrices are found

MOST_PREFIXES = 128  # runs for the logits of a text, of a model that hands back its last row alone


class RecordedCircuits(NamedTuple):
    """The matrices of the heads of the stack that predicts, each up to a positive factor.

    Attributes:
        layers: of each layer, reading the stream at its beginning; None of those that are not found and proved.
        through: W_U W_E [d_model, d_model]; None if it is not found and proved.
    """

    layers: list[HeadWeights]
    through: Tensor | None


@dataclass(frozen=True, eq=False, repr=False)
class RecordedCheckpoint(AnyCheckpoint):
    """Somebody's own model with its tokenizer, recorded while it runs; `vf.wrap` returns it.

    Attributes:
        module: the model, in evaluation; its parameters are never changed.
        run: runs the module once (`vizformer.checkpoints.recorded.reading`).
        predicts: whether it hands back logits.
        last_row_alone: whether it hands back those of its last token alone.
        places: where the app's names of sites and of points of the stream lie in it.
    """

    name: str
    module: nn.Module
    tokenizer: Tokenizer
    of: ModelShape
    run: Run = usual_run
    predicts: bool = True
    last_row_alone: bool = False
    places: Places = field(default_factory=lambda: Places({}, {}, {}))
    source_tokenizer: Tokenizer | None = field(default=None, kw_only=True)
    is_own: ClassVar[bool] = False

    @property
    def shape(self) -> ModelShape:
        return self.of

    @property
    def model(self) -> NoReturn:
        """There is no Transformer of ours behind recorded code.

        Raises:
            OwnArithmeticError: always.
        """
        raise OwnArithmeticError(self.name, self.shape.architecture)

    @property
    def has_head(self) -> bool:
        return self.predicts

    @property
    def dtype(self) -> torch.dtype:
        return next((x.dtype for x in self.module.parameters() if x.is_floating_point()), torch.float32)

    @property
    def device(self) -> torch.device:
        return next((x.device for x in self.module.parameters()), torch.device("cpu"))

    @cached_property
    def key(self) -> str:
        """A hash of the weights, of the classes of the modules with their code, and of what the tokenizer says."""
        digest = hashlib.blake2b(repr(self.shape).encode(), digest_size=12)
        for cls in dict.fromkeys(type(one) for one in self.module.modules()):
            digest.update(f"{cls.__module__}.{cls.__qualname__}".encode())
            if not cls.__module__.startswith("torch."):
                digest.update(_source(cls).encode())
        digest.update(_source(self.run).encode())
        digest.update(repr(self.module).encode() + str(getattr(self.module, "config", "")).encode())
        for name, x in (*self.module.named_parameters(), *self.module.named_buffers()):
            digest.update(f"{name} {x.dtype} {list(x.shape)}".encode())
            x = x.detach().cpu().contiguous()
            digest.update(x.reshape(-1).view(torch.uint8).numpy().tobytes())
        for one in (self.tokenizer, self.source_tokenizer):
            digest.update(b"" if one is None else one.to_json().encode())
        return digest.hexdigest()

    # runs -----------------------------------------------------------------------------------------------------

    def recorded(
        self,
        ids: Tensor,
        target_ids: Tensor | None = None,
        *,
        edits: Sequence[Any] = (),
        heard: Callable[[int], None] | None = None,
    ) -> RecordedTrace:
        """One run of the module, by the modules' own names; see `vf.record`.

        Raises:
            TraceError: what `vf.record` raises; the module's own code raises.
        """
        recorder, said, stopped = Recorder(self.module, edits), 0, list[BaseException]()

        def left(*_: object) -> None:
            nonlocal said
            if heard is None or len(recorder.calls) == said or stopped:
                return
            said = len(recorder.calls)
            try:
                heard(said)
            except BaseException as error:  # it is no failure of the module
                stopped.append(error)
                raise

        recorder.heard = left
        with torch.no_grad(), recorder:
            self._run(ids, target_ids, stopped)
        apart = [call for call in recorder.calls if call.pieces and call.set_by_hand]
        if apart:
            raise TraceError("{site} reads its queries in pieces: nothing is set there by hand.", site=apart[0].site)
        return RecordedTrace.of(
            recorder,
            again=Again(self.module, lambda: self._run(ids, target_ids), tuple(edits)),
            causal=bool(self.shape.decoder_heads) if self.places.sites else None,
        )

    def again(self, trace: Trace) -> RecordedTrace:
        """The run of a trace once more, by the modules' own names, with what was set by hand in it.

        Raises:
            TraceError: what `recorded` raises.
        """
        edits = () if trace.edit is None else as_recorded(trace.edit, self.places)
        return self.recorded(*(self.tensor(tokens) for tokens in trace.tokens.values()), edits=edits)

    def _run(self, ids: Tensor, target_ids: Tensor | None, stopped: Sequence[BaseException] = ()) -> Any:
        try:
            return self.run(self.module, ids) if target_ids is None else self.run(self.module, ids, target_ids)
        except VizformerError:
            raise
        except Exception as error:  # whatever a stranger's code raises
            if stopped:
                raise
            raise TraceError(
                "The model's own code stopped ({kind}: {error}). Use a text that it can read, or correct the code.",
                kind=type(error).__name__,
                error=str(error)[:300],
            ) from error

    def checks(self, *, heard: Callable[[float], None] | None = None) -> Checked:
        """Whether recordings of it are exact, whole and tokenwise, at two lengths (`vizformer.recorder.checks`).

        Args:
            heard: called after every run of the module with which part of all is done; what it raises ends the checks.

        Raises:
            TraceError: what `recorded` raises.
        """
        shape = self.shape
        marks = {shape.pad_id, shape.eos_id, shape.mask_id}

        def drawn(n: int, rows: int) -> Tensor:
            known = [one for one in range(min(rows, _DRAWN)) if one not in marks] or [0]
            at = torch.randint(len(known), (1, n), generator=torch.Generator().manual_seed(n))
            return torch.tensor(known)[at].to(self.device)

        def run(n: int) -> None:
            both = shape.architecture == "encoder-decoder"
            self._run(drawn(n, shape.input_vocab_size), drawn(max(1, 2 * n // 3), shape.vocab_size) if both else None)

        return check_lengths(self.module, run, lengths_of(self.module, min(MOST, shape.max_positions)), heard=heard)

    def _trace(
        self, read: dict[str, tuple[Token, ...]], edit: Edit | None, heard: Callable[[int], None] | None
    ) -> Trace:
        edits = () if edit is None else as_recorded(edit, self.places)
        given = [self.tensor(tokens) for tokens in read.values()]
        recorded = self.recorded(*given, edits=edits, heard=heard)
        labels = [[token.text for token in tokens] for tokens in read.values()]
        trace: Trace = recorded.with_tokens(*labels).as_trace()
        logits = self._logits(recorded.output, given, edit)
        trace = replace(trace, tokens=read, assumed=self.assumed, edit=edit, _logits=logits)
        if edit is None:
            return trace
        edit.check(trace.editable())
        return trace.with_records({site: edited(trace[site], edit, site) for site in trace.sites})

    def _logits(self, out: Any, given: Sequence[Tensor], edit: Edit | None) -> Tensor | None:
        """The logits of all tokens; None of a model that hands back none.

        Of a decoder that hands back its last row alone (nanoGPT) each row is that of the text as far as it goes; None where
        that would be too many runs.
        """
        found, _ = answer_of(out)
        rows, n = None if found is None or not self.predicts else rows_of(found.detach()), given[-1].shape[1]
        if rows is None or len(rows) == n:
            return rows
        if len(rows) != 1 or not self.shape.decoder_heads or n > MOST_PREFIXES:
            return None
        prompt, ids = given[0][0].tolist() if len(given) > 1 else None, given[-1][0].tolist()
        with torch.no_grad():
            before = [answer_of(self._full(prompt, edit, ids[:end]))[0] for end in range(1, n)]
        return torch.cat([found for one in before if one is not None and (found := rows_of(one)) is not None] + [rows])

    def _stream(self, prompt: list[int], beginning: list[int], **options: Any) -> Iterator[GenerationStep]:
        read, edit, cached = prompt or None, options.pop("edit"), None
        options["sampling"] = options.get("sampling") or GREEDY
        if edit is None and self.run is usual_run and CachedModel.fits(self.module):
            cached = CachedModel(self.module, self.device, read)
        reading = RecordedReading(partial(self._full, read, edit), cached)
        return stream_of(reading, self.shape, beginning, **options)

    def _beam(self, prompt: list[int], beginning: list[int], **options: Any) -> Sequence[Hypothesis]:
        return beam_search_of(
            RecordedReading(partial(self._full, prompt or None, None)), self.shape, beginning, **options
        )

    def embeddings(self, trace: Trace) -> dict[str, tuple[Tensor, Tensor]]:
        ids = [self.tensor(tokens) for tokens in trace.tokens.values()]
        with torch.no_grad(), Embeddings(ids) as heard:
            self._run(ids[0], ids[1] if len(ids) > 1 else None)
        found = {}
        for stack, tables in zip(trace.tokens, heard.tables, strict=True):
            if len(tables) != 1:
                raise TraceError(
                    "{name} looks up its tokens in {n} known tables of embeddings: gradients need one.",
                    name=self.name,
                    n=len(tables),
                )
            ((table, rows),) = tables.values()
            found[stack] = rows.detach().reshape(1, len(trace.tokens[stack]), -1).clone(), table.detach()
        return found

    def logits_of(self, trace: Trace, rows: Mapping[str, Tensor], position: int) -> Tensor:
        n = len(next(reversed(trace.tokens.values())))
        at = position % n
        end, row = (at + 1, -1) if self.last_row_alone else (n, at)
        found = []
        for *others, last in zip(*rows.values(), strict=True):
            found.append(self._logits_by_rows(trace, [*others, last[:end]])[row])
        return torch.stack(found)

    def head_weights(self, trace: Trace, site: str) -> HeadWeights:
        name, run = trace[site].site, self.again(trace)
        return weights_of(run, heard_again(run, WeightsRecorder), app_sites(run)[name])

    @cached_property
    def circuits(self) -> "RecordedCircuits":
        """The matrices of the heads that predict, as they read and write the stream.

        Raises:
            TraceError: no vocabulary that two stacks could read is known; what `trace` raises.
        """
        both = self.shape.architecture == "encoder-decoder"
        ids = list(range(min(_READ, self.shape.max_positions, self.shape.vocab_size, self.shape.input_vocab_size)))
        trace = self.trace(ids=ids, target_ids=ids if both else None)
        run, stack = self.again(trace), self.shape.last_stack
        recorder, sites = heard_again(run, WeightsRecorder), app_sites(run)
        layers = [
            weights_of(run, recorder, sites[f"{stack}.{layer}.self"], of_stream=True)
            for layer in range(len(self.shape.heads_of(stack)))
        ]
        return RecordedCircuits(layers, self._through(trace, run) if self.has_head else None)

    def _through(self, trace: Trace, run: RecordedTrace) -> Tensor | None:
        """W_U W_E up to a factor; None where logits or the first layer's rows are no such products."""
        stack = self.shape.last_stack
        try:
            rows, table = self.embeddings(trace)[stack]
            moved = torch.randn(rows.shape[1:], generator=torch.Generator().manual_seed(0)).to(rows) * rows.std()
            ids = [self.tensor(tokens) for tokens in trace.tokens.values()]
            with Embeddings(ids, {len(ids) - 1: rows[0] + moved}):
                other = self.recorded(*ids)
            name = next(one.stack for one in reversed(run.points))
            added = other.residual(name) - run.residual(name)
            if added.shape != moved.shape or not is_scaled(moved.reshape(1, -1), added.reshape(1, -1), PROVED):
                return None
            return through_vocabulary(run, table)
        except TraceError:
            return None

    def _logits_by_rows(self, trace: Trace, rows: Sequence[Tensor]) -> Tensor:
        """The logits of as many tokens of each stack as it has rows [n, d]."""
        ids = [self.tensor(tokens[: len(own)]) for tokens, own in zip(trace.tokens.values(), rows, strict=True)]
        with Embeddings(ids, dict(enumerate(rows))):
            found, _ = answer_of(self._run(ids[0], ids[1] if len(ids) > 1 else None))
        made = None if found is None else rows_of(found)
        if made is None:
            raise TraceError("{name} hands back no logits.", name=self.name)
        return made

    def _full(self, prompt: list[int] | None, edit: Edit | None, ids: Sequence[int]) -> Any:
        """One whole forward over a sequence."""
        given = [torch.tensor([row], device=self.device) for row in (prompt, list(ids)) if row is not None]
        if edit is None:
            return self._run(given[0], given[1] if len(given) > 1 else None)
        return self.recorded(*given, edits=as_recorded(edit, self.places)).output


def _source(of: Any) -> str:
    try:
        return inspect.getsource(of)
    except (OSError, TypeError):  # typed into an interpreter
        return str(getattr(of, "__qualname__", of))
