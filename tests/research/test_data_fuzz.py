"""Damaged data files: refused, or read as a slow and simple reader reads them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks import fuzz_data


def test_damaged_files_are_refused_or_read_as_they_are(tmp_path: Path) -> None:
    tally = fuzz_data.run(2000, 1, tmp_path)
    for name, (read, refused) in tally.items():
        assert read > 0, name  # a change of a digit leaves a valid file
        assert refused > 100, name


def test_valid_files_are_read(tmp_path: Path) -> None:
    for name, (content, slow) in fuzz_data.valid_files(np.random.default_rng(0)).items():
        (tmp_path / name).write_bytes(content)
        assert fuzz_data.check_file(tmp_path / name, slow)


def test_a_wrong_success_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content, slow = fuzz_data.valid_files(np.random.default_rng(0))["data.svm"]
    path = tmp_path / "data.svm"
    path.write_bytes(content)
    monkeypatch.setattr(fuzz_data, "read_data", lambda path: slow(content.replace(b"1:", b"2:")))
    with pytest.raises((fuzz_data.WrongSuccessError, ValueError)):
        fuzz_data.check_file(path, slow)


def test_command(monkeypatch: pytest.MonkeyPatch) -> None:
    result = CliRunner().invoke(fuzz_data.data, ["--count", "50"])
    assert result.exit_code == 0
    assert "data.svm.gz" in result.stdout
