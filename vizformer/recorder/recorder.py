"""The recorder of a thread, which sees every call of torch in the author's own code
(`torch.overrides.TorchFunctionMode`).

A product of two activations starts a chain; elementwise calls and views carry it; a softmax marks it; the product that sums
over the keys closes it, and makes one attention call.  Parameters, and views of them, start no chain.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import ref

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdKeyDictionary

from vizformer.errors import TraceError
from vizformer.messages import N_, Message
from vizformer.model.input_check import check_head
from vizformer.recorder.calls import Call, Layout, Operand
from vizformer.recorder.chain import Held, Node, Part, Product, in_order, products, sides_after
from vizformer.recorder.edits import HeadEdit, StreamEdit, applied
from vizformer.recorder.hooks import here, listen
from vizformer.recorder.hooks import recording as recorders
from vizformer.recorder.tail import Tail
from vizformer.recorder.torch_calls import (
    OPENED,
    PRODUCTS,
    SDPA,
    SILENT,
    VIEWS,
    changed,
    copied,
    ends,
    inputs,
    name_of,
    product_of,
    tensors,
    works_in_place,
)

WEIGHT = "weight"  # the tag of a parameter or a view of one; other tensors have a Node or the bits of their stacks
_ATTENTION = ("softmax", "exp", "relu", "sigmoid")
_OF_NO_TENSORS = vars(nn.Module()).keys() - {"_parameters", "_buffers"}
_ROOMS = frozenset(
    {"new_empty", "new_zeros", "new_ones", "new_full", "empty_like", "zeros_like", "ones_like", "full_like"}
)
_FLEX = ("flex_attention", "flex_attention_hop")


@dataclass
class Point:
    """The stream at the end of a block, or (block -1) at the input of the first one."""

    name: str
    stack: str
    block: int
    forward: int
    x: Tensor


@dataclass
class _Open:
    module: nn.Module
    name: str
    inside: bool  # whether it is a repeated block, or runs in one


def blocks_of(model: nn.Module) -> dict[nn.Module, tuple[str, int]]:
    """The modules between which the stream runs: module -> the name of its list and its index in it.

    A list is one of modules of one class, or an `nn.ModuleList` of classes that come from one (layers that take turns:
    attention, a state space), with modules of their own inside, that lies in no block of another list.
    """
    found: dict[nn.Module, tuple[str, int]] = {}
    names: list[str] = []
    for name, module in model.named_modules():
        if not isinstance(module, nn.ModuleList | nn.Sequential) or not len(module) or None in set(module):
            continue
        inside = min(sum(1 for _ in one.modules()) for one in module)
        outer = any(name.startswith(f"{block}.") for block in names)
        alike = len({type(one) for one in module}) == 1 or (isinstance(module, nn.ModuleList) and _kindred(module))
        if alike and inside > 3 and not outer and not found.keys() & set(module):
            names += [f"{name}.{number}" for number in range(len(module))]
            found |= {one: (name, number) for number, one in enumerate(module)}
    return found


def _kindred(modules: nn.ModuleList) -> bool:
    """Whether the classes of the modules share a base class other than nn.Module; an attention and a feed-forward do
    not.
    """
    shared = set.intersection(*(set(type(one).__mro__) for one in modules))
    return bool(shared - set(nn.ModuleList.__mro__))


class Recorder(TorchFunctionMode):
    """The recorder of one thread and one recording, which fills lists of attention calls and of points of the stream."""

    def __init__(
        self,
        model: nn.Module,
        edits: Sequence[HeadEdit | StreamEdit] = (),
        batch: int | None = None,
        heard: Callable[[str, tuple[Any, ...], dict[str, Any], Any], None] | None = None,
    ) -> None:
        super().__init__()
        self.model, self.batch, self.heard = model, batch, heard
        self.head_edits = [one for one in edits if isinstance(one, HeadEdit)]
        self.stream_edits = [one for one in edits if isinstance(one, StreamEdit)]
        self.met: set[int] = set()  # indices of the edits that were applied
        self.edits = list(edits)
        self.calls: list[Call] = []
        self.points: list[Point] = []
        self.forward, self.output = -1, None
        self.escaped: dict[tuple[str, object], Message] = {}
        self._names: dict[nn.Module, str] = {}
        for name, module in model.named_modules():
            self._names.setdefault(module, name)
        self._blocks = blocks_of(model)
        self._bits = {name: 1 << at for at, name in enumerate(dict.fromkeys(name for name, _ in self._blocks.values()))}
        self._open: list[_Open] = []
        self._tags: Any = WeakIdKeyDictionary()
        self._z: Any = WeakIdKeyDictionary()
        self._queries: Any = WeakIdKeyDictionary()  # z as its product made it -> the dimension of its queries
        self._rooms: Any = WeakIdKeyDictionary()  # tensor that the z of pieces of queries is written to -> their starts
        self._with_z: Any = WeakIdKeyDictionary()  # z with another tensor added, such as that of other keys
        self._sums: Any = WeakIdKeyDictionary()  # tensors computed from a sum of exponentials of scores
        self._copies: dict[tuple[Any, ...], tuple[Tensor, Held]] = {}
        self._own: set[int] = set()
        self._shape: tuple[tuple[int, ...], bool] = ((), False)
        self._given: set[int] = set()
        self.images: set[tuple[int, int]] = set()  # width and height of inputs [batch, channels, height, width]
        self._lengths: set[int] = set()  # possible numbers of tokens, from the inputs
        self._batch: int | None = None
        self._writes: dict[int, int] = {}  # storage -> number of in-place calls on it
        self._written: Any = (
            WeakIdKeyDictionary()
        )  # buffer, or tensor made for numbers to come -> its version after the last call
        self._versions: Any = WeakIdKeyDictionary()  # tensor with a Node -> its version when it was made
        self._between: dict[str, tuple[ref[Tensor], ref[Tensor] | None]] = {}
        self._softmaxes: dict[Node, str] = {}  # the softmaxes over tokens
        self._led: set[Node] = set()
        self.tail = Tail()
        self._depth = 0  # the mode is entered again inside an opened function

    @property
    def stacks(self) -> tuple[str, ...]:
        """The names of the lists of repeated blocks."""
        return tuple(self._bits)

    # around a recording ---------------------------------------------------------------------------------------

    def __enter__(self) -> "Recorder":
        if here.recorder is not None and here.recorder is not self:
            raise TraceError("This thread records already: end that recording first.")
        if here.recorder is None:
            modules = [m for m in self._names if not isinstance(m, torch.jit.ScriptModule)]
            for module, name in self._names.items():
                if isinstance(module, torch.jit.ScriptModule):
                    self.escape(("jit", name), N_("{site} is TorchScript, whose inside is not seen", site=name or "-"))
                if type(module).__name__ == "OptimizedModule" or getattr(module, "_compiled_call_impl", None):
                    raise TraceError(
                        "{site} is compiled, so that its own code does not run: record the module that it was compiled "
                        "from (its _orig_mod).",
                        site=name or "-",
                    )
            listen(modules)
            held = {id(one): one for m in self._names for name, one in vars(m).items() if name not in _OF_NO_TENSORS}
            self._own = {id(x) for x in tensors(list(held.values()), 7)}  # (a config is shared by all modules)
            here.recorder = self
            recorders.add(self)
        super().__enter__()  # type: ignore[no-untyped-call]
        self._depth += 1
        return self

    def __exit__(self, *raised: Any) -> None:
        super().__exit__(*raised)  # type: ignore[no-untyped-call]
        self._depth -= 1
        if not self._depth:
            here.recorder = None
            recorders.discard(self)
            self._end(raised[0] is not None)

    def _end(self, broken: bool) -> None:
        for node, site in self._softmaxes.items():
            if node not in self._led:
                self.escape(
                    ("softmax", site),
                    N_("a softmax at {site} was followed by no product with values that is known", site=site or "-"),
                )
        of_tensors = self._tags, self._z, self._sums, self._with_z, self._queries, self._rooms, self._versions
        for one in (*of_tensors, self._copies, self._written, self._between, self._softmaxes, self._open):
            one.clear()
        missed = [one for at, one in enumerate(self.edits) if at not in self.met]
        if missed and not broken and self.forward >= 0:
            names = ", ".join(str(one.site if isinstance(one, HeadEdit) else one.block) for one in missed)
            raise TraceError(
                "These edits met nothing: {names}. It has these sites: {sites}; and these blocks: {blocks}.",
                names=names,
                sites=", ".join(dict.fromkeys(call.site for call in self.calls)) or "-",
                blocks=", ".join(dict.fromkeys(point.name for point in self.points)) or "-",
            )

    def escape(self, what: tuple[str, object], said: Message) -> None:
        self.escaped.setdefault(what, said)

    # modules --------------------------------------------------------------------------------------------------

    def entered(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any] | None:
        if module not in self._names or _in_backward():
            return None
        given = list(tensors((args, kwargs))) if not self._open or module in self._blocks else []
        if not self._open:
            self.forward += 1
            self.tail.clear()
            self._written.clear()
            for x in (x for one in self._names for x in one._buffers.values()):
                if x is not None and _is_room(x):
                    self._written[x] = x._version
            self._batch = self.batch
            first = next((x for x in given if x.dim()), None)
            self._shape = ((), False) if first is None else (tuple(first.shape), first.is_floating_point())
            self._lengths = {size for x in given for size in x.shape[: -1 if x.is_floating_point() else None]}
            self._given = {id(x) for x in given}
            self.images |= {(x.shape[3], x.shape[2]) for x in given if x.dim() == 4 and x.is_floating_point()}
            for x in given:
                if x not in self._tags:
                    self._tags[x] = 0
        inside = module in self._blocks or bool(self._open and self._open[-1].inside)
        self._open.append(_Open(module, self._names[module], inside))
        if module in self._blocks:
            stack, number = self._blocks[module]
            streams = [x for x in given if x.is_floating_point() and x.dim() > 1]
            if not streams:
                return None
            began, ended = self._between.get(stack, (None, None))
            x = next((x for x in streams if ended is not None and x is ended()), streams[0])
            if number and began is not None and x is began() and (ended is None or x is not ended()):
                self._no_stream(stack)
                return None
            source = self._source(x)
            if number == 0:
                self._between[stack] = ref(x), None
                new = self._point(stack, stack, -1, x)
                if new is not x:
                    self._tags[new] = source | self._bits[stack]
                    return changed(args, lambda t: new if t is x else t), changed(
                        kwargs, lambda t: new if t is x else t
                    )
            self._tags[x] = source | self._bits[stack]
        return None

    def left(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Any:
        if module not in self._names or not any(one.module is module for one in self._open):
            return None
        while self._open.pop().module is not module:
            pass
        if out is None:
            return None
        if self.heard is not None:
            self.heard(self._names[module], args, kwargs, out)
        if module in self._blocks:
            stack, number = self._blocks[module]
            x = next((x for x in tensors(out) if x.is_floating_point() and x.dim() > 1), None)
            if x is not None:
                new = self._point(self._names[module], stack, number, x)
                if new is not x:
                    self._tags[new] = self._source(x)
                    out = changed(out, lambda t: new if t is x else t)
                if stack in self._between:
                    self._between[stack] = self._between[stack][0], ref(new)
                self.tail.begin(new)
        if not self._open:
            self.output = out
            self.tail.end(out)
            if any(self._unknown(x) for x in tensors(out)):
                said = N_(
                    "{site} hands back numbers that no call of this thread made: what another thread computes is not seen",
                    site=self._names[module] or type(module).__name__,
                )
                self.escape(("handed back", module), said)
        return out

    def elsewhere(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Notes a module that another thread, which records nothing, runs on a tensor of this forward: it is not
        followed.
        """
        x, name = next(tensors((args, kwargs)), None), self._names.get(module)
        if x is None or name is None or not self._open:
            return
        above = {name[:at] for at, letter in enumerate(name) if letter == "."} | {name}
        for one in (x, None if x.is_inference() else x._base):
            made = one is not None and id(one) not in self._given and self._tags.get(one, WEIGHT) is not WEIGHT
            if made and not any(("thread", site) in self.escaped for site in above):
                self.escape(
                    ("thread", name), N_("{site} runs in a thread of its own, which is not followed", site=name)
                )

    def _point(self, name: str, stack: str, number: int, x: Tensor) -> Tensor:
        new = x
        run = sum(one.name == name and one.forward == self.forward for one in self.points)
        for edit in self.stream_edits:
            if edit.block == name and edit.call in (None, run):
                self.met |= {at for at, one in enumerate(self.edits) if one is edit}
                new = applied(edit.value, new).clone()
        self.points.append(Point(name, stack, number, self.forward, copied(new)))
        return new

    def _no_stream(self, stack: str) -> None:
        """Forgets a list of modules that all have the same input: these are parallel heads, not consecutive blocks."""
        del self._bits[stack]
        self._blocks = {module: at for module, at in self._blocks.items() if at[0] != stack}
        inside = False
        for one in self._open:
            one.inside = inside = inside or one.module in self._blocks
        self.points[:] = [one for one in self.points if one.stack != stack]
        for call in self.calls:
            call.stack, call.block = ("", -1) if call.stack == stack else (call.stack, call.block)
            call.keys_of = "" if call.keys_of == stack else call.keys_of
        self.tail.clear()

    def _source(self, x: Tensor) -> int:
        tag = self._tags.get(x)
        return tag.source if isinstance(tag, Node) else tag if isinstance(tag, int) else 0

    @property
    def _site(self) -> str:
        return self._open[-1].name if self._open else ""

    # functions ------------------------------------------------------------------------------------------------

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if torch.compiler.is_compiling() or isinstance(func, torch._ops.OpOverload | torch._ops.OpOverloadPacket):
            return func(*args, **kwargs)  # of compiled code only the result is seen, whose origin is unknown
        if func in OPENED:
            with self:
                return OPENED[func](*args, **kwargs)
        name = name_of(func)
        if name in SILENT or not self._open or _in_backward():
            out = func(*args, **kwargs)
            if not self._open and name not in SILENT:
                for x in tensors(out, 2):
                    if x not in self._tags:
                        self._tags[x] = max(map(self._source, inputs(args, kwargs)), default=0)
            return out
        if name in _FLEX:
            self.escape((name, self._site), N_("flex attention at {site} is not seen", site=self._site or "-"))
        ins, tags, source = inputs(args, kwargs), [], 0
        followed: dict[Node, None] = {}
        for x in ins:
            tag = self._tag(x, name)
            tags.append(tag)
            if isinstance(tag, Node):
                followed[tag], source = None, source | tag.source
                tag.stale = tag.stale or self._version(x) != self._versions.get(x)
            elif tag is not WEIGHT:
                source |= tag
        nodes, rooms = tuple(followed), self._read(ins) if self._written else []
        if name in ("dropout", "dropout1d", "dropout2d", "feature_dropout", "alpha_dropout") and nodes:
            self._refuse_dropout(args, kwargs)
        if func is SDPA:
            return self._sdpa(args, kwargs, source)
        node: Node | None = None
        if name in PRODUCTS or (name == "linear" and len(tags) > 1 and WEIGHT not in tags[:2]):
            out, closed, node = self._product(func, name, args, kwargs, source)
        else:
            out, closed = func(*args, **kwargs), False
        for room in rooms:
            self._written[room] = room._version
        if closed:
            return out
        made = args[0] if name == "setitem" else out
        if works_in_place(func) or "out" in kwargs:
            at = _storage(next(tensors(made), None))
            self._writes[at] = self._writes.get(at, 0) + 1
        if not self._open[-1].inside:
            self.tail.note(func, name, ins, args, kwargs, made)
        if node is not None:
            self._tag_node(made, node)
        elif name in PRODUCTS or name == "linear":
            self._tags[made] = source
        elif (nodes and not ends(name, args, kwargs)) or name == "softmax":
            self._follow(func, name, args, kwargs, made, nodes, source)
        else:
            weight = bool(tags) and name in VIEWS and all(tag is WEIGHT for tag in tags)
            for x in (made,) if isinstance(made, Tensor) else tensors(made, 3):
                self._tags[x] = WEIGHT if weight else source
                if (not ins or name in _ROOMS) and _is_room(x):
                    self._written[x] = x._version
        of_exp = name == "sum" and any(one.normal == "exp" for one in nodes)
        if of_exp or (name == "logsumexp" and nodes) or (self._sums and any(x in self._sums for x in ins)):
            self._follow_sums(ins, made)
        if name == "setitem" and isinstance(args[2], Tensor) and args[2] in self._z:
            self._place(args[0], args[1], args[2])
        if self._z and any(x in self._z for x in ins):
            self._follow_z(name, ins, made)
        return out

    def _read(self, ins: list[Tensor]) -> list[Tensor]:
        """The buffers and the tensors made for numbers to come among inputs and what they are views of; names those that
        something else than the calls that are seen has written to.
        """
        found = []
        for x in ins:
            room = x if x.is_inference() or x._base is None else x._base
            if (version := self._written.get(room)) is None:
                continue
            found.append(room)
            site = self._site
            told = any(what == "thread" and str(name).startswith(site) for what, name in self.escaped)
            if room._version != version and not told:
                self.escape(
                    ("written", site),
                    N_(
                        "{site} reads numbers that no call of this thread wrote: what another thread or a kernel writes "
                        "is not seen",
                        site=site or "-",
                    ),
                )
        return found

    def _tag(self, x: Tensor, name: str) -> Any:
        tag = self._tags.get(x)
        if tag is not None:
            return tag
        if isinstance(x, nn.Parameter):
            return WEIGHT
        if self._is_of_model(x):
            self._tags[x] = WEIGHT
            return WEIGHT
        if self._unknown(x):
            self.escape(
                ("tensor", self._site),
                N_("a tensor of unknown origin at {site}, in {name}", site=self._site or "-", name=name),
            )
        self._tags[x] = 0
        return 0

    def _is_of_model(self, x: Tensor) -> bool:
        """Whether x is a parameter or buffer, or a view of one."""
        base = x._base if not x.is_inference() else None
        return any(one is not None and (isinstance(one, nn.Parameter) or id(one) in self._own) for one in (x, base))

    def _unknown(self, x: Tensor) -> bool:
        """Whether no recorded call made x."""
        known = x in self._tags or self._is_of_model(x)
        return not known and x.dim() > 1 and x.is_floating_point()

    def _refuse_dropout(self, args: Any, kwargs: Any) -> None:
        p = kwargs.get("p", args[1] if len(args) > 1 else 0.5)
        training = kwargs.get("training", kwargs.get("train", args[2] if len(args) > 2 else True))
        if training and p:
            raise TraceError(
                "{site} drops attention weights at random: a map that is computed again would be another one. Call "
                "model.eval() first.",
                site=self._site or "-",
            )

    def _held(self, x: Tensor) -> Held:
        """A copy of a tensor, shared by all calls that read the same numbers."""
        key = (x.data_ptr() or id(x), x.dtype, tuple(x.shape), x.stride(), self._version(x))
        if key not in self._copies:
            narrow = x.detach()
            for dim, step in enumerate(x.stride()):
                if step == 0 and x.shape[dim] > 1:
                    narrow = narrow.narrow(dim, 0, 1)
            self._copies[key] = (x, Held(copied(narrow).expand(x.shape)))  # with x kept, no other gets its address
        return self._copies[key][1]

    def _node(
        self, func: Any, name: str, args: Any, kwargs: Any, out: Tensor, before: Any, source: int, **more: Any
    ) -> Node:
        kwargs = {name: value for name, value in kwargs.items() if name != "out"}
        device = out.device.type
        auto = (device, torch.get_autocast_dtype(device)) if torch.is_autocast_enabled(device) else None
        return Node(func, name, args, kwargs, tuple(out.shape), before, source, autocast=auto, **more)

    def _follow(self, func: Any, name: str, args: Any, kwargs: Any, made: Any, nodes: Any, source: int) -> None:
        def fill(x: Tensor) -> Any:
            tag = self._tags.get(x)
            return tag if isinstance(tag, Node) else self._held(x)

        normal = next((node.normal for node in nodes if node.normal), None)
        if name == "softmax" or (name in ("exp", "relu", "sigmoid") and normal is None):
            normal = name
        outs, many = ([made], False) if isinstance(made, Tensor) else (list(tensors(made, 2)), True)
        if not any(x.is_floating_point() for x in outs):
            for x in outs:
                self._tags[x] = source
            return
        args, kwargs = changed(args, fill), changed(kwargs, fill)
        for at, x in enumerate(outs):
            if not x.is_floating_point():
                self._tags[x] = source
                continue
            sides = sides_after(name, args, nodes, x)
            node = self._node(
                func, name, args, kwargs, x, nodes, source, normal=normal, pick=at if many else None, sides=sides
            )
            self._tag_node(x, node)
            if name == "softmax" and (products(node) or self._is_over_tokens(args, kwargs, tuple(x.shape))):
                self._softmaxes[node] = self._site

    def _tag_node(self, x: Tensor, node: Node) -> None:
        self._tags[x], self._versions[x] = node, self._version(x)

    def _is_over_tokens(self, args: Any, kwargs: Any, shape: tuple[int, ...]) -> bool:
        """Whether a softmax may be over tokens: its input is a map of queries and keys, or has as many numbers as there
        are tokens.
        """
        dim = kwargs.get("dim", args[1] if len(args) > 1 else None)
        n = shape[dim] if isinstance(dim, int) and -len(shape) <= dim < len(shape) else 1
        square = len(shape) > 1 and (len(shape) > 3 or shape[-1] in shape[:-1])
        return square or n in self._lengths - {1, self._batch or _batch_of(*self._shape, 0)}

    def _version(self, x: Tensor) -> tuple[int, int]:
        """The version of a tensor, which changes with every in-place call on it or on another view of it."""
        return -1 if x.is_inference() else x._version, self._writes.get(_storage(x), 0)

    def _follow_z(self, name: str, ins: list[Tensor], made: Any) -> None:
        """Follows z on its way to W_O; if several are concatenated, they are the heads of one attention."""
        calls = [self._z.get(x) for x in ins]
        if not isinstance(made, Tensor):
            return
        if name in ("add", "radd"):
            self._with_z[made] = True
        if name in ("cat", "concat", "stack", "hstack", "concatenate") and len(calls) > 1 and all(calls):
            first = calls[0]
            if self._are_pieces(first, ins[0], made):
                self._join(calls)
                return
            features = ins[0].shape[:-1] == made.shape[:-1] and len(first.heads()[0]) > 1  # parts of the same heads' z
            if not features and all(
                one.lead == first.lead and one.n_q == first.n_q and one.group is None for one in calls
            ):
                for one in calls:
                    one.group = calls
        elif calls[0] is not None and len(calls) == 1 and (name in VIEWS or name == "dropout"):
            self._z[made] = calls[0]

    def _place(self, room: Tensor, index: Any, z: Tensor) -> None:
        """Follows z that is written into a tensor for the z of all queries; the last piece completes it."""
        index = index if isinstance(index, tuple) else (index,)
        cut = [at for at, one in enumerate(index) if not isinstance(one, slice) or one != slice(None)]
        if len(cut) != 1 or not isinstance(one := index[cut[0]], slice) or self._queries.get(z) != cut[0]:
            return
        placed = self._rooms.setdefault(room, [])
        placed.append((one.start or 0, self._z[z]))
        placed.sort(key=lambda one: one[0])
        ends = [start + call.n_q for start, call in placed]
        if [start for start, _ in placed] == [0, *ends[:-1]] and ends[-1] == room.shape[cut[0]] and len(placed) > 1:
            self._join([call for _, call in placed])

    def _join(self, pieces: list[Call]) -> None:
        """Joins pieces of queries into one attention call if they cover all its tokens and read the same keys, or a
        beginning of them.
        """
        site, last, said = pieces[0].site, pieces[-1], self.escaped.get(("queries", pieces[0].site))
        own = [one for one in self.calls if (one.site, one.forward) == (site, self.forward)]
        whole = said is not None and sum(one.n_q for one in pieces) == said.values["n"]
        if whole and own == pieces and all(_begins(one, last) for one in pieces):
            for one in pieces:
                one.pieces = pieces
            del self.escaped["queries", site]

    def _are_pieces(self, call: Call, x: Tensor, made: Tensor) -> bool:
        """Whether z of several calls, of which x is the first, were concatenated along the queries: such pieces are no
        heads.
        """
        if x.dim() != made.dim():
            return False
        dim = next((at for at, (own, all_) in enumerate(zip(x.shape, made.shape, strict=True)) if own != all_), -1)
        if x in self._queries:
            return bool(dim == self._queries[x])
        rows = dim != x.dim() - 1 and x.shape[dim] == call.n_q
        return rows and (call.n_q > 1 or ("queries", call.site) in self.escaped)

    def _follow_sums(self, ins: list[Tensor], made: Any) -> None:
        """Follows a sum of exp(scores) on its way to z: what it scales there is a share of the map."""
        if any(x in self._z or x in self._with_z for x in ins):
            self.escape(
                ("scaled", self._site),
                N_(
                    "z at {site} is scaled by numbers made of its own scores: the weights are shares of what is drawn",
                    site=self._site or "-",
                ),
            )
        else:
            for x in tensors(made, 2):
                if not isinstance(self._tags.get(x), Node):
                    self._sums[x] = True

    # attention ------------------------------------------------------------------------------------------------

    def _call(self, n_q: int, n_k: int, source_q: int, source_k: int, **more: Any) -> Call:
        if torch._C._functorch.peek_interpreter_stack() is not None:
            raise TraceError(
                "{site} runs within torch.func (vmap, grad): it cannot be recorded there.", site=self._site
            )
        stack, block = next(
            (self._blocks[one.module] for one in reversed(self._open) if one.module in self._blocks), ("", -1)
        )
        x = next((one.x for one in reversed(self.points) if (one.stack, one.forward) == (stack, self.forward)), None)
        if self._batch is None:
            self._batch = _batch_of(*self._shape, n_q)
            if self._batch == 1 < n_q and x is not None and x.dim() == 3 and n_q in x.shape[:2]:
                self._batch = x.shape[1] if x.shape[0] == n_q else x.shape[0]  # the first input has no texts
        if x is not None and x[..., 0].numel() != n_q * self._batch and n_q not in x.shape[:-1]:
            n = x[..., 0].numel() // self._batch
            said = N_(
                "{site} has {n_q} queries for {n} tokens: they are not its tokens one by one",
                site=self._site,
                n_q=n_q,
                n=n,
            )
            self.escape(("queries", self._site), said)
        own = self._bits.get(stack, 0)
        others = [name for name, bit in self._bits.items() if name != stack and source_k & bit]
        alike = not stack and source_q == source_k and n_q == n_k
        keys_of = others[-1] if others and not source_k & own and not alike else stack
        site = self._site
        number = sum(call.site == site and call.forward == self.forward for call in self.calls)
        call = Call(site, self.forward, number, stack, block, keys_of, self._batch, n_q=n_q, **more)
        return call

    def _earlier(self, call_site: str, number: int) -> Call | None:
        """The call whose keys this one may continue: the one with this index in an earlier forward, else the previous
        one.
        """
        own = [call for call in self.calls if call.site == call_site]
        before = (call for call in reversed(own) if call.call == number and call.forward < self.forward)
        return next(before, own[-1] if own else None)

    def _next_number(self) -> int:
        return sum(call.site == self._site and call.forward == self.forward for call in self.calls)

    def _edits_here(self) -> list[HeadEdit]:
        number = self._next_number()
        found = [one for one in self.head_edits if one.site in (None, self._site) and one.call in (None, number)]
        self.met |= {at for at, one in enumerate(self.edits) if any(one is edit for edit in found)}
        return found

    def _sdpa(self, args: Any, kwargs: Any, source: int) -> Tensor:
        names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
        options = {**dict(zip(names, args, strict=False)), **kwargs}
        q, k, v = (options.pop(name) for name in names[:3])
        if options.get("dropout_p"):
            self._refuse_dropout((None, options["dropout_p"], True), {})
        if not q.shape[-2] or q.is_nested:
            if q.is_nested:
                self.escape(
                    ("nested", self._site),
                    N_("{site} attends to nested tensors, which are not followed", site=self._site),
                )
            out: Tensor = SDPA(*args, **kwargs)
            self._tags[out] = source
            return out
        earlier = self._earlier(self._site, self._next_number())
        lead = q.shape[:-2]
        if not options.get("enable_gqa"):
            lead = torch.broadcast_shapes(lead, v.shape[:-2])  # type: ignore[no-untyped-call]
        letters = list("ABCDEFGH"[: len(lead)])

        def operand(x: Tensor, before: Operand | None, grows: bool) -> Operand:
            labels = "".join(letters[len(letters) - x.dim() + 2 :])
            own, shape = labels, list(x.shape[:-2])
            repeat = 1
            if options.get("enable_gqa") and shape and shape[-1] != lead[-1]:
                repeat = lead[-1] // shape[-1]
            dim = x.dim() - 2 if grows else -1
            part = Part.of(x, dim if grows else x.dim() - 2, before.part if before is not None and grows else None)
            return Operand(part, own + "xy", letters, "x", "y", repeat)

        call = self._call(
            q.shape[-2],
            k.shape[-2],
            self._source(q),
            self._source(k),
            kind="sdpa",
            lead=tuple(lead),
            q=operand(q, None, False),
            k=operand(k, earlier.k if earlier else None, True),
            v=operand(v, earlier.v if earlier else None, True),
            options={n: self._held(o).tensor if isinstance(o, Tensor) else o for n, o in options.items()},
        )
        edits = self._edits_here()
        out = SDPA(*args, **kwargs)
        if edits:
            shape = out.shape
            flat = self._set(edits, call, out.reshape(-1, *shape[-2:]), lambda p: self._times_v(p, call, out.dtype))
            out = flat.reshape(shape)
        call.z = copied(out).reshape(-1, *out.shape[-2:])
        self.calls.append(call)
        self._tags[out], self._z[out], self._queries[out] = source, call, out.dim() - 2
        return out

    @staticmethod
    def _times_v(p: Tensor, call: Call, dtype: torch.dtype) -> Tensor:
        v = call.v.rows(call.lead)
        assert v is not None
        return p.to(dtype) @ v.to(dtype)

    @staticmethod
    def _set(edits: Sequence[HeadEdit], call: Call, z: Tensor, again: Callable[[Tensor], Tensor]) -> Tensor:
        """z [batch and heads, n_q, d_value] after the edits; `again` recomputes it from other maps."""
        call.set_by_hand = True
        where = call.heads().T.to(z.device)  # [heads, batch]

        def chosen(edit: HeadEdit) -> list[int]:
            heads = range(len(where)) if edit.heads is None else edit.heads
            for head in heads:
                check_head(head, len(where), call.site)
            return [int(at) for head in heads for at in where[head]]

        for edit in edits:
            rows = list(z.unbind(0))
            if edit.pattern is not None:
                maps = list(call.maps().unbind(0))
                for at in chosen(edit):
                    maps[at] = applied(edit.pattern, maps[at])
                mixed = again(torch.stack(maps))
                for at in chosen(edit):
                    rows[at] = mixed[at]
            if edit.z is not None:
                for at in chosen(edit):
                    rows[at] = applied(edit.z, rows[at])
            if edit.change is not None:
                for item, own in enumerate(where.T.tolist()):
                    made = edit.change(call, item, torch.stack([rows[at] for at in own]))
                    for at, row in zip(own, made, strict=True):
                        rows[at] = row.to(z)
            z = torch.stack(rows)
        return z

    def _product(self, func: Any, name: str, args: Any, kwargs: Any, source: int) -> tuple[Tensor, bool, Node | None]:
        out: Tensor = func(*args, **kwargs)
        found = product_of(name, args, kwargs, out)
        if found is None:
            return out, False, None
        a, b, of_a, of_b, of_out = found
        tag_a, tag_b = (self._tags.get(x, WEIGHT if isinstance(x, nn.Parameter) else 0) for x in (a, b))
        maps = [(x, tag) for x, tag in ((a, tag_a), (b, tag_b)) if isinstance(tag, Node)]
        maps = [one for one in maps if one[1].normal] or maps
        if len(maps) == 1 or (maps and maps[0][1].product is None):
            p, node = maps[0]
            v, tag_v, of_p, of_v = (b, tag_b, of_a, of_b) if p is a else (a, tag_a, of_b, of_a)
            if tag_v is WEIGHT:
                if out.dim() == p.dim() and out.shape[-2:] == p.shape[-2:]:  # heads mixed by weights are still maps
                    fill = lambda x: tag if isinstance(tag := self._tags.get(x), Node) else self._held(x)  # noqa: E731
                    args, kwargs = changed(args, fill), changed(kwargs, fill)
                    more = {"normal": node.normal, "sides": node.sides}
                    return out, False, self._node(func, name, args, kwargs, out, (node,), source, **more)
                return out, False, None
            layout = Layout(of_p, of_v, of_out)
            if layout.whole and node.normal in ("relu", "sigmoid") and v.shape[layout.v.index(layout.feature)] == 1:
                return out, False, None  # the scores of several heads are summed, to select tokens
            if layout.whole and isinstance(tag_v, Node) and tag_v.normal == "softmax" and v.shape == p.shape:
                said = N_(
                    "maps at {site} are multiplied with one another, and the recorder does not follow their product",
                    site=self._site,
                )
                self.escape(("maps", self._site), said)
                return out, False, None
            if layout.whole and node.normal:
                return self._close(func, args, kwargs, out, p, node, v, layout, source)
        if WEIGHT in (tag_a, tag_b):
            return out, False, None
        sides = tuple(
            "k" if c in of_b and c not in of_a else "q" if c in of_a and c not in of_b else "batch" for c in of_out
        )
        product = Product(a, b, of_a, of_b, of_out, (self._version(a), self._version(b)))
        return out, False, self._node(func, name, args, kwargs, out, (), source, sides=sides, product=product)

    def _close(
        self,
        func: Any,
        args: Any,
        kwargs: Any,
        out: Tensor,
        p: Tensor,
        node: Node,
        v: Tensor,
        layout: Layout,
        source: int,
    ) -> tuple[Tensor, bool, Node | None]:
        origins = products(node)
        self._led |= {one for one in self._softmaxes if one is node or _leads(one, node)}
        if not origins or node.normal not in _ATTENTION:
            said = N_("the weights at {site} are made of no product of queries and keys", site=self._site or "-")
            self.escape(("unsure", self._site), said)
            return out, False, None
        if any(one.stale for one in in_order(node)):
            said = N_("scores or weights at {site} were changed in place by way of a view", site=self._site or "-")
            self.escape(("changed", self._site), said)
        earlier = self._earlier(self._site, self._next_number())
        best = next((one for one in origins if one.sides), origins[0])
        assert best.product is not None
        turned = bool(node.sides) and node.sides[layout.p.index(layout.key)] == "q"  # type: ignore[index]
        source_q, source_k, q, k = self._factors(best, origins, turned, earlier)
        p_lead = tuple(p.shape[layout.p.index(c)] for c in layout.lead)
        part = Part.of(v, layout.v.index(layout.key), earlier.v.part if earlier else None)
        call = self._call(
            p.shape[layout.p.index(layout.query)],
            p.shape[layout.p.index(layout.key)],
            source_q,
            source_k,
            kind=node.normal,
            lead=p_lead,
            q=q,
            k=k,
            v=Operand(part, layout.v, layout.lead, layout.key, layout.feature),
            node=node,
            best=best,
            layout=layout,
        )
        edits = self._edits_here()
        if edits:

            def again(maps: Tensor) -> Tensor:
                other = layout.back_p(maps.reshape(*p_lead, *maps.shape[-2:])).to(p.dtype)
                fill = lambda x: other if x is p else x  # noqa: E731
                made = layout.of_z(func(*changed(args, fill), **changed(kwargs, fill)))
                return made.reshape(-1, *made.shape[-2:])

            turned_z = layout.of_z(out)
            shape = turned_z.shape
            out = layout.back_z(self._set(edits, call, turned_z.reshape(-1, *shape[-2:]), again).reshape(shape))
        z = layout.of_z(copied(out))
        call.z = z.reshape(-1, *z.shape[-2:])
        self.calls.append(call)
        self._tags[out], self._z[out], self._queries[out] = source, call, layout.z.index(layout.query)
        return out, True, None

    def _factors(
        self, best: Node, origins: list[Node], turned: bool, earlier: Call | None
    ) -> tuple[int, int, Operand | None, Operand | None]:
        """Queries and keys as the factors of a product; in the recorded calls, copies replace them."""
        for one in origins:
            product = one.product
            assert product is not None
            if isinstance(product.a, Part):  # already closed: the same map is used in two products
                continue
            if (self._version(product.a), self._version(product.b)) != product.versions:
                self.escape(
                    ("changed", self._site), N_("queries or keys at {site} were changed in place", site=self._site)
                )
            sources = self._source(product.a), self._source(product.b)
            a, b = product.a, product.b
            key = b if one is best and not turned else a if one is best else None
            before = None if earlier is None or earlier.k is None else earlier.k.part
            dims = [self._row(product, side) for side in "ab"]
            copies = [Part.of(x, dim, before if x is key else None) for x, dim in ((a, dims[0]), (b, dims[1]))]
            fill = lambda x: copies[0] if x is a else copies[1] if x is b else self._held(x)  # noqa: B023, E731
            one.args, one.kwargs = changed(one.args, fill), changed(one.kwargs, fill)
            product.a, product.b = copies
            one.sources = sources  # type: ignore[attr-defined]
        product = best.product
        assert product is not None
        only_a = [c for c in product.of_out if c in product.of_a and c not in product.of_b]
        only_b = [c for c in product.of_out if c in product.of_b and c not in product.of_a]
        inner = [c for c in product.of_a if c in product.of_b and c not in product.of_out]
        sources = best.sources  # type: ignore[attr-defined]
        if not only_a or not only_b or len(inner) != 1:
            return *sources, None, None
        row_a, row_b = only_a[-1], only_b[-1]
        lead = [c for c in product.of_out if c not in (row_a, row_b)]
        first = Operand(product.a, product.of_a, lead, row_a, inner[0])
        second = Operand(product.b, product.of_b, lead, row_b, inner[0])
        return (sources[1], sources[0], second, first) if turned else (*sources, first, second)

    @staticmethod
    def _row(product: Product, side: str) -> int:
        """The index of the rows' dimension in a factor."""
        own, other = (product.of_a, product.of_b) if side == "a" else (product.of_b, product.of_a)
        rows = [c for c in product.of_out if c in own and c not in other]
        return own.index(rows[-1]) if rows else 0


