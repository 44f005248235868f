"""What is written down beside what was made."""

import json
import platform
from pathlib import Path
from typing import Any

import torch


def machine() -> str:
    """What a training ran on, for the card."""
    if torch.cuda.is_available():
        return f"on one {torch.cuda.get_device_name()}"
    return f"on an {platform.machine()} processor (threads: {torch.get_num_threads()}), bfloat16 autocast"


def save_notes(folder: Path, name: str, notes: dict[str, Any]) -> None:
    (folder / name).write_text(json.dumps(notes, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
