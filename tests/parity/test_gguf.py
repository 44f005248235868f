"""GGUF files against `transformers` on the folders that they were made of, and against the package `gguf`."""

import math
import re
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, settings
from hypothesis import given as tried
from hypothesis import strategies as st

pytest.importorskip("gguf")
pytest.importorskip("transformers")
pytest.importorskip("sentencepiece")

import gguf
import sentencepiece

from tests import gguf_files
from tests.checkpoints import folders
from tests.parity.against_transformers import same_numbers, same_tokens, theirs
from vizformer.assets import asset
from vizformer.checkpoints import describe, inspect, load
from vizformer.checkpoints.files.untrusted_folder import Folder
from vizformer.checkpoints.gguf import header, numbers, vocabulary
from vizformer.checkpoints.gguf.model_file import NoFiles
from vizformer.checkpoints.gguf.names import halves_apart
from vizformer.checkpoints.tensors.memory import need
from vizformer.errors import CheckpointError

WIDE = dict(hidden_size=32, intermediate_size=64)


@pytest.mark.parametrize(
    ("make", "kind", "words", "changes"),
    [
        (folders.qwen2, "Qwen2ForCausalLM", "qwen2", {}),
        (folders.qwen3, "Qwen3ForCausalLM", "qwen2", dict(tie_word_embeddings=True)),
        (folders.gpt2, "GPT2LMHeadModel", "gpt-2", {}),
    ],
)
def test_the_numbers_and_tokens_are_those_of_the_folder(make, kind, words, changes, tmp_path: Path) -> None:
    folder, file = make(tmp_path / "hf", **changes), tmp_path / "model.gguf"
    gguf_files.write(folder, file, words=words)
    ours = load(file)
    same_numbers(ours, theirs(folder, kind))
    same_tokens(folder, ours)
    assert ours.report.format == "gguf"
    assert {fate.fate for fate in ours.report.tensors} == {"used"}
    assert {fate.name for fate in ours.report.tensors} == {t.name for t in gguf.GGUFReader(file).tensors}


@pytest.mark.parametrize("changes", [{}, dict(num_key_value_heads=4, tie_word_embeddings=True), dict(head_dim=6)])
def test_the_rows_of_llama_are_brought_back_into_order(changes: dict[str, object], tmp_path: Path) -> None:
    """Its tokenizer, without scores here, is refused by name; tokenizer.json beside the file takes its place."""
    folder, file = folders.llama(tmp_path / "hf", **changes), tmp_path / "model.gguf"
    gguf_files.write(folder, file, words="default")
    with pytest.raises(CheckpointError, match=r"its tokenizer has no list of tokens, or none of scores"):
        load(file)
    shutil.copy(folder / "tokenizer.json", tmp_path)
    same_numbers(load(file), theirs(folder, "LlamaForCausalLM"))


def pieces_of(folder: Path, **more: object) -> sentencepiece.SentencePieceProcessor:
    """A vocabulary as LLaMA's was trained, on a bundled text, with a few rows of the model left over."""
    lines = asset("corpora", "en.txt").read_text().splitlines()
    folder.mkdir()
    with (folder / "tokenizer.model").open("wb") as file:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=file,
            model_type="bpe",
            vocab_size=600,
            byte_fallback=True,
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            minloglevel=2,
            **more,
        )
    return sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))


