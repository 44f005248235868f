"""Programs of the system that some tests need beside the browser (`browser/chromium.py`): nginx and Redis.

python tests/programs.py --install    # makes sure that they are there, if that needs no question
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

if __name__ == "__main__":  # as a script; the tests find it as it is
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.browser import chromium

BESIDE_PATH = ("/usr/sbin", "/usr/local/sbin")  # where systems put servers, often not on PATH
NGINX, REDIS = "nginx", "redis-server"  # the programs, and Debian's packages of them


def find(program: str) -> str | None:
    """The program, or None."""
    return shutil.which(program, path=os.pathsep.join([os.environ.get("PATH", os.defpath), *BESIDE_PATH]))


def way_out(program: str) -> str:
    """What to say where it is missing."""
    return f"no {program} was found (apt install {program})"


def install(programs: list[str]) -> None:
    """Tries the system's packages, as root or by sudo -n."""
    if apt := chromium.apt():
        for way in ([*apt, "update", "-qq"], [*apt, "install", "-y", "-qq", "--no-install-recommends", *programs]):
            print("programs:", " ".join(way), flush=True)
            try:
                subprocess.run(way, check=False, stdin=subprocess.DEVNULL, stdout=sys.stderr, timeout=600)
            except (OSError, subprocess.TimeoutExpired) as error:
                print("programs:", error)


if __name__ == "__main__":
    missing = [program for program in (NGINX, REDIS) if not find(program)]
    if "--install" in sys.argv and missing:
        install(missing)
    for program in (NGINX, REDIS):
        print(f"{program}: {find(program) or way_out(program) + '; the tests that need it are skipped'}")
