"""What is written down beside what was made."""

import json
import platform
from pathlib import Path
from typing import Any

import torch


def machine(*, autocast: bool = True) -> str:
    """What a training ran on, for the card; `autocast`: with matrix products in bfloat16."""
    if torch.cuda.is_available():
        return f"on one {torch.cuda.get_device_name()}"
    half = ", bfloat16 autocast" if autocast else ""
    return f"on an {platform.machine()} processor (threads: {torch.get_num_threads()}){half}"


def save_notes(folder: Path, name: str, notes: dict[str, Any]) -> None:
    (folder / name).write_text(json.dumps(notes, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