@pytest.mark.parametrize("prefix", [True, False])
@pytest.mark.sample(1)
def test_the_tokens_of_llama_are_those_of_sentencepiece(prefix: bool, tmp_path: Path) -> None:
    theirs_say = pieces_of(tmp_path / "pieces", add_dummy_prefix=prefix)
    folder, file = folders.llama(tmp_path / "hf", vocab_size=608, max_position_embeddings=4096), tmp_path / "model.gguf"
    shutil.copy(tmp_path / "pieces" / "tokenizer.model", folder)
    gguf_files.write(folder, file, words="default", fields={"tokenizer.ggml.add_space_prefix": prefix})
    ours = load(file)
    lines = asset("corpora", "zh.tsv").read_text().splitlines()[:20]
    for text in (*folders.TEXTS, *lines, "我有一只猫 🐱", "a  b   c", " x", "tab\tline\nend", "naïve Ωmega"):
        ids = [token.id for token in ours.encode(text)]
        assert ids == [1, *theirs_say.encode(text)], text
        assert ours.tokenizer.decode(ids[1:]) == theirs_say.decode(ids[1:]), text
    if prefix:
        same_numbers(ours, theirs(folder, "LlamaForCausalLM"))
    gguf_files.write(folder, file, words="default", fields={"tokenizer.ggml.add_eos_token": True})
    marked = [token.id for token in load(file).encode("x")]
    assert (marked[0], marked[-1]) == (1, 2)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (dict(scores=[0.0] * 5), "a score and a kind each"),
        (dict(scores=[0, 0, 0, 0, 0, 0]), "a score and a kind each"),
        (dict(scores=[0.0, 0.0, 0.0, math.nan, 0.0, 0.0]), "has the score nan"),
        (dict(tokens=["<unk>", "<s>", "</s>", "a", "a", "b"]), "stands there twice"),
        (dict(tokens=["<unk>", "<s>", "</s>", "a", "b", ""]), "a piece of 0 bytes"),
        (dict(tokens=["<unk>", "<s>", "</s>", "a", "b", "x" * 600]), "a piece of 600 bytes"),
        (dict(token_type=[2, 3, 3, 1, 1, 9]), "is of type 9"),
        (dict(token_type=[2, 3, 3, 1, 1, 5]), "is of type 5"),
        (dict(token_type=[3, 3, 3, 1, 1, 1]), "0 pieces stand for unknown"),
        (dict(add_space_prefix="yes"), "add_space_prefix is"),
        (dict(bos_token_id=[1]), "bos_token_id is"),
        (dict(add_bos_token=1), "add_bos_token is"),
    ],
)
def test_a_vocabulary_of_pieces_that_cannot_be_one(changes: dict[str, object], said: str) -> None:
    fields = {
        "model": "llama",
        "tokens": ["<unk>", "<s>", "</s>", "a", "b", "ab"],
        "scores": [0.0, 0.0, 0.0, -2.0, -3.0, -1.0],
        "token_type": [2, 3, 3, 1, 1, 1],
    }

    def read(**more: object) -> list[int]:
        named = {f"tokenizer.ggml.{name}": value for name, value in {**fields, **more}.items()}
        backend, __ = vocabulary.tokenizer(named, NoFiles(Path()), "m.gguf", 8)
        assert backend is not None
        return backend.encode("ab").ids

    assert read(add_space_prefix=False) == [1, 5]
    with pytest.raises(CheckpointError, match=said):
        read(**changes)


FACTOR, TYPE, OLD = "llama.rope.scaling.factor", "llama.rope.scaling.type", "llama.rope.scale_linear"


@pytest.mark.parametrize(
    ("fields", "factor"),
    [
        ({FACTOR: 4.0}, 4.0),
        ({OLD: 4.0}, 4.0),
        ({FACTOR: 2.0, OLD: 4.0, TYPE: "linear"}, 2.0),
        ({FACTOR: 4.0, TYPE: "none"}, None),
        ({FACTOR: 0.0}, None),
    ],
)
def test_a_factor_slows_rotary_positions_down_as_in_llama_cpp(fields, factor, tmp_path: Path) -> None:
    """With or without the type beside it, also by its old name; the type "none" switches it off."""
    scaled = {} if factor is None else dict(rope_parameters=dict(rope_type="linear", rope_theta=1e4, factor=factor))
    folder, file = folders.llama(tmp_path / "hf", **scaled), tmp_path / "model.gguf"
    gguf_files.write(folder, file, words="", fields=fields)
    shutil.copy(folder / "tokenizer.json", tmp_path)
    same_numbers(load(file), theirs(folder, "LlamaForCausalLM"))


