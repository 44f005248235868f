"""Says, on a teacher's page, that a class runs and how many follow, and tells the class where the pointer is.

mount(url="/_vizformer/room/K7M2QX", text="Class K7M2QX: {n} following", secret="...", points=True, key="class.lead")
"""

from vizformer.components import _mount

_COMPONENT = _mount.Component("lead", drawn=False)


def mount(*, url: str, text: str, secret: str, points: bool, key: str) -> None:
    """Counts, and points, for as long as it is on the page; the page runs when the class is over."""
    data = {"url": url, "text": text, "secret": secret, "points": points}
    _mount.renderer(_COMPONENT)(key=key, data=data, on_over_change=_mount.nothing)
