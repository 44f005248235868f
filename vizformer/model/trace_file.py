"""A trace as a file that other programs open: safetensors, every tensor under the name that it has here.

    trace.save("trace.safetensors", model="zh-en")
    trace = open_trace("trace.safetensors")

Names: "encoder.0.self.q", ".k", ".v", ".bias", ".reason", ".position_bias", ".sinks" and ".pattern" [heads,
queries, keys] of every attention call, the residual stream ("encoder.0.pre", ...), and "logits".
The metadata hold, as JSON, the scales, the soft caps of scores where there are any, the sites without scores, the sites of
the stream, and the tokens.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from math import isfinite, prod
from pathlib import Path
from typing import Any, NoReturn, cast

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from vizformer.errors import TraceError
from vizformer.messages import N_, Message
from vizformer.model.records import AttentionRecord, Scoring
from vizformer.model.trace import Trace
from vizformer.text.text_growth import shown
from vizformer.text.tokenizer import Token

FORMAT = "vizformer.trace 2"
MOST_PATTERN_BYTES = 64 * 2**20
"""Attention maps are written too if they take at most so many bytes; those of longer texts follow from q, k and the
biases.
"""

MOST_HEADER_BYTES = 16 * 2**20  # the most bytes of names, shapes and metadata, which are read at once
MOST_VALUES = 2**18  # in one part of the metadata; each takes about 100 bytes of memory
MOST_CELLS = 2**33
"""The most cells in all maps of one kind of attention in a file that is opened; reading so many takes half a minute."""

_SITE = re.compile(r"(encoder|decoder)\.(\d{1,4})\.(self|cross)")
_GONE = ("beta", "opened")  # attention tensors that older files contain
_FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


def as_file(trace: Trace, *, about: Mapping[str, str] | None = None) -> bytes:
    """The content of the file.

    Args:
        about: further texts of the metadata, by name.
    """
    metadata = {
        **trace.about,
        **(about or {}),
        "format": FORMAT,
        "scales": json.dumps({site: trace[site].scale for site in trace.sites}),
        "streams": json.dumps(list(trace.residuals)),
        "assumed": json.dumps(trace.assumed),
    }
    if caps := {site: cap for site in trace.sites if (cap := trace[site].scoring.cap) is not None}:
        metadata["score_caps"] = json.dumps(caps)
    if unscored := [site for site in trace.sites if not trace[site].scored]:
        metadata["unscored"] = json.dumps(unscored)
    for stack, tokens in trace.tokens.items():
        metadata[f"tokens.{stack}"] = json.dumps([asdict(token) for token in tokens], ensure_ascii=False)
    return save({name: one.detach().cpu().clone().contiguous() for name, one in tensors(trace).items()}, metadata)


def save_trace(trace: Trace, path: str | Path, **about: str) -> None:
    """Writes the file; `trace.save(path)` does the same."""
    Path(path).write_bytes(as_file(trace, about=about))


def tensors(trace: Trace) -> dict[str, Tensor]:
    """Every tensor of a trace by its name; views of the trace's own."""
    found = dict(trace.residuals)
    cells = sum(trace[site].n_heads * trace[site].q.shape[1] * trace[site].k.shape[1] for site in trace.sites)
    for site in trace.sites:
        record = trace[site]
        parts = {name: getattr(record, name) for name in ("q", "k", "v", "bias", "position_bias", "sinks")}
        for name, tensor in (parts | {"reason": record.reason_map}).items():
            if tensor is not None:
                found[f"{site}.{name}"] = tensor
        if cells * 4 <= MOST_PATTERN_BYTES:
            found[f"{site}.pattern"] = torch.stack([record.pattern(head) for head in range(record.n_heads)])
    return found if trace.has_no_logits else {**found, "logits": trace.logits}


def is_trace(path: str | Path) -> bool:
    """Whether this is the file of a trace, of any version."""
    try:
        return _Opened(Path(path)).about.get("format", "").startswith("vizformer.trace ")
    except TraceError:
        return False


