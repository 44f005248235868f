"""A head report as a folder of JSON in a ZIP file, for other programs too: docs/head-report-format.md says what is in it.

    write_report_folder(report, corpus, Path("heads.zip"))
    report, corpus = read_report_folder(Path("heads.zip"))

A file that is read may come from anybody: it is bounded in bytes, parts, heads and numbers before it is used, only parts of
known names are looked at, and nothing is written to the disk.
"""

import io
import json
import math
import zipfile
import zlib
from pathlib import Path
from typing import Any, NoReturn, get_args

import numpy as np

from vizformer.analysis.corpus_heads.corpus import MOST_CHARACTERS, MOST_TEXTS, Corpus, Passage
from vizformer.analysis.corpus_heads.report import LONGEST_TOKEN, HeadReport
from vizformer.analysis.corpus_heads.report_file import PER_HEAD, arrays_of, kind_of_arrays
from vizformer.analysis.corpus_heads.sums import BINS, MOST_COMPARED
from vizformer.analysis.heads.maps import Kind
from vizformer.errors import VizformerError
from vizformer.messages import N_, Message

FORMAT, FORMAT_VERSION = "vizformer head report", 2
LARGEST = 64 * 2**20  # bytes of a file
MOST_UNPACKED = 128 * 2**20  # bytes of all parts that are read
MOST_VALUES = 2**21  # of one part: each takes some 100 bytes of memory
MOST_HEADS = 4096  # of all kinds, each a part
LONGEST_NAME = 200
_WHOLE = 2**53  # whole numbers below it are the same in every program
_MAY_BE_NONE = ("strongest", "tenths", "nearest", "cluster")  # numbers that are -1 where there is nothing
_LONGEST: dict[str, int] = {"tokens/key": LONGEST_TOKEN, "tokens/query": LONGEST_TOKEN}


def packed_report(report: HeadReport, corpus: Corpus) -> bytes:
    """The ZIP file; the same report gives the same bytes.

    Raises:
        VizformerError: more heads than are read back.
    """
    if (heads := sum(len(found.places) for found in report.kinds.values())) > MOST_HEADS:
        raise VizformerError(
            "The report has {heads:,} heads; a folder holds at most {most:,}. Take the table (CSV).",
            heads=heads,
            most=MOST_HEADS,
        )
    kinds, parts, numbers = [], dict[str, Any](), set[int]()
    for kind, found in report.kinds.items():
        of_layers = [list(one) for one in zip(*found.layer_heads, strict=True)]
        about_heads = dict(zip(("heads", "key_value_heads"), of_layers, strict=True))
        kinds.append({"kind": kind, "layers": len(found.layer_heads)} | about_heads)
        arrays = arrays_of(found)
        for name, values in arrays.items():
            if name.startswith(("strongest/", "tenths/")):
                numbers |= set(np.unique(values).tolist())
        for layer, head in found.places:
            said: dict[str, Any] = {"kind": kind, "layer": layer, "head": head, "group": found.group(layer, head)}
            for name, values in arrays.items():
                field, slash, key = name.partition("/")
                one = _finite(values[layer, head].tolist())
                if slash:
                    said.setdefault(field, {})[key] = one
                else:
                    said[field] = one
            parts[_name(kind, layer, head)] = said
        if found.similarity.size:
            parts[f"similarity/{kind}.json"] = _finite(found.similarity.tolist())
    about = {"format": FORMAT, "version": FORMAT_VERSION, "model": report.model, "weights": report.weights}
    about |= {"corpus": report.corpus, "texts": report.texts, "given": report.given, "kinds": kinds}
    parts["report.json"] = about | {"largest_weight_bins": [at / BINS for at in range(BINS + 1)]}
    texts = {number: corpus.passages[number] for number in sorted(numbers) if 0 <= number < len(corpus.passages)}
    parts["texts.json"] = {str(at): {"text": one.text, "target": one.target} for at, one in texts.items()}
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(parts):
            archive.writestr(zipfile.ZipInfo(name), json.dumps(parts[name], ensure_ascii=False), zipfile.ZIP_DEFLATED)
    return written.getvalue()


