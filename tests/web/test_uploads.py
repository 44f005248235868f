"""What is put up: hostile zips are refused in words and leave nothing behind; files go with their session."""

import gc
import io
import os
import stat
import struct
import subprocess
import sys
import zipfile

import pytest

from vizformer.errors import CheckpointError
from vizformer.web.catalogue import safe_zip, uploads

LIMIT = 100_000
MODEL = {"config.json": b"{}", "model.safetensors": b"x" * 5000}


def zipped(files=MODEL, change=lambda name, info: None, method=zipfile.ZIP_DEFLATED):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in files.items() if isinstance(files, dict) else files:
            info = zipfile.ZipInfo(name)
            info.compress_type = method
            change(name, info)
            archive.writestr(info, content)
    return packed


def unpack(packed, place, name="two cats.zip", limit=LIMIT):
    return safe_zip.unpack([(name, packed)], place, limit)


def test_a_zip_with_or_without_a_folder(tmp_path):
    for number, (files, title) in enumerate(
        [
            (MODEL, "two cats"),
            ({"tiny/": b"", **{f"tiny/{name}": content for name, content in MODEL.items()}}, "tiny"),
            ({**MODEL, "README.md": b"x", "__MACOSX/._config.json": b"x", ".gitattributes": b""}, "two cats"),
        ]
    ):
        place = tmp_path / str(number)
        place.mkdir()
        assert unpack(zipped(files), place) == title
        assert {path.name: path.read_bytes() for path in (place / title).iterdir()} == MODEL


def test_files_as_they_are(tmp_path):
    files = [(name, io.BytesIO(content)) for name, content in MODEL.items()]
    assert safe_zip.unpack([*files, ("README.md", io.BytesIO(b"x"))], tmp_path, LIMIT) == "model"
    assert {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()} == MODEL
    assert safe_zip.unpack([("nano.pt", io.BytesIO(b"x"))], tmp_path, LIMIT) == "nano"


def linked(name, info):
    info.create_system = 3
    info.external_attr = (stat.S_IFLNK | 0o777) << 16


def piped(name, info):
    info.create_system = 3
    info.external_attr = (stat.S_IFIFO | 0o600) << 16


