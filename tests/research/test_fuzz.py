"""Mutated model files are refused or read correctly; the long run is ``python -m benchmarks.fuzz``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks import fuzz, fuzz_models
from multimargin.model_files import container


def test_no_mutated_model_file_does_harm() -> None:
    tally = fuzz_models.fuzz_models(300, seed=7)
    assert tally.faults == []
    for kind in ("bytes", "contents", "text"):
        assert tally.outcomes[f"{kind}: refused"] > 50
    assert tally.outcomes["text: read"] > 0
    assert tally.outcomes["contents: read"] > 0
    assert tally.slowest < fuzz_models.SECONDS


def test_a_reader_that_takes_everything_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def trusting(path: Path) -> Any:
        (source, *_) = sorted(path.parent.glob("ours*"))
        return container.read_container(source)

    monkeypatch.setattr("multimargin.model_files.saving.read_container", trusting)
    tally = fuzz_models.fuzz_models(30, seed=0)
    assert any("a damaged file was read" in fault for fault in tally.faults)


def test_the_command_reports() -> None:
    run = CliRunner().invoke(fuzz.main, ["models", "--count", "9"])
    assert run.exit_code == 0
    assert "0 faults in 9 files" in run.output