def write_report_folder(report: HeadReport, corpus: Corpus, path: Path) -> None:
    """Writes the report on a corpus as a ZIP file of JSON.

    Raises:
        VizformerError: more heads than are read back.
    """
    content = packed_report(report, corpus)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def read_report_folder(source: Path | bytes) -> tuple[HeadReport, Corpus]:
    """The report of a ZIP file, and the texts that it names; the others are empty.

    Raises:
        VizformerError: no such file, or one that is no whole report, is too large, or has been changed.
    """
    if isinstance(source, Path):
        if not source.is_file():
            raise VizformerError("There is no file {path}.", path=str(source))
        with source.open("rb") as file:
            source = file.read(LARGEST + 1)
    if len(source) > LARGEST:
        _refuse(N_("it has more than {most:,} bytes", most=LARGEST))
    try:
        with zipfile.ZipFile(io.BytesIO(source)) as archive:
            parts = _Parts(archive)
            try:
                return parts.report()
            except (LookupError, ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
                _refuse(N_("{part} is not as the format says", part=parts.part), error)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, RuntimeError, ValueError) as error:
        _refuse(N_("it is no whole ZIP file"), error)


def _refuse(reason: Message, error: Exception | None = None) -> NoReturn:
    raise VizformerError(
        "This is no head report that can be read: {reason}. Take a ZIP file that the page “What each head does” or "
        "`vizformer heads --out heads.zip` has written.",
        reason=reason,
    ) from error


