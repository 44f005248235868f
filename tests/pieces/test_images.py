"""Images of others: what is read, and what is refused in words before anything is decoded."""

import io
import struct
import zlib
from pathlib import Path
from time import perf_counter

import numpy as np
import pytest
from PIL import Image

from vizformer.errors import ImageError
from vizformer.pieces import images, open_image


def written(kind: str = "PNG", size: tuple[int, int] = (30, 20), mode: str = "RGB", **more: object) -> bytes:
    noise = np.random.default_rng(0).integers(0, 256, (size[1], size[0], 3)).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(noise).convert(mode).save(file, kind, **more)
    return file.getvalue()


def said_to_be(width: int, height: int, data: bytes = b"") -> bytes:
    """A PNG whose header says a size, whatever its data are."""

    def chunk(name: bytes, inside: bytes) -> bytes:
        return struct.pack(">I", len(inside)) + name + inside + struct.pack(">I", zlib.crc32(name + inside))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")


@pytest.mark.parametrize("kind", images.FORMATS)
@pytest.mark.parametrize("mode", ["RGB", "L", "P"])
def test_an_image_is_read_in_its_own_size(kind: str, mode: str, tmp_path: Path) -> None:
    data = written(kind, mode=mode if (kind, mode) != ("JPEG", "P") and kind != "WEBP" else "RGB")
    (tmp_path / "image").write_bytes(data)
    for source in (data, tmp_path / "image", str(tmp_path / "image")):
        found = open_image(source)
        assert (found.mode, found.size) == ("RGB", (30, 20))
    if (kind, mode) == ("PNG", "RGB"):
        assert written() == data


def test_an_image_stands_as_its_camera_says() -> None:
    turned = Image.Exif()
    turned[0x0112] = 6  # (Exif: to be turned by a quarter)
    assert open_image(written("JPEG", exif=turned)).size == (20, 30)


def of_many_scans(n: int) -> bytes:
    """A JPEG of 4 million pixels whose last scan is repeated: each goes over all of them."""
    file = io.BytesIO()
    Image.new("RGB", (2000, 2000)).save(file, "JPEG", progressive=True)
    data = file.getvalue()
    return data[:-2] + n * data[data.rindex(b"\xff\xda") : -2] + data[-2:]


BOMB = said_to_be(5000, 5001, bytes(1 << 20))
SCRIPT = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (BOMB, "too large: at most 25 million pixels"),
        (said_to_be(60_000, 100), "too large: .* and 16,384 on a side"),
        (said_to_be(60_000, 60_000), "too large"),  # at which Pillow itself stops
        (SCRIPT, "- is no image that is read here: choose one of PNG, JPEG"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n", "is no image that is read here"),
        (b"", "is no image that is read here"),
        (written()[:20], "is no image that is read here"),
        (written(size=(200, 200))[:50_000], "is cut off or broken"),
        (written("JPEG", size=(200, 200))[:5_000], "is cut off or broken"),
        (written("WEBP", size=(200, 200))[:5_000], "is (cut off or broken|no image)"),
        (written("GIF", size=(200, 200))[:5_000], "is cut off or broken"),
        (of_many_scans(500), "is cut off or broken"),
        (said_to_be(30, 20, bytes(50)), "is cut off or broken"),
        (bytes(images.MOST_BYTES + 1), "at most 32 MB"),
    ],
    ids=lambda value: None if isinstance(value, bytes) else value[:20],
)
def test_what_is_hostile_is_refused_at_once(data: bytes, told: str, tmp_path: Path) -> None:
    (tmp_path / "-").write_bytes(data)
    for source in (data, tmp_path / "-"):
        began = perf_counter()
        with pytest.raises(ImageError, match=told):
            open_image(source)
        assert perf_counter() - began < 1


def test_a_file_that_is_not_there_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match=r"The image none\.png cannot be read"):
        open_image(tmp_path / "none.png")
    with pytest.raises(ImageError, match="cannot be read"):
        open_image(tmp_path)
