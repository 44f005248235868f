"""Packs the app into the wheel, as vizformer/_app, so that `vizformer` starts from any folder.

A static force-include would also copy the app into every editable install, where it goes stale unseen.
"""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class AppHook(BuildHookInterface):  # type: ignore[type-arg]  # generic over the build configuration, not needed here
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "editable":
            for path in ("app.py", "pages", "assets", ".streamlit/config.toml"):
                build_data["force_include"][path] = f"vizformer/_app/{path}"
