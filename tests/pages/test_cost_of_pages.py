"""What a run of a page costs: its processor time as a ratio to a fixed piece of work on the same machine, and its bytes.

A class of forty waited twice as long as a week before, and no test had seen it.  A ratio does not depend on how fast the
machine is, and the least of several runs hardly on what else it does; bytes are exact.
"""

import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue

from tests.pages.conftest import ADDRESSES, ROOT, Open
from vizformer.components import _mount
from vizformer.web.frame import component_scripts
from vizformer.web.widgets import chart

REPEATS = 9
CHARACTERS = "我有一只猫今天天气很好们起去公园看书吃饭喝水他不知道是谁她昨买了本的在学校里中文苹果花打电话给"


@dataclass(frozen=True)
class Cost:
    """Pieces of work of the same sentence again and of a new one, and thousands of bytes that a new one sends."""

    again: float
    new: float
    kilobytes: float


# Means of measurements on two cores that were busy with other work (load 8 to 16); what fell since is held at 1.4 times what
# was measured at load 12 to 16.  Without other work, again and new: start 8.0 and 33.6, attention 9.1 and 15.9, generation
# 8.9 and 9.6, blanks 10.9 and 30.1, layer 4.7 and 8.8, compare 5.2 and 15.9, paper 10.4 and 11.5, qkv 9.2 and 9.3, masks 8.6
# and 11.2.
COSTS = {
    "start": Cost(10, 38, 78),  # every map of the model, in place of the film
    "attention": Cost(13, 21, 57),
    "generation": Cost(14, 17, 74),
    "blanks": Cost(11, 31, 43),  # what each model does stands in the list of models
    "layer": Cost(8, 16, 38),
    "compare": Cost(10, 28, 49),
    "paper": Cost(13, 16, 46),
    "qkv": Cost(17, 18, 57),
    "masks": Cost(12, 15, 45),
}
HEADROOM = Cost(1.5, 1.5, 1.15)
"""Of those three measurements the largest was up to 1.2 times the mean; the rest is for small growth.  Bytes do not vary,
but a question more, or a sentence, may come to a page."""


def work() -> None:
    """One piece of what a run of a page does: names and texts in dicts, JSON, and small tensors; some 1.4 ms."""
    rows = [
        {"name": f"row {i}", "values": [i / 7, i / 11], "words": {"en": f"{i}", "zh": f"第 {i} 行"}} for i in range(400)
    ]
    assert len(json.loads(json.dumps(rows))) == len({row["name"]: row for row in rows})
    x = torch.linspace(-1, 1, 64 * 64).view(64, 64)
    for _ in range(30):
        x = torch.softmax(x @ x.T, dim=-1)


def least(done: Callable[[], object], repeats: int = REPEATS) -> float:
    """Seconds of processor time of this process; the least of several."""
    found = []
    for _ in range(repeats):
        begun = time.process_time()
        done()
        found.append(time.process_time() - begun)
    return min(found)


@pytest.mark.sweep
@pytest.mark.parametrize("page", COSTS)
def test_a_run_of_a_page_costs_no_more_than_it_did(open_app: Open, monkeypatch: pytest.MonkeyPatch, page: str) -> None:
    sizes, enqueue = list[int](), ForwardMsgQueue.enqueue
    monkeypatch.setattr(
        ForwardMsgQueue, "enqueue", lambda self, msg: sizes.append(msg.ByteSize()) or enqueue(self, msg)
    )
    monkeypatch.setattr(_mount, "_instead", component_scripts.instead)
    monkeypatch.setattr(chart, "N_FIRST", 0)  # images for the first ten seconds of a visit
    assert page in ADDRESSES
    [file] = ROOT.glob(f"pages/*/{page}.py")
    rng, model = random.Random(0), "cloze" if page == "blanks" else "zh-en"
    texts = iter("".join(rng.choice(CHARACTERS) for _ in range(7)) + "。" for _ in range(REPEATS + 3))
    app = open_app(str(file.relative_to(ROOT)), model=model, text=next(texts))

    def new() -> None:
        app.query_params["text"] = next(texts)
        sizes.clear()
        app.run()

    for _ in range(2):  # what is loaded or drawn once
        new()
    unit = least(work, 5 * REPEATS)
    found = Cost(least(app.run) / unit, least(new) / unit, sum(sizes) / 1000)
    assert not app.exception
    print(f"{page}: {found}, a piece of work {1000 * unit:.2f} ms")
    allowed = COSTS[page]
    assert found.kilobytes <= allowed.kilobytes * HEADROOM.kilobytes
    assert found.kilobytes >= 0.7 * allowed.kilobytes, "the page sends much less than it did: lower its line in COSTS"
    assert found.again <= allowed.again * HEADROOM.again
    assert found.new <= allowed.new * HEADROOM.new
