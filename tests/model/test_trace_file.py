"""A trace as a file, opened again with safetensors."""

import json
import os
import re
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import vizformer as vf
from vizformer.analysis import TraceNumbers
from vizformer.errors import TraceError
from vizformer.model import trace_file


@pytest.fixture(scope="module")
def trace():
    return vf.load("zh-en").trace("我有一只猫。")


def test_every_tensor_comes_back_under_its_name(trace, tmp_path):
    path = tmp_path / "trace.safetensors"
    path.write_bytes(trace_file.as_file(trace, about={"model": "zh-en"}))
    read = load_file(path)
    for site in trace.sites:
        record = trace[site]
        for name in "qkv":
            torch.testing.assert_close(read[f"{site}.{name}"], getattr(record, name), rtol=0, atol=0)
        for head in range(record.n_heads):
            torch.testing.assert_close(read[f"{site}.pattern"][head], record.pattern(head), rtol=0, atol=0)
    for name, residual in trace.residuals.items():
        torch.testing.assert_close(read[name], residual, rtol=0, atol=0)
    torch.testing.assert_close(read["logits"], trace.logits, rtol=0, atol=0)
    with safe_open(path, "pt") as file:
        about = file.metadata()
    assert about["model"] == "zh-en"
    assert [one["text"] for one in json.loads(about["tokens.encoder"])] == [t.text for t in trace.tokens["encoder"]]
    assert json.loads(about["scales"]) == {site: trace[site].scale for site in trace.sites}


def test_maps_of_long_texts_are_left_out(trace, monkeypatch):
    monkeypatch.setattr(trace_file, "MOST_PATTERN_BYTES", 100)
    names = trace_file.tensors(trace)
    assert "encoder.0.self.q" in names
    assert not any(name.endswith(".pattern") for name in names)


Content = tuple[dict[str, torch.Tensor], dict[str, str]]


def said(name: str, change: Callable[[object], object]) -> Callable[[Content], None]:
    """Changes a part of the metadata."""

    def changed(content: Content) -> None:
        content[1][name] = json.dumps(change(json.loads(content[1][name])))

    return changed


def shaped(name: str, *shape: int, dtype: torch.dtype = torch.float32) -> Callable[[Content], None]:
    return lambda content: content[0].update({name: torch.zeros(shape, dtype=dtype)})


def left_out(name: str) -> Callable[[Content], None]:
    def changed(content: Content) -> None:
        (content[0] if name in content[0] else content[1]).pop(name)

    return changed


def put(name: str, value: str) -> Callable[[Content], None]:
    return lambda content: content[1].update({name: value})


