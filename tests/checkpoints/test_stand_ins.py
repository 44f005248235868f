"""Files with objects of their author's classes, whole models and TorchScript: their tensors and fields, and nothing run."""

import argparse
import collections
import enum
import functools
import pathlib
import pickle
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.checkpoints import hostile
from tests.checkpoints.test_state_dict import D, nano_gpt
from vizformer.checkpoints import load
from vizformer.checkpoints.files import containers, pickle_rules, stand_ins
from vizformer.checkpoints.files.untrusted_folder import Folder
from vizformer.checkpoints.files.weights import load_torch
from vizformer.errors import CheckpointError


@dataclass
class GPTConfig:
    n_head: int = 4
    activation: str = "gelu"
    bias: bool = True


class AttributeDict(dict):
    """As Lightning keeps hyperparameters."""


class Slots:
    __slots__ = ("activation", "n_head")

    def __init__(self) -> None:
        self.n_head, self.activation = 4, "gelu"


class Size(enum.Enum):
    SMALL = 1


class CharTokenizer:
    def __init__(self) -> None:
        self.stoi = {letter: id for id, letter in enumerate("abcdefghijklmnopqrstuvwxyz"[: nano_gpt()[TABLE].shape[0]])}
        self.lines = collections.deque(["a"])


TABLE = "transformer.wte.weight"
MINE = (GPTConfig, AttributeDict, Slots, Size, CharTokenizer)


@pytest.fixture(autouse=True)
def _classes_of_a_script(monkeypatch):
    """The classes are those of the program that saves, which nobody else has."""
    for kind in MINE:
        monkeypatch.setattr(kind, "__module__", "__main__")
        monkeypatch.setattr(sys.modules["__main__"], kind.__name__, kind, raising=False)


def saved(content: object, path: Path) -> Path:
    torch.save(content, path)
    return path


@pytest.mark.parametrize(
    "make",
    [
        GPTConfig,
        Slots,
        lambda: AttributeDict(n_head=4, activation="gelu"),
        lambda: argparse.Namespace(n_head=4, activation="gelu"),
        lambda: collections.defaultdict(int, n_head=4, activation="gelu"),
    ],
    ids=["dataclass", "slots", "dict", "namespace", "defaultdict"],
)
@pytest.mark.parametrize("name", ["config", "model_args", "gpt_options"])
@pytest.mark.sample(5)
def test_the_fields_of_an_object_beside_the_weights_answer_what_they_do_not_say(name, make, tmp_path):
    weights = nano_gpt()
    found = load(saved({"model": weights, name: make(), "size": Size.SMALL}, tmp_path / "model.pt"))
    plain = load(saved(weights, tmp_path / "plain.pt"), n_heads=4, activation="gelu")
    assert found.model.config == plain.model.config
    for name, tensor in plain.model.state_dict().items():
        assert torch.equal(found.model.state_dict()[name], tensor), name
    said = [str(note) for note in found.report.assumptions]
    assert any("holds objects of the classes" in note and "nothing of them is run" in note for note in said)
    assert any(note.startswith("n_heads = 4: ") for note in said)


def test_the_vocabulary_in_an_object_reads_texts(tmp_path):
    content = {"model": nano_gpt(), "config": GPTConfig(), "tokenizer": CharTokenizer()}
    checkpoint = load(saved(content, tmp_path / "model.pt"))
    assert [token.id for token in checkpoint.encode("cab")] == [2, 0, 1]


class Block(nn.Module):
    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config = config
        self.n_head = config.n_head
        self.linear = nn.Linear(D, D)
        self.register_buffer("kept", torch.ones(2))
        self.register_buffer("left_out", torch.ones(3), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) * self.n_head