@pytest.mark.parametrize(
    "field", [{"llama.attention.causal": False}, {"llama.rope.scaling.attn_factor": 2.0}, {TYPE: "yarn", FACTOR: 4.0}]
)
def test_a_field_that_is_not_followed_is_refused_by_name(field, tmp_path: Path) -> None:
    folder, file = folders.llama(tmp_path / "hf"), tmp_path / "model.gguf"
    gguf_files.write(folder, file, words="", fields=field)
    with pytest.raises(CheckpointError, match=re.escape(next(iter(field)))):
        load(file)


def slower(theta: float, d: int, factor: float, trained: int) -> np.ndarray:
    """The table as convert_hf_to_gguf.py of llama.cpp makes it."""
    found = []
    for frequency in 1.0 / (theta ** (torch.arange(0, d, 2, dtype=torch.float32) / d)):
        length = 2 * math.pi / frequency
        if length < trained / 4:
            found.append(1.0)
        elif length > trained / 1:
            found.append(factor)
        else:
            smooth = (trained / length - 1) / (4 - 1)
            found.append(1 / ((1 - smooth) / factor + smooth))
    return np.array(found, dtype=np.float32)


@pytest.mark.parametrize(("theta", "trained"), [(5e5, 8192), (1e4, 64), (100.0, 32)])
def test_the_table_of_llama_3_1_is_the_rule_that_it_was_made_by(theta: float, trained: int, tmp_path: Path) -> None:
    rule = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, rope_theta=theta)
    rule["original_max_position_embeddings"] = trained
    sizes = dict(hidden_size=64, num_attention_heads=2, num_key_value_heads=2)
    folder, file = folders.llama(tmp_path / "hf", rope_parameters=rule, **sizes), tmp_path / "model.gguf"
    table = slower(theta, 32, 8.0, trained)
    assert ((table > 1) & (table < 8)).any()
    gguf_files.write(folder, file, words="", slower=table)
    shutil.copy(folder / "tokenizer.json", tmp_path)
    ours = load(file)
    same_numbers(ours, theirs(folder, "LlamaForCausalLM"))
    assert ours.report.config.rope_trained_positions == trained
    assert {fate.name for fate in ours.report.with_fate("unused")} == {"rope_freqs.weight"}
    for wrong, fields in ((table[::-1].copy(), {}), (table[1:].copy(), {}), (table * np.nan, {}), (table, {OLD: 2.0})):
        gguf_files.write(folder, file, words="", slower=wrong, fields=fields)
        with pytest.raises(CheckpointError, match=r"rope_freqs\.weight"):
            load(file)
    gguf_files.write(folder, file, words="", slower=np.ones(16, np.float32))
    assert load(file).report.config.rope_scaling == "none"


@pytest.mark.parametrize("kind", ["F16", "BF16", "Q8_0", "Q4_0", "Q5_1"])
@pytest.mark.sample(2)
def test_quantised_numbers_are_those_of_the_package_and_as_far_off_as_is_said(kind: str, tmp_path: Path) -> None:
    folder, file = folders.qwen2(tmp_path / "hf", **WIDE), tmp_path / "model.gguf"
    written = gguf_files.write(folder, file, kind)
    found = header.read(file, file.name)
    whole = numbers.content(file, file.name)
    largest = 0.0
    for given in gguf.GGUFReader(file).tensors:
        place = found.tensors[given.name]
        ours = numbers.tensor(whole, place).float().numpy()
        np.testing.assert_array_equal(ours, gguf.dequantize(given.data, given.tensor_type).reshape(ours.shape))
        if place.kind.name in numbers.OFF:
            off = np.abs(ours - written[given.name]).reshape(-1, 32)
            blocks = whole[place.start : place.start + place.n_bytes].reshape(-1, place.kind.size)
            step = numbers._scales(blocks).abs().numpy()[:, None]
            smallest = numbers.steps(whole, [place]).smallest
            assert smallest == step[step > 0].min()
            assert (off <= numbers.most_off(place.kind.name, smallest) * step + 1e-7).all()
            largest = max(largest, float(step.max()))
    report = load(file, dtype="auto").report
    said = describe(report)
    quantised = [fate for fate in report.tensors if fate.dtype == kind]
    if kind.startswith("Q"):
        assert f"{len(quantised)} tensors are quantised as {kind}" in said
        assert len(quantised) > 10
    if kind in numbers.OFF:
        assert f"The largest step is {largest:.3g}" in said
        assert "The largest step" not in describe(inspect(file, numbers=False))
    if kind == "Q8_0":
        error = float(re.findall(r"to be expected is ([\d.e-]+)", said)[0])
        real = [w - numbers.tensor(whole, found.tensors[n]).numpy() for n, w in written.items() if w.ndim > 1]
        rms = float(np.sqrt(np.mean(np.concatenate([one.ravel() for one in real]) ** 2)))
        assert 0.8 * rms < error < 1.2 * rms


