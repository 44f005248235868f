"""Where nginx is, as `chromium.py` says where the browser is: for the test of several servers and for `make test`.

python tests/browser/nginx.py --install    # makes sure that there is one, if that needs no question
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

if __name__ == "__main__":  # as a script; the tests find it as it is
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.browser import chromium

BESIDE_PATH = ("/usr/sbin", "/usr/local/sbin")  # where systems put it, often not on PATH
WAY_OUT = "no nginx was found (apt install nginx)"


def find() -> str | None:
    """The program, or None."""
    return shutil.which("nginx", path=os.pathsep.join([os.environ.get("PATH", os.defpath), *BESIDE_PATH]))


def install() -> None:
    """Tries the system's packages, as root or by sudo -n."""
    if apt := chromium.apt():
        for way in ([*apt, "update", "-qq"], [*apt, "install", "-y", "-qq", "--no-install-recommends", "nginx"]):
            print("nginx:", " ".join(way), flush=True)
            try:
                subprocess.run(way, check=False, stdin=subprocess.DEVNULL, stdout=sys.stderr, timeout=600)
            except (OSError, subprocess.TimeoutExpired) as error:
                print("nginx:", error)


if __name__ == "__main__":
    if "--install" in sys.argv and not find():
        install()
    print(f"nginx: {find() or WAY_OUT + '; the test of several servers is skipped'}")
