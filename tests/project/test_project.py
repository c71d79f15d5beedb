"""Workflows and hooks are valid and refer to things that exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
YAML = [
    *sorted((ROOT / ".github").rglob("*.yml")),
    ROOT / ".pre-commit-config.yaml",
    ROOT / "CITATION.cff",
]
MAKE_TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", YAML, ids=lambda path: path.name)
def test_yaml_parses(path: Path) -> None:
    assert isinstance(read(path), dict)


def workflows() -> dict[str, Any]:
    return {path.stem: read(path) for path in sorted((ROOT / ".github" / "workflows").glob("*.yml"))}


def test_workflows_have_jobs_with_steps() -> None:
    assert set(workflows()) >= {"tests", "sanitizers", "wheels"}
    for name, workflow in workflows().items():
        assert True in workflow, f"{name} has no trigger"  # YAML 1.1 reads the key `on` as true
        for job in workflow["jobs"].values():
            assert job["steps"]
            assert all(("run" in step) != ("uses" in step) for step in job["steps"])


def test_workflows_run_what_exists() -> None:
    commands = [
        step.get("run", "") for flow in workflows().values() for job in flow["jobs"].values() for step in job["steps"]
    ]
    called = {target for command in commands for target in re.findall(r"\bmake ([\w-]+)", command)}
    assert called >= {"test", "docs", "sanitize"}
    assert called <= MAKE_TARGETS
    options = set(re.findall(r"-D(MULTIMARGIN_\w+)=", "\n".join(commands)))
    cmake = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    assert options
    assert all(option in cmake for option in options)


def test_tests_run_on_three_systems() -> None:
    jobs = workflows()["tests"]["jobs"]
    systems = [jobs["linux"]["runs-on"], *jobs["others"]["strategy"]["matrix"]["os"]]
    assert [system.split("-")[0] for system in systems] == ["ubuntu", "macos", "windows"]


def test_hooks_are_the_linters_of_make() -> None:
    hooks = {
        hook["id"]: hook["entry"] for repo in read(ROOT / ".pre-commit-config.yaml")["repos"] for hook in repo["hooks"]
    }
    assert all(entry.startswith(".venv/bin/") for entry in hooks.values())
    lint = re.search(r"^lint:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert lint is not None
    tools = set(re.findall(r"\$\(BIN\)/([\w-]+)", lint[1]))
    assert tools == {entry.removeprefix(".venv/bin/").split()[0] for entry in hooks.values()}


def test_citation_has_what_the_format_asks_for() -> None:
    assert read(ROOT / "CITATION.cff").keys() >= {"cff-version", "message", "title", "authors", "version", "license"}


def test_contributing_fits_one_screen() -> None:
    assert len((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines()) <= 40


def test_extras_of_the_makefile_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = set(re.findall(r"\.venv/(\w+)", (ROOT / "Makefile").read_text(encoding="utf-8"))) - {"bin", "made"}
    assert extras <= set(project["optional-dependencies"])


@pytest.mark.parametrize("path", sorted((ROOT / ".github" / "workflows").glob("*.yml")), ids=lambda path: path.name)
def test_actions_are_pinned_by_hash(path: Path) -> None:
    """A tag can be moved to other code; a commit's hash cannot. The comment says which release it is."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if "uses:" in line:
            assert re.search(r"uses: [\w./-]+@[0-9a-f]{40}  # v[\d.]+$", line), line


def test_security_policy_and_updates() -> None:
    assert "Report a vulnerability" in (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    updates = read(ROOT / ".github" / "dependabot.yml")["updates"]
    assert {each["package-ecosystem"] for each in updates} == {"github-actions", "pip"}
    languages = workflows()["codeql"]["jobs"]["analyze"]["strategy"]["matrix"]["language"]
    assert set(languages) == {"python", "c-cpp"}
