"""A model from code of whoever runs the server: `vizformer --model my_model.py:load`.

    code = own_code.Code.read("my_model.py:load")   # a file, or a dotted module, and a function there
    checkpoint = code.load()                        # runs both: a RecordedCheckpoint
    own_code.named(), own_code.checkpoint("my_model")   # those that VIZFORMER_MODEL names, each loaded once a process

`load()` hands back `(module, tokenizer)`, or an object with `module` (or `model`), `encode` and `decode`, or what `vf.wrap`
made.  Only the start of a process says which code runs: never a page, a link or an upload.
"""

import hashlib
import importlib
import importlib.util
import inspect
import os
import re
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any

from vizformer.errors import CheckpointError, VizformerError
from vizformer.messages import N_, Message
from vizformer.text.text_growth import shown

if TYPE_CHECKING:
    from vizformer.checkpoints.recorded.checkpoint import RecordedCheckpoint

VARIABLE = "VIZFORMER_MODEL"  # as `--model` has them, a line each
USUAL = "load"  # the function that is not said in the model's name
MOST = 8  # models of a server
_NAME = re.compile(r"[^\W\d]\w{0,79}(\.[^\W\d]\w{0,79}){0,9}")
_RETURNS = N_("It returns (module, tokenizer), or an object with module, encode and decode.")


@dataclass(frozen=True)
class Code:
    """A function that hands out a model: in the file `place` (an absolute path), or in the dotted module `place`."""

    place: str
    function: str
    folder: str = field(default="", compare=False)  # from which a dotted module is imported

    @classmethod
    def read(cls, said: str) -> "Code":
        """What `--model` was given.

        Raises:
            CheckpointError: not of the form FILE:FUNCTION, no such file, or no Python.
        """
        place, colon, function = said.strip().rpartition(":")
        if not colon or not place or not _NAME.fullmatch(function):
            raise _wrong(
                said, N_("Give a file and, after a colon, the function that hands out the model: my_model.py:load.")
            )
        path = Path(place).expanduser()
        if not place.endswith(".py") and _NAME.fullmatch(place) and not path.is_file():
            return cls(place, function, str(Path.cwd()))
        if not path.exists():
            raise _wrong(said, N_("There is no file {path}.", path=place))
        if not path.is_file() or path.suffix != ".py":
            raise _wrong(said, N_("{path} is no file of Python (.py).", path=place))
        return cls(str(path.resolve()), function)

    @property
    def is_file(self) -> bool:
        return self.place.endswith(".py")

    @property
    def name(self) -> str:
        """What the model is called: as its file or its module, and after it the function where that is not `load`."""
        own = Path(self.place).stem if self.is_file else self.place.rpartition(".")[2]
        name = re.sub(r"\W", "_", own)[:40]
        return name if self.function == USUAL else f"{name}.{self.function}"[:80]

    def __str__(self) -> str:
        return f"{self.place}:{self.function}"

    def load(self) -> "RecordedCheckpoint":
        """Imports the code, calls the function, and makes a checkpoint of what it hands back.

        Raises:
            CheckpointError: the code raises, has no such function, or hands back something else.
        """
        from vizformer.checkpoints.recorded.checkpoint import RecordedCheckpoint
        from vizformer.checkpoints.recorded.wrapping import wrap

        with _said(self, self._shown):
            imported = self._import()
        function: Any = imported
        for part in self.function.split("."):
            if not hasattr(function, part):
                raise _wrong(
                    self,
                    N_("{file} has no {name}. {known}", file=self._shown, name=self.function, known=_known(imported)),
                )
            function = getattr(function, part)
        called = f"{self.function}()"
        if not callable(function):
            raise _wrong(self, N_("{name} is no function: it is {kind}.", name=self.function, kind=_kind(function)))
        with _said(self, called):
            if needed := _needed(function):
                raise _wrong(
                    self, N_("{name} is called without arguments, but it needs {needed}.", name=called, needed=needed)
                )
            made = function()
        if isinstance(made, RecordedCheckpoint):
            return made
        module, tokenizer = _parts(self, called, made)
        with _said(self, called):
            return wrap(module, tokenizer, name=self.name)

    @property
    def _shown(self) -> str:
        return Path(self.place).name if self.is_file else self.place

    def _import(self) -> ModuleType:
        """Runs the file as a module of its name, its folder among those that modules come from, as `python FILE` has it."""
        here = str(Path(self.place).parent) if self.is_file else self.folder
        if here and here not in sys.path:
            sys.path.insert(0, here)
        if not self.is_file:
            return importlib.import_module(self.place)
        stem = Path(self.place).stem
        name = stem if stem not in sys.modules and stem.isidentifier() else f"{stem} of --model"
        spec = importlib.util.spec_from_file_location(name, self.place)
        assert spec is not None
        assert spec.loader is not None  # (its name ends in .py)
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
        return module


