"""The workflows ask for no more than their steps need, and name what is there; a release says what its version is."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from packaging.requirements import Requirement
from packaging.version import Version

from tools import release
from vizformer import __version__

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = {path.name: yaml.safe_load(path.read_text("utf-8")) for path in (ROOT / ".github/workflows").glob("*.yml")}
JOBS = {f"{name}: {job}": found for name, one in WORKFLOWS.items() for job, found in one["jobs"].items()}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TOOLS = {"docs", "test"}  # extras of contributors: the versions that are tested, no range
NEEDED = {
    "actions/attest@": {"attestations", "id-token"},
    "pypa/gh-action-pypi-publish@": {"id-token"},
    "gh release create": {"contents"},
    "docker push": {"packages"},
}


def steps_of(job: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The steps of a job, and of the workflow that it calls."""
    if "uses" in job:
        for called in WORKFLOWS[Path(job["uses"]).name]["jobs"].values():
            yield from steps_of(called)
    yield from job.get("steps", ())


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_a_job_may_write_what_its_steps_write_and_nothing_else(job: dict[str, Any]) -> None:
    said = [f"{step.get('uses', '')} {step.get('run', '')}" for step in steps_of(job)]
    needed = set().union(*(names for word, names in NEEDED.items() if any(word in one for one in said)))
    assert {name for name, right in job.get("permissions", {}).items() if right == "write"} == needed
    reads = any(word in one for one in said for word in ("actions/checkout@", "gh release create"))
    assert ("contents" in job.get("permissions", {"contents": "read"})) == reads


def test_nothing_is_granted_to_all_jobs_but_reading() -> None:
    assert all(one["permissions"] in ({}, {"contents": "read"}) for one in WORKFLOWS.values())


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_what_the_steps_name_is_there_and_nothing_from_outside_is_put_into_a_script(job: dict[str, Any]) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    for step in steps_of(job):
        run = step.get("run", "")
        assert "${{" not in run
        assert set(re.findall(r"\bmake ([a-z-]+)", run)) <= set(targets)
        for path in re.findall(r"(?<![\w/.])(?:\.ci|deploy|tests|tools)/[\w./-]+|[\w-]+\.txt\b", run):
            assert (ROOT / path).exists(), path
        assert re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|release/v\d+|[0-9a-f]{40})", step.get("uses", "a/b@v1"))


def test_both_ends_of_the_versions_of_python_are_tested() -> None:
    versions = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert JOBS["test.yml: test"]["strategy"]["matrix"]["python"] == [versions[0], versions[-1]]
    assert PROJECT["requires-python"] == f">={versions[0]}"


def test_the_lower_end_of_every_range_is_tested() -> None:
    lines = (ROOT / "constraints-oldest.txt").read_text(encoding="utf-8").splitlines()
    tested = {one.name: one.specifier for one in map(Requirement, (line for line in lines if line[0] != "#"))}
    extras = PROJECT["optional-dependencies"]
    ranges = [*PROJECT["dependencies"], *(one for name in extras.keys() - TOOLS for one in extras[name])]
    assert tested.keys() == {Requirement(one).name for one in ranges}
    for one in map(Requirement, ranges):
        (lowest,) = (end.version for end in one.specifier if end.operator == ">=")
        assert str(tested[one.name]) == f"=={lowest}"


def test_each_extra_is_named_where_it_is_missing() -> None:
    code = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "vizformer").rglob("*.py"))
    assert not [name for name in PROJECT["optional-dependencies"].keys() - TOOLS if f"vizformer[{name}]" not in code]


@pytest.fixture
def released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose version is released."""
    monkeypatch.setattr(release, "ROOT", tmp_path)
    version = Version(__version__).base_version
    monkeypatch.setattr("vizformer.__version__", version)
    changes = f"# Changelog\n\nThe versions.\n\n## {version} (2026-12-24)\n\n- All of it.\n\n## 0.0.1\n\n- Nothing.\n"
    (tmp_path / "CHANGELOG.md").write_text(changes)
    (tmp_path / "CITATION.cff").write_text(f'title: VizFormer\nversion: {version}\ndate-released: "2026-12-24"\n')
    return tmp_path


def test_a_release_says_what_the_changelog_says_of_its_version(released: Path) -> None:
    assert release.notes(f"v{Version(__version__).base_version}") == "- All of it.\n"


@pytest.mark.parametrize(("file", "old", "new"), [("CHANGELOG.md", "-12-24)", ")"), ("CITATION.cff", "-24", "-25")])
def test_a_release_that_is_not_ready_is_refused(released: Path, file: str, old: str, new: str) -> None:
    (released / file).write_text((released / file).read_text().replace(old, new))
    with pytest.raises(SystemExit, match=file):
        release.notes(f"v{Version(__version__).base_version}")


def test_a_tag_of_another_version_is_refused(released: Path) -> None:
    with pytest.raises(SystemExit, match=r"The tag says 9\.9"):
        release.notes("v9.9")
