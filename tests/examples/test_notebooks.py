"""The notebooks are made of their scripts and run as they are."""

import ast
import json
from functools import cache
from typing import Any

import pytest

from examples import to_notebook
from vizformer import Trace, analysis, load, view
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


def test_the_heads_of_an_answer_have_a_direct_and_a_total_effect() -> None:
    terms, without, both = shown("heads_of_an_answer")
    stories = load("stories")
    trace = stories.trace("The queen lost")
    answer = int(trace.logits[-1].argmax())
    assert terms["value"].sum() == pytest.approx(float(trace.logits[-1, answer] - trace.logits[-1].mean()), abs=1e-4)
    assert len(without) == len(both) == (terms["part"] == "head").sum()
    assert without["divergence"].is_monotonic_decreasing
    row = both.iloc[0]
    other = analysis.without(stories, trace, [analysis.Part(row["place"], int(row["head"]))])
    assert row["total"] == pytest.approx(float(trace.logits[-1, answer] - other.logits[-1, answer]), abs=1e-4)


def test_the_reason_of_a_look_is_a_sum_that_is_the_score(capsys: pytest.CaptureFixture[str]) -> None:
    pairs, role = shown("reason_of_a_look")
    trace = load("stories").trace("Tom had a dog. The dog was")
    scores = trace["decoder.3.self"].scores(0)[-1]
    key = int(scores[1:].argmax()) + 1
    assert pairs["share"].sum() == pytest.approx(float(scores[key] - scores.mean()), abs=1e-4)
    pattern = trace["decoder.3.self"].pattern(0)
    assert role["weight"].tolist() == pytest.approx([float(pattern[row, 1:].max()) for row in role["row"]])
    assert " becomes " in capsys.readouterr().out


def test_the_source_of_an_answer_is_told_in_three_ways(capsys: pytest.CaptureFixture[str]) -> None:
    edges, lens, tokens = shown("source_of_an_answer")
    assert capsys.readouterr().out.startswith("cat\n")
    assert {"direct", "total", "probability"} < set(edges)
    assert edges["reader"][0].startswith("logit")
    assert list(lens["rank"])[-1] == 1
    cat = [token.text for token in load("zh-en").trace("我有一只猫。").tokens["encoder"]].index("猫")
    words = tokens[tokens["stack"] == "encoder"].iloc[1:-1]  # without the first token and the last, where heads rest
    assert words.loc[words["integrated"].idxmax(), "row"] == cat


def test_effects_over_prompts_have_an_interval_and_their_rows(capsys: pytest.CaptureFixture[str]) -> None:
    patched, rows, without = shown("effects_over_prompts")
    assert "6 PromptRow(clean='The boy lost'" in capsys.readouterr().out
    assert (patched["low"] <= patched["mean"]).all()
    assert (patched["mean"] <= patched["high"]).all()
    assert rows["decoder.0.self.1"].mean() == pytest.approx(patched["mean"][0])
    assert len(rows) == without["rows"][0] == 6


def test_the_circuit_of_a_task_is_the_one_that_was_set_by_hand() -> None:
    scores, circuit, judged, measured = shown("circuit_of_a_task")
    way = {
        ("embedding", "decoder.0.self.1.v"),
        ("decoder.0.self.1", "decoder.1.self.2.k"),
        ("decoder.1.self.2", "logits"),
    }
    assert way < set(circuit)
    assert set(zip(scores["writer"][:3], scores["reader"][:3], strict=True)) == way
    assert judged.set_index("edges")["circuit"][4] > 0.95 > 0.05 > abs(judged.set_index("edges")["random_most"][4])
    assert all(measured[edge] > 0.9 for edge in way)


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
