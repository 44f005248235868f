"""Pages without a browser: Streamlit's AppTest runs app.py and hands out what is on the screen."""

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from vizformer.web.catalogue.long_work import WORK
from vizformer.web.frame import sitemap
from vizformer.web.widgets import lesson

ROOT = Path(__file__).resolve().parents[2]
ADDRESSES = set(sitemap.PAGES)
Open = Callable[..., AppTest]


@pytest.fixture(autouse=True)
def every_tab_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has the tabs below the part of a lesson all stand open: formulas and code are read in one run."""
    monkeypatch.setattr(lesson, "is_open", lambda tab: True)


@pytest.fixture
def open_app() -> Open:
    """`open_app("pages/learn/qkv.py", locale="zh-CN", text="hello", head=3)`: the app, run once, by that link.

    A link that says nothing names the usual model: it would begin with another one in English.
    """

    def opened(page: str | None = None, *, locale: str = "en-US", **link: object) -> AppTest:
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=180)
        app.context["locale"] = locale
        if page is not None:
            # Before the first run, AppTest finds a page by the name of its file; another one would open the home page.
            assert Path(page).stem in ADDRESSES, f"{page} is not called as its address: {ADDRESSES}"
            app.switch_page(page)
        for name, value in (link or {"model": "zh-en"}).items():
            app.query_params[name] = str(value)
        return app.run()

    return opened


@pytest.fixture
def compare() -> Callable[[AppTest], AppTest]:
    """`compare(app)` on the page Model report: presses the button, and waits."""

    def compared(app: AppTest) -> AppTest:
        app.button(key="report.compare").click().run()
        for work in WORK.going():
            assert work.ended.wait(120)
        return app.run()

    return compared