def open_trace(path: str | Path) -> Trace:
    """The trace in a file: attention calls, stream, logits and tokens.

    The file is mapped into memory: the numbers of a head are read when its map is asked for, and it has to stay where it is
    as long as the trace is used.

    Raises:
        TraceError: a file that is not there, damaged, of another version, or that does not hold together; also later, where
            a head is asked for whose numbers are not finite.
    """
    file = _Opened(Path(path))
    if (known := file.about.get("format")) != FORMAT:
        file.refuse(
            N_("its format is {known}; only {wanted} can be read", known=shown(known, 40), wanted=FORMAT)
            if known
            else N_("it has no format in its metadata")
        )
    tokens = {stack: file.tokens(stack) for stack in ("encoder", "decoder") if f"tokens.{stack}" in file.about}
    labels = {stack: tuple(token.text for token in found) for stack, found in tokens.items()}
    assumed, streams = (tuple(map(str, file.json(name, list))) for name in ("assumed", "streams"))
    scales, caps = file.json("scales", dict), file.json("score_caps", dict) if "score_caps" in file.about else {}
    unscored = file.json("unscored", list) if "unscored" in file.about else []
    records: dict[str, AttentionRecord] = {}
    for site in scales:
        if not _SITE.fullmatch(site):
            file.refuse(N_("{name} is not an attention site", name=shown(site, 60)))
        cap = file.number(caps[site], f"score_caps {site}") if site in caps else None
        found = file.record(site, Scoring(file.number(scales[site], f"scales {site}"), cap), labels, assumed)
        records[site] = replace(found, scored=site not in unscored)
        if site in unscored and found.position_bias is None:
            file.refuse(N_("{name} is missing", name=f"{site}.position_bias"))
    file.check_layers(records)
    residuals = {name: file.tensor(name, 2) for name in streams}
    for name, x in residuals.items():
        if (known_tokens := labels.get(name.partition(".")[0])) and len(x) != len(known_tokens):
            file.refuse(N_("{name} has {n} rows for {tokens} tokens", name=name, n=len(x), tokens=len(known_tokens)))
    about = {name: shown(value, 400) for name, value in file.about.items() if name not in _OURS and "." not in name}
    return Trace(tokens, None, assumed, about, None, records, residuals, file.logits())


_OURS = ("format", "scales", "score_caps", "unscored", "streams", "assumed")


