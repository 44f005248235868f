"""The notebooks are made of their scripts and run as they are."""

import ast
import json
from functools import cache
from typing import Any

import pytest

from examples import to_notebook
from vizformer import Trace, load, view
from vizformer.errors import TraceError

NAMES = tuple(to_notebook.TITLES)


@cache
def shown(name: str) -> list[Any]:
    """Runs the cells of a notebook; what the last line of each shows, as a notebook would."""
    cells = json.loads((to_notebook.HERE / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    names: dict[str, object] = {"__name__": "__notebook__"}
    found = []
    for cell in cells:
        if cell["cell_type"] == "code":
            body = ast.parse("".join(cell["source"])).body
            last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
            exec(compile(ast.Module(body, []), name, "exec"), names)
            if last is not None:
                assert isinstance(last, ast.Expr)
                found.append(eval(compile(ast.Expression(last.value), name, "eval"), names))
    return [one for one in found if one is not None]


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_made_of_its_script(name: str) -> None:
    path = to_notebook.HERE / f"{name}.ipynb"
    assert path.read_text(encoding="utf-8") == to_notebook.written(name)


def test_the_transformer_from_scratch_agrees_in_its_notebook(capsys: pytest.CaptureFixture[str]) -> None:
    shown("transformer_from_scratch")
    assert "every step agrees" in capsys.readouterr().out


def test_the_tour_shows_its_pictures(capsys: pytest.CaptureFixture[str]) -> None:
    cross, encoder, stories = shown("tour")
    assert cross.heads.shape[:2] == (3, 4)
    assert cross.key_tokens == tuple(token.text for token in load("zh-en").trace("我有一只猫。").tokens["encoder"])
    assert encoder.picture == "lines"
    assert stories.query_tokens == stories.key_tokens
    assert "differs from the model by" in capsys.readouterr().out


def test_a_checkpoint_is_inspected(capsys: pytest.CaptureFixture[str]) -> None:
    (every_head,) = shown("inspect_your_checkpoint")
    assert every_head.caption.startswith("decoder.0.self … ")
    assert "decoder.0.self [" in capsys.readouterr().out


def test_a_figure_for_a_paper_is_written_in_every_kind(capsys: pytest.CaptureFixture[str]) -> None:
    (figure,) = shown("figure_for_a_paper")
    said = capsys.readouterr().out
    assert "attention.svg" in said
    assert "attention.npz" in said
    bundle = figure._repr_mimebundle_()
    assert set(bundle) == {"application/vnd.plotly.v1+json", "image/svg+xml"}
    assert bundle["image/svg+xml"].startswith("<svg")
    assert bundle["application/vnd.plotly.v1+json"]["layout"]["paper_bgcolor"] == "white"


def test_a_trace_and_its_records_show_themselves() -> None:
    trace = load("zh-en").trace("我有一只猫。")
    assert trace["decoder.0.cross"].tokens == (
        tuple(token.text for token in trace.tokens["decoder"]),
        tuple(token.text for token in trace.tokens["encoder"]),
    )
    shown_alone = trace["decoder.1.cross"]._repr_html_()
    assert shown_alone.count("<iframe") == 1
    assert shown_alone.startswith("<p>decoder.1.cross</p><")
    assert trace._repr_html_() == view(trace, kind="cross")._repr_html_()
    assert Trace()._repr_html_() is None
    with pytest.raises(TraceError, match="empty"):
        view(Trace())
    with pytest.raises(TraceError, match="no cross attention; it has: decoder"):
        view(load("stories").trace("A cat."), kind="cross")
