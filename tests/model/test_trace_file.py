"""A trace as a file, opened again with safetensors."""

import json

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

import vizformer as vf
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
