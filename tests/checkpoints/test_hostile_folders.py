"""Folders that would have `transformers` fetch, run, fill or hang something: each is refused with the way out, at once."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("transformers")

from tests.checkpoints.hostile_folders import FOLDERS
from tests.checkpoints.test_by_transformers import CHANGES
from tests.recorder.all_types import made
from vizformer.checkpoints import load
from vizformer.checkpoints.files.weights import Stored, Weights
from vizformer.checkpoints.hugging_face.said_by_config import said_by
from vizformer.errors import CheckpointError, VizformerError

pytestmark = [pytest.mark.parity]

# What the refusal names: a field, a tensor, a file.
NAMED = {
    "a million layers": "num_hidden_layers=1000000: for these weights it may be 64 at most",
    "a million experts": "num_local_experts",
    "a vocabulary that the file cannot hold": "has shape [99, 32], but by config.json it must be [100000, 32]",
    "60,000 tensors of nothing": '"x.0" holds no numbers',
    "wide rotary angles": "partial_rotary_factor",
    "no number": "rms_norm_eps=NaN: it must be a finite number",
    "no number as transformers writes it": "rms_norm_eps=NaN",
    "a field called as a method": '"to_dict" is no name of a field',
    "a method in a table inside": '"from_pretrained" is no name of a field',
    "a class of another type": "LlamaForCausalLM",
    "a backbone from a hub": 'backbone="somebody/model"',
    "quantised weights": "quantization_config",
    "weights elsewhere": "transformers_weights",
    "layers with options of their own": "hidden_size=1000000",
    "no queries": '"model.layers.0.self_attn.q_proj.weight" is missing',
    "no experts in one layer": '"model.layers.0.block_sparse_moe.experts.0.w1.weight" is missing',
    "one tensor more": '"model.layers.0.x" belongs to no part',
    "queries of another shape": 'q_proj.weight" has shape [32, 16], but by config.json it must be [32, 32]',
    "an expert of another shape": '"model.layers.0.block_sparse_moe.experts.1.w2.weight" has shape [16, 40]',
    "no number among the weights": '"model.layers.0.self_attn.k_proj.weight" holds NaN',
    "whole numbers for weights": '"model.layers.0.self_attn.v_proj.weight" is stored as "i8"',
    "one table with two contents": "should be the same numbers (tie_word_embeddings)",
    "a pickle": '"pytorch_model.bin": models that `transformers` computes are opened from model.safetensors alone',
    "a header that lies": "model.safetensors cannot be read",
}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory):
    """What each took, opened one after the other in a process of its own."""
    there = tmp_path_factory.mktemp("hostile")
    folder = there / "mine"
    made("mixtral").save_pretrained(folder)
    command = [sys.executable, "-m", "tests.checkpoints.hostile_folders", str(folder), str(there)]
    run = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
    return json.loads(run.stdout)


@pytest.mark.parametrize("name", FOLDERS)
def test_a_hostile_folder_is_refused_at_once(measured, name):
    took = measured[name]
    assert took["said"], "it opened"
    assert "got out" not in took["said"]
    assert NAMED.get(name, "") in took["said"], took["said"]
    assert (
        any(way in took["said"] for way in ("opy ", "Take ", "write it again")) or "needs config.json" in took["said"]
    )
    assert took["said"].isprintable()
    assert took["seconds"] < 2
    assert took["memory"] < 300


@pytest.mark.parametrize(
    ("field", "most"),
    [
        ("num_hidden_layers", 64),  # of a file with few tensors
        ("encoder_layers", 64),
        ("n_layer", 64),
        ("vocab_size", 2**17),
        ("intermediate_size", 2**17),
        ("num_local_experts", 2**17),
        ("max_position_embeddings", 2**31 - 1),  # of which no table may be made: that is tried
        ("rope_theta", 2**31 - 1),
        ("layer_rope_theta", 2**31 - 1),
        ("sliding_window", 2**31 - 1),
        ("chunk_size", 1024),
        ("attention_window", 4096),
        ("local_radius", 256),
        ("lsh_num_chunks_before", 256),
        ("hc_sinkhorn_iters", 256),
        ("rope_factor", 1024),
    ],
)
def test_a_number_is_bounded_by_what_it_counts(field: str, most: int) -> None:
    weights = Weights({"x": Stored("model.safetensors", (8, 8), "float32", lambda: torch.zeros(8, 8))}, {})
    for where in ({field: most}, {"text_config": {field: [most]}}):
        assert not said_by(where, weights).problems
    for where in ({field: most + 1}, {"text_config": {field: [most + 1]}}, {field: float("nan")}):
        assert field in str(said_by(where, weights).problems[0])
    waves = {"sinusoidal_embeddings": True, "max_position_embeddings": 4097}
    assert "max_position_embeddings=4097" in str(said_by(waves, weights).problems[0])


# Of wrong kinds, far too large, with something inside, or what code is called by.
VALUES = (
    None,
    "x",
    "somebody/kernel:run",
    -1,
    0,
    10**5,
    10**6,
    1e300,
    float("inf"),
    [],
    {},
    ["full_attention"] * 3,
    [[1, 2], [3]],
    {"model_type": "llama", "num_hidden_layers": 10**6},
)


def places(fields: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every field, those of tables inside too."""
    for name, value in fields.items():
        yield (*path, name)
        if isinstance(value, dict):
            yield from places(value, (*path, name))


def peak() -> float:
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def seconds_to_load(folder: Path) -> float:
    """Of the processor, until the folder was opened or refused with an error of ours."""
    start = time.process_time()
    with suppress(VizformerError):
        load(folder)
    return time.process_time() - start


@pytest.mark.sample(1)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["mixtral", "deepseek_v3", "gpt_oss", "t5gemma", "esm", "mamba2"])
def test_a_config_with_any_field_of_another_kind_opens_or_is_refused_at_once(kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    made(kind, **CHANGES.get(kind, {})).save_pretrained(folder)
    original = json.loads((folder / "config.json").read_text())
    with suppress(CheckpointError):  # (Mamba has nothing to show)
        load(folder)
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before, wrong = peak(), []
    for path in places(original):
        for value in VALUES:
            fields = json.loads(json.dumps(original))
            table = fields
            for name in path[:-1]:
                table = table[name]
            table[path[-1]] = value
            (folder / "config.json").write_text(json.dumps(fields))
            try:
                took = seconds_to_load(folder)
                if took > 2:  # once more: another test's garbage is collected in this process too
                    took = seconds_to_load(folder)
            except Exception as error:
                wrong.append((".".join(path), value, repr(error)))
            else:
                if took > 2:
                    wrong.append((".".join(path), value, f"{took:.1f} s"))
    assert not wrong
    assert peak() - before < 300
