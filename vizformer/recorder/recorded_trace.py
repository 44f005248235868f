"""A recorded run: the attention calls by the names of their modules, and the stream at the ends of the blocks."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from vizformer.errors import TraceError
from vizformer.messages import Message
from vizformer.model.head_weights import HeadWeights
from vizformer.model.input_check import check_head
from vizformer.model.records import AttentionRecord, picture
from vizformer.pieces import Piece, patches
from vizformer.recorder.as_trace import app_trace, record_of, stacks_of
from vizformer.recorder.calls import Call, Operand
from vizformer.recorder.form import EXACT, Form, RowProof, form_of, products_of, prove_row, unproved
from vizformer.recorder.head_weights import (
    Out,
    WeightsRecorder,
    WritesRecorder,
    heard_again,
    weights_of,
    writes_of_heads,
    writes_of_keys,
)
from vizformer.recorder.op_steps import Again, OpStep, attention_ops, layer_ops
from vizformer.recorder.patches import deduced
from vizformer.recorder.recorder import Point, Recorder
from vizformer.recorder.tail import Frozen, LogitShares, Tail
from vizformer.recorder.torch_calls import tensors


@dataclass(frozen=True, eq=False, repr=False)
class RecordedAttention:
    """One attention call of one text, with all its heads; with a cache, the queries of all steps.

    Attributes:
        site: the name of the module whose code attends.
        steps: for each step the calls whose heads are concatenated; mostly one step of one call.
        item: the index of the text in the batch.
        tokens: the labels of queries and keys; empty where none were given.
        pieces: what queries and keys are pieces of; empty where it was not said (`RecordedTrace.with_patches`).
    """

    site: str
    steps: tuple[tuple[Call, ...], ...]
    item: int = 0
    tokens: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    pieces: tuple[tuple[Piece, ...], tuple[Piece, ...]] = ((), ())

    def __repr__(self) -> str:
        return f"<RecordedAttention {self.site}: {self.n_heads} heads, {self.n_q} queries, {self.n_k} keys>"

    @cached_property
    def _where(self) -> list[tuple[int, int]]:
        """For each head the index of its call within a step, and its index in that call's flattened batch and heads."""
        found = []
        for number, call in enumerate(self.steps[0]):
            heads = call.heads()
            if not 0 <= self.item < len(heads):
                raise TraceError("There is no text {item}: choose 0 to {last}.", item=self.item, last=len(heads) - 1)
            found += [(number, int(at)) for at in heads[self.item]]
        return found

    @property
    def n_heads(self) -> int:
        return len(self._where)

    @property
    def n_q(self) -> int:
        return sum(step[0].n_q for step in self.steps)

    @cached_property
    def n_k(self) -> int:
        v = self.steps[-1][0].v
        return v.part.tensor.shape[v.labels.index(v.row)]

    @property
    def stack(self) -> str:
        """The name of the list of blocks that the call is in."""
        return self.steps[0][0].stack

    @property
    def is_cross(self) -> bool:
        """Whether the keys are tokens of another stack than the queries."""
        return self.steps[0][0].keys_of != self.stack

    def check(self, head: int) -> None:
        """Raises a TraceError if there is no such head."""
        check_head(head, self.n_heads, self.site)

    @property
    def q(self) -> Float[Tensor, "n_heads n_q d_head"]:
        """The queries as they enter the product with the keys.

        Raises:
            TraceError: it is not known which rows of the product belong to which head; `k` and `scores` raise it too.
        """
        return torch.cat([self._operand(number, "q") for number in range(len(self.steps))], 1)

    @property
    def k(self) -> Float[Tensor, "n_heads n_k d_head"]:
        """The keys; heads that share keys have a copy each."""
        return self._operand(len(self.steps) - 1, "k")

    @property
    def v(self) -> Float[Tensor, "n_heads n_k d_value"]:
        """The values as they enter the product with the map."""
        return self._operand(len(self.steps) - 1, "v")

    def _operand(self, step: int, name: str) -> Tensor:
        found = []
        for number, at in self._where:
            call = self.steps[step][number]
            operand: Operand | None = getattr(call, name)
            rows = None if operand is None else operand.rows(call.lead, at)
            if rows is None:
                raise TraceError(
                    "It is not known which rows are the queries and keys of a head at {site}.", site=self.site
                )
            found.append(rows)
        return torch.stack(found)

    def maps(self) -> Float[Tensor, "n_heads n_q n_k"]:
        """The maps of all heads, recomputed by the recorded calls; 0 for keys that a step did not have yet."""
        rows = []
        for step in self.steps:
            own = [call.maps() for call in step]
            p = torch.stack([own[number][at] for number, at in self._where])
            rows.append(torch.nn.functional.pad(p, (0, self.n_k - p.shape[-1])))
        return torch.cat(rows, 1)

    def pattern(self, head: int) -> Float[Tensor, "n_q n_k"]:
        """The map of a head, which multiplies v. The rows of a softmax sum to 1, minus the share of a sink.

        Raises:
            TraceError: no such head.
        """
        self.check(head)
        rows = []
        number, at = self._where[head]
        for step in self.steps:
            p = step[number].maps(at=at)[0]
            rows.append(torch.nn.functional.pad(p, (0, self.n_k - p.shape[-1])))
        return torch.cat(rows)

    def prove(self, head: int, query: int = -1, row: Tensor | None = None) -> RowProof:
        """Compares a row of a drawn map with what the model multiplied v by (`vizformer.recorder.form`).

        Args:
            query: counted from 0; -1 is the last one.
            row: the drawn row [n_k]; default: that of `pattern(head)`.

        Raises:
            TraceError: no such head or query.
        """
        return prove_row(self, head, query, row)

    @cached_property
    def unproved(self) -> Message | None:
        """The message about the first head whose last row of the drawn map is not the model's; None if there is none,
        or if z was set by hand.
        """
        return None if any(call.set_by_hand for step in self.steps for call in step) else unproved(self)

    def z(self, head: int) -> Float[Tensor, "n_q d_value"]:
        """pattern @ v of a head, as the model computed it.

        Raises:
            TraceError: no such head.
        """
        self.check(head)
        number, at = self._where[head]
        return torch.cat([step[number].z[at] for step in self.steps])  # type: ignore[index]

    def scores(self, head: int) -> Float[Tensor, "n_q n_k"]:
        """The scores before the mask: q k^T * scale, soft-capped if there is a cap, with what is added for positions.

        Raises:
            TraceError: no such head; a map that is no softmax of such scores (`form`).
        """
        self.check(head)
        number, at = self._where[head]
        rows = []
        for step, forms in zip(self.steps, self.forms, strict=True):
            form, product = forms[number], products_of(step[number])
            if form is None or product is None:
                raise TraceError(
                    "The weights at {site} are not the softmax of scaled dot products alone, so there are no scores.",
                    site=self.site,
                )
            rows.append(form.scores(product[at : at + 1], slice(at, at + 1))[0].to(step[number].z))
            if rows[-1].shape[-1] != self.n_k:
                raise TraceError("Not every query at {site} has a score of every key.", site=self.site)
        return torch.cat(rows)

    @cached_property
    def forms(self) -> tuple[tuple[Form | None, ...], ...]:
        """Scale, cap, mask and sinks of each call, if they are found and proved (`vizformer.recorder.form`)."""
        return tuple(tuple(form_of(call) for call in step) for step in self.steps)

    @cached_property
    def record(self) -> AttentionRecord | None:
        """The call as an `AttentionRecord`; None if the weights of a row are no shares of 1."""
        return record_of(self)

    @property
    def drawn(self) -> AttentionRecord:
        """The `record`, which pictures are drawn from.

        Raises:
            TraceError: there is none.
        """
        if self.record is None:
            raise TraceError(
                "At {site} the values are multiplied by numbers that are no attention weights: a row "
                "does not sum to 1. VizFormer draws only attention weights.",
                site=self.site,
            )
        return self.record

    def error(self) -> float:
        """The difference between z, recomputed in float64 from q, k, v and the form, and the model's, as a share of its
        largest number.

        Without a form the map is that of the model's own calls.  If float64 gives another one (a row whose keys are
        all blocked by the least number of float32 has scores there, and none in float32), the map is that of their own
        precision.
        """
        worst = 0.0
        for step, forms in zip(self.steps, self.forms, strict=True):
            for call, form in zip(step, forms, strict=True):
                product = None if form is None else products_of(call)
                weights = call.maps(torch.float64) if form is None or product is None else form.weights(product)
                off = _off(call, weights)
                if form is None and call.z is not None and off > EXACT.get(call.z.dtype, 1e-4):
                    off = min(off, _off(call, call.maps()))
                worst = max(worst, off)
        return worst

    @property
    def is_exact(self) -> bool:
        """Whether `error` is within the tolerance of the model's precision (`EXACT`)."""
        z = self.steps[0][0].z
        return z is not None and self.error() <= EXACT.get(z.dtype, 1e-4)

    def _repr_html_(self) -> str:
        return picture(self)


