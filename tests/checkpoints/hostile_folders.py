"""Folders whose model `transformers` would compute, made to fetch, run, fill or hang something.

    python -m tests.checkpoints.hostile_folders FOLDER     # opens each and prints what it took, as JSON

That runs in a process of its own (test_hostile_folders.py): its memory is then what the folders took.
"""

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tests.checkpoints.hostile import measured

Change = Callable[[Path], None]
WEIGHTS = "model.safetensors"


def said(**fields: Any) -> Change:
    """What config.json says besides."""

    def change(folder: Path) -> None:
        file = folder / "config.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), **fields}))

    return change


def _text(of: Callable[[str], str]) -> Change:
    def change(folder: Path) -> None:
        file = folder / "config.json"
        file.write_text(of(file.read_text()))

    return change


def _tensors(of: Callable[[dict[str, Any]], dict[str, Any]]) -> Change:
    def change(folder: Path) -> None:
        from safetensors.torch import load_file, save_file

        save_file(of(load_file(folder / WEIGHTS)), folder / WEIGHTS)

    return change


def _first(tensors: dict[str, Any], part: str) -> str:
    return next(name for name in tensors if part in name)


def _without(part: str) -> Change:
    return _tensors(lambda tensors: {n: x for n, x in tensors.items() if n != _first(tensors, part)})


def _instead(part: str, of: Callable[[Any], Any]) -> Change:
    return _tensors(lambda tensors: {**tensors, (name := _first(tensors, part)): of(tensors[name]).contiguous()})


def _empty_tensors(folder: Path) -> None:
    import torch

    more = {f"x.{number}": torch.zeros(0) for number in range(60_000)}
    _tensors(lambda tensors: {**tensors, **more})(folder)
    said(num_hidden_layers=1000)(folder)


def _many_layers(folder: Path) -> None:
    """As many layers as are ever let through, by tensors of one number each."""
    import torch

    from vizformer.checkpoints.hugging_face.said_by_config import MOST_LAYERS

    more = {f"model.layers.{number}.x": torch.zeros(1) for number in range(4 * MOST_LAYERS)}  # of each layer some four
    _tensors(lambda tensors: {**tensors, **more})(folder)
    said(num_hidden_layers=MOST_LAYERS)(folder)


def _wide(folder: Path) -> None:
    """A side of a million, which lets through numbers of a million."""
    import torch

    _tensors(lambda tensors: {**tensors, "wide": torch.zeros(2_000_000, dtype=torch.float16)})(folder)
    said(num_local_experts=2_000_000, intermediate_size=2_000_000)(folder)


def _pickle(folder: Path) -> None:
    import torch
    from safetensors.torch import load_file

    torch.save(load_file(folder / WEIGHTS), folder / "pytorch_model.bin")
    (folder / WEIGHTS).unlink()


def _lying(folder: Path) -> None:
    raw = (folder / WEIGHTS).read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    name = _first(header, "q_proj")
    header[name]["shape"] = [2**20, 2**20]
    new = json.dumps(header).encode()
    (folder / WEIGHTS).write_bytes(len(new).to_bytes(8, "little") + new + raw[8 + length :])


def _tied(folder: Path) -> None:
    said(tie_word_embeddings=True)(folder)


def _a_million_labels(folder: Path) -> None:
    said(id2label={str(number): "x" for number in range(200_000)}, num_labels=10**9, layer_types=["x"] * 30_000)(folder)


FOLDERS: dict[str, Change] = {
    "a million layers": said(num_hidden_layers=10**6),
    "a million layers as a fraction": said(num_hidden_layers=1e6),
    "a million experts": said(num_local_experts=10**6),
    "a number of a thousand digits": _text(lambda text: text.replace('_layers": 2', f'_layers": 1{"0" * 1000}')),
    "a huge vocabulary": said(vocab_size=2**31),
    "a vocabulary that the file cannot hold": said(vocab_size=100_000),
    "huge heads": said(head_dim=2**30),
    "thousands of heads": said(num_attention_heads=10**5),
    "as many layers as are ever let through": _many_layers,
    "60,000 tensors of nothing": _empty_tensors,
    "a wide tensor that lets wide numbers through": _wide,
    "wide rotary angles": said(
        rope_parameters={"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 1e7}
    ),
    "no number": _text(lambda text: text.replace('"rms_norm_eps": 1e-05', '"rms_norm_eps": NaN')),
    "an infinite number": _text(lambda text: text.replace('"rms_norm_eps": 1e-05', '"rms_norm_eps": Infinity')),
    "no number as transformers writes it": said(rms_norm_eps={"__float__": "NaN"}),
    "a table of lists of tables": said(rope_parameters=[[[[[[[[[[{"a": 1}]]]]]]]]]]),
    "tables 100,000 deep": _text(lambda text: '{"a": ' * 100_000 + "1" + "}" * 100_000),
    "a million values": said(layer_types=["full_attention"] * 900_000),
    "a long text": said(hidden_act="x" * 5_000_000),
    "labels by the hundred thousand": _a_million_labels,
    "a field called as a method": said(to_dict="x"),
    "a field called as a class": said(__class__="x"),
    "a method in a table inside": said(
        rope_parameters={"rope_type": "default", "rope_theta": 1e4, "from_pretrained": "x"}
    ),
    "a class that is none of a model": said(architectures=["AutoModel"]),
    "a class of another type": said(architectures=["LlamaForCausalLM"]),
    "a function for a class": said(architectures=["logging"]),
    "a type that is a path": said(model_type="../../mixtral"),
    "a type that is a list": said(model_type=["mixtral"]),
    "a type that wraps another library": said(model_type="timm_wrapper"),
    "a backbone from a hub": said(backbone="somebody/model", use_pretrained_backbone=True),
    "quantised weights": said(quantization_config={"quant_method": "bitsandbytes", "load_in_4bit": True}),
    "an activation by its path": said(hidden_act="os.system"),
    "an adapter": said(adapters={"a": 1}),
    "weights elsewhere": said(transformers_weights="../../secret.safetensors"),
    "fused layers": said(fusion_config={"patch_embeddings": True}),
    "layers with options of their own": said(per_layer_config={"0": {"hidden_size": 10**6}}),
    "no queries": _without("q_proj"),
    "no experts in one layer": _without("experts.0.w1"),
    "one tensor more": _tensors(lambda tensors: {**tensors, "model.layers.0.x": tensors["lm_head.weight"].clone()}),
    "queries of another shape": _instead("q_proj", lambda x: x[:, :16]),
    "an expert of another shape": _instead("experts.1.w2", lambda x: x[:16]),
    "no number among the weights": _instead("k_proj", lambda x: x * float("nan")),
    "whole numbers for weights": _instead("v_proj", lambda x: x.char()),
    "one table with two contents": _tied,
    "a pickle": _pickle,
    "a header that lies": _lying,
    "no weights": lambda folder: (folder / WEIGHTS).unlink(),
}


def each(original: Path, into: Path) -> Iterator[tuple[str, Path]]:
    for number, (name, change) in enumerate(FOLDERS.items()):
        folder = into / str(number)
        shutil.copytree(original, folder)
        change(folder)
        yield name, folder


def main(original: Path, into: Path) -> None:
    from vizformer.checkpoints import load

    load(original)  # imports what it needs
    print(json.dumps({name: measured(partial(load, folder)) for name, folder in each(original, into)}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
