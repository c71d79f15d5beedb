"""The code that users read passes a type checker: that of README, of the first page and of the examples."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", ROOT / "docs" / "getting_started.md")


def test_mypy_accepts_what_users_read(tmp_path: Path) -> None:
    files = sorted((ROOT / "examples").glob("*.py"))
    for page in PAGES:
        blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
        assert blocks
        files.append(tmp_path / f"{page.stem}_page.py")
        files[-1].write_text("\n".join(blocks), encoding="utf-8")
    wrong = tmp_path / "wrong.py"
    wrong.write_text("from multimargin import SVC\n\nSVC(C=1).fit([[0.0], [1.0]], [0, 1]).certificate_.gap.nothing\n")
    command = [sys.executable, "-m", "mypy", "--config-file=", "--ignore-missing-imports", f"--cache-dir={tmp_path}"]
    command += map(str, [*files, wrong])
    found = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path)
    lines = [line for line in found.stdout.splitlines() if ": error:" in line]
    assert [Path(line.split(":")[0]).name for line in lines] == ["wrong.py"], found.stdout + found.stderr
    assert 'has no attribute "nothing"' in lines[0]  # attributes of a fit have types
