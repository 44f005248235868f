"""Numbers set by hand in an app's words, as what the recorder sets while a module's own code runs.

At a site the call is written as a record of ours, changed there, and its z computed again: so queries, keys, values, masks,
scales and heads are set as in our own Transformer.  The stream is set where a block begins or ends.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from vizformer.errors import TraceError
from vizformer.model import Edit, Patch
from vizformer.model.masks import Mask
from vizformer.model.records import AttentionRecord
from vizformer.recorder.as_trace import app_ends, app_points, app_sites
from vizformer.recorder.calls import Call
from vizformer.recorder.edits import HeadEdit, StreamEdit
from vizformer.recorder.recorded_trace import RecordedAttention, RecordedTrace

_AT_SITES = ("q", "k", "v", "z", "pattern", "mask")


@dataclass(frozen=True)
class Places:
    """Where the app's names lie in a module, found by one run.

    Attributes:
        sites: "decoder.2.self": of each call side by side there the module's name, the number of its call in a forward, and
            which heads are its.
        points: "decoder.2.pre": the block that ends there (or the list that begins), and the number of its run.
        ends: "decoder.2": likewise where that layer ends.
    """

    sites: Mapping[str, tuple[tuple[str, int, tuple[int, ...]], ...]]
    points: Mapping[str, tuple[str, int]]
    ends: Mapping[str, tuple[str, int]]

    @classmethod
    def of(cls, trace: RecordedTrace) -> "Places":
        sites = {}
        for name, attention in app_sites(trace).items():
            side, heads = attention.steps[0], [number for number, _ in attention._where]
            sites[name] = tuple(
                (call.site, call.call, tuple(head for head, of in enumerate(heads) if of == number))
                for number, call in enumerate(side)
            )
        runs: dict[int, int] = {}
        for number, point in enumerate(trace.points):
            before = trace.points[:number]
            runs[id(point)] = sum((one.name, one.forward) == (point.name, point.forward) for one in before)
        points = {name: (found[0].name, runs[id(found[0])]) for name, found in app_points(trace).items()}
        ends = {name: (point.name, runs[id(point)]) for name, point in app_ends(trace).items()}
        return cls(sites, points, ends)


def as_recorded(edit: Edit, places: Places) -> list[HeadEdit | StreamEdit]:
    """Translates an edit into the changes that the recorder makes in one forward.

    Raises:
        TraceError: a part that a module of somebody's own code does not name.
    """
    _check(edit, places)
    made: list[HeadEdit | StreamEdit] = []
    for layer in edit.skipped:
        made += _skipped(places, layer)
    names = _names(edit)
    for name in places.points.keys() & names:
        block, run = places.points[name]
        made.append(StreamEdit(block, lambda x, name=name: _in_rows(x, lambda rows: edit.apply(name, rows)), run))  # type: ignore[misc]
    wanted = {name.rpartition(".")[0] for name in names} | edit.unscaled | edit.temperatures.keys()
    for site in places.sites.keys() & wanted:
        count = sum(len(heads) for _, _, heads in places.sites[site])
        for module, number, heads in places.sites[site]:
            own = edit if len(heads) == count else _of_heads(edit, heads)
            made.append(HeadEdit(module, change=_changing(own, site), call=number))
    return made


def _names(edit: Edit) -> set[str]:
    return {cell.tensor for cell in edit.cells} | {patch.tensor for patch in edit.patches}


def _check(edit: Edit, places: Places) -> None:
    for name in sorted(_names(edit)):
        site, _, part = name.rpartition(".")
        if name not in places.points and not (site in places.sites and part in _AT_SITES):
            raise TraceError(
                "{name} cannot be set in a recorded model. You can set q, k, v, mask, pattern and z of "
                "its attention, and the residual stream between its blocks. Choose one of these, or a "
                "bundled model.",
                name=name,
            )
    for name in (*edit.unscaled, *edit.temperatures):
        if name not in places.sites:
            raise TraceError("There is nothing called {name} to edit in this model.", name=name)
    for layer in edit.skipped:
        if layer not in places.ends or f"{layer}.pre" not in places.points:
            raise TraceError("There is nothing called {name} to edit in this model.", name=layer)


def _skipped(places: Places, layer: str) -> list[HeadEdit | StreamEdit]:
    """The two changes that skip a layer: its input is kept, and replaces its output."""
    entered: list[Tensor] = []

    def keep(x: Tensor) -> Tensor:
        entered[:] = [x]
        return x

    (begin, first), (end, last) = places.points[f"{layer}.pre"], places.ends[layer]
    return [StreamEdit(begin, keep, first), StreamEdit(end, lambda x: entered[0] if entered else x, last)]


def _in_rows(x: Tensor, change: Callable[[Tensor], Tensor]) -> Tensor:
    """The stream with its rows [1, n, d_model] changed, in whatever order of dimensions the module has it."""
    if x.dim() == 2:
        return change(x[None])[0]
    if x.dim() == 3 and x.shape[0] != 1 and x.shape[1] == 1:
        return change(x.transpose(0, 1)).transpose(0, 1)
    return change(x)


def _of_heads(edit: Edit, heads: Sequence[int]) -> Edit:
    """An edit for a call that has only some of a layer's heads, counted from 0 in it."""

    def patch(one: Patch) -> Patch | None:
        if not one.index or one.index[0] is None:
            return one
        return replace(one, index=(heads.index(one.index[0]), *one.index[1:])) if one.index[0] in heads else None

    cells = [
        one if one.tensor.endswith(".mask") else replace(one, index=(heads.index(one.index[0]), *one.index[1:]))
        for one in edit.cells
        if one.tensor.endswith(".mask") or one.index[0] in heads
    ]
    patches = [found for one in edit.patches if (found := patch(one)) is not None]
    return replace(edit, cells=tuple(cells), patches=tuple(patches))


