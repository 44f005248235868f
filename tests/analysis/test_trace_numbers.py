"""What pictures ask of a forward: a trace in a file answers as the one in this process does."""

import re
import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import vizformer as vf
from tests import tiny
from tests.analysis.test_head_overview import KINDS_OF_MODEL, traced
from vizformer.analysis import TraceNumbers
from vizformer.analysis.other_programs.attention_arrays import Limits
from vizformer.analysis.other_programs.attention_files import read_attention
from vizformer.components import packing
from vizformer.components.contract import Heads, Numbers
from vizformer.errors import TraceError
from vizformer.model import Trace
from vizformer.model.records import Scoring
from vizformer.model.trace_file import open_trace

SENTENCES = {"zh-en": "我有一只猫。", "stories": "The cat sat.", "cloze": "the [MASK] sat on the mat ."}
LIKE = {"rtol": 0, "atol": 1e-6}  # q and k lie in another order in the memory, and float32 sums in another one


def saved(trace: Trace, folder: Path, **about: str) -> Trace:
    trace.save(folder / "trace.safetensors", **about)
    return open_trace(folder / "trace.safetensors")


def assert_same_heads(one: Heads, other: Heads, some: Sequence[int]) -> None:
    assert (one.shape, one.scored, one.measures) == (other.shape, other.scored, other.measures)
    assert (list(one.query_tokens), list(one.key_tokens)) == (list(other.query_tokens), list(other.key_tokens))
    np.testing.assert_array_equal(one.blocked(), other.blocked())
    for layer in range(one.shape[0]):
        np.testing.assert_array_equal(one.blocked(layer), other.blocked(layer))
        (small, measures), (small_too, measures_too) = one.small(layer), other.small(layer)
        assert np.abs(small.astype(int) - small_too).max() <= 1  # a shade of 256
        for name in one.measures:
            np.testing.assert_allclose(measures[name], measures_too[name], atol=1e-5, rtol=1e-5)
        for head in some:
            np.testing.assert_allclose(one.pattern(layer, head), other.pattern(layer, head), **LIKE)
            np.testing.assert_allclose(one.scores(layer, head), other.scores(layer, head), rtol=1e-5, atol=1e-5)
            found, found_too = one.operands(layer, head), other.operands(layer, head)
            assert (found is None) == (found_too is None)
            for name in ("q", "k", "by_distance") if found is not None else ():
                np.testing.assert_array_equal(getattr(found, name), getattr(found_too, name))


def assert_same_numbers(one: Numbers, other: Numbers, some: Sequence[int] = (0, 3)) -> None:
    assert (one.kinds, one.streams) == (other.kinds, other.streams)
    for site in one.streams:
        np.testing.assert_array_equal(one.stream(site), other.stream(site))
        assert one.tokens(site) == other.tokens(site)
    for kind in one.kinds:
        assert_same_heads(one.heads(kind), other.heads(kind), some)


@pytest.mark.parametrize("name", SENTENCES)
@pytest.mark.sample(1)
def test_a_saved_trace_answers_as_the_one_in_memory(name: str, tmp_path: Path) -> None:
    trace = vf.load(name).trace(SENTENCES[name])
    again = saved(trace, tmp_path, model=name)
    assert (again.sites, again.tokens, again.about) == (trace.sites, trace.tokens, {"model": name})
    assert_same_numbers(TraceNumbers(trace), TraceNumbers(again))
    torch.testing.assert_close(again.logits, trace.logits, rtol=0, atol=0)
    for kind in TraceNumbers(trace).kinds:
        whole, whole_too = (packing.pack(TraceNumbers(one).heads(kind)) for one in (trace, again))
        assert whole.columns.keys() == whole_too.columns.keys()
        np.testing.assert_allclose(whole.columns["weights"], whole_too.columns["weights"], **LIKE)


@pytest.mark.parametrize("name", KINDS_OF_MODEL)
@pytest.mark.sample(4)
def test_every_way_to_tell_positions_comes_back(name: str, tmp_path: Path) -> None:
    trace = traced(*KINDS_OF_MODEL[name])
    assert_same_numbers(TraceNumbers(trace), TraceNumbers(saved(trace, tmp_path)))


def test_bent_scores_come_back(tmp_path: Path) -> None:
    """As recorded models have them."""
    trace = traced("decoder-only", {})
    for site in trace.sites:
        trace._records[site] = replace(trace[site], scoring=Scoring(trace[site].scale, cap=0.5))
    again = saved(trace, tmp_path)
    assert {again[site].scoring.cap for site in again.sites} == {0.5}
    assert_same_numbers(TraceNumbers(trace), TraceNumbers(again))


