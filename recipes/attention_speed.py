"""Ways of attention, and layers, measured on one machine: what the lesson Costs shows until somebody measures on their own.

python -m recipes.attention_speed assets/lessons/costs/attention_speed.json      # 4 minutes, one core
"""

import json
import platform
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from recipes.arguments import paths
from vizformer.analysis.costs.attention_speed import Kind, measure

ROUNDS: Mapping[Kind, int] = {"heads": 5, "layers": 20}
CPUS = Path("/proc/cpuinfo")  # Linux; other systems name their processor themselves


def processor() -> str:
    """What the processor calls itself."""
    lines = CPUS.read_text(encoding="utf-8").splitlines() if CPUS.is_file() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine()


def measured() -> dict[str, Any]:
    """Every way at every length, on one thread, and what they were measured on.

    Other programs only ever add to a time: of several rounds the shortest counts.
    """
    torch.set_num_threads(1)
    found: dict[str, Any] = {}
    for kind, count in ROUNDS.items():
        rounds = zip(*(measure(kind=kind) for __ in range(count)), strict=True)
        found[kind] = [asdict(min(same, key=lambda one: one.seconds)) for same in rounds]
    return {"processor": processor(), "torch": torch.__version__.partition("+")[0], **found}


def main(file: Path) -> None:
    file.write_text(json.dumps(measured(), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*paths(1, __doc__))