def _begins(one: Call, whole: Call) -> bool:
    """Whether the keys and values of a call are exactly the first ones of another."""

    def begins(a: Operand | None, b: Operand | None) -> bool:
        if a is None or b is None or a.labels != b.labels:
            return False
        x, y = a.part.tensor, b.part.tensor
        dim = a.labels.index(a.row)
        return x.dim() == y.dim() and x.shape[dim] <= y.shape[dim] and torch.equal(x, y.narrow(dim, 0, x.shape[dim]))

    return one.lead == whole.lead and begins(one.k, whole.k) and begins(one.v, whole.v)


def _leads(one: Node, node: Node) -> bool:
    todo, seen = [node], set()
    while todo:
        found = todo.pop()
        if found is one:
            return True
        if found not in seen:
            seen.add(found)
            todo += found.before
    return False


def _is_room(x: Tensor) -> bool:
    """Whether rows may be written to x, and each write raises its version."""
    return x.dim() > 1 and x.is_floating_point() and not x.is_inference()


def _storage(x: Tensor | None) -> int:
    """The address of a tensor's storage, which its views share; 0 if it has none."""
    try:
        return 0 if x is None else x.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):
        return 0


def _in_backward() -> bool:
    """Whether a backward pass is running, in which checkpointed blocks run again."""
    return bool(torch._C._current_graph_task_id() != -1)


def _batch_of(shape: tuple[int, ...], floating: bool, n_q: int) -> int:
    """The number of texts, from the shape of the first input: [b, n], [b, n, d], [n, b, d], [n, d] or [n]."""
    if len(shape) < 2:
        return 1
    first, second = shape[:2]
    if floating and len(shape) == 2:
        return 1 if first == n_q else first
    return second if len(shape) < 4 and first == n_q != second else first
