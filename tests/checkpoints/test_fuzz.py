"""Hundreds of damaged folders: each opens or is refused with an error of ours, soon and in little memory.

`VIZFORMER_FUZZ=10000` damages more than the usual 200 of them, `VIZFORMER_FUZZ_SEED=7` others; `make sweep` damages ten
times as many.
"""

import json
import os
import random
import resource
import shutil
import struct
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("transformers")

from tests import tiny
from tests.checkpoints import folders
from tests.checkpoints import test_pair_of_vocabularies as pairs
from tests.checkpoints import test_vocabularies as vocabularies
from tests.parity.test_relatives import relative
from vizformer.checkpoints import load, save
from vizformer.errors import VizformerError

ROUNDS = int(os.environ.get("VIZFORMER_FUZZ", "200"))
SEED = int(os.environ.get("VIZFORMER_FUZZ_SEED", "20"))
MEGABYTE = 2**20
ODD: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    1,
    2,
    3,
    1e-5,
    2**31,
    2**63,
    10**30,
    -1e308,
    "",
    "x",
    "gelu",
    [],
    {},
    [1],
    {"a": 1},
    float("nan"),
    float("inf"),
    "\ud800",
    "a" * 10_000,
    [[[[[]]]]],
    "../x",
    "\x00",
]


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """One of each source: safetensors with tokenizer.json, vocab.txt, SentencePiece's pieces, or vocab.json with added
    tokens; a variant, shards, both kinds of .bin, our own format."""
    root = tmp_path_factory.mktemp("fuzz")
    llama = folders.llama(root / "llama", num_hidden_layers=1)
    bert = folders.bert(root / "bert", num_hidden_layers=1)
    roberta = folders.roberta(root / "roberta", num_hidden_layers=1)
    shards = folders.gpt2(root / "shards", n_layer=1)
    weights = folders.tensors(shards)
    places = {}
    for number, names in enumerate((sorted(weights)[:8], sorted(weights)[8:])):
        folders.save_tensors(shards, {name: weights[name] for name in names})
        (shards / "model.safetensors").rename(shards / f"part{number}.safetensors")
        places |= dict.fromkeys(names, f"part{number}.safetensors")
    (shards / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))
    bins = []
    for name, zipped in (("zip", True), ("pickle", False)):
        bins.append(Path(shutil.copytree(roberta, root / name)))
        torch.save(folders.tensors(roberta), bins[-1] / "pytorch_model.bin", _use_new_zipfile_serialization=zipped)
        (bins[-1] / "model.safetensors").unlink()
    qwen = folders.qwen2(root / "qwen", num_hidden_layers=1)
    (qwen / "tokenizer.json").unlink()
    marks = {"<|endoftext|>": {}, "<|im_start|>": {}, "<|im_end|>": {"special": False}}
    n = vocabularies.byte_level(qwen, added=marks, tokenizer_class="Qwen2Tokenizer", eos_token="<|im_end|>")
    weights = folders.tensors(qwen)
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        weights[name] = torch.randn(n + len(marks), 16, generator=torch.Generator().manual_seed(3)) / 4
    folders.save_tensors(qwen, weights)
    folders.change(qwen, vocab_size=n + len(marks))
    (qwen / "model.safetensors").rename(qwen / "model.fp16.safetensors")
    pieces = relative(root / "pieces", "XLMRoberta", num_hidden_layers=1)
    for folder in (llama, bert, shards, *bins, qwen):
        (folder / "sizes.json").unlink()
    marian, _ = pairs.marian(root / "marian")
    t5 = folders.t5_v1_1(root / "t5", num_layers=1, num_decoder_layers=1)
    (t5 / "sizes.json").unlink()
    save(tiny.checkpoint("decoder-only", n_decoder_layers=1), root / "ours")
    save(load(marian), root / "pair")
    found = [llama, bert, shards, *bins, marian, t5, root / "ours", root / "pair", qwen, pieces]
    for folder in found:
        assert load(folder).trace("x").logits.isfinite().all()
    return found


def flip(content: bytes, dice: random.Random) -> bytes:
    """A few bits, most of them near the start, where headers are."""
    changed = bytearray(content)
    for _ in range(dice.choice((1, 1, 2, 8))):
        place = min(int(dice.expovariate(1 / 300)), len(changed) - 1) if dice.random() < 0.6 else None
        changed[dice.randrange(len(changed)) if place is None else place] ^= 1 << dice.randrange(8)
    return bytes(changed)


def cut(content: bytes, dice: random.Random) -> bytes:
    return content[: dice.randrange(len(content))]


