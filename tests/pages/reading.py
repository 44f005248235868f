"""Reading what is on the screen: tables, charts, code."""

import base64
import html
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from vizformer.web.words.terms import unmarked


def said(app: AppTest) -> str:
    """Every word on the page that is not in a widget, without the marks of terms."""
    shown = (*app.text, *app.caption, *app.markdown, *app.error, *app.success, *app.subheader, *app.latex)
    parts = [*(element.value for element in shown), *(element.proto.body for element in app.get("html"))]
    return html.unescape(unmarked("\n".join(map(str, parts))))


def opens_well(app: AppTest, page: str, **link: object) -> None:
    """Goes to a page by a link, which shows no error, and no number that is none."""
    app.switch_page(page)
    for name, value in link.items():
        app.query_params[name] = str(value)
    app.run()
    where = (page, link)
    assert not app.exception, where
    assert not [error.value for error in app.error], where
    assert not re.search(r"\bnan\b|\bNone\b", said(app)), where


def tables(app: AppTest) -> list[list[list[str]]]:
    """The cells of every `vizformer.components.table` on the page, row by row."""
    bodies = [element.proto.body for element in app.get("html") if "vf-table" in element.proto.body]
    found = [part for body in bodies for part in re.findall(r"<tbody>(.*?)</tbody>", body, re.S)]
    return [
        [[html.unescape(c) for c in re.findall(r"<td[^>]*>(.*?)</td>", row)] for row in re.findall(r"<tr.*?</tr>", t)]
        for t in found
    ]


def marked(app: AppTest, table: int) -> list[int]:
    """The rows of a table that stand out."""
    bodies = [element.proto.body for element in app.get("html") if 'class="vf-table"' in element.proto.body]
    kinds = re.findall(r'<tr class="vf-(\w+)">', bodies[table])
    return [row for row, kind in enumerate(kinds) if kind == "marked"]


def number(cell: str) -> float:
    return float(cell.replace("−", "-").replace(",", "").rstrip("%"))


def chart(app: AppTest, index: int) -> dict[str, Any]:
    """A Plotly chart as JSON."""
    spec: dict[str, Any] = json.loads(app.get("plotly_chart")[index].proto.spec)
    return spec


def array(sent: Any) -> np.ndarray:
    """The numbers of a trace, which may travel as bytes."""
    if isinstance(sent, dict):
        found = np.frombuffer(base64.b64decode(sent["bdata"]), dtype=np.dtype(sent["dtype"]))
        return found.reshape([int(n) for n in sent["shape"].split(",")]) if "shape" in sent else found
    return np.array(sent)


def run(code: str, **names: Any) -> dict[str, Any]:
    """Runs code as it stands on the page, pasted; then with these numbers in place of those that stand in for them.

    Returns the names that it leaves.
    """
    exec(code, {})
    exec(re.sub(rf"(?m)^({'|'.join(names) or '-'}) = .*\n", "", code), names)
    return names


def open_boxes_of(monkeypatch: pytest.MonkeyPatch, *modules: ModuleType) -> None:
    """Has the folded boxes that these modules make stand open: AppTest cannot open one that is closed at first."""

    @contextmanager
    def is_open(label: str, *, key: str) -> Iterator[bool]:
        with st.container():
            yield True

    for module in modules:
        monkeypatch.setattr(module, "folded", is_open)