HOSTILE = {
    "another version": (put("format", "vizformer.trace 9"), r"its format is vizformer.trace 9; only vizformer.trace 2"),
    "the version before": (put("format", "vizformer.trace 1"), "Save the trace again with this version"),
    "no format": (left_out("format"), "no format"),
    "no scales": (left_out("scales"), "lack scales"),
    "scales that are no object": (put("scales", "[1, 2]"), "lack scales"),
    "scales in a million brackets": (put("scales", "[" * 10**6), "lack scales"),
    "a scale of a million digits": (put("scales", '{"encoder.0.self": ' + "9" * 10**6 + "}"), "lack scales"),
    "a scale that is no number": (
        said("scales", lambda found: {**found, "encoder.0.self": float("nan")}),
        "not a number",
    ),
    "a scale of a text": (said("scales", lambda found: {**found, "encoder.0.self": "1"}), "not a number"),
    "a scale of 0": (said("scales", lambda found: {**found, "encoder.0.self": 0}), "not a number"),
    "a scale too large for a float": (
        said("scales", lambda found: {**found, "encoder.0.self": 10**400}),
        "not a number",
    ),
    "no site": (said("scales", lambda found: {**found, "encoder.<b>.self": 1.0}), "not an attention site"),
    "a site for each of a million layers": (
        said("scales", lambda found: {f"encoder.{layer}.self": 1.0 for layer in range(10**5)}),
        "not an attention site|is missing",
    ),
    "a layer that is left out": (
        said("scales", lambda found: {site: one for site, one in found.items() if site != "encoder.1.self"}),
        "encoder.1.self.q is missing",
    ),
    "no queries": (left_out("encoder.0.self.q"), "encoder.0.self.q is missing"),
    "sinks, as it once had": (shaped("encoder.0.self.sinks", 4), "encoder.0.self.sinks has the shape"),
    "no values": (left_out("decoder.2.cross.v"), "decoder.2.cross.v is missing"),
    "a mask without its reasons": (left_out("decoder.0.self.reason"), "decoder.0.self.reason is missing"),
    "no logits": (left_out("logits"), "logits is missing"),
    "a stream that is not there": (
        said("streams", lambda found: [*found, "encoder.7.pre"]),
        "encoder.7.pre is missing",
    ),
    "queries of two sides": (shaped("encoder.0.self.q", 4, 7), r"has the shape \[4, 7\]"),
    "no heads": (shaped("encoder.0.self.q", 0, 7, 32), r"has the shape \[0, 7, 32\]"),
    "whole numbers": (shaped("encoder.0.self.q", 4, 7, 32, dtype=torch.int64), "torch.int64"),
    "keys of another width": (shaped("encoder.0.self.k", 4, 7, 16), r"encoder.0.self.k has the shape"),
    "keys for a third of the heads": (shaped("encoder.0.self.k", 3, 7, 32), r"encoder.0.self.k has the shape"),
    "values of another text": (shaped("encoder.0.self.v", 4, 9, 32), r"encoder.0.self.v has the shape"),
    "a mask of another text": (shaped("decoder.0.self.bias", 1, 5, 6), r"decoder.0.self.bias has the shape"),
    "reasons that are no codes": (shaped("decoder.0.self.reason", 1, 6, 6), r"decoder.0.self.reason has the shape"),
    "a stream of three sides": (shaped("encoder.0.pre", 1, 7, 128), r"encoder.0.pre has the shape"),
    "a stream of another text": (shaped("encoder.0.pre", 9, 128), "encoder.0.pre has 9 rows for 8 tokens"),
    "tokens of another text": (said("tokens.encoder", lambda found: found[:-1]), "has 8 rows for 7 tokens"),
    "tokens of texts": (said("tokens.encoder", lambda found: ["a"] * len(found)), "lack tokens.encoder"),
    "a token without a text": (said("tokens.encoder", lambda found: [{"id": 1}] * len(found)), "lack tokens.encoder"),
    "a token of a number": (
        said("tokens.encoder", lambda found: [{**token, "text": 7} for token in found]),
        "lack tokens.encoder",
    ),
}


