"""A model of anybody's with its tokenizer: its own code runs, and is recorded."""

import hashlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, ClassVar, NoReturn

import torch
from torch import Tensor, nn

from vizformer.checkpoints.any_checkpoint import AnyCheckpoint
from vizformer.checkpoints.recorded.call import Run, answer_of, rows_of, usual_run
from vizformer.checkpoints.recorded.edits import Places, as_recorded, edited
from vizformer.checkpoints.recorded.embeddings import Embeddings
from vizformer.checkpoints.recorded.reading import CachedModel, RecordedReading
from vizformer.errors import OwnArithmeticError, TraceError, VizformerError
from vizformer.generation import GREEDY, BeamTree, GenerationStep, Hypothesis, Sampling, beam_search_of, stream_of
from vizformer.model import Edit, Trace
from vizformer.model.head_weights import HeadWeights
from vizformer.options.shape import ModelShape
from vizformer.recorder.as_trace import app_sites
from vizformer.recorder.checks import MOST, Checked, check_lengths, lengths_of
from vizformer.recorder.head_weights import WeightsRecorder, weights_of
from vizformer.recorder.head_writes import heard_again
from vizformer.recorder.op_steps import Again
from vizformer.recorder.recorded_trace import RecordedTrace
from vizformer.recorder.recorder import Recorder
from vizformer.text import Tokenizer

_DRAWN = 1000  # ids of which the texts of the checks consist


MOST_PREFIXES = 128  # runs for the logits of a text, of a model that hands back its last row alone


@dataclass(frozen=True, eq=False, repr=False)
class RecordedCheckpoint(AnyCheckpoint):
    """Somebody's own model with its tokenizer, recorded while it runs; `vf.wrap` returns it.

    Attributes:
        module: the model, in evaluation; its parameters are never changed.
        run: runs the module once (`vizformer.checkpoints.recorded.call`).
        predicts: whether it hands back logits.
        places: where the app's names of sites and of points of the stream lie in it.
    """

    name: str
    module: nn.Module
    tokenizer: Tokenizer
    of: ModelShape
    run: Run = usual_run
    predicts: bool = True
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
        return RecordedTrace(
            recorder.calls,
            recorder.points,
            tuple(recorder.escaped.values()),
            recorder.stacks,
            output=recorder.output,
            model_name=type(self.module).__name__,
            tail=recorder.tail,
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
        edits = () if edit is None else as_recorded(edit, self.places)
        given = [self.tensor(tokens) for tokens in read.values()]
        recorded = self.recorded(*given, edits=edits, heard=self._heard(heard))
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
        prompt, start = self._sequences(text, target)
        return self._written(prompt, start, max_new, edit, sampling=sampling or GREEDY, instead=instead)

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
        prompt, start = self._sequences(text, target)
        reading = RecordedReading(partial(self._full, prompt, None))
        found = beam_search_of(reading, self.shape, start, width=width, alpha=alpha, max_new=max_new, tree=tree)
        return [(self.tokenizer.decode(list(h.ids)).strip(), h) for h in found]

    def _sequences(self, text: str, target: str) -> tuple[list[int] | None, list[int]]:
        """What the encoder reads, where there is one, and what the decoder begins with."""
        prompt, beginning = ([token.id for token in tokens] for tokens in self.opening(text, target))
        return (prompt if self.shape.encoder_heads else None), beginning

    def _steps(self, prompt: list[int], prefix: list[int], max_new: int, edit: Edit | None) -> Iterator[GenerationStep]:
        return self._written(prompt, prefix, max_new, edit)

    def _written(
        self, prompt: list[int] | None, start: list[int], max_new: int, edit: Edit | None, **more: Any
    ) -> Iterator[GenerationStep]:
        cached = None
        if edit is None and self.run is usual_run and CachedModel.fits(self.module):
            cached = CachedModel(self.module, self.device, prompt)
        reading = RecordedReading(partial(self._full, prompt, edit), cached)
        return stream_of(reading, self.shape, start, max_new=max_new, **more)

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
        found = []
        for item in range(len(next(iter(rows.values())))):
            own = [each[item] for each in rows.values()]
            logits, at = self._logits_by_rows(trace, own), position
            if len(logits) != n:  # its last row alone: that of the text up to the position
                own[-1], at = own[-1][: position % n + 1], -1
                logits = self._logits_by_rows(trace, own)
            found.append(logits[at])
        return torch.stack(found)

    def head_weights(self, trace: Trace, site: str) -> HeadWeights:
        name, run = trace[site].site, self.again(trace)
        return weights_of(run, heard_again(run, WeightsRecorder), app_sites(run)[name])

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