class _Opened:
    """The tensors and metadata of a file. Nothing in it is used unchecked; what is inconsistent is refused with a
    reason.
    """

    def __init__(self, path: Path) -> None:
        self._name = shown(path.name, 80)
        try:
            with path.open("rb") as start:
                if (length := int.from_bytes(start.read(8), "little")) > MOST_HEADER_BYTES:
                    self.refuse(
                        N_("its header has {n:,} bytes; at most {most:,} are read", n=length, most=MOST_HEADER_BYTES)
                    )
            self._file: Any = cast("Any", safe_open)(path, framework="pt")
            self.about: dict[str, str] = self._file.metadata() or {}
            self._names = set(self._file.keys())
        except (OSError, SafetensorError) as error:
            self.refuse(shown(error, 120))

    def refuse(self, problem: Message | str) -> NoReturn:
        raise TraceError(
            "{file} cannot be shown as a trace: {problem}. Save the trace again with this version of VizFormer.",
            file=self._name,
            problem=problem,
        )

    def json(self, name: str, kind: type) -> Any:
        """A part of the metadata, parsed from JSON, which must be of type `kind`."""
        text = self.about.get(name, "")
        try:
            found = json.loads(text) if sum(map(text.count, "[{,")) <= MOST_VALUES else None
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, kind):
            self.refuse(N_("its metadata lack {name}", name=name))
        return found

    def number(self, value: object, name: str) -> float:
        if not isinstance(value, int | float) or not 0 < abs(value) < 1e30:  # (also where it is NaN, or has 400 digits)
            self.refuse(N_("{name} is not a number that can be used", name=name))
        return float(value)

    def tokens(self, stack: str) -> tuple[Token, ...]:
        """The tokens of a stack, with U+FFFD in place of each lone surrogate."""
        kinds: dict[str, Any] = {one.name: one.type for one in fields(Token)}
        found = self.json(name := f"tokens.{stack}", list)
        for token in found:
            good = isinstance(token, dict) and token.keys() == kinds.keys()
            if not good or not all(isinstance(token[one], kinds[one]) for one in kinds):
                self.refuse(N_("its metadata lack {name}", name=name))
            for text in ("text", "piece"):
                token[text] = token[text].encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return tuple(Token(**token) for token in found)

    def logits(self) -> Tensor | None:
        """The logits [n, vocab_size]; None for a recorded model that returned none."""
        return self.tensor("logits", 2) if "logits" in self._names or "recorded" not in self.about else None

    def tensor(self, name: str, sides: int) -> Tensor:
        """A tensor of numbers with `sides` dimensions, none of them of size 0; its values are not read yet."""
        if name not in self._names:
            self.refuse(N_("{name} is missing", name=shown(name, 60)))
        try:
            found: Tensor = self._file.get_tensor(name)
        except (SafetensorError, RuntimeError, MemoryError) as error:
            self.refuse(shown(error, 120))
        wanted = (torch.uint8,) if name.endswith(".reason") else _FLOATS
        if found.dim() != sides or not found.numel() or found.dtype not in wanted:
            self.refuse(self._wrong(name, found))
        return found

    def _wrong(self, name: str, found: Tensor) -> Message:
        shape = list(found.shape)
        return N_(
            "{name} has the shape {shape} and numbers of the kind {kind}", name=name, shape=shape, kind=found.dtype
        )

    def record(
        self, site: str, scoring: Scoring, labels: Mapping[str, tuple[str, ...]], assumed: tuple[str, ...]
    ) -> AttentionRecord:
        """One attention call, whose tensors are checked for consistent shapes."""
        parts = {name: self.tensor(f"{site}.{name}", 3) for name in "qkv"}
        parts |= {
            name: self.tensor(full, 3)
            for name in ("bias", "reason", "position_bias")
            if (full := f"{site}.{name}") in self._names
        }
        sinks = self.tensor(f"{site}.sinks", 2) if f"{site}.sinks" in self._names else None
        (heads, n_q, d), (groups, n_k, _) = parts["q"].shape, parts["k"].shape
        mask = ((1, heads), (1, n_q), (n_k,))
        wanted = {
            "k": ((groups,) if heads % groups == 0 else (), (n_k,), (d,)),
            "v": ((groups,), (n_k,), (parts["v"].shape[2],)),
            "bias": mask,
            "reason": mask,
            "position_bias": ((heads,), (n_q,), (n_k,)),
        }
        for name, part in parts.items():
            if name != "q" and not all(side in sides for side, sides in zip(part.shape, wanted[name], strict=True)):
                self.refuse(self._wrong(f"{site}.{name}", part))
        if ("bias" in parts) != ("reason" in parts):
            self.refuse(N_("{name} is missing", name=f"{site}.{'reason' if 'bias' in parts else 'bias'}"))
        if sinks is not None and (len(sinks) != heads or sinks.shape[1] not in (1, n_q)):
            self.refuse(self._wrong(f"{site}.sinks", sinks))
        stack = site.partition(".")[0]
        queries, keys = (labels.get(one, ()) for one in (stack, "encoder" if site.endswith(".cross") else stack))
        for name, n, known in (("queries", n_q, queries), ("keys", n_k, keys)):
            if known and len(known) != n:
                self.refuse(
                    N_("{name} has {n} rows for {tokens} tokens", name=f"{site} {name}", n=n, tokens=len(known))
                )
        q, k, v, bias, reason = (parts.get(name) for name in ("q", "k", "v", "bias", "reason"))
        place, tokens = parts.get("position_bias"), (queries, keys)
        for gone in _GONE:
            if f"{site}.{gone}" in self._names:
                self.refuse(
                    N_("{name} belongs to attention of a kind that this version no longer has", name=f"{site}.{gone}")
                )
        return _Stored(site, q, k, v, bias, reason, scoring, place, tokens, assumed, sinks)  # type: ignore[arg-type]

    def check_layers(self, records: Mapping[str, AttentionRecord]) -> None:
        """Refuses missing layers, layers of different sizes, and too many layers."""
        of_kind: dict[tuple[str, str], list[AttentionRecord]] = {}
        for site, record in records.items():
            stack, _, what = site.split(".")
            of_kind.setdefault((stack, what), []).append(record)
        for (stack, what), layers in of_kind.items():
            for number, record in enumerate(layers):
                if record.site != (wanted := f"{stack}.{number}.{what}"):
                    self.refuse(N_("{name} is missing", name=f"{wanted}.q"))
                first = layers[0]
                if (record.q.shape[1], record.k.shape[1]) != (first.q.shape[1], first.k.shape[1]):
                    self.refuse(self._wrong(f"{record.site}.q", record.q))
            if (cells := sum(prod(one.q.shape[:2]) for one in layers) * layers[0].k.shape[1]) > MOST_CELLS:
                self.refuse(N_("its maps have {n:,} cells; at most {most:,} are checked", n=cells, most=MOST_CELLS))


class _Stored(AttentionRecord):
    """An attention call whose numbers are read from the file on demand."""

    def check(self, head: int) -> None:
        super().check(head)
        key = self.kv_head(head)
        parts = {"q": self.q[head], "k": self.k[key], "v": self.v[key]}
        ends = {name: (float(low), float(high)) for name, part in parts.items() for low, high in [part.aminmax()]}
        for name in ("bias", "position_bias", "sinks"):  # -inf is what a mask has where it blocks
            if (part := getattr(self, name)) is not None:
                ends[name] = (0.0, float(part[head % len(part)].amax()))
        for name, values in ends.items():
            if not all(map(isfinite, values)):
                raise TraceError("{name} has numbers that are not finite.", name=f"{self.site}.{name}")