HOSTILE = {
    "traversal": (zipped({"../config.json": b"{}"}), r"\.\./config.json, a place outside itself"),
    "traversal inside": (zipped({"a/../../config.json": b"{}"}), "a place outside itself"),
    "traversal of Windows": (zipped({"..\\config.json": b"{}"}), "a place outside itself"),
    "absolute": (zipped({"/etc/config.json": b"{}"}), "a place outside itself"),
    "a drive": (zipped({"C:config.json": b"{}"}), "a place outside itself"),
    "a symlink": (zipped({"config.json": b"/etc/passwd"}, linked), "config.json in the zip is a link"),
    "a pipe": (zipped({"config.json": b""}, piped), "config.json in the zip is a link or a device"),
    "folders": (zipped({"a/b/config.json": b"{}"}), "folder of its own"),
    "two folders": (zipped({"a/config.json": b"{}", "b/config.json": b"{}"}), "folder of its own"),
    "beside a folder": (zipped({"config.json": b"{}", "b/x.json": b"{}"}), "b/x.json in the zip lies in a folder"),
    "a wrong suffix": (zipped({**MODEL, "run.py": b"x"}), "run.py is no file of a model.*safetensors"),
    "a hidden file": (zipped({**MODEL, ".bashrc.json": b"x"}), ".bashrc.json is no name for a file"),
    "an odd name": (zipped({**MODEL, "a\u202egpj.json": b"x"}), "is no name for a file"),
    "only a name": (zipped({**MODEL, "safetensors": b"x"}), "safetensors is no file of a model"),
    "two of a name": (zipped([("config.json", b"{}"), ("Config.json", b"{}")]), "there twice"),
    "nothing": (zipped({}), "no file of a model"),
    "a bomb that says so": (zipped({"model.bin": b"\0" * (LIMIT + 1)}), "0 MiB"),
    "bombs together": (zipped({f"{n}.bin": b"\0" * (LIMIT // 9) for n in range(10)}), "0 MiB"),
    "too many": (zipped({f"{n}.json": b"{}" for n in range(201)}), "more than 200 files"),
    "bzip2": (zipped(method=zipfile.ZIP_BZIP2), "packed in a way that is not read"),
    "no zip": (io.BytesIO(b"PK\x03\x04" + b"x" * 1000), "cannot be unpacked"),
    "a part": (io.BytesIO(zipped().getvalue()[:-30]), "cannot be unpacked"),
}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_zips_are_refused_in_words(what, tmp_path):
    packed, said = HOSTILE[what]
    kept = uploads.Kept()
    with pytest.raises(CheckpointError, match=said):
        kept.add([("evil.zip", packed)], LIMIT)
    assert list(kept.root.iterdir()) == []
    kept.remove()


def test_the_same_entry_twice(tmp_path):
    with pytest.warns(UserWarning, match="Duplicate"):
        packed = zipped([("config.json", b"{}"), ("config.json", b"[]")])
    with pytest.raises(CheckpointError, match="there twice"):
        unpack(packed, tmp_path)


def directory(packed):
    """Where the directory's first entry begins."""
    return packed.getvalue().index(b"PK\x01\x02")


def patched(packed, offset, layout, value):
    content = bytearray(packed.getvalue())
    struct.pack_into(layout, content, offset, value)
    return io.BytesIO(bytes(content))


def test_a_password_is_refused(tmp_path):
    packed = zipped()
    with pytest.raises(CheckpointError, match="is encrypted"):
        unpack(patched(packed, directory(packed) + 8, "<H", 1), tmp_path)


@pytest.mark.parametrize("size", [1, 4999, 5001, 90_000])
def test_an_entry_that_lies_about_its_size(tmp_path, size):
    packed = zipped({"model.bin": b"x" * 5000})
    with pytest.raises(CheckpointError, match="cannot be unpacked"):
        unpack(patched(packed, directory(packed) + 24, "<I", size), tmp_path)
    assert sum(path.stat().st_size for path in tmp_path.rglob("*.bin")) <= 5000


def test_a_bomb_that_says_it_is_small(tmp_path):
    """Ten megabytes that call themselves one byte: what is written stays below the limit."""
    packed = zipped({"model.bin": b"\0" * 10_000_000})
    with pytest.raises(CheckpointError):
        unpack(patched(packed, directory(packed) + 24, "<I", 1), tmp_path)
    assert sum(path.stat().st_size for path in tmp_path.rglob("*.bin")) <= LIMIT


def test_the_limit_holds_while_bytes_arrive(tmp_path):
    """Also where nothing was known before."""
    budget = safe_zip._Budget(LIMIT)
    with pytest.raises(CheckpointError, match=r"model\.bin"):
        safe_zip._write(tmp_path / "model.bin", io.BytesIO(b"x" * (LIMIT + 1)), budget)


def test_a_directory_that_would_fill_the_memory_is_not_read(tmp_path):
    tail = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 65535, 65535, 50_000_000, 0, 0)
    with pytest.raises(CheckpointError, match="cannot be unpacked"):
        unpack(io.BytesIO(b"\0" * 50_000_000 + tail), tmp_path, limit=10**9)


def test_other_refusals(tmp_path):
    with pytest.raises(CheckpointError, match="No file was chosen"):
        safe_zip.unpack([], tmp_path, LIMIT)
    with pytest.raises(CheckpointError, match="together with other files"):
        safe_zip.unpack([("a.zip", zipped()), ("config.json", io.BytesIO(b"{}"))], tmp_path, LIMIT)
    with pytest.raises(CheckpointError, match="0 MiB"):
        safe_zip.unpack([("a.bin", io.BytesIO(b"x" * 60_000)), ("b.bin", io.BytesIO(b"x" * 60_000))], tmp_path, LIMIT)
    for name in ("../config.json", "/etc/config.json", "a/config.json", "..", "run.sh", "c\n.json"):
        with pytest.raises(CheckpointError):
            safe_zip.unpack([(name, io.BytesIO(b"{}")), ("x.json", io.BytesIO(b""))], tmp_path, LIMIT)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_mutations_of_a_zip_are_refused_or_harmless(tmp_path):
    """Every byte of a small zip, set to four values: nothing but a refusal in words, or plain files."""
    content = zipped({"m/config.json": b"{}", "m/a.bin": b"y" * 50}).getvalue()
    opened = 0
    for at in range(len(content)):
        for value in {0, 47, 255, content[at] ^ 1}:
            place = tmp_path / f"{at}-{value}"
            place.mkdir()
            try:
                unpack(io.BytesIO(content[:at] + bytes([value]) + content[at + 1 :]), place)
            except CheckpointError:
                continue
            opened += 1
            for path in place.rglob("*"):
                assert path.is_dir() or (path.is_file() and not path.is_symlink())
                assert path.is_dir() or path.stat().st_size <= LIMIT
    assert opened > 0
    assert {path.parent for path in tmp_path.iterdir()} == {tmp_path}


@pytest.mark.sweep
def test_only_so_many_are_kept_and_all_go_with_the_session():
    kept = uploads.Kept()
    assert stat.S_IMODE(kept.root.stat().st_mode) == 0o700
    names = [kept.add([("a.zip", zipped())], LIMIT) for _ in range(uploads.KEPT + 2)]
    assert list(kept.uploads) == names[2:]
    assert sorted(path.name for path in kept.root.iterdir()) == sorted(names[2:])
    assert all(stat.S_IMODE((kept.root / name).stat().st_mode) == 0o700 for name in names[2:])
    root = kept.root
    del kept
    gc.collect()
    assert not root.exists()


def test_they_go_when_the_server_ends():
    code = (
        "import io\nfrom vizformer.web.catalogue import uploads\nkept = uploads.Kept()\n"
        "kept.add([('config.json', io.BytesIO(b'{}'))], 1000)\nprint(kept.root, end='')"
    )
    root = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "vizformer-visitors-" in root
    assert not os.path.exists(root)


def test_a_full_disk_is_said(monkeypatch):
    monkeypatch.setattr(uploads.shutil, "disk_usage", lambda path: type("Usage", (), {"free": 1000}))
    kept = uploads.Kept()
    with pytest.raises(CheckpointError, match="disk of this server is almost full"):
        kept.add([("a.zip", zipped())], LIMIT)
    kept.remove()


def test_the_limit_can_be_set(monkeypatch):
    assert uploads.limit() == 512 * 2**20
    monkeypatch.setenv(uploads.LIMIT, "1000")
    assert uploads.limit() == 1000
    monkeypatch.setenv(uploads.SWITCH, "off")
    with pytest.raises(CheckpointError, match="takes no uploads"):
        uploads.add([("config.json", io.BytesIO(b"{}"))])
