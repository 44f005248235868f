"""How much memory this process may still take: of the machine, of each control group that it is in, of its own limits.

A job of a cluster and a container are control groups inside others, each with a limit of its own or none: what is left
is the least of all of them, from the process's own group up to the root.

Source: cgroups(7), proc(5), getrlimit(2) of Linux; there is nothing of the kind elsewhere but the limits of the process.
"""

import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

PROC = Path("/proc")
_LIMITS = (  # file of a limit, file of what is used: of cgroups version 2, then of version 1
    ("memory.max", "memory.current"),
    ("memory.high", "memory.current"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes"),
)


def free_bytes() -> int | None:
    """The least that is left of all limits; None where nobody says."""
    left = [*_of_the_machine(), *_of_control_groups(), *_of_the_process()]
    return max(min(left), 0) if left else None


def _of_the_machine() -> Iterator[int]:
    for name, value in _fields("meminfo"):
        if name == "MemAvailable":
            yield value


def _of_control_groups() -> Iterator[int]:
    for group in _groups():
        for limit, used in _LIMITS:
            try:
                yield int((group / limit).read_text()) - int((group / used).read_text()) + _given_back(group)
            except (OSError, ValueError):  # no such file, or "max"
                continue


def _given_back(group: Path) -> int:
    """Of what a group uses, the copies of files that nobody has read for a while, which the system takes back first."""
    try:
        said = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):
        return 0
    return int(
        said.get("total_inactive_file", said.get("inactive_file", 0))
    )  # version 1 counts the groups inside apart


def _groups() -> Iterator[Path]:
    """The folders of the groups that bound this process's memory, its own and those around it."""
    inside: dict[str, PurePosixPath] = {}  # kind of hierarchy -> path of this process's group in it
    for line in _lines("self/cgroup"):
        __, controllers, path = line.split(":", 2)
        if controllers == "" or "memory" in controllers.split(","):
            inside["cgroup2" if controllers == "" else "cgroup"] = PurePosixPath(path)
    for line in _lines("self/mountinfo"):
        mount, __, system = line.partition(" - ")
        fields, said = mount.split(), system.split()  # said: the kind of file system, the source, its options
        if (kind := said[0]) not in inside or (kind == "cgroup" and "memory" not in said[-1].split(",")):
            continue
        root, folder, own = PurePosixPath(fields[3]), Path(fields[4]), inside[kind]
        within = own.relative_to(root) if own.is_relative_to(root) and ".." not in own.parts else PurePosixPath()
        yield from (folder / part for part in (within, *within.parents))


def _of_the_process() -> Iterator[int]:
    """Of what `ulimit -v` and `ulimit -d` set, which also count what is mapped from files."""
    if sys.platform == "win32":
        return
    import resource

    used = dict(_fields("self/status"))
    for kind, field in ((resource.RLIMIT_AS, "VmSize"), (resource.RLIMIT_DATA, "VmData")):
        limit = resource.getrlimit(kind)[0]
        if limit != resource.RLIM_INFINITY and field in used:
            yield limit - used[field]


def _fields(name: str) -> Iterator[tuple[str, int]]:
    """The numbers of a file of /proc that has lines such as "VmSize:  1024 kB", in bytes."""
    for line in _lines(name):
        key, __, value = line.partition(":")
        number, __, unit = value.strip().partition(" ")
        if number.isdigit() and unit == "kB":
            yield key, int(number) * 1024


def _lines(name: str) -> list[str]:
    try:
        return (PROC / name).read_text().splitlines()
    except (OSError, ValueError):
        return []
