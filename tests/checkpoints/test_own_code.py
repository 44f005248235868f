"""Models of code that the server is started with: what may be named, what the code may hand back, and what goes wrong."""

import os
import sys
from pathlib import Path
from textwrap import dedent

import pytest
import torch

from tests.recorded_code import EXAMPLE, named
from vizformer.checkpoints import own_code
from vizformer.checkpoints.own_code import Code
from vizformer.checkpoints.recorded.checkpoint import RecordedCheckpoint
from vizformer.errors import CheckpointError


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch):
    """The modules and the places that modules come from are afterwards those of before."""
    with named(monkeypatch):
        yield


@pytest.fixture
def file(tmp_path):
    def written(code: str, name: str = "my_model.py") -> Path:
        path = tmp_path / name
        path.write_text(EXAMPLE + "\n\n" + dedent(code), encoding="utf-8")
        return path

    return written


def refused(path: Path | str, function: str = "load") -> str:
    with pytest.raises(CheckpointError) as said:
        Code.read(f"{path}:{function}").load()
    return str(said.value)


def test_the_example_of_the_documents_is_a_model_whose_own_code_runs(tmp_path):
    (tmp_path / "my_model.py").write_text(EXAMPLE, encoding="utf-8")
    code = Code.read(f"{tmp_path}/my_model.py:load")
    assert (code.name, len(EXAMPLE.splitlines()) < 60) == ("my_model", True)
    made = code.load()
    assert isinstance(made, RecordedCheckpoint)
    assert (made.name, made.shape.decoder_heads, made.shape.vocab_size) == ("my_model", (4, 4, 4), 256)
    trace = made.trace("A bird sings.")
    assert [token.text for token in trace.tokens["decoder"]] == list("A␣bird␣sings.")
    ids = torch.tensor([list(b"A bird sings.")])
    with torch.no_grad():
        assert torch.allclose(trace.logits, made.module(ids)[0], atol=1e-6)


@pytest.mark.parametrize(
    ("said", "about"),
    [
        ("my_model.py", "after a colon, the function"),
        (":load", "after a colon, the function"),
        ("my_model.py:", "after a colon, the function"),
        ("my_model.py:load()", "after a colon, the function"),
        ("my_model.py:a b", "after a colon, the function"),
        ("", "after a colon, the function"),
        ("gone.py:load", "There is no file gone.py"),
        ("folder:load", ""),
        ("./folder:load", "./folder is no file of Python"),
        ("weights.pt:load", "weights.pt is no file of Python"),
    ],
)
def test_what_names_no_function_of_a_file_is_refused_with_the_way_out(tmp_path, monkeypatch, said, about):
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("weights.pt").touch()
    if about:
        with pytest.raises(CheckpointError, match="--model") as error:
            Code.read(said)
        assert about in str(error.value)
    else:  # a dotted module
        assert Code.read(said).place == "folder"


@pytest.mark.parametrize(
    ("code", "function", "about"),
    [
        ("", "build", "my_model.py has no build. It defines load."),
        ("LAYERS = 3", "LAYERS", "LAYERS is no function: it is int."),
        ("def build(path, *, n=1, deep): ...", "build", "called without arguments, but it needs path, deep"),
        ("def build(): return 1 / 0", "build", "build() raised ZeroDivisionError (my_model.py, line"),
        ("def build(): raise SystemExit(3)", "build", "build() raised SystemExit"),
        ("def build(): return None", "build", "build() returned NoneType. It returns (module, tokenizer)"),
        ("def build(): return {'module': GPT(256)}", "build", "build() returned dict."),
        ("def build(): return GPT(256)", "build", "a module without its tokenizer"),
        ("def build(): return GPT(256), Bytes(), 3", "build", "returned 3 things"),
        ("def build(): return Bytes(), GPT(256)", "build", "that build() returned is Bytes, no torch.nn.Module"),
        ("def build(): return GPT(256), 'gpt2'", "build", "str is no tokenizer"),
        ("async def build(): return GPT(256), Bytes()", "build", "is async"),
        ("def build(): return nn.Linear(2, 2), Bytes()", "build", "Embedding"),
        (
            "class Bad(GPT):\n    def forward(self, ids): return self.gone(ids)\ndef build(): return Bad(256), Bytes()",
            "build",
            "or correct the code. (my_model.py, line",
        ),
    ],
)
def test_what_the_code_does_otherwise_is_said(file, code, function, about):
    said = refused(file(code), function)
    assert about in said
    assert said.startswith("--model ")


