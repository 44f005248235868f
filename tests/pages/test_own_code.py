"""A model of the server's own code on the pages: listed, drawn, measured; refused in words where a server has none."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.components.test_mount import sent
from tests.pages.conftest import Open
from tests.pages.reading import said
from tests.recorded_code import EXAMPLE, named
from tests.refs import stamped
from vizformer.analysis.corpus_heads import Corpus
from vizformer.analysis.corpus_heads import worker as measuring
from vizformer.checkpoints import own_code
from vizformer.web.catalogue import model_cache, named_code
from vizformer.web.link.model_ref import ModelRef

ATTENTION, REPORT, OPEN, GENERATION = (
    "pages/explore/attention.py",
    "pages/checkpoint/report.py",
    "pages/checkpoint/open.py",
    "pages/explore/generation.py",
)
MODEL, TEXT = "code/my_model", "A bird sings."


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "my_model.py"
    path.write_text(EXAMPLE, encoding="utf-8")
    with named(monkeypatch, path):
        yield path
    model_cache.checks.clear()


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_its_heads_are_those_of_its_own_code(open_app: Open, file: Path, locale: str) -> None:
    app = open_app(ATTENTION, locale=locale, model=MODEL, text=TEXT)
    assert not app.exception
    assert not app.error
    names = next(box for box in app.selectbox if box.key == "view.model").options
    assert any(name.startswith("my_model") for name in names)
    drawn = sent(app)
    assert drawn["key_tokens"] == list(TEXT.replace(" ", "␣"))
    loaded = named_code.checkpoint(ModelRef.parse(MODEL))
    module, ids = loaded.module, torch.tensor([list(TEXT.encode())])
    with torch.no_grad():  # once more by hand, as the file has it
        x = module.blocks[0].norm1(module.tokens(ids) + module.places(torch.arange(len(TEXT))))[0]
        q, k, _ = (part.unflatten(-1, (4, 16)).transpose(0, 1) for part in module.blocks[0].qkv(x).chunk(3, -1))
    future = torch.ones(len(TEXT), len(TEXT), dtype=torch.bool).triu(1)
    maps = (q @ k.mT / 4).masked_fill(future, -torch.inf).softmax(-1)
    record = loaded.trace(TEXT)["decoder.0.self"]
    assert torch.allclose(torch.stack([record.pattern(head) for head in range(4)]), maps, atol=1e-6)


def test_what_the_checks_found_stands_above_the_heads(
    open_app: Open, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = open_app(ATTENTION, model=MODEL, text=TEXT)
    assert "the recording is being checked" in said(app)  # the picture comes first
    assert model_cache.checks(stamped(MODEL)).whole
    app = open_app(ATTENTION, model=MODEL, text=TEXT)
    assert "exact and complete" in said(app)
    wrong = replace(model_cache.checks(stamped(MODEL)), mixing=("blocks.1.mlp",))
    monkeypatch.setattr(named_code.checkpoint(ModelRef.parse(MODEL)).__class__, "checks", lambda self, **_: wrong)
    model_cache.checks.clear()
    model_cache.checks(stamped(MODEL))
    app = open_app(ATTENTION, model=MODEL, text=TEXT)
    assert "tokens also mix in blocks" in said(app).replace("\\", "")


def test_the_first_page_says_what_it_needs_and_leads_to_its_heads(open_app: Open, file: Path) -> None:
    app = open_app("pages/learn/start.py", model=MODEL, text=TEXT)
    assert not app.exception
    assert not app.error
    assert ["needs every weight by its role" in one.value for one in app.info] == [True]
    assert "Attention →" in [link.proto.label for link in app.get("page_link")]


def test_a_server_without_it_says_so_and_reads_no_file(
    open_app: Open, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(own_code.VARIABLE, "")
    for page in (ATTENTION, REPORT):
        app = open_app(page, model=MODEL, text=TEXT)
        assert not app.exception
        (error, *_others) = app.error
        assert "this server was started without it; a link carries no code" in error.value.replace("\\", "")
    app = open_app(ATTENTION, model=f"code/{file}:load", text=TEXT)  # no way to name a file
    assert not app.exception
    assert not own_code._OPEN


def test_the_report_lists_its_modules_its_attention_and_the_checks(open_app: Open, file: Path) -> None:
    app = open_app(REPORT, model=MODEL, text=TEXT)
    assert not app.exception
    assert not app.error
    assert str(file.parent) not in said(app)
    tables = [frame.value for frame in app.dataframe]
    found = next(table for table in tables if "Module" in table)
    assert list(found["Module"]) == ["blocks.0", "blocks.1", "blocks.2"]
    assert list(found["On the pages"]) == ["decoder.0.self", "decoder.1.self", "decoder.2.self"]
    assert len(next(table for table in tables if "Parameter" in table)) == 42
    assert said(app).count("✓") == 3
    assert "blocks.*.mlp<" in said(app)  # parameters by part, all blocks together
    app = open_app(OPEN, model=MODEL)
    assert "my_model" in said(app).replace("\\", "")
    assert not app.error


def test_the_process_of_a_head_report_loads_it_too_and_only_as_it_was(file: Path, tmp_path: Path) -> None:
    code = named_code.code(ModelRef.parse(MODEL))
    corpus = Corpus.of(["A bird sings in the tree.", "The dog was tired, so it went to bed."])
    folder = tmp_path / "job"

    def measured() -> int:
        folder.mkdir(exist_ok=True)
        texts = tuple(one.text for one in corpus.passages)
        measuring.Request("my_model", {}, "float32", "cpu", "two", texts, own_code.digest(code)).write(folder)
        (folder / "watched").touch()
        return measuring.main(folder, 0)

    known = own_code.digest(code)
    assert own_code.unchanged("my_model", known) is own_code.checkpoint(code)
    assert measured() == 0
    assert (folder / measuring.REPORT).is_file()
    file.write_text(EXAMPLE.replace("heads=4", "heads=2"), encoding="utf-8")
    own_code._OPEN.clear()  # as in another process
    assert own_code.digest(code) != known
    with pytest.raises(own_code.CheckpointError, match="has changed since the server was started"):
        own_code.unchanged("my_model", known)
