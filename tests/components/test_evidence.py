"""The graph of an answer: what is refused, and how it works in Chromium."""

import pytest
from playwright.sync_api import expect

from tests.components.conftest import OpenFile
from vizformer.components.evidence import MOST, Edge, Node, to_html

NODES = [
    Node(kind="token", text="cat", note="3", name="the row of “cat”"),
    Node(kind="part", text="L0 H1", note="at “cat”", name="layer 0, head 1"),
    Node(kind="part", text="L1 H2", note="+3.00 / +1.00", name="layer 1, head 2"),
    Node(kind="answer", text="sat", note="80%", name="“sat” 80%"),
]


def edge(first: int, second: int, direct: float, total: float | None, depth: int, looks: bool = False) -> Edge:
    name = f"{NODES[first]['text']} to {NODES[second]['text']}"
    shown = f"{direct:+.2f}".replace("-", "−")
    said = f"{name}, taken out: gone"
    return Edge(
        first=first,
        second=second,
        looks=looks,
        depth=depth,
        name=name,
        direct=direct,
        shown=shown,
        total=total,
        said=said,
    )


EDGES = [edge(2, 3, 3.0, 1.0, 0), edge(0, 2, 2.5, -0.5, 1), edge(1, 2, 0.8, None, 1, looks=True)]


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="can be followed"):
        to_html(NODES, [EDGES[0]] * (MOST + 1), others=0.0)
    with pytest.raises(ValueError, match="no edge leads"):
        to_html(NODES, [edge(0, 1, 1.0, 1.0, 0) | {"second": 4}], others=0.0)


@pytest.mark.browser
@pytest.mark.sweep
@pytest.mark.parametrize("width", [1280, 400])
def test_an_edge_is_taken_out_by_a_press_or_by_keys(open_file: OpenFile, width: int) -> None:
    page = open_file(to_html(NODES, EDGES, others=0.25), width=width)
    graph, rows, note = (
        page.locator(".vf-evidence"),
        page.locator("button.vf-evidence-row"),
        page.locator(".vf-readout"),
    )
    assert page.locator(".vf-evidence-box").count() == 4
    assert page.locator("path.vf-edge").count() == 3
    assert page.locator("path.vf-looks").count() == 1
    expect(note).to_have_text("L1 H2 to sat, taken out: gone")  # the largest, to begin with
    rows.nth(1).click()
    expect(graph).to_have_attribute("data-edge", "1")
    expect(note).to_have_text("cat to L1 H2, taken out: gone")
    expect(rows.nth(1)).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("ArrowDown")
    expect(graph).to_have_attribute("data-edge", "1")  # moving is not taking out
    page.keyboard.press("Enter")
    expect(note).to_have_text("L0 H1 to L1 H2, taken out: gone")
    direct, total = (rows.nth(0).locator(f"i.vf-{kind}").bounding_box() for kind in ("direct", "total"))
    assert direct["width"] == pytest.approx(3 * total["width"], abs=2)  # both on one scale
    expect(page.locator(".vf-others")).to_contain_text("+0.25")
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    boxes = [box.bounding_box() for box in page.locator(".vf-evidence-box").all()]
    assert boxes[0]["x"] < boxes[1]["x"] == boxes[2]["x"] < boxes[3]["x"]
    assert boxes[0]["x"] + boxes[0]["width"] < boxes[1]["x"]
    assert boxes[2]["x"] + boxes[2]["width"] < boxes[3]["x"]