@pytest.mark.parametrize(
    ("code", "about"),
    [
        ("import nothing_like_it", "my_model.py raised ModuleNotFoundError (my_model.py, line"),
        ("def load(:", "my_model.py raised SyntaxError"),
        ("raise SystemExit", "my_model.py raised SystemExit"),
    ],
)
def test_a_file_that_does_not_run_is_said_and_leaves_nothing_behind(file, code, about):
    path = file(code)
    assert about in refused(path)
    assert "my_model" not in sys.modules
    path.write_text(EXAMPLE, encoding="utf-8")
    assert Code.read(f"{path}:load").load().name == "my_model"


def test_the_cause_is_kept_for_the_terminal(file):
    with pytest.raises(CheckpointError) as said:
        Code.read(f"{file('def build(): return 1 / 0')}:build").load()
    assert isinstance(said.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize(
    "code",
    [
        "class Mine(Bytes):\n    module = GPT(256)\ndef build(): return Mine()",
        "class Mine(Bytes):\n    def __init__(self): self.model = GPT(256)\nbuild = Mine",
        "def build(): return [GPT(256), Bytes()]",
        "import vizformer as vf\ndef build(): return vf.wrap(GPT(256), Bytes(), name='mine', max_positions=64)",
    ],
)
def test_a_model_may_be_handed_back_in_several_ways(file, code):
    made = Code.read(f"{file(code)}:build").load()
    assert made.trace("ab").logits.shape == (2, 256)
    assert made.name == ("mine" if "vf.wrap" in code else "my_model.build")


def test_a_file_imports_what_lies_beside_it_and_a_module_is_found_from_here(tmp_path, monkeypatch, file):
    (tmp_path / "sizes_beside.py").write_text("WIDTH = 32\n")
    path = file("import sizes_beside\ndef load(): return GPT(256, width=sizes_beside.WIDTH), Bytes()")
    assert Code.read(f"{path}:load").load().shape.d_model == 32
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "__init__.py").touch()
    (tmp_path / "inner" / "gpt.py").write_text(EXAMPLE + "\n\nclass Small:\n    make = staticmethod(load)\n")
    monkeypatch.chdir(tmp_path)
    code = Code.read("inner.gpt:Small.make")
    assert (code.name, str(code)) == ("gpt.Small.make", "inner.gpt:Small.make")
    assert code.load().shape.decoder_heads == (4, 4, 4)


def test_a_file_that_is_called_as_a_library_takes_no_place_of_it(file):
    path = file("", "torch.py")
    assert Code.read(f"{path}:load").load().name == "torch"
    assert sys.modules["torch"] is torch


def test_the_models_of_a_server_have_names_of_their_own(tmp_path, monkeypatch, file):
    path, other = file("small = load"), tmp_path / "other" / "my_model.py"
    monkeypatch.setenv(own_code.VARIABLE, f"{path}:load\n\n {path}:small \n{path}:load")
    assert list(own_code.named()) == ["my_model", "my_model.small"]
    code = own_code.named()["my_model"]
    assert own_code.checkpoint(code) is own_code.checkpoint(code)
    other.parent.mkdir()
    other.write_text(EXAMPLE)
    monkeypatch.setenv(own_code.VARIABLE, f"{path}:load\n{other}:load")
    with pytest.raises(CheckpointError, match="is called my_model too"):
        own_code.named()
    monkeypatch.setenv(own_code.VARIABLE, os.linesep.join(f"{path}:load{n}" for n in range(own_code.MOST + 1)))
    with pytest.raises(CheckpointError, match="at most 8"):
        own_code.named()


def test_a_module_computes_where_it_lies(tmp_path):
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    (tmp_path / "my_model.py").write_text(EXAMPLE.replace("return model.eval()", "return model.cuda().eval()"))
    made = Code.read(f"{tmp_path}/my_model.py:load").load()
    trace = made.trace("A bird sings.")
    assert made.device.type == trace.logits.device.type == "cuda"