class _Parts:
    """The parts of a ZIP file, read within bounds."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        names = archive.namelist()
        if len(names) > MOST_HEADS + 16 or len(set(names)) < len(names):
            _refuse(N_("it has too many parts, or one twice"))
        self._archive, self._names, self._left, self.part = archive, frozenset(names), MOST_UNPACKED, "report.json"

    def _read(self, name: str) -> Any:
        if name not in self._names:
            _refuse(N_("{part} is missing", part=name))
        self.part = name
        with self._archive.open(name) as file:
            content = file.read(self._left + 1)  # whatever size the list of its parts says
        self._left -= len(content)
        if self._left < 0:
            _refuse(N_("its parts have more than {most:,} bytes", most=MOST_UNPACKED))
        if sum(content.count(mark) for mark in (b",", b"[", b"{")) > MOST_VALUES:
            raise ValueError("too many values")
        return json.loads(content, parse_constant=_no_number)

    def report(self) -> tuple[HeadReport, Corpus]:
        about = self._read("report.json")
        if about["format"] != FORMAT or about["version"] not in (1, FORMAT_VERSION):
            _refuse(N_("its format or its version is another one"))
        model, weights, corpus = (_text(about[name], LONGEST_NAME) for name in ("model", "weights", "corpus"))
        texts, given = (_count(about[name], MOST_TEXTS) for name in ("texts", "given"))
        left, kinds = MOST_HEADS, dict[Kind, Any]()
        for one in about["kinds"]:
            kind: Any = one["kind"]
            if kind not in get_args(Kind) or kind in kinds:
                raise ValueError("a kind of attention that is unknown, or there twice")
            heads, keys = (
                _of_layers(one[name], _count(one["layers"], MOST_HEADS)) for name in ("heads", "key_value_heads")
            )
            left -= len(heads) * max(heads, default=0)
            if (
                left < 0
                or not any(heads)
                or any(mine and not (of and mine % of == 0) for mine, of in zip(heads, keys, strict=True))
            ):
                raise ValueError(f"layers of {heads} heads, {keys} of keys and values")
            kinds[kind] = self._kind(kind, tuple(zip(heads, keys, strict=True)), given)
        if not kinds:
            raise ValueError("no head")
        passages = [Passage("")] * given
        for number, said in self._read("texts.json").items():
            at = _count(int(number), given - 1)
            passages[at] = Passage(_text(said["text"], MOST_CHARACTERS), _text(said["target"], MOST_CHARACTERS))
        return HeadReport(model, corpus, texts, given, kinds, weights), Corpus(corpus, tuple(passages))

    def _kind(self, kind: Kind, layer_heads: tuple[tuple[int, int], ...], given: int) -> Any:
        columns: dict[str, list[Any]] = {name: [] for name in PER_HEAD}
        shape = len(layer_heads), max(heads for heads, __ in layer_heads)
        there = np.arange(shape[1]) < np.array([heads for heads, __ in layer_heads])[:, None]
        for layer, head in np.argwhere(there).tolist():
            one = self._read(_name(kind, layer, head))
            for name, (trailing, of) in PER_HEAD.items():
                field, slash, key = name.partition("/")
                said = one[field][key] if slash else one[field]
                if trailing and (not isinstance(said, list) or len(said) != trailing[0]):
                    raise ValueError(f"{name} has not {trailing[0]} values")
                columns[name].append(_array(said if trailing else [said], of, _LONGEST.get(name, 0)))
        heads = math.prod(shape)
        arrays = {name: np.stack(values).reshape(-1, *PER_HEAD[name][0]) for name, values in columns.items()}
        ends = {"strongest": given - 1, "tenths": given - 1, "nearest": heads - 1, "sign": 1}
        for name, values in arrays.items():
            if values.dtype.kind == "i" and (
                values.min() < (-1 if (field := name.partition("/")[0]) in ends else 0)
                or values.max() > ends.get(field, _WHOLE)
            ):
                raise ValueError(f"{name} is out of its bounds")
        nearest = arrays["nearest"]
        if arrays["cluster"].max() >= heads or not there.ravel()[nearest[nearest >= 0]].all():
            raise ValueError("a cluster or a head that is not there")
        arrays = {name: _in_places(there, name, values) for name, values in arrays.items()}
        if f"similarity/{kind}.json" not in self._names:
            return kind_of_arrays(kind, layer_heads, arrays, np.zeros((0, 0)))
        rows = self._read(f"similarity/{kind}.json")
        if heads > MOST_COMPARED or len(rows) != heads or any(len(row) != heads for row in rows):
            raise ValueError("the similarities do not fit the heads")
        alike = _array([value for row in rows for value in row], float).reshape(heads, heads)
        return kind_of_arrays(kind, layer_heads, arrays, alike)


def _of_layers(value: Any, layers: int) -> list[int]:
    """A number of every layer; of version 1 the same of all."""
    values = value if isinstance(value, list) else [value] * layers
    if len(values) != layers:
        raise ValueError(f"{layers} numbers")
    return [_count(one, MOST_HEADS) for one in values]


def _in_places(there: Any, name: str, values: Any) -> Any:
    """What is said of every head as [n_layers, n_heads, ...]; where a layer has no such head, nothing."""
    nothing: Any = {"f": np.nan, "U": ""}.get(values.dtype.kind, -1 if name.partition("/")[0] in _MAY_BE_NONE else 0)
    found = np.full((*there.shape, *values.shape[1:]), nothing, values.dtype)
    found[there] = values
    return found


def _name(kind: str, layer: int, head: int) -> str:
    return f"heads/{kind}.{layer}.{head}.json"


def _finite(value: Any) -> Any:
    """Numbers for JSON: None where there is none."""
    if isinstance(value, list):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _text(value: Any, most: int) -> str:
    if not isinstance(value, str) or len(value) > most:
        raise ValueError(f"a text of at most {most} characters")
    return value


def _count(value: Any, most: int) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError(f"a whole number from 0 to {most}")
    return value


def _array(values: list[Any], of: type, longest: int = 0) -> Any:
    """Numbers or texts, each checked; a float that is None is NaN."""
    if of is str:
        return np.array([_text(value, longest) for value in values])
    if of is int:
        if any(type(value) is not int or abs(value) > _WHOLE for value in values):
            raise ValueError("whole numbers")
        return np.array(values, np.int64)
    if any(value is not None and type(value) not in (int, float) for value in values):
        raise ValueError("numbers")
    found = np.array([np.nan if value is None else float(value) for value in values])
    if np.isinf(found).any():
        raise ValueError("finite numbers")
    return found
