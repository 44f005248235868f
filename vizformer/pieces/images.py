"""Images that somebody else made, read with suspicion: what a file says of its size is asked before anything is decoded."""

import io
from pathlib import Path

from PIL import Image, ImageOps

from vizformer.errors import ImageError

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
MOST_BYTES = 32 << 20
MOST_PIXELS = 25_000_000
MOST_SIDE = 16_384  # px
MOST_SCANS = 32  # of a JPEG, each of which goes over all pixels; a progressive one has about ten


def open_image(source: str | Path | bytes) -> Image.Image:
    """An image in RGB, turned as its camera says; of a moving one the first picture.

    Args:
        source: a path, or the content of a file of one of `FORMATS`.

    Raises:
        ImageError: no such file; another format (also SVG); more than `MOST_BYTES`, `MOST_PIXELS` or `MOST_SIDE`; a file
            that is cut off or broken.
    """
    name = "-" if isinstance(source, bytes) else Path(source).name
    try:
        data = source if isinstance(source, bytes) else _first_bytes(source)
    except OSError:
        raise ImageError("The image {name} cannot be read.", name=name) from None
    if len(data) > MOST_BYTES:
        raise ImageError("An image may have at most {most} MB.", most=MOST_BYTES >> 20)
    try:
        found = Image.open(io.BytesIO(data), formats=FORMATS)
        size = found.size
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        size = MOST_PIXELS, MOST_SIDE
    except Exception:  # (a broken header raises whatever its format's reader stumbles over)
        raise ImageError(
            "{name} is no image that is read here: choose one of {formats}.", name=name, formats=", ".join(FORMATS)
        ) from None
    if max(size) > MOST_SIDE or size[0] * size[1] > MOST_PIXELS:
        raise ImageError(
            "The image is too large: at most {pixels} million pixels, and {side} on a side.",
            pixels=MOST_PIXELS // 1_000_000,
            side=f"{MOST_SIDE:,}",
        )
    try:
        if found.format in ("JPEG", "MPO") and data.count(b"\xff\xda") > MOST_SCANS:  # (marks that no data contain)
            raise ValueError
        return ImageOps.exif_transpose(found).convert("RGB")
    except Exception:
        raise ImageError("The image {name} is cut off or broken.", name=name) from None


def _first_bytes(source: str | Path) -> bytes:
    with Path(source).open("rb") as file:
        return file.read(MOST_BYTES + 1)
