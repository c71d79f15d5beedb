"""Stores the counts of a run of checks, for the documentation's page of promises."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Any

from multimargin import __version__


def keep(directory: str | None, name: str, command: str, figures: dict[str, Any]) -> None:
    """Write one file of figures into a directory, if there is one."""
    if directory is None:
        return
    path = Path(directory)
    path.mkdir(parents=True, exist_ok=True)
    content = {"command": command, "version": __version__, "machine": platform.machine(), "figures": figures}
    (path / f"{name}.json").write_text(json.dumps(content, indent=2) + "\n")
