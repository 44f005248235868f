"""Pages without a browser: Streamlit's AppTest runs app.py and hands out what is on the screen."""

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).resolve().parents[2]
Open = Callable[..., AppTest]


@pytest.fixture
def open_app() -> Open:
    """`open_app("pages/learn/qkv.py", locale="zh-CN", text="hello", head=3)`: the app, run once on that page."""

    def opened(page: str | None = None, *, locale: str = "en-US", **link: object) -> AppTest:
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        app.context["locale"] = locale
        if page is None:
            for name, value in link.items():
                app.query_params[name] = str(value)
            return app.run()
        app.run()  # AppTest knows a page only after the first run
        app.switch_page(page)
        for name, value in link.items():
            app.query_params[name] = str(value)
        return app.run()

    return opened
