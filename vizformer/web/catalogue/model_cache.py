"""Loaded models and what was computed with them, cached for all sessions of the server.

Keys are references with the stamp of their files (`sources.stamped`) and the texts, never an array.  What a
cached function returns is shared: read only.
torch is imported on the first call, so that the frame of the page is on screen before.
"""

import asyncio
import gc
import json
import logging
import math
import re
import threading
import time
from collections.abc import Awaitable, Callable, Collection
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakValueDictionary, finalize

from vizformer import checkpoints
from vizformer.config import ModelConfig
from vizformer.errors import OwnArithmeticError, VizformerError
from vizformer.freed_memory import release_gaps
from vizformer.web.catalogue import named_code, session_folders, sources, torch_setup
from vizformer.web.catalogue.bounded_cache import RESULTS, TRACES, Cache, cached, count_bytes
from vizformer.web.catalogue.torch_setup import prepare_torch
from vizformer.web.link.model_ref import ModelRef

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vizformer.checkpoints import Opened, Report
    from vizformer.checkpoints.agreement_check import Agreement
    from vizformer.checkpoints.tensors.memory import Need
    from vizformer.checkpoints.tensors.questions import Value
    from vizformer.config import ModelShape
    from vizformer.recorder.checks import Checked


# Which sessions read which model from elsewhere: its memory is given back soon after the last one has left.
#
# A closed tab is a session that is not connected.  It may come back, after a reload or a short break of the network,
# so that a model waits for its readers a few seconds.  Bundled models stay: they are small, and every visit begins
# with one.

PERIOD = 2.0  # seconds between two looks
GRACE = 5.0  # seconds that a model waits; with a look more these are less than ten
LATE = 600.0  # seconds in which the reading of weights may still come to its end, though nobody waits for it


