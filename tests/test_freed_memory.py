"""Memory that was freed: the gaps in what a training keeps are given back."""

import subprocess
import sys

import pytest

GAPS = """
import torch
from vizformer.freed_memory import keep_freed_memory, release_gaps

def held():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024

keep_freed_memory()
before = held()
blocks, kept = [], []
for _ in range(100):
    blocks.append(torch.ones(2**18))  # 1 MiB
    kept.append(torch.ones(2**10))  # 4 KiB behind each, so that they do not become one
blocks.clear()
gaps = held()
release_gaps()
print(gaps - before, held() - before, len(kept))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks Linux for the memory of a process")
@pytest.mark.sweep
def test_gaps_in_kept_memory_are_given_back() -> None:
    said = subprocess.run([sys.executable, "-c", GAPS], capture_output=True, text=True, check=True).stdout
    kept, released, _ = map(float, said.split())  # MiB
    assert kept > 90
    assert released < 30