def test_a_model_of_half_precision_comes_back(tmp_path: Path) -> None:
    model, trace = tiny.model("decoder-only").to(torch.bfloat16), Trace()
    with torch.inference_mode():
        model(tiny.ids(9), trace=trace)
    assert_same_numbers(TraceNumbers(trace), TraceNumbers(saved(trace, tmp_path)))


def test_the_arithmetic_of_a_head_is_shown_of_a_saved_trace(tmp_path: Path) -> None:
    checkpoint = vf.load("zh-en")
    trace = checkpoint.trace("我有一只猫。")
    steps, again = (
        vf.explain.attention_steps(checkpoint, one, "decoder.2.cross", head=1, query=3)
        for one in (trace, saved(trace, tmp_path))
    )
    for step, same in zip(steps, again, strict=True):
        np.testing.assert_allclose(step.result, same.result, atol=1e-6)
        assert same.proof is None or same.proof.holds


@pytest.mark.parametrize("picture", ["map", "lines", "text"])
def test_a_file_is_drawn_as_its_trace_is(picture: Any, tmp_path: Path) -> None:
    trace = vf.load("zh-en").trace("我有一只猫。")
    trace.save(path := tmp_path / "trace.safetensors", model="zh-en")
    shown, shown_too = (
        vf.view(str(path), kind="encoder", picture=picture),
        vf.view(trace, kind="encoder", picture=picture),
    )
    assert shown.caption == "zh-en · encoder.0.self … encoder.2.self"
    numbers = re.compile(r'"(weights|scores|measure_\w+)": "[^"]*"')  # of the last digit of a float32
    assert numbers.sub("", shown.html) == numbers.sub("", shown_too.html)
    assert vf.view(path, site="decoder.2.cross").layers == [2]
    stream = vf.view(path, site="decoder.1.pre")
    assert f"{trace.residual('decoder.1.pre')[0, 0]:.4f}".replace("-", "−") in stream.html
    assert "zh-en · decoder.1.pre" in stream._repr_html_()
    stream.save(tmp_path / "stream.html")
    with pytest.raises(TraceError, match="no attention site"):
        vf.view(path, site="decoder.7.pre")


def test_a_long_text_in_a_file_has_small_maps_and_one_head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = traced(*KINDS_OF_MODEL["rope, shared keys"])
    trace.save(tmp_path / "trace.safetensors")
    monkeypatch.setattr("vizformer.attention_view.MOST_BYTES", 10**6)
    shown = vf.view(tmp_path / "trace.safetensors")
    assert '"held": "head"' in shown.html
    assert len(shown.html) < 600_000
    lines = vf.view(tmp_path / "trace.safetensors", picture="lines")
    assert '"held": "layer"' in lines.html


@pytest.mark.sweep
def test_a_trace_handed_in_takes_little_more_memory_than_its_maps(tmp_path: Path) -> None:
    trace = traced("decoder-only", {"n_decoder_layers": 20})
    trace.save(path := tmp_path / "trace.safetensors")
    content, maps = path.read_bytes(), 4 * np.prod(TraceNumbers(trace).heads("decoder").shape)
    tracemalloc.start()
    (found,) = read_attention("trace.safetensors", content).values()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.weights.nbytes == maps
    assert most < 1.3 * maps


def test_more_maps_than_are_kept_are_not_computed(tmp_path: Path) -> None:
    vf.load("stories").trace("The cat sat.").save(path := tmp_path / "trace.safetensors")
    with pytest.raises(TraceError, match="Hand in fewer layers, or a shorter text"):
        read_attention("trace.safetensors", path.read_bytes(), limits=Limits(2**30, 100))


def test_a_trace_handed_in_has_its_tokens_and_its_masks(tmp_path: Path) -> None:
    trace = vf.load("zh-en").trace("我有一只猫。")
    trace.save(path := tmp_path / "trace.safetensors")
    found = read_attention("trace.safetensors", path.read_bytes())
    assert list(found) == ["encoder", "decoder", "cross"]
    for kind, arrays in found.items():
        heads = TraceNumbers(trace).heads(kind)
        assert arrays.shape == heads.shape
        assert arrays.query_tokens == tuple(heads.query_tokens)
        assert arrays.key_tokens == tuple(heads.key_tokens)
        np.testing.assert_array_equal(arrays.blocked(), heads.blocked())
        np.testing.assert_allclose(arrays.weights[1, 2], heads.pattern(1, 2), **LIKE)
