"""Folders whose models `transformers` computes: opened, recorded, and refused with the way out."""

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.testing import assert_close

from tests.checkpoints.folders import change, llama, write_metaspace
from tests.recorder.all_types import VOCAB, given, made
from vizformer.checkpoints import RecordedCheckpoint, inspect, load, save
from vizformer.checkpoints.hugging_face import by_transformers
from vizformer.checkpoints.hugging_face.families import BY_TYPE
from vizformer.errors import CheckpointError
from vizformer.recorder import record

transformers = pytest.importorskip("transformers")

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

ROOT = Path(__file__).resolve().parents[2]
CHANGES: dict[str, dict[str, Any]] = {
    "deberta-v2": {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_buckets": 8},
    "longt5": {"local_radius": 3},
}
OPENED = ("deepseek_v3", "mixtral", "qwen3_moe", "t5gemma", "esm", "arcee", "gpt_oss")
# what an older version computed itself; such a type may come back as a row of a family
_ONCE = """
bloom biogpt codegen cohere cohere2 ctrl cwm ernie4_5 exaone4 falcon gemma gemma2 gemma3_text glm glm4 gpt_bigcode gpt_neo
gpt_neox gpt_neox_japanese gptj granite helium internlm3 ministral3 mpt nanochat olmo olmo2 olmo3 phi phi3 seed_oss smollm3
stablelm xglm
"""
ONCE = tuple(kind for kind in _ONCE.split() if kind not in BY_TYPE)
# what our own Transformer computes as well, and what the app has no trace of: read and run all the same
READ = ("modernbert", "deberta-v2", "longt5", "mamba2")


@pytest.fixture(scope="module")
def folder_of(tmp_path_factory: pytest.TempPathFactory):
    folders: dict[str, Path] = {}

    def get(kind: str) -> Path:
        if kind not in folders:
            folders[kind] = tmp_path_factory.mktemp("theirs") / kind
            made(kind, **CHANGES.get(kind, {})).save_pretrained(folders[kind])
        return folders[kind]

    return get


@pytest.fixture
def mixtral(folder_of, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder_of("mixtral"), tmp_path / "mine"))


# --- what opens ---


@pytest.mark.sample(16)
@pytest.mark.parametrize("kind", OPENED + ONCE)
def test_a_folder_opens_and_its_trace_is_what_its_code_computes(folder_of, kind):
    opened = load(folder_of(kind))
    assert isinstance(opened, RecordedCheckpoint)
    theirs = getattr(transformers, opened.report.declared).from_pretrained(folder_of(kind), attn_implementation="eager")
    inputs = given(theirs)
    with torch.no_grad():
        out = theirs(**inputs, output_attentions=True)
    ids, *target = (one[0].tolist() for one in inputs.values())
    trace = opened.trace(ids=ids, target_ids=target[0] if target else None)
    assert_close(trace.logits, out.logits[0], rtol=0, atol=1e-5)
    groups = ("attentions", "encoder_attentions", "decoder_attentions", "cross_attentions")
    maps = [one[0] for name in groups for one in out.get(name) or ()]
    assert len(trace.sites) == len(maps)
    for site in trace.sites:
        found = torch.stack([torch.as_tensor(trace[site].pattern(head)) for head in range(trace[site].n_heads)])
        assert min(float((found - one).abs().max()) for one in maps if one.shape == found.shape) <= 1e-5
    shape, report = opened.shape, opened.report
    assert (report.format, report.config, report.shape) == ("transformers", None, shape)
    assert "it and is recorded" in str(report.assumptions[0])
    before = inspect(folder_of(kind))
    assert not before.problems
    assert before.shape == shape  # known before a number was read
    assert before.n_parameters == sum(one.numel() for one in opened.module.parameters())


_LONG = {"short_factor": [1.0, 1.3], "long_factor": [5.0, 4.0], "original_max_position_embeddings": 48}
TURNED: dict[str, dict[str, Any]] = {
    "yarn": {"factor": 4.0, "original_max_position_embeddings": 16, "rope_theta": 100.0},
    "dynamic": {"factor": 2.0, "rope_theta": 100.0},
    "longrope": {**_LONG, "rope_theta": 100.0},
}


@pytest.mark.parametrize("rope", TURNED)
def test_a_type_of_ours_that_turns_otherwise_is_recorded_and_the_note_says_why(rope, tmp_path):
    folder = llama(tmp_path, rope_parameters={"rope_type": rope, **TURNED[rope]})
    opened = load(folder)
    assert isinstance(opened, RecordedCheckpoint)
    said = str(opened.report.assumptions[0])
    assert 'own arithmetic for "llama" lacks what config.json asks for (rope_parameters=' in said
    assert f'rotary positions with rope_type "{rope}": VizFormer supports' in said
    theirs = transformers.LlamaForCausalLM.from_pretrained(folder, attn_implementation="eager")
    ids = [token.id for token in opened.encode("I have two dogs")]
    trace = opened.trace(ids=ids)
    with torch.no_grad():
        out = theirs(torch.tensor([ids]), output_attentions=True)
    assert_close(trace.logits, out.logits[0], rtol=0, atol=1e-5)
    for site, maps in zip(trace.sites, out.attentions, strict=True):
        assert_close(
            torch.stack([torch.as_tensor(trace[site].pattern(h)) for h in range(4)]), maps[0], rtol=0, atol=1e-5
        )