class Whole(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(9, D)
        self.blocks = nn.Sequential(Block(GPTConfig()), Block(GPTConfig()))
        self.norm = nn.LayerNorm(D, eps=1e-6)
        self.head = nn.Linear(D, 9, bias=False)
        self.head.weight = self.table.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.head(self.norm(self.blocks(self.table(ids))))
        return out


def opened(file: Path) -> containers.Content:
    return containers.open_file(Folder(file.parent), file.name)


def test_a_model_that_was_saved_as_a_whole_is_its_state_dict_and_its_fields(tmp_path):
    model = Whole()
    for content in (
        model,
        {"model": model, "epoch": 3},
        {"my_net": model, "optimizer": torch.optim.SGD(model.parameters())},
    ):
        found = opened(saved(content, tmp_path / "model.pt"))
        tensors = {name: stored.read() for name, stored in found.weights.tensors.items()}
        assert tensors.keys() == model.state_dict().keys()
        assert all(torch.equal(tensors[name], tensor) for name, tensor in model.state_dict().items())
        assert found.said["norm"]["eps"] == 1e-6
        assert found.said["blocks.0"]["n_head"] == found.said["blocks.0.config"]["n_head"] == 4
        assert "optimizer" not in found.said


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", [torch.jit.script, lambda model: torch.jit.trace(model, torch.zeros(1, 2).long())])
def test_of_torchscript_the_parameters_are_read_and_the_program_is_not(make, tmp_path):
    model = Whole().eval()
    torch.jit.save(make(model), tmp_path / "model.pt")
    found = opened(tmp_path / "model.pt")
    tensors = {name: stored.read() for name, stored in found.weights.tensors.items()}
    assert tensors.keys() - {f"blocks.{n}.left_out" for n in (0, 1)} == model.state_dict().keys()
    assert all(torch.equal(tensors[name], tensor) for name, tensor in model.state_dict().items())
    assert [str(note) for note in found.weights.notes] == [
        '"model.pt" is TorchScript: its tensors and plain values are read, its program is not'
    ]


@pytest.mark.filterwarnings("ignore")
def test_frozen_torchscript_has_no_tensors_by_name(tmp_path):
    torch.jit.save(torch.jit.freeze(torch.jit.script(Whole().eval())), tmp_path / "model.pt")
    with pytest.raises(CheckpointError, match=r"constants without names\. Save the state dict"):
        load(tmp_path / "model.pt")


TOUCHED: list[str] = []


class Bomb:
    """Does something wherever a pickle may make it do something."""

    def __new__(cls, *arguments: object) -> "Bomb":
        TOUCHED.append("new")
        return super().__new__(cls)

    def __getnewargs__(self) -> tuple[str]:
        return ("argument",)

    def __setstate__(self, state: object) -> None:
        TOUCHED.append("state")

    def __getstate__(self) -> dict[str, int]:
        return {"n_head": 4}


class Called:
    def __init__(self, reduced: tuple[Any, ...]) -> None:
        self.reduced = reduced

    def __reduce__(self) -> tuple[Any, ...]:
        return self.reduced


def touch(*arguments: object) -> dict[str, int]:
    TOUCHED.append("called")
    return {}


def test_nothing_of_an_object_is_run(tmp_path):
    content = {
        "model": nano_gpt(),
        "config": Bomb(),
        "more": [Called((touch, (1,))), Called((touch, (), {"n_head": 4}, iter([1, 2]), iter([("a", 1)])))],
        "half": functools.partial(touch, 1),
        "path": pathlib.PurePosixPath("/etc/passwd"),
    }
    file = saved(content, tmp_path / "model.pt")
    TOUCHED.clear()
    assert type(load_torch(file, file.name)["config"]) is stand_ins.StandIn
    assert load(file, activation="gelu").model.config.n_heads == 4
    assert not TOUCHED


@pytest.mark.parametrize(
    "function", [exec, eval, __import__, pickle.loads, sys.exit, open, functools.reduce, Path.touch, zipfile.ZipFile]
)
def test_what_python_itself_could_run_is_refused_by_name(function: Callable[..., Any], tmp_path):
    file = saved({"model": nano_gpt(), "config": Called((function, ("1",)))}, tmp_path / "model.pt")
    with pytest.raises(CheckpointError, match="could be a program"):
        load(file, n_heads=4, activation="gelu")


def test_the_names_that_a_stand_in_is_taken_for():
    for name in ("__main__.Config", "torch.load", "numpy.dtype", "argparse.Namespace", "pathlib.PosixPath", "a"):
        assert pickle_rules.is_own_class(name), name
    for name in (
        "os.system",
        "posix.system",
        "builtins.eval",
        "argparse.ArgumentParser",
        "pathlib.Path.touch",
        "sys.exit",
    ):
        assert not pickle_rules.is_own_class(name), name
    for name in (
        "subprocess.Popen",
        "__builtin__.eval",
        "nt.system",
        "importlib.import_module",
        "collections.abc.Callable",
    ):
        assert not pickle_rules.is_own_class(name), name


STORED = b"(" + hostile._text("storage") + b"ctorch\n%sStorage\n" + hostile._text("0") + hostile._text("cpu") + b"K%ctQ"


def archive(path: Path, kind: bytes, n: int, order: bytes = b"little", numbers: bytes = bytes(64)) -> Path:
    """One tensor of n numbers beside an object."""
    tensor = (
        b"ctorch._utils\n_rebuild_tensor_v2\n("
        + STORED % (kind, n)
        + b"K\0K%c\x85K\1\x85\x89ccollections\nOrderedDict\n)RtR"
    )
    pickled = b"\x80\x02}(" + hostile._text("a") + tensor % n + hostile._text("b") + hostile.OBJECT + b"u."
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("x/data.pkl", pickled)
        made.writestr("x/byteorder", order)
        made.writestr("x/pad", b"." * (-(made.fp.tell() + 2 * len("x/pad") + 20) % 8))  # type: ignore[union-attr]
        made.writestr("x/data/0", numbers)
    return path


@pytest.mark.parametrize(
    ("kind", "n", "more", "said"),
    [
        (b"Float", 17, {}, "not all there"),
        (b"Double", 9, {}, "not all there"),
        (b"QInt8", 8, {}, "of a type that is not read"),
        (b"Byte", 8, {"order": b"big"}, "another byte order"),
        (b"Byte", 8, {}, ""),
    ],
)
def test_numbers_that_are_not_in_the_file(kind, n, more, said, tmp_path):
    file = archive(tmp_path / "model.pt", kind, n, **more)
    if not said:
        assert load_torch(file, file.name)["a"].tolist() == [0] * n
        return
    with pytest.raises(CheckpointError, match=said):
        load_torch(file, file.name)


def test_objects_that_lie_in_a_file_many_times_are_looked_into_once(tmp_path):
    inner: dict[str, object] = {}
    for __ in range(4):
        inner = {f"k{n}": inner for n in range(256)}
    file = saved({"model": nano_gpt(), "inner": inner}, tmp_path / "model.pt")
    assert not opened(file).vocabularies