@pytest.mark.parametrize(("kind", "usual"), [("Q8_0", 0.5 + 127 * 2.0**-11), ("Q4_0", 1 + 8 * 2.0**-11)])
def test_small_numbers_are_as_far_off_as_is_said(kind: str, usual: float, tmp_path: Path) -> None:
    """Scales below 2^-14 are kept by float16 with an error of up to 2^-25, which here are many steps."""
    path, packed = tmp_path / "small.gguf", gguf.GGMLQuantizationType[kind]
    generator = np.random.default_rng(0)
    given = (generator.standard_normal((64, 32)) * np.geomspace(1e-7, 1e-3, 64)[:, None]).astype(np.float32)
    writer = gguf.GGUFWriter(path, "gpt2")
    writer.add_tensor("t", gguf.quantize(given, packed), raw_dtype=packed)
    for finish in (
        writer.write_header_to_file,
        writer.write_kv_data_to_file,
        writer.write_tensors_to_file,
        writer.close,
    ):
        finish()
    place, whole = header.read(path, path.name).tensors["t"], numbers.content(path, path.name)
    blocks = whole[place.start : place.start + place.n_bytes].reshape(-1, place.kind.size)
    step = numbers._scales(blocks).abs().double().numpy()
    off = np.abs(numbers.tensor(whole, place).double().numpy() - given).max(1)
    smallest = numbers.steps(whole, [place]).smallest
    assert 0 < smallest == step[step > 0].min() < 2.0**-20
    kept, small = step > 0, (step > 0) & (step < 2.0**-14)
    assert (off[kept] <= numbers.most_off(kind, smallest) * step[kept] * (1 + 1e-6)).all()
    assert (off[small] > usual * step[small]).any()  # what holds where scales are normal does not hold here
    assert (off[step >= 2.0**-14] <= usual * step[step >= 2.0**-14] * (1 + 1e-6)).all()
    assert numbers.most_off(kind) == numbers.most_off(kind, 2.0**-14) == usual
    assert (off[~kept] <= numbers.OFF[kind][1] * 2.0**-25).all()


def test_a_text_of_llama_3_begins_with_its_mark_where_no_field_says_so() -> None:
    tokens = ["<|begin|>", "a", "b", "ab"]
    fields = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.merges": ["a b"],
        "tokenizer.ggml.token_type": [3, 1, 1, 1],
        "tokenizer.ggml.bos_token_id": 0,
    }

    def ids(**more: object) -> list[int]:
        said = {**fields, **{f"tokenizer.ggml.{name}": value for name, value in more.items()}}
        backend, __ = vocabulary.tokenizer(said, NoFiles(Path()), "m.gguf", 8)
        assert backend is not None
        return backend.encode("ab").ids

    assert ids(pre="llama-bpe") == ids(pre="llama3") == [0, 3]
    assert ids(pre="llama-bpe", add_bos_token=False) == ids(pre="qwen2") == ids(pre="gpt-2") == [3]
    assert ids(pre="qwen2", add_bos_token=True) == [0, 3]
    for wrong in (
        dict(pre=["llama-bpe"]),
        dict(pre=7),
        dict(model=["gpt2"]),
        dict(pre="qwen2", token_type=3),
        dict(pre="qwen2", token_type=["3"]),
        dict(pre="qwen2", tokens=5),
        dict(pre="qwen2", merges=[1, 2]),
        dict(pre="llama3", bos_token_id=4),
        dict(pre="llama3", bos_token_id=-1),
        dict(pre="llama3", bos_token_id="0"),
        dict(pre="llama3", add_bos_token="yes"),
    ):
        with pytest.raises(CheckpointError, match=r"cannot be used as a tokenizer|has a tokenizer of the kind"):
            ids(**wrong)


