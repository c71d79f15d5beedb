"""The command as a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import Any

RUN = "from multimargin.cli import main; main(prog_name='multimargin')"
MOST_SECONDS = 120


def start(*arguments: object, **options: Any) -> subprocess.Popen[str]:
    """Start the command with the default handler of Ctrl-C, as in a terminal."""
    command = [sys.executable, "-c", RUN, *map(str, arguments)]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | options
    before = options.pop("preexec_fn", None)

    def prepare() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if before is not None:
            before()

    return subprocess.Popen(command, preexec_fn=prepare, **options)  # noqa: PLW1509 - the tests start no threads


def end(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Wait for the process, which must not hang."""
    try:
        out, err = process.communicate(timeout=MOST_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return process.returncode, out, err
