"""Holds a tag against the package, the changelog and the citation, and writes the notes of the release.

python tools/release.py v0.3.0 NOTES.md   # ends with what does not fit
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))


def notes(tag: str) -> str:
    """What the changelog says of the version that the tag names.

    Raises:
        SystemExit: the tag is another version than the package, its section of the changelog has no date or is not the
            first one, or CITATION.cff has another version or date.
    """
    from vizformer import __version__

    version = tag.removeprefix("v")
    if version != __version__:
        raise SystemExit(f"The tag says {version}, vizformer/__init__.py {__version__}.")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    head, _, text = changes.split("\n## ")[1].partition("\n")
    if not (dated := re.fullmatch(r"(\S+) \((\d{4}-\d\d-\d\d)\)", head)) or dated[1] != version:
        raise SystemExit(f"CHANGELOG.md begins with {head!r}, not with '{version} (its day)'.")
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    if f"\nversion: {version}\n" not in cited or f'\ndate-released: "{dated[2]}"\n' not in cited:
        raise SystemExit(f"CITATION.cff has another version than {version} or another day than {dated[2]}.")
    return text.strip() + "\n"


if __name__ == "__main__":
    tag, out = sys.argv[1:]
    Path(out).write_text(notes(tag), encoding="utf-8")
