"""What slows the rotary positions of a GGUF file down: one factor for all pairs, or the table that LLaMA 3.1 has.

llama.cpp divides all angles by the factor, unless `rope.scaling.type` is "none", and those of pair m by entry m of
`rope_freqs.weight`.  The file does not say what the table was made of; it is looked for among the tables that llama3's
rule makes, and what is computed then is held against the table.

Source: llama.cpp, llama-model.cpp (load_hparams, get_rope_factors) and convert_hf_to_gguf.py (LlamaModel).
"""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from vizformer.checkpoints.files.untrusted_folder import shown
from vizformer.checkpoints.hugging_face.rotary import TRAINED
from vizformer.messages import N_, Message

TABLE = "rope_freqs.weight"
_LOW, _HIGH = 1.0, 4.0  # turns, in all models that were published with llama3's rule
_LENGTHS = [2**n for n in range(5, 21)]  # of the first training; that of LLaMA 3 was 8,192
_AS_GOOD_AS_EQUAL = 1e-5  # of float32 tables, whose angles were computed in float32 as well


def scaling(fields: Mapping[str, Any], kind: str, table: Tensor | None, pairs: int) -> dict[str, Any] | Message | None:
    """rope_scaling of config.json for heads of so many pairs; None where nothing is slowed down; a message where it
    cannot be said by it."""
    name = f"{kind}.rope.scaling.factor"
    if name not in fields:
        name = f"{kind}.rope.scale_linear"
    factor = fields.get(name, 0)
    if factor in (0, 1) or fields.get(f"{kind}.rope.scaling.type") == "none":
        factor = 1
    linear = None if factor == 1 else {"rope_type": "linear", "factor": factor}
    if table is None or (tuple(table.shape) == (pairs,) and bool((table == 1).all())):
        return linear
    found = _llama3(table, fields.get(f"{kind}.rope.freq_base", 10_000.0), pairs)
    if found is None or linear is not None:
        return N_("{name}: rotary positions slowed down by a table", name=TABLE)
    return found


def _llama3(table: Tensor, theta: object, pairs: int) -> dict[str, Any] | None:
    """The rule that makes the table, if there is one."""
    if tuple(table.shape) != (pairs,) or type(theta) not in (int, float) or not 0 < theta < 1e30:  # type: ignore[operator]
        return None
    slower = table.double()
    factor = float(slower.max())
    if not 1 < factor < 1e6:
        return None
    frequency = torch.exp(-math.log(theta) * torch.arange(pairs, dtype=torch.float64) / pairs)  # type: ignore[arg-type]
    for length in _LENGTHS:
        kept = ((length * frequency / (2 * math.pi) - _LOW) / (_HIGH - _LOW)).clamp(0, 1)
        if torch.allclose(slower, 1 / (kept + (1 - kept) / factor), rtol=_AS_GOOD_AS_EQUAL, atol=0):
            return {
                "rope_type": "llama3",
                "factor": factor,
                "low_freq_factor": _LOW,
                "high_freq_factor": _HIGH,
                TRAINED: length,
            }
    return None


def unread(fields: Mapping[str, Any], kind: str) -> list[Message]:
    """Other fields that llama.cpp follows and nothing here does."""
    plain = {"rope.scaling.type": ("none", "linear"), "rope.scaling.attn_factor": (0, 1)}
    return [
        N_("{field}={value}", field=f"{kind}.{field}", value=shown(fields[f"{kind}.{field}"]))
        for field, values in plain.items()
        if f"{kind}.{field}" in fields and fields[f"{kind}.{field}"] not in values
    ]