@contextmanager
def _said(code: Code, doing: str) -> Iterator[None]:
    """Raises an exception of the code again as one sentence with its line; the exception itself is the cause."""
    try:
        yield
    except VizformerError as error:
        if error.message.text.startswith("--model "):
            raise
        where = _line(code, error.__cause__) if error.__cause__ else ""
        raise _wrong(code, N_("{said}{where}", said=error.message, where=where)) from error
    except (Exception, SystemExit) as error:
        about = N_(
            "{doing} raised {kind}{where}: {text}",
            doing=doing,
            kind=type(error).__name__,
            where=_line(code, error),
            text=shown(str(error), 300),
        )
        raise _wrong(code, about) from error


def _wrong(code: Code | str, about: Message) -> CheckpointError:
    return CheckpointError("--model {code}: {about}", code=shown(str(code), 300), about=about)


def _line(code: Code, error: BaseException) -> str:
    """The place in the code where an exception was raised, as " (my_model.py, line 12)"."""
    frames = traceback.extract_tb(error.__traceback__)
    here = Path(code.place).parent if code.is_file else Path(code.folder)
    own = [frame for frame in frames if here in Path(frame.filename).parents and "site-packages" not in frame.filename]
    return f" ({Path(own[-1].filename).name}, line {own[-1].lineno})" if own else ""


def _known(module: ModuleType) -> Message:
    names = [
        name
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__
    ]
    if not names:
        return N_("It defines no function.")
    return N_("It defines {names}.", names=", ".join(names[:12]))


def _needed(function: Any) -> str:
    """The arguments that a function cannot be called without."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some built-ins have no signature
        return ""
    single = (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.KEYWORD_ONLY,
    )
    return ", ".join(one.name for one in parameters if one.default is one.empty and one.kind in single)


def _parts(code: Code, called: str, made: Any) -> tuple[Any, Any]:
    """The module and the tokenizer of what a function handed back."""
    from torch import nn

    if inspect.iscoroutine(made):
        made.close()
        raise _wrong(code, N_("{name} is async: it hands back a coroutine. Write it without async.", name=called))
    if isinstance(made, tuple | list):
        if len(made) != 2:
            raise _wrong(code, N_("{name} returned {n} things. {wanted}", name=called, n=len(made), wanted=_RETURNS))
        module, tokenizer = made
    elif isinstance(made, nn.Module):
        raise _wrong(code, N_("{name} returned a module without its tokenizer. {wanted}", name=called, wanted=_RETURNS))
    else:
        module, tokenizer = getattr(made, "module", getattr(made, "model", None)), made
    if module is None or isinstance(made, dict | ModuleType | str):
        raise _wrong(code, N_("{name} returned {kind}. {wanted}", name=called, kind=_kind(made), wanted=_RETURNS))
    if not isinstance(module, nn.Module):
        raise _wrong(
            code,
            N_(
                "The module that {name} returned is {kind}, no torch.nn.Module. {wanted}",
                name=called,
                kind=_kind(module),
                wanted=_RETURNS,
            ),
        )
    return module, tokenizer


def _kind(value: object) -> str:
    return type(value).__name__


def named() -> Mapping[str, Code]:
    """The code that this process was started with, by the names of its models.

    Raises:
        CheckpointError: what `Code.read` raises; two models of one name, or too many.
    """
    return _named(os.environ.get(VARIABLE, ""))


@cache
def _named(said: str) -> Mapping[str, Code]:
    found: dict[str, Code] = {}
    for line in filter(None, map(str.strip, said.splitlines())):
        code = Code.read(line)
        if found.get(code.name, code) != code:
            raise _wrong(
                code,
                N_(
                    "{other} is called {name} too. Call one of the two otherwise.",
                    other=str(found[code.name]),
                    name=code.name,
                ),
            )
        found[code.name] = code
    if len(found) > MOST:
        raise CheckpointError(
            "--model was given {n} times; a server has at most {most} of them.", n=len(found), most=MOST
        )
    return MappingProxyType(found)


_OPEN: dict[Code, "RecordedCheckpoint"] = {}
_DIGESTS: dict[Code, str] = {}
_LOCK = threading.Lock()


def checkpoint(code: Code) -> "RecordedCheckpoint":
    """The model, loaded by the first who asks in this process.

    Raises:
        CheckpointError: what `Code.load` raises.
    """
    with _LOCK:
        if code not in _OPEN:
            _OPEN[code] = code.load()
            _DIGESTS[code] = _digest_now(code)
        return _OPEN[code]


def digest(code: Code) -> str:
    """A hash of the file of the code as it was when this process loaded it."""
    checkpoint(code)
    return _DIGESTS[code]


def unchanged(name: str, known: str) -> "RecordedCheckpoint":
    """The model of this name, in another process than the one that says `known` of its file.

    Raises:
        CheckpointError: there is none, or its file has changed since; what `Code.load` raises.
    """
    code = named().get(name)
    if code is None or known != digest(code):
        raise CheckpointError(
            "The code of {name} has changed since the server was started. Start the server again.", name=name
        )
    return checkpoint(code)


def _digest_now(code: Code) -> str:
    file = code.place if code.is_file else getattr(sys.modules.get(code.place), "__file__", None)
    content = Path(file).read_bytes() if file else code.place.encode()
    return hashlib.blake2b(content, digest_size=12).hexdigest()
