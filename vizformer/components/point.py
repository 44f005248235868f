"""Tells a class, from the browser, where its teacher's pointer is.

mount(url="/_vizformer/room/K7M2QX/pointer", secret="...", key="class.pointer")    # nothing is drawn
"""

from vizformer.components import _mount

__all__ = ["mount"]

_COMPONENT = _mount.Component("point", drawn=False)


def mount(*, url: str, secret: str, key: str) -> None:
    """Points for as long as it is on the page.

    Args:
        url: what takes the places.
        secret: of the teacher.
        key: identity on the page.
    """
    _mount.renderer(_COMPONENT)(key=key, data={"url": url, "secret": secret})
