"""Hears, in the browser, that the teacher of a class has moved, and has the page run.

moved = mount(url="/_vizformer/room/K7M2QX", seen=3, box="", points=True, key="class")    # nothing is drawn
"""

from vizformer.components import _mount

_COMPONENT = _mount.Component("follow", drawn=False)


def mount(*, url: str, seen: int, box: str, points: bool, key: str) -> None:
    """Listens for as long as it is on the page.

    `url`: what the browser asks; it answers when there is a version after `seen`.
    `box`: class of the element that is to be brought into sight, once for each version; empty: none.
    """
    _mount.renderer(_COMPONENT)(
        key=key, data={"url": url, "seen": seen, "box": box, "points": points}, on_moved_change=_mount.nothing
    )
