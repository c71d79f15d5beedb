"""Rules of the code base: sizes, layers, versions, mirrored structs, cited papers."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

import multimargin
from multimargin import _core
from multimargin.problems import machines, problem
from multimargin.solvers import options, report
from multimargin.solvers.linear import core as linear_core

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "multimargin"
CODE = {".py", ".pyi", ".cpp", ".hpp", ".h", ".cmake", ".sh"}
CODE_NAMES = {"CMakeLists.txt", "Makefile", "run"}
MAX_FILE = 400
MAX_FUNCTION = 50

# Functions that may be longer, and why.
LONG_FUNCTIONS: dict[str, str] = {}

# Folders of the package and its single modules, lowest first: each imports from those before it, and within itself.
ORDER = (
    "_core",
    "_typing",
    "base",
    "kernels",
    "problems",
    "solvers",
    "models",
    "fitting",
    "estimators",
    "verification",
    "plotting",
    "model_selection",
    "online",
    "data_files",
    "model_files",
    "diagnosis",
    "datasets",
    "public",
    "__init__",
    "cli",
    "__main__",
)
# Paths that the guide names. They hold no code of their own, and nothing of ours imports them.
PUBLIC_PATHS = {
    "asvm",
    "bounds",
    "frank_wolfe",
    "lsvm",
    "plots",
    "plots.geometry",
    "rank_display",
    "reference_linear",
    "selection",
    "selection.html_report",
    "solver",
    "squared_hinge",
    "statistics",
}
MAX_FILES = 30  # of code in one folder
TEST_FOLDERS = {"support", "contract", "project", "research"}  # beside those that are named as in the package


def _list_files() -> list[Path]:
    """Return the project's files: those tracked or not ignored by git, or all of them without git."""
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"]
    try:
        names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        folders = ("src", "cpp", "tests", "benchmarks", "experiments", ".ci")
        return [path for folder in folders for path in sorted((ROOT / folder).rglob("*")) if path.is_file()]
    return [ROOT / name for name in names if (ROOT / name).is_file()]


FILES = _list_files()
CODE_FILES = [path for path in FILES if path.suffix in CODE or path.name in CODE_NAMES]
PYTHON_FILES = [path for path in CODE_FILES if path.suffix == ".py"]
CPP_FILES = [path for path in CODE_FILES if path.suffix in (".cpp", ".hpp", ".h")]
CORE_FILES = [path for path in CPP_FILES if path.is_relative_to(ROOT / "cpp" / "core")]


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_there_is_something_to_check() -> None:
    assert len(PYTHON_FILES) > 10
    assert len(CORE_FILES) > 10


def test_file_sizes() -> None:
    lengths = {_name(path): len(path.read_text().splitlines()) for path in CODE_FILES}
    assert {name: n for name, n in lengths.items() if n > MAX_FILE} == {}


def _python_functions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, int]]:
    for child in ast.iter_child_nodes(node):
        name = prefix
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{prefix}{child.name}."
            if not isinstance(child, ast.ClassDef):
                yield name[:-1], (child.end_lineno or child.lineno) - child.lineno + 1
        yield from _python_functions(child, name)


def test_python_function_sizes() -> None:
    long = {}
    for path in PYTHON_FILES:
        for name, n_lines in _python_functions(ast.parse(path.read_text())):
            if n_lines > MAX_FUNCTION and name not in LONG_FUNCTIONS:
                long[f"{_name(path)}: {name}"] = n_lines
    assert long == {}


def _without_comments(text: str) -> str:
    """Blank out comments, strings and preprocessor lines, but keep every line break."""
    pattern = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'|^[ \t]*#(?:\\\n|[^\n])*'
    return re.sub(pattern, lambda found: "\n" * found[0].count("\n"), text, flags=re.DOTALL | re.MULTILINE)


def cpp_functions(text: str) -> list[tuple[str, int]]:
    """Return head and length of every function, found by matching braces outside classes and namespaces."""
    text = _without_comments(text)
    found: list[tuple[str, int]] = []
    open_braces: list[tuple[str, int, str]] = []  # kind, position of the head, head
    start = 0
    for position, sign in enumerate(text):
        inside = bool(open_braces) and open_braces[-1][0] != "container"
        if sign == "{":
            head = text[start:position]
            plain = re.sub(r"template\s*<[^;{}]*?>\s*(?=\w)", "", head)
            container = re.search(r"\b(namespace|class|struct|union|enum)\b", plain) and "(" not in plain
            kind = "inner" if inside else "container" if container else "function" if "(" in plain else "value"
            open_braces.append((kind, start + len(head) - len(head.lstrip()), " ".join(plain.split())))
        elif sign == "}":
            kind, begin, head = open_braces.pop()
            if kind == "function":
                found.append((head, text.count("\n", begin, position) + 1))
        if sign in "{};" and (not open_braces or open_braces[-1][0] == "container"):
            start = position + 1
    return found


