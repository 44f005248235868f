"""What recording costs: a plain run beside a recorded one, and a layer's maps when they are looked at.

    python -m tests.benchmarks.recording                # GPT-2 small's shape, random weights; exit code 1 above a limit

Processor time of one thread: other work on the machine is not counted, its cache and clock are. Plain and recorded runs
take turns; the ratio is that of the medians. The limits: 5 % with scaled_dot_product_attention, 20 % eager; 0.15 s for the
twelve maps of a layer at 1,024 tokens.
"""

import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

from vizformer.recorder import record

LIMITS = {"sdpa": 0.05, "eager": 0.20}
MAPS = 0.15  # seconds
TURNS = {256: 15, 1024: 5}


def taken(run: Callable[[], Any]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def main() -> int:
    import transformers

    torch.set_num_threads(1)
    above = 0
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for attention, limit in LIMITS.items():
        config = transformers.GPT2Config(use_cache=False)
        config._attn_implementation = attention
        torch.manual_seed(0)
        model = transformers.GPT2LMHeadModel(config).eval()
        for n, turns in TURNS.items():
            ids = torch.randint(0, 50_000, (1, n), generator=torch.Generator().manual_seed(n))
            plain, recorded = [], []
            trace = record(model, ids)
            for _ in range(turns):
                with torch.no_grad():
                    plain.append(taken(lambda: model(ids)))  # noqa: B023
                recorded.append(taken(lambda: record(model, ids)))  # noqa: B023
            one, other = statistics.median(plain), statistics.median(recorded)
            over = other / one - 1
            attended = trace["transformer.h.5.attn"]
            maps = statistics.median(taken(attended.maps) for _ in range(5))
            head = statistics.median(taken(lambda: attended.pattern(3)) for _ in range(5))  # noqa: B023
            forms = taken(lambda: attended.forms)  # noqa: B023
            above += over > limit or maps > MAPS
            print(
                f"{attention:5} n = {n:4}: plain {one:.3f} s, recorded {other:.3f} s ({over:+.1%}, at most {limit:.0%});",
                f"a layer's maps {maps:.3f} s, a head's {head:.3f} s, scale and mask found {forms:.3f} s;",
                f"{trace.nbytes >> 20} MiB kept",
            )
    return int(above > 0)


if __name__ == "__main__":
    sys.exit(main())
