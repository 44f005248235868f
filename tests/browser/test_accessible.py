"""What axe-core finds on the pages: nothing that it calls serious or critical (WCAG 2.1, levels A and AA)."""

import os

import pytest
from axe_playwright_python.sync_playwright import Axe

from vizformer.web.frame.sitemap import SECTIONS

RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"], "resultTypes": ["violations"], "elementRef": False}
LOOKS = [("en-US", "light"), ("zh-CN", "dark")]
LINKS = [entry.url for __, entries in SECTIONS for entry in entries]
LINKS += ["masks?slide=words", "masks?slide=laboratory", "attention?picture=lines"]
# Each page in one of the two looks, in turn: VIZFORMER_EVERY_LOOK=1 opens all of them in both.
MENDED = """() => !document.querySelector("[data-testid=stSidebarNavItems] li:not([role])")
    && [...document.querySelectorAll(".katex-display:not([tabindex])")].every((one) => one.scrollWidth <= one.clientWidth)"""
EVERY = bool(os.environ.get("VIZFORMER_EVERY_LOOK"))
OPENED = [(link, *look) for i, link in enumerate(LINKS) for j, look in enumerate(LOOKS) if EVERY or i % 2 == j]


def serious(tab) -> list[str]:
    found = Axe().run(tab.page, options=RULES).response["violations"]
    return [
        f"{violation['id']}: {node['html'][:200]}"
        for violation in found
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"]
    ]


@pytest.mark.parametrize(("link", "locale", "theme"), OPENED)
def test_nothing_on_a_page_shuts_people_out(open_tab, link, locale, theme):
    tab = open_tab(f"/{link}", locale=locale, theme=theme)
    tab.settled()
    tab.page.wait_for_function(MENDED)
    assert serious(tab) == []
