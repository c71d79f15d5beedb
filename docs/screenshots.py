"""Takes pictures of the built site, wide and narrow, to see what readers see.

    make docs-shots

Needs Chromium (Debian and Ubuntu: ``apt-get install chromium``). Reads ``build/docs``; writes ``build/shots``.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SITE, SHOTS = ROOT / "build" / "docs", ROOT / "build" / "shots"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
PAGES = {
    "landing": "index.html",
    "machine": "machines/ww.html",
    "api": "reference/generated/multimargin.SVC.html",
    "gallery": "gallery/index.html",
}
WIDTHS = {1280: 2000, 390: 2200}  # pixels: width and height of the window


def find_browser() -> str:
    """Return the command of a Chromium browser."""
    found = [path for name in BROWSERS if (path := shutil.which(name))]
    if not found:
        sys.exit("docs/screenshots.py needs Chromium: install the package chromium.")
    return found[0]


def take(browser: str, page: str, target: Path, width: int) -> None:
    """Write one picture; narrow pages are shown in a frame, as windows have a least width."""
    address = (SITE / page).as_uri()
    if width < 500:
        frame = SHOTS / "frame.html"
        frame.write_text(
            f'<body style="margin:0"><iframe src="{address}" width="{width}" '
            f'height="{WIDTHS[width]}" style="border:0"></iframe></body>',
            encoding="utf-8",
        )
        address = frame.as_uri()
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    options += ["--allow-file-access-from-files", "--virtual-time-budget=4000"]
    options += [f"--window-size={width},{WIDTHS[width]}", f"--screenshot={target}"]
    subprocess.run(
        [browser, *options, address], check=True, capture_output=True, timeout=120
    )


def main() -> None:
    browser = find_browser()
    missing = [page for page in PAGES.values() if not (SITE / page).exists()]
    if missing:
        sys.exit(
            f"docs/screenshots.py found no {missing[0]} in build/docs: run make docs."
        )
    SHOTS.mkdir(parents=True, exist_ok=True)
    for name, page in PAGES.items():
        for width in WIDTHS:
            take(browser, page, SHOTS / f"{name}-{width}.png", width)
    print(SHOTS.relative_to(ROOT))


if __name__ == "__main__":
    main()