@pytest.mark.parametrize("kind", READ)
def test_a_model_is_read_as_from_pretrained_reads_it(folder_of, kind):
    folder = folder_of(kind)
    examined = by_transformers.examine(by_transformers.Folder(folder), json.loads((folder / "config.json").read_text()))
    assert not examined.report.problems
    ours = by_transformers.build(examined, torch.float32, torch.device("cpu"))
    theirs = getattr(transformers, examined.class_name).from_pretrained(folder, attn_implementation="eager")
    with torch.no_grad():
        assert_close(ours(**given(theirs)).logits, theirs(**given(theirs)).logits, rtol=0, atol=1e-5)
    assert {one.dtype for one in ours.parameters()} == {torch.float32}
    assert not any(one.requires_grad for one in ours.parameters())
    assert all(one.is_exact for one in record(ours, **given(theirs)).attention)


def test_what_has_no_attention_is_refused_with_its_class(folder_of):
    with pytest.raises(
        CheckpointError, match=r"Mamba2ForCausalLM, and cannot be shown: No attention was seen.*Take another"
    ):
        load(folder_of("mamba2"))


def test_a_model_opens_in_half_precision_and_in_shards(folder_of, mixtral):
    model = transformers.MixtralForCausalLM.from_pretrained(mixtral, dtype=torch.bfloat16)
    (mixtral / "model.safetensors").unlink()
    model.save_pretrained(mixtral, max_shard_size="20KB")
    assert (mixtral / "model.safetensors.index.json").exists()
    assert load(mixtral).dtype == torch.float32
    half = load(mixtral, dtype="auto")
    assert {one.dtype for one in half.module.parameters()} == {torch.bfloat16}
    assert torch.equal(half.module.lm_head.weight, model.lm_head.weight)
    assert torch.get_default_dtype() == torch.float32


def test_a_text_is_split_by_the_tokenizer_beside_it(mixtral):
    write_metaspace(mixtral)
    with pytest.raises(CheckpointError, match=rf"token ids up to .* vocab_size={VOCAB}"):
        load(mixtral)
    (mixtral / "tokenizer.json").unlink()
    for name in mixtral.glob("*token*"):
        name.unlink()
    assert [token.id for token in load(mixtral).encode("5 6 7")] == [5, 6, 7]


def test_the_body_of_another_task_opens_without_its_head(mixtral):
    change(mixtral, architectures=["MixtralForSequenceClassification"])
    tensors = load_file(mixtral / "model.safetensors")
    del tensors["lm_head.weight"]
    save_file({**tensors, "score.weight": torch.ones(2, 32)}, mixtral / "model.safetensors")
    opened = load(mixtral)
    assert not opened.has_head
    assert [(t.name, t.fate) for t in opened.report.tensors if t.fate != "used"] == [("score.weight", "unused")]


def test_a_recorded_model_is_not_written_by_us(mixtral, tmp_path):
    opened = load(mixtral)
    with pytest.raises(CheckpointError, match=r"module.save_pretrained\(folder\)"):
        save(opened, tmp_path / "out")
    key = opened.key
    opened.module.save_pretrained(tmp_path / "out")
    assert load(tmp_path / "out").key == key


# --- what is not looked up, and not run ---


def test_nothing_is_fetched_imported_or_run_by_what_a_config_names(mixtral, monkeypatch, tmp_path):
    (mixtral / "modeling_mine.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    change(
        mixtral,
        auto_map={"AutoModelForCausalLM": "modeling_mine.Mine", "AutoConfig": "modeling_mine.Mine"},
        attn_implementation="kernels-community/flash-attn",
        _attn_implementation="somebody/kernel:run",
        use_kernels=True,
        experts_implementation="sonic",
        _name_or_path="somebody/model",
    )

    def none(*_: object, **__: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket, "socket", none)
    monkeypatch.setattr(socket, "create_connection", none)
    opened = load(mixtral)
    assert not (tmp_path / "ran").exists()
    assert not any("modeling_mine" in name for name in sys.modules)
    assert opened.module.config._attn_implementation == "eager"
    said = " ".join(map(str, opened.report.assumptions))
    for name in ("auto_map", "attn_implementation", "_attn_implementation", "use_kernels", "experts_implementation"):
        assert f"({name}=" in said
    assert os.environ["USE_HUB_KERNELS"] == "0"


def test_without_the_package_everything_else_opens_and_the_refusal_says_how_to_install_it(mixtral):
    code = (
        "import sys\nsys.modules['transformers'] = None\n"
        "from vizformer.checkpoints import load\nfrom vizformer.errors import CheckpointError\n"
        "print(load('stories').trace('Once upon a time').sites[0])\n"
        f"try: load({str(mixtral)!r})\nexcept CheckpointError as error: print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, second = run.stdout.splitlines()
    assert first == "decoder.0.self"
    assert "not installed here" in second
    assert 'pip install "vizformer[transformers]"' in second


def test_the_start_of_the_app_imports_no_transformers():
    code = (
        "import sys, vizformer.web, vizformer.checkpoints.opening\n"
        "from streamlit.testing.v1 import AppTest\n"
        "app = AppTest.from_file('app.py', default_timeout=180).run().switch_page('pages/explore/attention.py').run()\n"
        "assert not app.exception and app.main.children\n"
        "print('transformers' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert run.stdout.split()[-1] == "False"
