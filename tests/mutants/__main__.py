"""Would a test notice? Tries small changes of programs one by one, each against the tests that run its line.

python -m tests.mutants choose             # draws 500 changes into list.tsv: a fixed seed
python -m tests.mutants contexts FILES     # measures which tests of these files run which lines
python -m tests.mutants run [NUMBERS]      # tries those without a result, or these
python -m tests.mutants check [NUMBERS]    # whether the tests that noticed them still do
python -m tests.mutants write              # what was found, into list.tsv
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import asdict
from functools import partial
from pathlib import Path

from tests.mutants.changes import Change, choose, lines_of_statement
from tests.mutants.contexts import measure
from tests.mutants.forked import Items, Watcher, import_others, import_ours, in_a_fork, run_anew, run_pytest

ROOT = Path(__file__).resolve().parents[2]
LIST = Path(__file__).with_name("list.tsv")
ROOMS = ("model", "explain", "analysis", "checkpoints", "text", "figures", "generation")
HEADER = ("file", "line", "before", "after", "outcome", "by")
SEED, NUMBER = 34, 500
BY_HAND = ("changes nothing", "looks")  # in `by` the reason
LIMIT_SWEPT_SECONDS = 300
LIMIT_CHECKED_SECONDS = 120  # of one test
STAGES = (6.0, 60.0, 300.0)  # seconds of tests: the quickest first, the next only where they do not notice


def read_list() -> list[dict[str, str]]:
    rows = [line.split("\t") for line in LIST.read_text(encoding="utf-8").splitlines()]
    return [dict(zip(HEADER, row, strict=True)) for row in rows[1:]]


def write_list(rows: list[dict[str, str]]) -> None:
    lines = ["\t".join(HEADER), *("\t".join(row[name] for name in HEADER) for row in rows)]
    LIST.write_text("\n".join(lines) + "\n", encoding="utf-8")


def change_of(row: dict[str, str]) -> Change:
    return Change(row["file"], int(row["line"]), row["before"], row["after"])


def copy_of_checkout(tree: Path) -> None:
    """Here the changes are written: the checkout itself is never touched. What is newer in the checkout is copied."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines():
        source, to = ROOT / name, tree / name
        if source.is_file() and (not to.exists() or source.stat().st_mtime != to.stat().st_mtime):
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, to)
    if not (tree / ".venv").exists():
        (tree / ".venv").symlink_to((ROOT / ".venv").resolve())


class Coverage:
    """Which tests run which lines, as `contexts` has measured it."""

    def __init__(self, folder: Path, wanted: set[str]) -> None:
        self.seconds: dict[str, float] = {}
        self.lines: dict[str, dict[int, set[str]]] = {file: {} for file in wanted}
        for path in sorted(folder.glob("*.json")):
            told = json.loads(path.read_text(encoding="utf-8"))
            names = [name for name, _ in told["tests"]]
            self.seconds.update(told["tests"])
            for file in wanted & told["lines"].keys():
                for line, tests in told["lines"][file].items():
                    self.lines[file].setdefault(int(line), set()).update(names[i] for i in tests)

    def tests(self, change: Change, text: str) -> list[str]:
        """The quickest first. What the import runs is tried with all tests that run anything of the file."""
        statement = lines_of_statement(text, change.found(text))
        found = self.lines[change.file]
        tests = set().union(*(found.get(line, ()) for line in (found if statement is None else statement)))
        return sorted(tests, key=lambda test: self.seconds[test])


def stages(tests: list[str], seconds: dict[str, float]) -> list[list[str]]:
    parts: list[list[str]] = []
    left = list(tests)
    for limit in STAGES:
        part: list[str] = []
        spent = 0.0
        while left and spent < limit:
            spent += seconds[left[0]] + 0.02
            part.append(left.pop(0))
        if part:
            parts.append(part)
    return parts


def try_change(change: Change, tree: Path, coverage: Coverage, items: Items | None, more: bool) -> tuple[str, str]:
    """What became of it, and the test that noticed.

    `more` tries the other tests of the same files too: a fixture may have run the line for them.
    """
    path = tree / change.file
    text, times = path.read_text(encoding="utf-8"), path.stat()
    tests = coverage.tests(change, text)
    if not tests:
        return "not covered", ""
    if more:
        files = {test.partition("::")[0] for test in tests}
        tests += [test for test in coverage.seconds if test.partition("::")[0] in files and test not in set(tests)]
    run_part = partial(run_anew, tree) if items is None else partial(items.run, path)
    log = tree.with_name("last.log")
    path.write_text(change.written(text), encoding="utf-8")
    try:
        for part in stages(tests, coverage.seconds):
            limit = 30 + 4 * sum(coverage.seconds[test] for test in part)
            outcome = in_a_fork(partial(run_part, part), log, limit)
            if outcome.failed:
                return "noticed", outcome.failed[0]
            if not outcome.ended:
                return "noticed", ("takes forever: " if outcome.timed_out else "ends the process: ") + part[0]
            made = set(part) if items is None else set(part) & items.by_name.keys()
            if missing := sorted(made - outcome.seconds.keys()):
                return "noticed", missing[0]  # it is not even made
        swept = in_a_fork(partial(run_part, tests, swept=True), log, LIMIT_SWEPT_SECONDS)
        return ("noticed by the sweep", swept.failed[0]) if swept.failed else ("survived", "")
    finally:
        path.write_text(text, encoding="utf-8")
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def results(place: Path) -> dict[Change, dict[str, str]]:
    """The last one of each change."""
    path = place / "results.jsonl"
    told = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
    return {Change(**one.pop("change")): one for one in told}


