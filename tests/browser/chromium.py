"""Where the browser is: the one place that knows, for the tests and for `make test`.

    python tests/browser/chromium.py --install    # makes sure that there is one, if that needs no question
    python tests/browser/chromium.py --report     # says so if there is none (the last line of `make test`)

VIZFORMER_CHROMIUM names a browser; otherwise the system's Chromium or Chrome, otherwise Playwright's own.  Of the
system's, one that was built without windows comes first: it opens a page with an eighth less of the processor's time.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Of two such lists Chromium obeys the last one, so the first names are those that Playwright switches off itself.  The
# others are pages behind the address bar, which nobody sees: without them a new tab costs a third of the time.
OFF = (
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsUpgrades",
    "HttpsFirstBalancedModeAutoEnable",
    "LensOverlay",
    "MediaRouter",
    "PaintHolding",
    "ThirdPartyStoragePartitioning",
    "AvoidCorsURLLoaderRestartOnRedirect",
    "OptimizationHints",
    "NetworkTimeServiceQuerying",
    "AimEnabled",
    "PreconnectToSearch",
    "WebUIOmniboxPopup",
    "WebUIOmniboxAimPopup",
)
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", f"--disable-features={','.join(OFF)}"]
WAY_OUT = (
    "no Chromium was found and none could be installed. Install Chromium or Chrome, "
    "or set VIZFORMER_CHROMIUM to its path, and run make test again"
)


def find() -> Path | None:
    """The browser to test with, or None."""
    if named := os.environ.get("VIZFORMER_CHROMIUM"):
        return Path(named) if os.access(named, os.X_OK) else None
    for name in NAMES:
        if found := shutil.which(name):
            return Path(found)
    return _playwrights_own()


def _playwrights_own() -> Path | None:
    try:
        from playwright.sync_api import sync_playwright

        with sync_playwright() as playwright:
            path = Path(playwright.chromium.executable_path)
    except Exception:  # not installed, or installed without its driver: there is no browser either way
        return None
    return path if path.is_file() else None


def install() -> None:
    """Tries the ways that ask nobody: the system's packages (as root or by sudo -n), then Playwright's."""
    packages = apt()
    ways = (
        [
            [*packages, "update", "-qq"],
            *([*packages, "install", "-y", "-qq", "--no-install-recommends", name] for name in NAMES[:2]),
        ]
        if packages
        else []
    )
    ways.append([sys.executable, "-m", "playwright", "install", "--only-shell", "chromium"])
    for way in ways:
        print("browser:", " ".join(way), flush=True)
        try:
            subprocess.run(way, check=False, stdin=subprocess.DEVNULL, stdout=sys.stderr, timeout=600)
        except (OSError, subprocess.TimeoutExpired) as error:
            print("browser:", error)
        if find():
            return


def apt() -> list[str] | None:
    """The command that installs a Debian package without asking, if this machine has one."""
    if not shutil.which("apt-get"):
        return None
    command = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]
    if os.geteuid() == 0:
        return command
    if (
        shutil.which("sudo")
        and subprocess.run(["sudo", "-n", "true"], check=False, capture_output=True).returncode == 0
    ):
        return ["sudo", "-n", *command]
    return None


if __name__ == "__main__":
    if "--install" in sys.argv and "VIZFORMER_CHROMIUM" not in os.environ and not find():
        install()
    if "--report" in sys.argv:
        if not find():
            print(f"browser tests: NOT RUN ({WAY_OUT}).")
    elif found := find():
        print(f"browser: {found}")
    else:
        print(f"browser: {WAY_OUT}.")
