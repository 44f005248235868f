"""The trace of a forward pass: it keeps little; the rest is recomputed for the head that is shown.

Kept are the records of attention calls (`vizformer.model.records`), and the residual stream.  A
`Trace` is an explicit argument of the forward, so that one model can serve many threads; it never changes a result.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from jaxtyping import Float
from torch import Tensor

from vizformer.errors import TraceError
from vizformer.messages import N_
from vizformer.model.edit import Edit
from vizformer.model.masks import Mask
from vizformer.model.records import AttentionRecord, Scoring, picture

if TYPE_CHECKING:
    from vizformer.text import Token


@dataclass(repr=False)
class Trace:
    """A trace, which a forward fills: `model(ids, trace=trace)`; everything is batch item 0, without the batch dimension.

    Attributes:
        tokens: stack name -> the tokens that went in (filled by `Checkpoint.trace`; empty for a bare forward).
        edit: the numbers set by hand in this forward.
        assumed: options that the model's files lack and that were assumed, such as "n_heads = 4"; pictures say so.
        about: further texts about the model and the input, by name, as a file has them.
        heard: called after every attention call with the number of calls so far; an error that it raises ends the forward.
        logits: [n, vocab_size] of the last stack, once the forward has finished.
    """

    tokens: dict[str, "tuple[Token, ...]"] = field(default_factory=dict)
    edit: Edit | None = None
    assumed: tuple[str, ...] = ()
    about: Mapping[str, str] = field(default_factory=dict)
    heard: Callable[[int], None] | None = None
    _records: dict[str, AttentionRecord] = field(default_factory=dict)
    _residuals: dict[str, Tensor] = field(default_factory=dict)
    _logits: Tensor | None = None

    def __repr__(self) -> str:
        sizes = [f"{len(tokens)} tokens in the {stack}" for stack, tokens in self.tokens.items()]
        return f"<Trace: {', '.join([*sizes, f'{len(self._records)} attention calls'])}>"

    # Called by the model ------------------------------------------------------------------------------------

    def record_attention(
        self,
        site: str,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Mask | None,
        scale: float,
        position_bias: Tensor | None = None,
    ) -> None:
        bias = None if mask is None else mask.bias[0]
        reason = None if mask is None else mask.reason[0]
        place = None if position_bias is None else position_bias[0].detach()
        operands = q[0].detach(), k[0].detach(), v[0].detach()
        self._records[site] = AttentionRecord(
            site,
            *operands,
            bias,
            reason,
            Scoring(scale),
            place,
            self._labels(site),
            self.assumed,
        )
        if self.heard is not None:
            self.heard(len(self._records))

    def record_residual(self, name: str, x: Tensor) -> None:
        self._residuals[name] = x[0].detach()

    def record_logits(self, logits: Tensor, edit: Edit | None) -> None:
        self._logits, self.edit = logits[0].detach(), edit

    def _labels(self, site: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The texts of the queries and of the keys at a site."""
        stack = site.partition(".")[0]
        of_keys = "encoder" if site.endswith(".cross") else stack
        queries, keys = (tuple(token.text for token in self.tokens.get(name, ())) for name in (stack, of_keys))
        return queries, keys

    # Asked by everyone else ---------------------------------------------------------------------------------

    @property
    def sites(self) -> tuple[str, ...]:
        """The attention calls in the order in which they ran, e.g. "encoder.0.self", "decoder.2.cross"."""
        return tuple(self._records)

    @property
    def is_recorded(self) -> bool:
        """Whether somebody else's code computed this forward, so that only its attention and the stream between layers
        are known.
        """
        return "recorded" in self.about

    @property
    def residuals(self) -> MappingProxyType[str, Tensor]:
        return MappingProxyType(self._residuals)

    @property
    def logits(self) -> Float[Tensor, "n vocab_size"]:
        if self.has_no_logits:
            raise TraceError("This trace has no logits: the recorded model returned nothing called logits.")
        if self._logits is None:
            raise TraceError("This trace is empty: pass it to a forward first, as model(ids, trace=trace).")
        return self._logits

    @property
    def has_no_logits(self) -> bool:
        """Whether this is the trace of a recorded model that returns no logits (`vizformer.recorder`)."""
        return self._logits is None and bool(self._records)

    def with_records(self, records: Mapping[str, AttentionRecord]) -> "Trace":
        """The same trace, with these attention calls in place of those at the same sites."""
        return replace(self, _records=self._records | dict(records))

    def __getitem__(self, site: str) -> AttentionRecord:
        if site not in self._records:
            known = ", ".join(self._records)
            raise TraceError(
                N_("This trace has no attention site {site!r}. It has: {known}.", site=site, known=known or "-")
            )
        return self._records[site]

    def residual(self, name: str) -> Float[Tensor, "n d_model"]:
        """The residual stream [n, d_model] at a point: "encoder.0.pre", "decoder.1.mid_cross", "decoder.final", ..."""
        if name not in self._residuals:
            known = ", ".join(self._residuals)
            raise TraceError(
                "This trace has no residual stream {name!r}. It has: {known}.", name=name, known=known or "-"
            )
        return self._residuals[name]

    def first_not_finite(self) -> str | None:
        """The first point of the residual stream that contains inf or NaN; None if all are finite.

        Such a number stays to the end of its stack, so all points are searched only if an end contains one.
        """
        ends = {name.partition(".")[0]: x for name, x in self._residuals.items()}
        if all(bool(x.isfinite().all()) for x in ends.values()):
            return None
        return next(name for name, x in self._residuals.items() if not bool(x.isfinite().all()))

    def save(self, path: str | Path, **about: str) -> None:
        """Writes everything that is kept as a safetensors file (`vizformer.model.trace_file`).

        Args:
            about: further texts about the model and the input, by name.
        """
        import vizformer

        vizformer.save_trace(self, path, **about)

    def editable(self) -> dict[str, tuple[int, ...]]:
        """The tensors that an `Edit` can reach, with their shapes."""
        shapes: dict[str, tuple[int, ...]] = {name: tuple(x.shape) for name, x in self._residuals.items()}
        for site, record in self._records.items():
            shapes |= {f"{site}.{name}": tuple(getattr(record, name).shape) for name in "qkv"}
            shapes[f"{site}.mask"] = (record.q.shape[1], record.k.shape[1])
        return shapes

    def _repr_html_(self) -> str | None:
        """All heads of one kind of attention as HTML, for notebooks."""
        return picture(self) if self._records else None

    @property
    def nbytes(self) -> int:
        """Bytes kept alive by this trace; shared tensors and views count once."""
        tensors: list[Tensor | None] = [*self._residuals.values(), self._logits]
        for record in self._records.values():
            tensors += [
                record.q,
                record.k,
                record.v,
                record.bias,
                record.reason_map,
                record.position_bias,
                record.sinks,
            ]
        storages = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors if t is not None}
        return sum(storages.values())