def test_cpp_brace_matcher() -> None:
    text = (
        "namespace a {\nstruct B {\n  int c = 0;\n  B() : c{1} {\n  }\n};\n// void comment() {\n"
        "template <class T>\nint f(T x) {\n  if (x) {\n    g({1, 2});\n  }\n  return 0;\n}\n"
        "int h() {\n  return 1;\n}\n}\n"
    )
    functions = dict(cpp_functions(text))
    assert functions["int f(T x)"] == 7
    assert functions["int h()"] == 3
    assert not any("comment" in head for head in functions)


def test_cpp_function_sizes() -> None:
    functions = [(path, cpp_functions(path.read_text())) for path in CPP_FILES]
    assert sum(len(found) for _, found in functions) > 100
    long = {f"{_name(path)}: {head}": n for path, found in functions for head, n in found if n > MAX_FUNCTION}
    assert long == {}


def _place_of(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return "public" if ".".join(parts).removesuffix(".__init__") in PUBLIC_PATHS else parts[0]


def _imported_places(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{_name(path)} imports relatively"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            package, _, inner = name.partition(".")
            if package == "multimargin":
                public = any(inner == each or inner.startswith(f"{each}.") for each in PUBLIC_PATHS)
                first = inner.partition(".")[0]
                yield "public" if public else first if first in ORDER else "__init__"


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=_name)
def test_imports_point_one_way(path: Path) -> None:
    place = _place_of(path)
    assert place in ORDER, f"{_name(path)} has no place in ORDER"
    for imported in _imported_places(path):
        inside = imported == place and (SOURCE / place).is_dir()
        assert inside or ORDER.index(imported) < ORDER.index(place), f"{place} must not import {imported}"


@pytest.mark.parametrize("name", sorted(PUBLIC_PATHS))
def test_public_paths_only_pass_on(name: str) -> None:
    path = SOURCE / (name.replace(".", "/") + ".py")
    path = path if path.exists() else path.with_suffix("") / "__init__.py"
    docstring, *body = ast.parse(path.read_text()).body
    assert isinstance(docstring, ast.Expr)
    passed = [alias.name for node in body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert all(isinstance(node, ast.ImportFrom | ast.Assign) for node in body)
    assert sorted(passed) == sorted(getattr(importlib.import_module(f"multimargin.{name}"), "__all__", []))


def test_folders_are_small() -> None:
    folders = Counter(path.parent for path in PYTHON_FILES if not path.is_relative_to(ROOT / "experiments"))
    assert {_name(folder): n for folder, n in folders.items() if n > MAX_FILES} == {}


def test_tests_are_in_folders_as_the_source_is() -> None:
    files = [path.relative_to(ROOT / "tests") for path in PYTHON_FILES if path.is_relative_to(ROOT / "tests")]
    tests = [path for path in files if path.name.startswith("test_")]
    assert all(len(path.parts) == 2 for path in tests)
    assert {path.parts[0] for path in tests} <= {*ORDER, *TEST_FOLDERS}
    assert {name: n for name, n in Counter(path.name for path in tests).items() if n > 1} == {}


def test_slow_tests_exist() -> None:
    lines = (ROOT / "tests" / "slow.txt").read_text().splitlines()
    for file, _, function in (line.partition("::") for line in lines if not line.startswith("#")):
        (path,) = (ROOT / "tests").glob(f"*/{file}.py")
        assert not function or f"def {function}(" in path.read_text(), f"{file}::{function}"


def test_versions_are_equal() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    citation = re.search(r"^version: *\"?([^\s\"]+)", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    changelog = re.search(r"^## \[?(\d[^\s\]]*)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert citation is not None
    assert changelog is not None
    assert {_core.__version__, multimargin.__version__, citation[1], changelog[1]} == {project}


def _public(cls: type) -> set[str]:
    return {name for name in vars(cls) if not name.startswith("_")}


def _field_names(cls: Any) -> set[str]:
    return {entry.name for entry in fields(cls)}


def test_structs_are_mirrored() -> None:
    assert _field_names(options.SolverOptions) == _public(_core.Options)
    assert _field_names(report.Progress) == _public(_core.Progress)
    renamed = {"n_iter": "iterations", "traces": "trace"}
    left_out = {"n_support"}  # Python counts the support vectors of the model itself
    reported = {renamed.get(name, name) for name in _field_names(report.SolverReport)}
    assert reported == _public(_core.Report) - left_out
    assert _field_names(linear_core.LinearOptions) == _public(_core.LinearOptions)
    reported = {renamed.get(name, name) for name in _field_names(linear_core.LinearReport)}
    assert reported == _public(_core.LinearReport)


@pytest.mark.parametrize(
    ("mirror", "original"),
    [
        (machines.Bound, _core.Bound),
        (problem.Loss, _core.Loss),
        (options.SolverChoice, _core.SolverKind),
        (options.Precision, _core.Precision),
        (report.StopReason, _core.StopReason),
    ],
)
def test_choices_are_mirrored(mirror: type[Enum], original: type[Enum]) -> None:
    assert [choice.name.lower() for choice in mirror] == [choice.name for choice in original]


def test_option_defaults_are_mirrored() -> None:
    for ours, theirs in (
        (options.SolverOptions().to_core(), _core.Options()),
        (linear_core.LinearOptions().to_core(), _core.LinearOptions()),
    ):
        for name in _public(type(theirs)):
            assert getattr(ours, name) == getattr(theirs, name), name


def _stub_names(body: list[ast.stmt]) -> set[str]:
    names = set()
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names


def test_stub_matches_the_built_core() -> None:
    stub = [node for name in ("_core.pyi", "_core_shards.pyi") for node in ast.parse((SOURCE / name).read_text()).body]
    built = {name for name in dir(_core) if not name.startswith("_")} | {"__version__"}
    assert _stub_names(stub) - {"_Floats", "_Ints"} == built
    for node in stub:
        if isinstance(node, ast.ClassDef):
            cls = getattr(_core, node.name)
            members = {entry.name for entry in cls} if issubclass(cls, Enum) else _public(cls)
            assert _stub_names(node.body) - {"__init__"} == members, node.name


# Keys are capitals and two digits; two older ones have no year.
PAPER_KEY = re.compile(r"\b(?:[A-Z]{2,6}\d{2}|WWDOC|IGEL)\b")
NOT_PAPERS = {"AMD64", "FLOAT32", "FLOAT64", "INT32", "INT64", "UTF16"}


def test_cited_papers_exist() -> None:
    listed = set(PAPER_KEY.findall((ROOT / "docs" / "references.md").read_text()))
    documents = [path for path in FILES if path.suffix == ".md"]
    unknown: dict[str, str] = {}
    cited = set()
    for path in CODE_FILES + documents:
        keys = set(PAPER_KEY.findall(path.read_text())) - NOT_PAPERS
        cited |= keys
        unknown |= {key: _name(path) for key in keys - listed}
    assert unknown == {}
    assert "DGI11" in cited


def test_no_marks_of_unfinished_work() -> None:
    mark = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X"]) + r")\b")
    marked = [_name(path) for path in CODE_FILES if mark.search(path.read_text())]
    assert marked == []


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        (r"#include\s*[<\"](Python\.h|nanobind|pybind11)", "the core knows no Python"),
        (
            r"#include\s*<(iostream|cstdio|print)>|std::(cout|cerr|clog|print)|\b[fs]?printf\s*\(|\bputs\s*\(",
            "no output",
        ),
        (r"\b(new|delete)\s+\w|\bmalloc\s*\(|\bfree\s*\(", "memory is owned by containers"),
        (r"\bstd::(shuffle|random_device|mt19937)|\brand\s*\(", "nothing is random"),
    ],
)
def test_core_keeps_out(pattern: str, why: str) -> None:
    found = [
        f"{_name(path)}: {match[0]}"
        for path in CORE_FILES
        for match in re.finditer(pattern, re.sub(r"//[^\n]*", "", path.read_text()))
    ]
    assert found == [], why


# Folders of cpp/core, as files may include them: from their own and from rows further up. Those of the last row never
# include each other.
CORE_FOLDERS = (
    ("base", "simd"),
    ("data",),
    ("linalg",),
    ("kernel",),
    ("subproblem",),
    ("problem",),
    ("solvers/multiclass", "solvers/binary", "solvers/linear", "online", "predict"),
)


def test_includes_point_one_way() -> None:
    core = ROOT / "cpp" / "core"
    rank = {folder: level for level, folders in enumerate(CORE_FOLDERS) for folder in folders}
    wrong = []
    for path in CORE_FILES:
        folder = path.parent.relative_to(core).as_posix()
        assert folder in rank, f"{_name(path)} has no place in CORE_FOLDERS"
        for name in re.findall(r'^#include "([^"]+)"', path.read_text(), re.MULTILINE):
            included = name.rpartition("/")[0] or folder  # without a folder: beside the file, as in simd
            if included != folder and not rank.get(included, len(rank)) < rank[folder]:
                wrong.append(f"{_name(path)} includes {name}")
    assert wrong == []