class Readers:
    def __init__(
        self,
        connected: Callable[[str], bool] = session_folders.is_connected,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connected, self._clock = connected, clock
        self._lock = threading.Lock()
        self._sessions: dict[ModelRef, set[str]] = {}
        self._seen: dict[ModelRef, float] = {}  # when somebody was last there

    def add(self, session: str, model: ModelRef) -> None:
        """A session looks at a model; one that no session asks for, "", is nobody's."""
        if session and model.is_from_elsewhere:
            with self._lock:
                self._sessions.setdefault(model, set()).add(session)
                self._seen[model] = self._clock()

    def left(self) -> list[ModelRef]:
        """The models whose readers have all been away for `GRACE`; as often as it is asked, for as long as `LATE`."""
        with self._lock:
            now, found = self._clock(), []
            for model, sessions in list(self._sessions.items()):
                here = {session for session in sessions if self._connected(session)}
                if here:
                    self._sessions[model], self._seen[model] = here, now
                elif now - self._seen[model] > LATE:
                    del self._sessions[model], self._seen[model]
                elif now - self._seen[model] >= GRACE:
                    found.append(model)
            return found


READERS = Readers()


_LOADED: "WeakValueDictionary[ModelRef, Opened]" = WeakValueDictionary()  # of all that the cache still holds
OPEN = 12  # models in memory at a time: the bundled ones, and the folders and trainings looked at last
_WANTED: set[ModelRef] = set()  # what was looked at last: see `want`
# Apart from the rest: weights must not push out every trace, nor traces the weights.
_MODELS = Cache(most=OPEN, spares=lambda key: not _WANTED.isdisjoint(key[1:]))
_CONFIG = 2**20  # bytes of a config.json that are looked at for its first tokens
_WORD = 256  # bytes, or so, that an entry of a vocabulary takes in the library


def options(model: ModelRef) -> ModelConfig:
    """The model's options, from its file: what a page asks before torch is loaded (but for models from elsewhere).

    Raises:
        OwnArithmeticError: its own code computes it, so that it has none.
    """
    if not model.is_from_elsewhere:
        return _written_options(model)
    found = None if is_code(model) else glance(sources.stamped(model)).config
    if found is None:
        raise OwnArithmeticError(sources.title(model), shape(model).architecture)
    return found


@cached
def _written_options(model: ModelRef) -> ModelConfig:
    written = json.loads((sources.folder(model) / "config.json").read_text(encoding="utf-8"))
    return ModelConfig.from_dict(written["model"])


@cached
def marked_scripts(model: ModelRef) -> frozenset[str]:
    """The scripts whose texts begin with a token of their own: of a translator of several directions, in our format."""
    try:
        file = sources.folder(model) / "config.json"
        if not file.is_file() or file.stat().st_size > _CONFIG:
            return frozenset()
        first_tokens = json.loads(file.read_text(encoding="utf-8")).get("first_tokens")
    except (VizformerError, ValueError, AttributeError):
        return frozenset()
    return frozenset(first_tokens) if isinstance(first_tokens, dict) else frozenset()


def is_code(model: ModelRef) -> bool:
    """Whether the model is code that the server was started with, recorded while it runs."""
    return model.source == "code"


def is_recorded(model: ModelRef) -> bool:
    """Whether a model's own code computes it, recorded while it runs: the server's, or that of `transformers`."""
    return is_code(model) or (model.is_from_elsewhere and glance(sources.stamped(model)).config is None)


def shape(model: ModelRef) -> "ModelShape":
    """The shape of a model: of our own from its options, of recorded code from one run of it.

    Of a folder that `transformers` computes, from its files until it is open.
    """
    if is_code(model):
        return checkpoint(model).shape
    if not model.is_from_elsewhere:
        return options(model).shape
    stamped = sources.stamped(model)
    return glance(stamped).shape if (loaded := _LOADED.get(stamped)) is None else loaded.shape


def n_parameters(model: ModelRef) -> int:
    """The number of parameters of a model."""
    if is_code(model):
        return sum(one.numel() for one in named_code.checkpoint(model).module.parameters())
    if is_recorded(model):
        return glance(sources.stamped(model)).n_parameters
    from vizformer.model import count_parameters

    return count_parameters(options(model))


def written_as(model: ModelRef) -> str:
    """The format of its files (`Report.format`); "code" where it is recorded from code."""
    return "code" if is_code(model) else str(checkpoint(sources.stamped(model)).report.format)


def reads_target(model: ModelRef) -> bool:
    """Whether the model is an encoder-decoder; one that does not open is none."""
    try:
        return shape(model).architecture == "encoder-decoder"
    except VizformerError:
        return False


def predicts(model: ModelRef) -> bool:
    """Whether the weights came with a head that predicts tokens; without one, logits mean nothing."""
    if is_code(model):
        return checkpoint(model).has_head
    return not model.is_from_elsewhere or glance(sources.stamped(model)).has_head


def assumed(model: ModelRef) -> "Mapping[str, Value]":
    """The assumptions about a model that its files do not decide, by name; empty for most models."""
    return glance(sources.stamped(model)).assumed if model.is_from_elsewhere and not is_code(model) else {}


@cached(refusals=lambda model, text: is_settled(model))
def agreement(model: ModelRef, text: str) -> "Agreement":
    """A folder of others' held against its own code in `transformers`, for one text."""
    from vizformer.checkpoints.agreement_check import agreement

    with sources.reading(model) as folder:
        return agreement(checkpoint(model), folder, text)


@cached(refusals=lambda model: is_settled(model))
def checks(model: ModelRef) -> "Checked":
    """Whether what is recorded of a model's own code is all there is to say: many runs of it, at two lengths."""
    from vizformer.web.catalogue.long_work import HEARD

    heard = HEARD.get()
    loaded: Any = checkpoint(model)
    found: Checked = loaded.checks(heard=None if heard is None else lambda part: heard(int(1000 * part), 1000))
    return found


def is_settled(model: ModelRef, *_: object) -> bool:
    """Whether a model is known by its files as they are: what is refused then stays refused."""
    return bool(model.stamp)


def report(model: ModelRef) -> "Report":
    """How a model's files were read; every number of them is looked at once."""
    return _report(model.files)


@cached(refusals=is_settled)
def _report(model: ModelRef) -> "Report":
    prepare_torch()

    with sources.reading(model) as folder:
        return checkpoints.inspect(folder, **model.given)


def need(model: ModelRef) -> "Need":
    """The memory that a model needs, in the precision that its name gives.

    Raises:
        DoesNotFitError: more than there is.
        CheckpointError: no such precision, or no such device.
    """
    prepare_torch()
    from vizformer.checkpoints.tensors.memory import chosen_device, chosen_dtype, need, require

    found, device = glance(model), chosen_device(torch_setup.device())
    dtype = chosen_dtype(model.dtype, (tensor.dtype for tensor in found.with_fate("used")))
    if model not in _LOADED:  # which would have its memory already
        require(found, dtype, device)
    return need(found, dtype, device)


def glance(model: ModelRef) -> "Report":
    """The report without a look at the numbers: milliseconds, also where the weights are large."""
    return _glance_at(model.files)


@cached(refusals=is_settled)
def _glance_at(model: ModelRef) -> "Report":
    prepare_torch()

    with sources.reading(model) as folder:
        return checkpoints.inspect(folder, numbers=False, **model.given)


def _weight(model: "Opened") -> int:
    """Bytes of an open model, and of what it keeps of its heads (`RecordedCheckpoint.circuits`).

    Weights that stay mapped to their file are the file's own pages: the system takes them back when it must.
    """
    from vizformer.checkpoints.tensors.memory import need

    readers = [reader for reader in (model.tokenizer, model.source_tokenizer) if reader is not None]
    vocabularies = _WORD * sum(reader.vocab_size for reader in readers)
    circuits = count_bytes(vars(model).get("circuits"))
    return need(model.report, model.dtype, model.device).weights + vocabularies + circuits


def checkpoint(model: ModelRef) -> "Opened":
    """The open model; the session that asks is one of its readers."""
    if is_code(model):
        prepare_torch()
        named = named_code.checkpoint(model)
        if "circuits" in vars(named):
            _circuits(model)
        return cast("Opened", named)
    if model.is_from_elsewhere:
        READERS.add(session_folders.current(), model)
    found = _open(model)
    if "circuits" in vars(found):  # found since it was opened
        _open.weigh_again(model)
    return found


class _Circuits:
    """Stands in the cache for what a model of the server's own code keeps of its heads, and lasts as long as it is kept."""

    bytes = 0


@cached(cache=_MODELS, weigh=lambda kept: kept.bytes)
def _circuits(model: ModelRef) -> _Circuits:
    """Counts the circuits of a model that is named at the start; where they find no room, it forgets them.

    Its weights are not counted: there are at most `own_code.MOST` such models, which stay as whoever runs the server chose.
    """
    kept, own = _Circuits(), vars(named_code.checkpoint(model))
    kept.bytes = count_bytes(own.get("circuits"))
    finalize(kept, own.pop, "circuits", None)
    return kept


def is_open(model: ModelRef) -> bool:
    """Whether the model is in memory now, or why it does not open is known."""
    return is_code(model) or _open.holds(model)


@cached(cache=_MODELS, refusals=is_settled, weigh=_weight)
def _open(model: ModelRef) -> "Opened":
    prepare_torch()

    with sources.reading(model) as folder:
        found = checkpoints.load(folder, dtype=model.dtype, device=torch_setup.device(), **model.given)
    _LOADED[model] = found
    return found


def want(*models: ModelRef) -> None:
    """Says which models a page needs together: none of them pushes another one out of memory, however large they are.

    The page that said so last counts: a model that is opened after them takes their place.
    """
    global _WANTED
    _WANTED = set(models)
    for model in models:
        READERS.add(session_folders.current(), model)


def give_back(readers: Readers = READERS) -> None:
    """Gives back the memory of models whose last reader has left, with all that was computed with them."""
    left = {model for model in readers.left() if model in _LOADED}
    if not left:
        return
    for cache in (_MODELS, TRACES, RESULTS):
        cache.forget(lambda key: _names(key, left))
    gc.collect()
    release_gaps()


def _names(key: object, models: Collection[ModelRef]) -> bool:
    """Whether one of these models stands in a key, however deep."""
    if isinstance(key, ModelRef):
        return key in models
    if isinstance(key, tuple | list | set | frozenset):
        return any(_names(part, models) for part in key)
    return is_dataclass(key) and any(_names(getattr(key, field.name), models) for field in fields(key))


async def attend(sleep: Callable[[float], Awaitable[object]] = asyncio.sleep) -> None:
    """Looks until it is cancelled who has left; memory is given back beside the event loop, which serves the visitors."""
    while True:
        await sleep(PERIOD)
        try:
            await asyncio.to_thread(give_back)
        except Exception:  # of this one look; the next ones still have to come
            logging.getLogger(__name__).exception("Models could not be looked after")


def pieces_per_word(model: ModelRef, text: str) -> float:
    """Tokens for a word of letters or a Chinese character; as many as can be where the model cannot read the text."""
    try:
        loaded = checkpoint(model)
        tokens = loaded.encode(text)
    except VizformerError:
        return math.inf
    unknown = loaded.tokenizer_of("encoder" if loaded.shape.n_encoder_layers else "decoder").unknown_id
    n = sum(not token.special for token in tokens)
    if not n or any(token.id == unknown for token in tokens):
        return math.inf
    return n / max(1, len(re.findall(r"[\u4e00-\u9fff]|[^\W\u4e00-\u9fff]+", text)))


def reads(model: ModelRef, text: str) -> bool:
    """Whether the model can read a text: few can where a tokenizer is missing."""
    try:
        checkpoint(model).encode(text)
    except VizformerError:
        return False
    return True