def run(place: Path, numbers: list[int], again: bool, rooms: list[str]) -> None:
    """Results are appended as they come: what was interrupted goes on where it ended."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that a changed file is put back
    sys.dont_write_bytecode = True  # what is compiled of a change would be taken for the program
    rows, known, tree = read_list(), results(place), place / "tree"
    coverage = Coverage(place / "contexts", {row["file"] for row in rows})
    asked = []
    for number, row in enumerate(rows, 1):
        change = change_of(row)
        old = row["outcome"] if row["outcome"] in BY_HAND else known.get(change, {}).get("outcome")
        if (numbers and number not in numbers) or (rooms and change.file.split("/")[1] not in rooms):
            continue
        if numbers or not old or (again and old in ("survived", "not covered")):
            try:
                fresh = again or lines_of_statement(*at(change, tree)) is None
            except (OSError, ValueError) as error:
                print(number, f"left out: {error}")
                continue
            asked.append((not fresh, number, change))

    def serve(items: Items | None) -> None:
        for imported, number, change in asked:
            if imported == (items is not None):
                began = time.monotonic()
                outcome, by = try_change(change, tree, coverage, items, again)
                seconds = round(time.monotonic() - began, 1)
                with (place / "results.jsonl").open("a", encoding="utf-8") as file:
                    told = {"change": asdict(change), "outcome": outcome, "by": by, "seconds": seconds}
                    file.write(json.dumps(told, ensure_ascii=False) + "\n")
                print(number, outcome, seconds, f"{change.file}:{change.line}", change.after, "<-", by, flush=True)

    import_others()
    serve(None)  # first those that need a process in which nothing of ours has been imported
    if any(imported for imported, *_ in asked):
        import_ours(tree)
        files = sorted({test.partition("::")[0] for test in coverage.seconds})
        run_pytest(["-s", *files], Watcher(serve=serve), stop=False)


def check(place: Path, numbers: list[int]) -> None:
    """Each change that was noticed against the one test that noticed it: some seconds each, and no contexts."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.dont_write_bytecode = True
    tree = place / "tree"
    copy_of_checkout(tree)
    import_others()
    found: Counter[str] = Counter()
    for number, row in enumerate(read_list(), 1):
        if not row["outcome"].startswith("noticed") or (numbers and number not in numbers):
            continue
        change, test = change_of(row), row["by"].removeprefix("takes forever: ").removeprefix("ends the process: ")
        path = tree / change.file
        text = path.read_text(encoding="utf-8")
        try:
            path.write_text(change.written(text), encoding="utf-8")
            outcome = in_a_fork(partial(run_anew, tree, [test], swept=None), place / "last.log", LIMIT_CHECKED_SECONDS)
        except ValueError as error:
            print(number, f"left out: {error}", flush=True)
            continue
        finally:
            path.write_text(text, encoding="utf-8")
        still = bool(outcome.failed) or not outcome.ended or test not in outcome.seconds
        found["still noticed" if still else "not noticed"] += 1
        if not still:
            print(number, f"not noticed: {change.file}:{change.line}", change.after, "<-", test, flush=True)
    print(*(f"{count} {said}" for said, count in found.items()), sep=", ")


def at(change: Change, tree: Path) -> tuple[str, int]:
    """The text of its file, and its line there."""
    text = (tree / change.file).read_text(encoding="utf-8")
    return text, change.found(text)


def write(place: Path) -> None:
    """What was found, into the list; a row that says why it changes nothing stays as it is."""
    rows, known = read_list(), results(place)
    for row in rows:
        if (one := known.get(change_of(row))) and (
            row["outcome"] not in BY_HAND or one["outcome"].startswith("noticed")
        ):
            row["outcome"], row["by"] = one["outcome"], " ".join(one["by"].split())
    write_list(rows)
    print(
        *(f"{count} {outcome or 'not tried'}" for outcome, count in Counter(r["outcome"] for r in rows).items()),
        sep=", ",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["choose", "contexts", "run", "check", "write"])
    parser.add_argument("names", nargs="*", help="test files, or numbers of changes")
    parser.add_argument(
        "--place", type=Path, default=ROOT / "build" / "mutants", help="where contexts and results are kept"
    )
    parser.add_argument(
        "--again", action="store_true", help="those that were not noticed, with everything imported anew"
    )
    parser.add_argument("--rooms", nargs="*", default=[], help="only changes of these folders")
    asked = parser.parse_args()
    os.nice(10)
    asked.place.mkdir(parents=True, exist_ok=True)
    if asked.what == "choose":
        chosen = choose(ROOT, ROOMS, NUMBER, SEED)
        write_list([{**asdict(one), "line": str(one.line), "outcome": "", "by": ""} for one in chosen])
    elif asked.what == "run":
        run(asked.place, [int(name) for name in asked.names], asked.again, asked.rooms)
    elif asked.what == "check":
        check(asked.place, [int(name) for name in asked.names])
    elif asked.what == "write":
        write(asked.place)
    else:
        tree = asked.place / "tree"
        copy_of_checkout(tree)
        import_others()
        for file in asked.names:
            to = asked.place / "contexts" / (file.replace("/", "-") + ".json")
            if not to.exists() or to.stat().st_mtime < (tree / file).stat().st_mtime:
                outcome = measure(tree, file, ROOMS, to)
                failed = ", ".join(outcome.failed) or ("" if outcome.ended else "it did not end")
                print(file, len(outcome.seconds), "tests", failed and f"left out, as they fail: {failed}", flush=True)


if __name__ == "__main__":
    main()