@pytest.fixture(scope="module")
def written(trace: vf.Trace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("traces") / "trace.safetensors"
    trace.save(path)
    return path


def opened_after(written: Path, change: Callable[[Content], None], folder: Path) -> vf.Trace:
    with safe_open(written, "pt") as file:
        content = load_file(written), file.metadata()
    change(content)
    save_file(*content[:1], folder / "changed.safetensors", content[1])
    return trace_file.open_trace(folder / "changed.safetensors")


def test_many_values_in_the_metadata_are_not_parsed(written: Path, tmp_path: Path) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(TraceError, match="lack scales"):
            opened_after(written, put("scales", "[" + "[]," * 2_000_000 + "[]]"), tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 64 * 2**20  # as lists they are 140 MB
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.sample(11)
def test_a_file_that_does_not_hold_together_is_refused_in_words(name: str, written: Path, tmp_path: Path) -> None:
    change, says = HOSTILE[name]
    with pytest.raises(TraceError, match=says) as refused:
        opened_after(written, change, tmp_path)
    assert "changed.safetensors cannot be shown as a trace" in str(refused.value)
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize("name", ["q", "k", "v", "bias"])
def test_numbers_that_are_not_finite_are_refused_where_their_head_is_looked_at(
    name: str, written: Path, tmp_path: Path
) -> None:
    def change(content: Content) -> None:
        content[0][f"decoder.1.self.{name}"][..., 0, 0] = torch.nan

    numbers = TraceNumbers(opened_after(written, change, tmp_path))
    assert numbers.heads("decoder").pattern(0, 1).shape == (6, 6)
    for ask in ("pattern", "scores", "operands"):
        with pytest.raises(TraceError, match=f"decoder.1.self.{name} has numbers that are not finite"):
            getattr(numbers.heads("decoder"), ask)(1, 1)
    with pytest.raises(TraceError, match="not finite"):
        numbers.heads("decoder").small(1)
    with pytest.raises(TraceError, match="not finite"):
        vf.view(numbers.trace, kind="decoder").save(tmp_path / "maps.html")


def test_a_stream_that_is_not_finite_is_refused_where_it_is_looked_at(written: Path, tmp_path: Path) -> None:
    numbers = TraceNumbers(
        opened_after(written, lambda content: content[0]["encoder.1.pre"].fill_(torch.inf), tmp_path)
    )
    assert numbers.stream("encoder.0.pre").shape == (8, 256)
    with pytest.raises(TraceError, match=r"encoder\.1\.pre has numbers that are not finite"):
        numbers.stream("encoder.1.pre")


def test_more_maps_than_are_looked_through_are_refused(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_file, "MOST_CELLS", 3 * 4 * 8 * 8 - 1)
    with pytest.raises(TraceError, match="its maps have 768 cells; at most 767 are checked"):
        trace_file.open_trace(written)


@pytest.mark.parametrize("size", [0, 5, 8, 100, 20_000])
def test_a_file_that_is_cut_off_is_refused(size: int, written: Path, tmp_path: Path) -> None:
    (tmp_path / "half.safetensors").write_bytes(written.read_bytes()[:size])
    with pytest.raises(TraceError, match=re.escape("half.safetensors cannot be shown as a trace")):
        trace_file.open_trace(tmp_path / "half.safetensors")
    with pytest.raises(TraceError):
        vf.view(tmp_path / "half.safetensors")


def test_a_header_of_a_gigabyte_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "long.safetensors").open("wb") as file:
        file.write((2**30).to_bytes(8, "little"))
        os.ftruncate(file.fileno(), 2**30 + 8)
    with pytest.raises(TraceError, match="its header has 1,073,741,824 bytes"):
        trace_file.open_trace(tmp_path / "long.safetensors")


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"no\.safetensors cannot be shown as a trace"):
        trace_file.open_trace(tmp_path / "no.safetensors")


def test_halves_of_characters_in_tokens_are_shown_as_such(written: Path, tmp_path: Path) -> None:
    change = said("tokens.encoder", lambda found: [{**token, "text": "\ud83d<b>"} for token in found])
    trace = opened_after(written, change, tmp_path)
    assert trace.tokens["encoder"][0].text == "\ufffd<b>"
    vf.view(trace, kind="encoder").save(tmp_path / "shown.html")
    assert "<b>" not in (tmp_path / "shown.html").read_text(encoding="utf-8")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="only Linux says how much memory a process has")
@pytest.mark.sweep
def test_of_a_file_only_what_is_looked_at_is_read(tmp_path: Path) -> None:
    """200 MB of what is added to the scores of 50 heads, of which one is looked at."""
    heads, n = 50, 1024
    parts = {name: torch.zeros(heads, n, 8) for name in "qkv"} | {"position_bias": torch.zeros(heads, n, n)}
    tensors = {f"encoder.0.self.{name}": part for name, part in parts.items()} | {"logits": torch.zeros(n, 2)}
    metadata = {"format": trace_file.FORMAT, "scales": '{"encoder.0.self": 1}', "streams": "[]", "assumed": "[]"}
    save_file(tensors, tmp_path / "large.safetensors", metadata)
    del parts, tensors
    before = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    found = TraceNumbers(trace_file.open_trace(tmp_path / "large.safetensors")).heads("encoder").pattern(0, 7)
    after = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    assert found.shape == (n, n)
    assert after - before < 60 * 2**20