def _off(call: Call, weights: Tensor) -> float:
    """The difference between weights @ v and z of a call, as a share of the largest number of z."""
    v = call.v.rows(call.lead)
    if v is None or call.z is None:
        return float("inf")
    again = weights.double() @ v.double()
    z = call.z.double()
    there = z.isfinite() & again.isfinite()
    if not bool(there.any()):
        return 0.0
    return float((again - z)[there].abs().max()) / max(1e-3, float(z[there].abs().max()))


class KeyShares(NamedTuple):
    """For each key of a head and a query: its share of a logit, its weight, and the length of its contribution."""

    shares: Float[ndarray, " n_k"]
    weights: Float[ndarray, " n_k"]
    lengths: Float[ndarray, " n_k"]


@dataclass(eq=False, repr=False)
class RecordedTrace:
    """The trace that `vf.record` returns, and that the runs within `vf.recording` fill.

    Attributes:
        escaped: what the recorder could not follow, in words: if there is any, attention may be missing.
        tokens, target_tokens: the labels of the first stack's tokens, and of the others'.
        item: the index of the text that is shown.
        output: the output of the last forward.
        model_name: the class of the model.
        again: how the model is run again for its steps; None if it is not known (`vf.recording`).
        causal: whether the app calls its one stack a decoder; None: it does if no query sees a later token.
        tail: the calls after the last block, kept for `logits_of`.
        images: the sizes of the images that went in, width and height in px.
        configs: for each stack the config that says how images are cut (`vizformer.recorder.patches`).
        pieces: for each stack what its tokens are pieces of (`with_patches`).
    """

    calls: list[Call] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)
    escaped: tuple[Message, ...] = ()
    stacks: tuple[str, ...] = ()
    tokens: tuple[str, ...] = ()
    target_tokens: tuple[str, ...] = ()
    item: int = 0
    output: Any = None
    model_name: str = ""
    again: Again | None = None
    causal: bool | None = None
    tail: Tail | None = None
    images: frozenset[tuple[int, int]] = frozenset()
    configs: Mapping[str, Any] = field(default_factory=dict)
    pieces: Mapping[str, tuple[Piece, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, recorder: Recorder, **more: Any) -> "RecordedTrace":
        """What a recorder has now; after its last run, all of it."""
        return cls(
            recorder.calls,
            recorder.points,
            tuple(recorder.escaped.values()),
            recorder.stacks,
            output=recorder.output,
            model_name=type(recorder.model).__name__,
            tail=recorder.tail,
            **more,
        )

    def __repr__(self) -> str:
        text = f"<RecordedTrace of {self.model_name}: {len(self.sites)} sites, {self.n_runs} runs"
        return f"{text}, {len(self.escaped)} escaped>" if self.escaped else f"{text}>"

    def with_tokens(self, tokens: Sequence[str] = (), target_tokens: Sequence[str] = ()) -> "RecordedTrace":
        """This trace with other token labels for the first and the second stack. Calls of another length get no labels."""
        return replace(self, tokens=tuple(map(str, tokens)), target_tokens=tuple(map(str, target_tokens)))

    def with_patches(
        self,
        rows: int | None = None,
        columns: int | None = None,
        *,
        before: Sequence[str] = (),
        after: Sequence[str] = (),
        size: tuple[int, int] | None = None,
    ) -> "RecordedTrace":
        """This trace with the patches of the image as its tokens, named "row,column".

        Without numbers they follow from the model's config (`vizformer.recorder.patches.BEFORE`) and the run's lengths.

        Args:
            rows: how many rows of patches; the tokens are those of the stacks that have so many in all.
            columns: how many columns.
            before: the names of the tokens before the patches, as "[CLS]".
            after: those of the tokens behind them.
            size: width and height of what the patches cover, px from the upper left corner; default the whole image.

        Raises:
            TraceError: no image went in, or several sizes; a config that does not say it; numbers that do not add up.
        """
        lengths = {one.stack: one.n_q for one in reversed(self.attention) if not one.is_cross and one.stack}
        if len(self.images) != 1:
            raise TraceError(
                "This run read images of {n} sizes: patches are those of one, given as [batch, channels, height, width].",
                n=len(self.images),
            )
        (image,) = self.images
        if rows is None or columns is None:
            found = {at: deduced(one, image, lengths[at]) for at, one in self.configs.items() if at in lengths}
            if not found:
                raise TraceError("The model has no config with image_size and patch_size: say rows and columns.")
            return replace(self, pieces=found)
        own = patches(rows, columns, image, size=size, before=before, after=after)
        if found := {stack: own for stack, n in lengths.items() if n == len(own)}:
            return replace(self, pieces=found)
        raise TraceError(
            "These patches and the other tokens are {n} tokens; the run has: {lengths}.",
            n=len(own),
            lengths=", ".join(f"{stack} {n}" for stack, n in lengths.items()) or "-",
        )

    def of_item(self, item: int) -> "RecordedTrace":
        """The trace of another text of the batch, counted from 0."""
        return replace(self, item=item)

    @cached_property
    def _entries(self) -> list[tuple[str, int, tuple[Call, ...]]]:
        """(site, index of the call in the forward, calls whose heads are concatenated), in the order in which they ran."""
        found: list[tuple[str, int, tuple[Call, ...]]] = []
        seen: set[Call] = set()
        counts: dict[tuple[int, str], int] = {}
        for call in self.calls:
            if call in seen:
                continue
            side = (
                tuple(call.group) if call.group and all(one.forward == call.forward for one in call.group) else (call,)
            )
            seen |= set(side)
            site = _common(one.site for one in side)
            number = counts.get((call.forward, site), 0)
            pieces = tuple(call.pieces or ())
            if not pieces or call is pieces[-1]:
                counts[call.forward, site] = number + 1
            found.append((site, number, side))
        return found

    @cached_property
    def _chains(self) -> dict[str, list[list[int]]]:
        """For each stack its runs; a run is a list of forwards, each of which continues the keys of the one before it."""
        chains: dict[str, list[list[int]]] = {}
        latest: dict[tuple[str, str, int], tuple[Call, ...]] = {}
        for stack in dict.fromkeys(call.stack for call in self.calls):
            for forward in dict.fromkeys(call.forward for call in self.calls if call.stack == stack):
                own = [e for e in self._entries if e[2][0].stack == stack and e[2][0].forward == forward]
                selves = [e for e in own if e[2][0].keys_of == stack]
                pairs = [(latest.get((stack, site, number)), side) for site, number, side in selves]
                growing = [(old, side) for old, side in pairs if old is None or not _rests(old, side)]
                if growing and all(old is not None and _continues(old, side) for old, side in growing):
                    chains[stack][-1].append(forward)
                else:
                    chains.setdefault(stack, []).append([forward])
                latest |= {(stack, site, number): side for site, number, side in own}
        return chains

    def _run_of(self, side: tuple[Call, ...]) -> int:
        return next(at for at, own in enumerate(self._chains[side[0].stack]) if side[0].forward in own)

    @property
    def n_runs(self) -> int:
        """The number of runs; the steps of a generation with a cache count as one."""
        return max(map(len, self._chains.values()), default=0)

    @property
    def sites(self) -> tuple[str, ...]:
        """The names of the modules whose code attends, in the order in which they ran first."""
        return tuple(dict.fromkeys(site for site, _, _ in self._entries))

    def runs(self, site: str) -> tuple[RecordedAttention, ...]:
        """All attention calls of a site, in order.

        Raises:
            TraceError: no such site.
        """
        found: dict[tuple[int, int], list[tuple[Call, ...]]] = {}
        for name, number, side in self._entries:
            if name == site:
                found.setdefault((self._run_of(side), number), []).append(side)
        if not found:
            raise TraceError(
                "This trace has no attention site {site!r}. It has: {known}.",
                site=site,
                known=", ".join(self.sites) or "-",
            )
        return tuple(self._attention(site, steps) for _, steps in sorted(found.items(), key=lambda one: one[0]))

    def _attention(self, site: str, steps: list[tuple[Call, ...]]) -> RecordedAttention:
        made = RecordedAttention(site, tuple(steps), self.item)
        sides = (made.stack, made.n_q), (steps[0][0].keys_of, made.n_k)
        labels = tuple(self.labels(stack) if len(self.labels(stack)) == n else () for stack, n in sides)
        pieces = tuple(self.pieces[stack] if len(self.pieces.get(stack, ())) == n else () for stack, n in sides)
        return replace(made, tokens=(labels[0], labels[1]), pieces=(pieces[0], pieces[1]))

    def labels(self, stack: str) -> tuple[str, ...]:
        """The labels of the tokens of a stack."""
        if stack in self.pieces:
            return tuple(piece.name for piece in self.pieces[stack])
        return self.target_tokens if self.target_tokens and stack in self.stacks[1:] else self.tokens

    def __getitem__(self, site: str) -> RecordedAttention:
        found = self.runs(site)
        if len(found) > 1:
            raise TraceError(
                "{site} ran {n} times: choose one of trace.runs({site!r}), or a run of all by trace.run(number).",
                site=site,
                n=len(found),
            )
        return found[0]

    def run(self, number: int) -> "RecordedTrace":
        """One run as a trace of its own; runs are counted from 0.

        Raises:
            TraceError: no such run.
        """
        if not 0 <= number < max(1, self.n_runs):
            raise TraceError("There is no run {number}: choose 0 to {last}.", number=number, last=self.n_runs - 1)
        kept = {stack: set(chains[min(number, len(chains) - 1)]) for stack, chains in self._chains.items()}
        calls = [call for call in self.calls if call.forward in kept[call.stack]]
        points = [one for one in self.points if one.stack not in kept or one.forward in kept[one.stack]]
        return replace(self, calls=calls, points=points)

    @property
    def attention(self) -> tuple[RecordedAttention, ...]:
        """All attention calls, in the order in which they ran."""
        found: dict[tuple[str, int, int], list[tuple[Call, ...]]] = {}
        for site, number, side in self._entries:
            found.setdefault((site, number, self._run_of(side)), []).append(side)
        return tuple(self._attention(site, steps) for (site, _, _), steps in found.items())

    @cached_property
    def app_stacks(self) -> Mapping[str, str]:
        """The app's name of each list of blocks (`vizformer.recorder.as_trace`)."""
        return stacks_of(self)

    @property
    def streams(self) -> tuple[str, ...]:
        """The names of the lists of repeated blocks (for the stream as it enters) and of their blocks (as it leaves)."""
        return tuple(dict.fromkeys(point.name for point in self.points))

    def residual(self, name: str) -> Float[Tensor, "n d_model"]:
        """The stream at the end of a block, or, for the name of a list of blocks, at the input of the first; of all
        steps of a cache.

        Raises:
            TraceError: no such block, several runs, or a stream without one row per token.
        """
        found = [point for point in self.points if point.name == name]
        if not found:
            raise TraceError(
                "This trace has no residual stream {name!r}. It has: {known}.",
                name=name,
                known=", ".join(self.streams) or "-",
            )
        if len(found) > 1 and len(self._chains.get(found[0].stack, [])) > 1:
            raise TraceError("{name} was met in several runs: choose one by trace.run(number).", name=name)
        return torch.cat([self.rows(point) for point in found])

    def rows(self, point: Point, x: Tensor | None = None) -> Float[Tensor, "n d_model"]:
        """The stream at one point, or x in its shape, one row for each token.

        Raises:
            TraceError: the stream does not have one row per token.
        """
        return self._rows(point.x if x is None else x, self._batch_of(point), self._n_of(point), point.name)

    def _batch_of(self, point: Point) -> int:
        return next((call.batch for call in reversed(self.calls) if call.forward == point.forward), 1)

    def _n_of(self, point: Point) -> int | None:
        return next(
            (call.n_q for call in self.calls if call.stack == point.stack and call.forward == point.forward), None
        )

    def _rows(self, x: Tensor, batch: int, n: int | None, name: str) -> Tensor:
        if x.dim() == 3 and x.shape[0] == n != batch and x.shape[1] == batch:
            return x[:, self.item]
        if x.dim() == 3 and x.shape[0] == batch:
            return x[self.item]
        if x.dim() == 2 and batch == 1:
            return x
        raise TraceError(
            "The stream at {name} has the shape {shape}: it has no row for each token.",
            name=name,
            shape=list(x.shape),
        )

    def logits_of(self, stream: Float[Tensor, "n d_model"]) -> Float[Tensor, "n vocab_size"]:
        """The result of the calls after the last block on a stream: for `residual` of an earlier block this is the
        logit lens.

        The calls run again, whatever they are; that they give the model's own output for its own last stream is checked
        first. A model that returns one row (its last token's) gives one row.

        Args:
            stream: a row for each token, as many as the model read.

        Raises:
            TraceError: several runs; a stream of another shape; no block, or an output that these calls alone do not give.
        """
        own, recorded, point, answer = self._last
        if stream.shape != own.shape:
            raise TraceError(
                "The stream has the shape {shape}; the model's own has {own}.",
                shape=list(stream.shape),
                own=list(own.shape),
            )
        made = self._through(stream.to(point.x), point, answer)
        return self._of_item(made, recorded)

    def logit_shares(self, position: int, token: int, against: int | Literal["mean"] | None = None) -> LogitShares:
        """A token's logit at a position as a sum over blocks of what each wrote into the stream (see `shares`).

        Args:
            against: a token whose logit is subtracted, or "mean" for the mean of all.

        Raises:
            TraceError: what `logits_of` raises; no such position or token; calls after the last block by which no logit
                depends on the stream once what is not linear is held.
        """
        return self._shares(position, token, against)[0]

    def head_shares(
        self, position: int, token: int, against: int | Literal["mean"] | None = None
    ) -> dict[str, tuple[float, ...] | None]:
        """For each site of the last block's list the share of each head in `logit_shares`; the model runs again.

        None for a site whose heads do not sum to the attention's output, or in a block that does more with
        the stream than to add to it (a norm behind the sum).

        Raises:
            TraceError: what `logit_shares` raises; a trace that cannot run its model again.
        """
        _, g, stack = self._shares(position, token, against)
        recorder = heard_again(self, WritesRecorder)
        found: dict[str, tuple[float, ...] | None] = {}
        for attention in self.attention:
            if attention.stack != stack:
                continue
            writes = writes_of_heads(Out(self, recorder, attention), attention)
            found[attention.site] = None if writes is None else tuple((writes[:, position].double() @ g).tolist())
        return found

    def key_shares(
        self, site: str, head: int, position: int, token: int, against: int | Literal["mean"] | None = None
    ) -> KeyShares:
        """The share of a head in `logit_shares`, split by key; the model runs again.

        Raises:
            TraceError: what `head_shares` raises; no such site or head; heads that have no share of their own, or one that
                is no sum over its keys.
        """
        _, g, _ = self._shares(position, token, against)
        attention = self[site]
        attention.check(head)
        writes = writes_of_keys(Out(self, heard_again(self, WritesRecorder), attention), attention, head, position)
        if writes is None:
            raise TraceError("The output of head {head} at {site} is not a sum over its keys.", head=head, site=site)
        rows = writes.double()
        weights = attention.pattern(head)[position].double()
        return KeyShares((rows @ g).numpy(), weights.numpy(), rows.norm(dim=1).numpy())

    def head_weights(self, site: str) -> HeadWeights:
        """W_Q, W_K, W_V and W_O of the heads of a site, if they are found and proved; the model runs again.

        Raises:
            TraceError: no such site; a trace that cannot run its model again.
        """
        return weights_of(self, heard_again(self, WeightsRecorder), self[site])

    def rows_like(self, x: Tensor, call: Call, n: int | None = None) -> Tensor:
        """The text's n rows (default: as many as queries) in a tensor that has the shape of the stream at a call."""
        return self._rows(x, call.batch, call.n_q if n is None else n, call.site)

    def _shares(
        self, position: int, token: int, against: int | Literal["mean"] | None
    ) -> tuple[LogitShares, Tensor, str]:
        """The logit shares, the gradient of the logit, and the name of the stack."""
        own, recorded, point, answer = self._last
        logits = self._of_item(recorded, recorded)
        n, vocab = len(own), logits.shape[1]
        alone = len(logits) == 1 < n  # it returns its last row: the calls read any other row in that place
        if not (alone or len(logits) == n) or not -n <= position < n:
            raise TraceError("There is no row {position}: choose 0 to {last}.", position=position, last=n - 1)
        position %= n
        at, here = (0, n - 1) if alone else (position, position)
        for one in (token, against if isinstance(against, int) else token):
            if not 0 <= one < vocab:
                raise TraceError("There is no token {token}: choose 0 to {last}.", token=one, last=vocab - 1)
        found = [one for one in self.points if one.stack == point.stack]
        streams = [self.rows(one)[position] for one in found]

        def asked(rows: Tensor) -> Tensor:
            row = rows[at]
            return row[token] - (0.0 if against is None else row.mean() if against == "mean" else row[against])

        assert self.tail is not None
        x = point.x.clone()
        self.rows(point, x)[here] = own[position]
        x.requires_grad_()
        with torch.enable_grad():
            made = self.tail.run_again(x, answer, Frozen(x))
            if made is None or not made.requires_grad:
                raise TraceError(
                    "The calls after {name} are not linear in the stream, whatever is held.", name=point.name
                )
            value = asked(self._like_item(made, recorded))
            (gradient,) = torch.autograd.grad(value, x)
        gradient = self.rows(point, gradient).double()
        beside = gradient.clone()
        beside[here] = 0
        if bool(beside.any()):
            raise TraceError("The calls after {name} mix rows: a logit is no sum over one.", name=point.name)
        g = gradient[here]
        written = [streams[0], *(b - a for a, b in pairwise(streams))]
        values = tuple(float(one.double() @ g) for one in written)
        constant = float(value.detach()) - float(own[position].double() @ g)
        logit = float(asked(logits)) if here == position else float(value.detach())
        error = abs(sum(values) + constant - logit)
        return LogitShares(tuple(one.name for one in found), values, constant, logit, error), g, point.stack

    @cached_property
    def _last(self) -> tuple[Tensor, Tensor, Point, int]:
        """The rows of the last stream, the model's output, the point and the index of the output; checked once."""
        points = [one for one in self.points if one.block >= 0]
        if self.tail is None or not points:
            raise TraceError("This trace does not know what runs after the last block: no repeated blocks were found.")
        if self.n_runs > 1 or len({one.forward for one in self.points}) > 1:
            raise TraceError("This trace has {n} runs: choose one by trace.run(number).", n=max(2, self.n_runs))
        point = points[-1]
        outs = list(tensors(self.output))
        named = self._named_logits()
        found = next((one for one in outs if (one is named if named is not None else one.is_floating_point())), None)
        own = self.rows(point)
        if found is not None and found.dim() in (2, 3):
            answer = next(at for at, one in enumerate(outs) if one is found)
            again = self._through(own, point, answer)
            size = max(1.0, float(found.detach().abs().max()))
            if again is not None and again.shape == found.shape:
                mine, theirs = self._of_item(again, found), self._of_item(found, found)
                if bool(((mine - theirs).abs() <= EXACT.get(found.dtype, 1e-4) * size).all()):
                    return own, found, point, answer
        raise TraceError("The calls after {name}, run again, do not give what the model hands back.", name=point.name)

    def _through(self, rows: Tensor, point: Point, answer: int) -> Any:
        assert self.tail is not None
        x = point.x.clone()
        self.rows(point, x).copy_(rows)
        return self.tail.replay(x, answer)

    def _of_item(self, out: Tensor, like: Tensor) -> Tensor:
        """The text's rows in the model's output."""
        return self._like_item(out, like).detach()

    def _like_item(self, out: Tensor, like: Tensor) -> Tensor:
        own, batch = self._last_shape
        if out.dim() == 3 and like.shape[0] == own != batch and like.shape[1] == batch:
            return out[:, self.item]
        return out if out.dim() == 2 and batch == 1 else out[min(self.item, len(out) - 1)]

    @property
    def _last_shape(self) -> tuple[int | None, int]:
        point = next(one for one in reversed(self.points) if one.block >= 0)
        return self._n_of(point), self._batch_of(point)

    def steps(self, site: str, head: int, query: int) -> tuple[OpStep, ...]:
        """The attention of one query in a head, call by call of the author's code: each with its line, its numbers and
        a proof.

        The model runs twice more. Only numbers of this head and this query are kept, at most `op_steps.ROOM` bytes.

        Args:
            site: the name of a site (`sites`), of one run.
            query: counted from 0; -1 is the last one.

        Raises:
            TraceError: no such site, head or query; a trace of `vf.recording`, which cannot run its model again; a model
                that computes something else each time.
        """
        return attention_ops(self, self[site], head, query)

    def layer_steps(self, block: str, query: int) -> tuple[OpStep, ...]:
        """The other calls of one row in a block (`streams`): norms, feed-forward, routers; z of attention is an input.

        Raises:
            TraceError: as `steps`.
        """
        return layer_ops(self, block, query)

    @property
    def logits(self) -> Float[Tensor, "n vocab_size"] | None:
        """What the last forward handed back by the name "logits"; None if it named nothing so, as a bare tensor.

        Of a tensor [batch, n, vocab_size] the rows of the text that is shown.
        """
        found = self._named_logits()
        if found is None:
            return None
        return found.detach() if found.dim() == 2 else found.detach()[min(self.item, len(found) - 1)]

    def _named_logits(self) -> Tensor | None:
        out = self.output
        found = out.get("logits") if isinstance(out, Mapping) else getattr(out, "logits", None)
        return found if isinstance(found, Tensor) and found.dim() in (2, 3) else None

    def as_trace(self) -> Any:
        """The run as a `vf.Trace` by the app's names: "encoder.0.self", "decoder.2.cross", ...

        Raises:
            TraceError: several runs, no attention, a stack that attends to another where there are not two, weights that are
                no shares of 1, a row that is not the model's, layers of other tokens.
        """
        return app_trace(self)

    def save(self, path: str | Path, **about: str) -> None:
        """Writes the run, by the app's names, as a file that `vf.open_trace`, `vf.view` and the app read.

        Args:
            about: further texts about the model and the input, by name.

        Raises:
            TraceError: what `as_trace` raises.
        """
        self.as_trace().save(path, **about)

    @property
    def nbytes(self) -> int:
        """Bytes of queries, keys, values, z and stream; rows that several steps share count once."""
        rows = {one.part.rows for call in self.calls for one in (call.q, call.k, call.v) if one is not None}
        others = [call.z for call in self.calls if call.z is not None] + [point.x for point in self.points]
        return sum(one.nbytes for one in rows) + sum(x.nbytes for x in others)

    def _repr_html_(self) -> str | None:
        return picture(self) if self.calls else None


def _common(names: Iterable[str]) -> str:
    """The longest common prefix of dotted names: "sa.heads" for "sa.heads.0" and "sa.heads.1"; a single name itself."""
    parts = [name.split(".") for name in names]
    same = takewhile(lambda at: len(set(at)) == 1, zip(*parts, strict=False))
    return ".".join(at[0] for at in same)


def _rests(old: tuple[Call, ...], new: tuple[Call, ...]) -> bool:
    """Whether a call reads exactly the keys and values of an earlier one: a memory that no recorded block computed."""
    return len(old) == len(new) and all(
        a.v.part.rows is b.v.part.rows and not b.v.part.added for a, b in zip(old, new, strict=True)
    )


def _continues(old: tuple[Call, ...], new: tuple[Call, ...]) -> bool:
    """Whether a call extends the keys and values of an earlier one by those of its own queries."""
    return len(old) == len(new) and all(
        a.v.part.rows is b.v.part.rows and b.v.part.added == b.n_q and b.v.part.n == a.v.part.n + b.n_q
        for a, b in zip(old, new, strict=True)
    )