def test_rows_that_are_reordered_are_counted_as_copied(tmp_path: Path) -> None:
    folder, file = folders.llama(tmp_path / "hf"), tmp_path / "model.gguf"
    gguf_files.write(folder, file, words="")
    report = inspect(file)
    reordered = {fate.name for fate in report.tensors if fate.reordered}
    layers = range(report.config.n_decoder_layers)
    assert reordered == {f"blk.{layer}.attn_{letter}.weight" for layer in layers for letter in "qk"}
    needed = need(report, torch.float32)
    assert needed.copied == sum(4 * math.prod(f.shape) for f in report.tensors if f.reordered) > 0
    assert needed.mapped == sum(4 * math.prod(f.shape) for f in report.tensors if not f.reordered)


def test_kinds_that_only_the_package_reads_are_named_without_it(tmp_path: Path, monkeypatch) -> None:
    folder, file = folders.qwen2(tmp_path / "hf", **WIDE), tmp_path / "model.gguf"
    gguf_files.write(folder, file, "Q5_1")
    monkeypatch.setattr(numbers.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(CheckpointError, match=r"quantised as Q5_1; .*pip install vizformer\[gguf\]"):
        load(file)


def test_a_folder_with_one_file_and_answers(tmp_path: Path) -> None:
    folder = folders.gpt2(tmp_path / "hf")
    (tmp_path / "alone").mkdir()
    gguf_files.write(folder, tmp_path / "alone" / "m.gguf", words="gpt-2")
    assert load(tmp_path / "alone").report.family == "GPT-2"
    with pytest.raises(CheckpointError, match="there is nothing to answer"):
        load(tmp_path / "alone", n_heads=2)


def file_of(fields: bytes = b"", tensors: bytes = b"", n_fields: int = 0, n_tensors: int = 0, after: int = 64) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", 3, n_tensors, n_fields) + fields + tensors + b"\0" * after


def text(value: bytes, length: int | None = None) -> bytes:
    return struct.pack("<Q", len(value) if length is None else length) + value


def tensor_of(name: bytes = b"t", sides: tuple[int, ...] = (4,), kind: int = 0, offset: int = 0) -> bytes:
    return text(name) + struct.pack(f"<I{len(sides)}QIQ", len(sides), *sides, kind, offset)


LIST = struct.pack("<I", 9)
HOSTILE = {
    "fields without end": file_of(n_fields=2**60),
    "tensors without end": file_of(n_tensors=2**60),
    "more fields than room": file_of(n_fields=4000),
    "a long key": file_of(text(b"k", 2**63), n_fields=1),
    "a long text": file_of(text(b"k") + struct.pack("<IQ", 8, 2**40), n_fields=1),
    "a long list": file_of(text(b"k") + LIST + struct.pack("<IQ", 4, 2**50), n_fields=1),
    "a list of lists": file_of(text(b"k") + LIST + struct.pack("<IQ", 9, 5), n_fields=1),
    "a list of texts without room": file_of(text(b"k") + LIST + struct.pack("<IQ", 8, 2**19), n_fields=1),
    "an unknown kind of value": file_of(text(b"k") + struct.pack("<I", 77), n_fields=1),
    "a field twice": file_of(2 * (text(b"k") + struct.pack("<IB", 0, 1)), n_fields=2),
    "many sides": file_of(tensors=text(b"t") + struct.pack("<I", 2**31), n_tensors=1),
    "a side of nothing": file_of(tensors=tensor_of(sides=(0, 4)), n_tensors=1),
    "a huge side": file_of(tensors=tensor_of(sides=(2**62, 2**62)), n_tensors=1),
    "beyond the end": file_of(tensors=tensor_of(sides=(2**20,)), n_tensors=1),
    "begins beyond the end": file_of(tensors=tensor_of(offset=2**62), n_tensors=1),
    "not aligned": file_of(tensors=tensor_of(offset=3), n_tensors=1),
    "half a block": file_of(tensors=tensor_of(sides=(33,), kind=8), n_tensors=1),
    "one in the other": file_of(tensors=b"".join(tensor_of(f"t{n}".encode(), (16,)) for n in range(9)), n_tensors=9),
    "one that begins in another": file_of(
        tensors=tensor_of(b"a", (16,), offset=32) + tensor_of(b"b", (16,)), n_tensors=2, after=256
    ),
    "lists of many entries": file_of(
        b"".join(text(b"k%d" % n) + LIST + struct.pack("<IQ", 0, 2**20) + bytes(2**20) for n in range(5)), n_fields=5
    ),
    "an unknown kind": file_of(tensors=tensor_of(kind=99), n_tensors=1),
    "a tensor twice": file_of(tensors=2 * tensor_of(), n_tensors=2),
    "an old version": b"GGUF" + struct.pack("<IQQ", 1, 0, 0),
    "another byte order": b"GGUF" + struct.pack(">IQQ", 3, 0, 0),
    "an alignment of nothing": file_of(text(b"general.alignment") + struct.pack("<II", 4, 0), n_fields=1),
    "nothing but the magic": b"GGUF",
    "nothing": b"",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_before_anything_of_its_size_is_made(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(HOSTILE[name])
    with pytest.raises(CheckpointError):
        header.read(path, path.name)
    with pytest.raises(CheckpointError):
        load(path)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("gguf")
    gguf_files.write(folders.gpt2(folder / "hf", n_layer=1), folder / "model.gguf", words="gpt-2")
    return (folder / "model.gguf").read_bytes()


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@tried(data=st.data())
def test_a_file_with_other_bytes_opens_or_is_refused(data: st.DataObject, small: bytes, tmp_path: Path) -> None:
    changed = bytearray(small[: data.draw(st.integers(0, len(small))) if data.draw(st.booleans()) else None])
    for __ in range(data.draw(st.integers(0, 4)) if changed else 0):
        changed[data.draw(st.integers(0, min(len(changed) - 1, 9000)))] = data.draw(st.integers(0, 255))
    path = tmp_path / "model.gguf"
    path.write_bytes(changed)
    try:
        model = load(path).model
    except CheckpointError:
        return
    assert all(bool(torch.isfinite(p).all()) for p in model.parameters())


def test_what_is_not_computed_is_named(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    for kind, said in (("gemma", 'architecture "gemma"'), ("llama", "llama.expert_count=8")):
        writer = gguf.GGUFWriter(path, kind)
        writer.add_expert_count(8)
        writer.add_tensor("token_embd.weight", np.ones((4, 8), np.float32))
        for finish in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file):
            finish()
        writer.close()
        with pytest.raises(CheckpointError, match=said):
            load(path)
    assert Folder(tmp_path).has("model.gguf")


def test_rows_that_do_not_fit_the_heads_are_left_for_the_matching_to_tell() -> None:
    rows = torch.arange(8)
    assert halves_apart(rows, 2).tolist() == [0, 2, 1, 3, 4, 6, 5, 7]
    assert halves_apart(rows[:6], 2).tolist() == [0, 1, 2, 3, 4, 5]
    assert halves_apart(rows, 0).tolist() == rows.tolist()