def insert(content: bytes, dice: random.Random) -> bytes:
    place = dice.randrange(len(content))
    return content[:place] + dice.randbytes(dice.choice((1, 8, 100))) + content[place:]


def swap(content: bytes, dice: random.Random) -> bytes:
    """A stretch of the file in another place of it."""
    start, place, n = dice.randrange(len(content)), dice.randrange(len(content)), dice.randrange(1, 64)
    return content[:place] + content[start : start + n] + content[place + n :]


def edit_json(content: bytes, dice: random.Random) -> bytes:
    """One value anywhere is replaced, removed, doubled, or a field is added."""
    tree = json.loads(content)
    places: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        keys = list(node) if isinstance(node, dict) else list(range(len(node))) if isinstance(node, list) else []
        for key in keys[:60]:
            places.append((node, key))
            walk(node[key])

    walk(tree)
    if not places:
        raise ValueError("nothing to edit")
    node, key = dice.choice(places)
    kind = dice.random()
    if kind < 0.6:
        node[key] = dice.choice(ODD)
    elif kind < 0.8:
        del node[key]
    elif isinstance(node[key], int) and not isinstance(node[key], bool):
        node[key] = node[key] * dice.choice((2, -1, 1000)) + dice.choice((0, 1))
    else:
        other, its = dice.choice(places)
        node[key] = other[its]
    try:
        return json.dumps(tree).encode()
    except (ValueError, RecursionError):  # a node that now contains itself
        return b"{}"


def edit_header(content: bytes, dice: random.Random) -> bytes:
    """A safetensors header that is whole but says something else."""
    (length,) = struct.unpack("<Q", content[:8])
    header = edit_json(content[8 : 8 + length], dice)
    return struct.pack("<Q", len(header)) + header + content[8 + length :]


def mutated(folder: Path, copy: Path, dice: random.Random) -> str:
    """Damages one or two files of a copy; says how."""
    for file in folder.iterdir():
        target = copy / file.name
        target.unlink(missing_ok=True)
        os.link(file, target)
    said = []
    for _ in range(dice.choice((1, 1, 1, 2))):
        file = dice.choice(sorted(copy.iterdir()))
        kinds: list[Callable[[bytes, random.Random], bytes]] = [flip, flip, cut, insert, swap]
        content = file.read_bytes()
        if file.suffix == ".json" and content[:1] == b"{":
            kinds += [edit_json] * 12
        elif file.suffix == ".safetensors" and content[8:9] == b"{":
            kinds += [edit_header] * 5
        kind = dice.choice(kinds)
        said.append(f"{kind.__name__} {file.name}")
        try:
            changed = kind(content, dice) if content else b"x"
        except ValueError:  # already damaged
            changed = b""
        file.unlink()  # the original is another name of the same file
        file.write_bytes(changed)
    return ", ".join(said)


def peak() -> int:
    """Bytes this process has held at most."""
    usage = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return usage if sys.platform == "darwin" else usage * 1024


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [ROUNDS, pytest.param(10 * ROUNDS, marks=pytest.mark.sweep)])
def test_damaged_folders(originals: list[Path], tmp_path: Path, rounds: int) -> None:
    dice, before = random.Random(SEED), peak()
    outcome: Counter[str] = Counter()
    slowest, which, crashes = 0.0, "", []
    for number in range(rounds):
        original = originals[number % len(originals)]
        copy = tmp_path / original.name
        copy.mkdir(exist_ok=True)
        done = mutated(original, copy, dice)
        start = time.process_time()  # others may be using the machine
        try:
            load(copy)
            outcome["opened"] += 1
        except VizformerError as error:
            outcome["refused"] += 1
            if len(str(error).encode("utf-8", "replace")) > 4000 or not str(error).isprintable():
                crashes.append(f"round {number}, {original.name}, {done}: cannot be shown: {str(error)[:200]!r}")
        except BaseException as error:
            crashes.append(f"round {number}, {original.name}, {done}: {type(error).__name__}: {str(error)[:200]}")
            if isinstance(error, KeyboardInterrupt):
                raise
        if (took := time.process_time() - start) > slowest:
            slowest, which = took, f"round {number}, {original.name}, {done}"
    assert not crashes, "\n".join(crashes[:20])
    assert outcome["refused"] > rounds / 4, outcome
    assert outcome["opened"] > rounds / 20, outcome  # the mutations reach deep enough
    assert slowest < 10, f"{which}: {slowest:.1f} s"
    assert peak() - before < 500 * MEGABYTE, (peak() - before) / MEGABYTE
    print(outcome, f"slowest {slowest:.2f} s ({which}), {(peak() - before) / MEGABYTE:.0f} MiB")