def _changing(edit: Edit, site: str) -> Callable[[Call, int, Tensor], Tensor]:
    def change(call: Call, item: int, z: Tensor) -> Tensor:
        attention = RecordedAttention(call.site, ((call,),), item)
        record = attention.drawn if _needs_record(edit, site) else attention.record
        if record is not None and (new := edited(record, edit, site)) is not record:
            z = torch.stack([new.z(head) for head in range(new.n_heads)]).to(z)
            record = new
        values = z if record is None else record.v
        return edit.heads(site, z[None], values[None].to(z))[0]

    return change


def _needs_record(edit: Edit, site: str) -> bool:
    names = _names(edit) - {f"{site}.z"}
    scaled = {*edit.unscaled, *edit.temperatures}
    return site in scaled or any(name.startswith(f"{site}.") for name in names)


def edited(record: AttentionRecord, edit: Edit, site: str) -> AttentionRecord:
    """A call with what an edit sets in its queries, keys, values, mask and scale; the same where it sets none of these.

    Raises:
        TraceError: of weights that are no softmax of scaled products.
    """
    operands = zip("qkv", (record.q, record.k, record.v), strict=True)
    q, k, v = (edit.apply(f"{site}.{name}", x[None])[0] for name, x in operands)
    mask = None
    if record.bias is not None and record.reason_map is not None:
        mask = Mask(record.bias[None], record.reason_map[None])
    masked = edit.mask(site, mask, record.q[None], record.k[None])
    scale = edit.scale(site, record.scale)
    same = all(torch.equal(one, two) for one, two in ((q, record.q), (k, record.k), (v, record.v)))
    if same and masked is mask and scale == record.scale:
        return record
    record.content_scores(0)  # raises where there are none
    bias, reason = (None, None) if masked is None else (masked.bias[0], masked.reason[0])
    return replace(record, q=q, k=k, v=v, bias=bias, reason_map=reason, scoring=replace(record.scoring, scale=scale))
