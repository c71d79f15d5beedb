"""A search as one html file that needs nothing else: pictures, confusions, certificate, how to use the model."""

from __future__ import annotations

import io
import math
import platform
import sys
from collections.abc import Iterable, Sequence
from html import escape
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from multimargin._core import __version__
from multimargin.base.files import check_path, write_text
from multimargin.base.matrices import is_sparse, same_values
from multimargin.estimators.svc import SVC
from multimargin.model_selection.confusions import Confusion, confuse
from multimargin.model_selection.grid import SelectionGrid, read_grid
from multimargin.model_selection.selection_display import SelectionDisplay
from multimargin.solvers.certificate import Certificate
from multimargin.verification.bounds import count_support, generalization_bound

PACKAGES = ("scikit-learn", "numpy", "scipy", "joblib", "matplotlib")
MAX_CLASSES = 30  # beyond this a table of confusions is no longer read
N_CELLS = 10
N_CONFUSIONS = 5
MAX_TEXT = 400  # of a parameter: folds as arrays would fill pages

# Nothing is loaded and no script runs, even if a name should get past the escaping.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
STYLE = """
body { font-family: system-ui, sans-serif; line-height: 1.5; color: #222; background: #fff; max-width: 60rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; border-bottom: 1px solid #ccc; }
table { border-collapse: collapse; margin: 0.5rem 0; font-variant-numeric: tabular-nums; }
th, td { border: 1px solid #ddd; padding: 0.2rem 0.6rem; text-align: right; overflow-wrap: anywhere; }
th { background: #f4f4f4; } th:first-child, td:first-child { text-align: left; }
table.names td { text-align: left; }
pre { background: #f4f4f4; padding: 0.8rem; overflow-x: auto; white-space: pre-wrap; overflow-wrap: anywhere; }
figure { margin: 1rem 0; } figure svg { max-width: 100%; height: auto; }
.wide { overflow-x: auto; } .note { color: #555; } .warning { border-left: 4px solid #b45f06; padding-left: 0.8rem; }
"""


def write_report(
    search: Any, path: Any, X: Any = None, y: Any = None, *, sample_weight: Any = None, groups: Any = None
) -> None:
    """Write what a search found into one html file, which loads nothing from elsewhere.

    Parameters
    ----------
    search : SVCCV
        Fitted; scikit-learn's GridSearchCV over C and gamma will do.
    path : str or path-like
        The file; it is complete or absent.
    X, y : array-like, default=None
        For the confusion matrix: the chosen model is trained on the training part of each fold of these rows and
        predicts the others, so that it never predicts a row that it was trained on.
    sample_weight, groups : array-like of shape (n_samples,), default=None
        For these fits, and for the splitter.
    """
    checked = check_path(path)
    if (X is None) != (y is None):
        raise ValueError(f"{'X' if X is None else 'y'}=None, but the other is given; give both X and y, or neither.")
    grid = read_grid(search)
    pictures = [_picture(grid, "heatmap"), _picture(grid, "curves")]
    model = getattr(search, "best_estimator_", None)
    confusion = None
    if X is not None and model is not None:
        confusion = confuse(search, X, y, sample_weight=sample_weight, groups=groups)
    sections = [
        _section("The choice", _choice(grid) + _pairs(search, grid)),
        _section("Scores over C and gamma", _figure(pictures[0], _map_caption(grid))),
        _section("Scores against C", _figure(pictures[1], "Mean over the folds; bands are one standard deviation.")),
        _section("The best cells", _best_cells(grid)),
        _section("Confusions", _confusions(confusion, has_model=model is not None)),
        _section("Is the model optimal?", _certificate(search, model)),
        _section("Generalisation bound", _theory(model, X, y)),
        _section("How to use it", _usage(model)),
        _section("Data", _table(("", ""), _data_facts(search, model, X, y), css="names")),
        _section("Parameters of the search", _table(("parameter", "value"), _parameters(search), css="names")),
        _section("Versions", _table(("package", "version"), _versions(), css="names")),
    ]
    write_text(checked, _page(f"{type(search).__name__}: choice of C and gamma", sections))


def _page(title: str, sections: Iterable[str]) -> str:
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{escape(title)}</h1>\n"
        + "\n".join(sections)
        + "\n</body>\n</html>\n"
    )


def _section(title: str, body: str) -> str:
    return f"<section>\n<h2>{escape(title)}</h2>\n{body}\n</section>"


def _paragraph(text: str, css: str = "") -> str:
    """A paragraph of plain text."""
    return f'<p class="{css}">{escape(text)}</p>' if css else f"<p>{escape(text)}</p>"


def _table(header: Sequence[str], rows: Iterable[Sequence[Any]], *, css: str = "") -> str:
    """A table of plain texts; all of them are escaped here."""
    head = "".join(f"<th>{escape(str(name))}</th>" for name in header)
    body = "\n".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return (
        f'<div class="wide"><table class="{css}"><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>'
    )


def _figure(svg: str, caption: str) -> str:
    return f'<figure>{svg}<figcaption class="note">{escape(caption)}</figcaption></figure>'


def _picture(grid: SelectionGrid, kind: str) -> str:
    """Return a picture as SVG with text as text; drawn with matplotlib's default style, independent of the user's."""
    try:
        import matplotlib.style
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "write_report needs matplotlib, which is not installed; run pip install 'multimargin[plots]'."
        ) from error
    # The salt keeps the names of clip paths apart in one file, and the same from run to run.
    settings = {"svg.fonttype": "none", "svg.hashsalt": f"multimargin {kind}"}
    target = io.StringIO()
    with matplotlib.style.context(["default", settings]):
        figure = Figure(figsize=(7.5, 5.0), layout="constrained")
        SelectionDisplay(grid).plot(figure.subplots(), kind=kind)
        figure.savefig(target, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = target.getvalue()
    return text[text.index("<svg") :]  # without the head of a file of its own


def _choice(grid: SelectionGrid) -> str:
    row, column = grid.best
    gamma = "" if math.isnan(grid.chosen_gamma) else f" and gamma={grid.chosen_gamma:.6g}"
    n_folds = int(np.isfinite(grid.scores[row, column]).sum())
    text = _paragraph(
        f"C={grid.chosen_cost:.6g}{gamma}: mean {grid.metric} {grid.mean[row, column]:.4f} over {n_folds} "
        f"fold{'' if n_folds == 1 else 's'}, standard deviation {grid.spread[row, column]:.4f}. "
        f"It is the best of {int(np.isfinite(grid.mean).sum())} cells and so somewhat too good: "
        "rows that were not used in the selection give better estimates."
    )
    for side in grid.edges():
        text += _paragraph(f"{side}: a wider grid may hold a better cell.", "warning")
    return text


def _pairs(search: Any, grid: SelectionGrid) -> str:
    """The parameters of each pair of classes, for searches by pairs."""
    chosen = getattr(search, "pair_selection_", None)
    if chosen is None:
        return ""
    rows = [
        (each["first"], each["second"], f"{each['C']:.6g}", f"{each['gamma']:.6g}", f"{each['score']:.4f}")
        for each in chosen.rows()
    ]
    note = "The scores above are means over pairs of classes. In the model each pair has its own C and gamma:"
    return _paragraph(note) + _table(("class", "against", "C", "gamma", f"mean {grid.metric}"), rows)


def _map_caption(grid: SelectionGrid) -> str:
    text = "Mean over the folds; the star is the chosen cell, grey cells have no score."
    if grid.stopped.any():
        text += f" {int(grid.stopped.sum())} cells with a cross were stopped early, so that they could not be chosen."
    return text


def _best_cells(grid: SelectionGrid) -> str:
    mean, spread = np.where(grid.stopped, np.nan, grid.mean), grid.spread
    order = np.argsort(-mean, axis=None, kind="stable")[:N_CELLS]  # nan comes last
    cells = [np.unravel_index(int(at), mean.shape) for at in order]
    rows = [
        (f"{grid.Cs[j]:.6g}", f"{grid.gammas[i]:.6g}", f"{mean[i, j]:.4f}", f"{spread[i, j]:.4f}")
        for i, j in cells
        if not math.isnan(mean[i, j])
    ]
    return _table(("C", "gamma", f"mean {grid.metric}", "standard deviation"), rows)


def _confusions(confusion: Confusion | None, *, has_model: bool) -> str:
    if not has_model:
        return _paragraph("Not counted: the search has no model of its own (refit=False).", "note")
    if confusion is None:
        return _paragraph("Not counted: the report was written without data. Give it X and y.", "note")
    names = [str(label) for label in confusion.labels]
    n = int(confusion.counts.sum())
    text = _paragraph(
        f"{n} predictions, {100 * confusion.accuracy:.2f} % of them right. No model predicted a row that it was "
        f"trained on: the chosen C and gamma were trained again for each of {confusion.folds}, and predicted the rows "
        "left out. "
        "C and gamma themselves were chosen with these rows in view if they are those of the search."
    )
    if len(names) <= MAX_CLASSES:
        text += _confusion_table(confusion, names)
    else:
        text += _paragraph(f"With {len(names)} classes only the most frequent confusions are listed.", "note")
    worst = [(names[i], names[j], count) for i, j, count in confusion.worst(N_CONFUSIONS)]
    return text + (_table(("true class", "taken for", "times"), worst, css="names") if worst else "")


def _confusion_table(confusion: Confusion, names: Sequence[str]) -> str:
    """Rows: true classes; a cell is the darker the larger its share of the row, green where right, else red."""
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    shares = confusion.counts / np.maximum(confusion.counts.sum(axis=1, keepdims=True), 1)
    lines = []
    for i, name in enumerate(names):
        cells = ""
        for j, count in enumerate(confusion.counts[i]):
            colour = "46, 125, 50" if i == j else "179, 38, 30"
            cells += f'<td style="background: rgba({colour}, {0.6 * shares[i, j]:.3f})">{int(count)}</td>'
        lines.append(f"<tr><th>{escape(name)}</th>{cells}</tr>")
    body = "\n".join(lines)
    corner = "true \\ predicted"
    return f'<div class="wide"><table><tr><th>{corner}</th>{head}</tr>\n{body}\n</table></div>'


def _certificate(search: Any, model: Any) -> str:
    proof = getattr(search, "certificate_", None) or getattr(model, "certificate_", None)
    if not isinstance(proof, Certificate):
        return _paragraph("Not known: the model has no certificate.", "note")
    return "".join(_paragraph(sentence) for sentence in in_words(proof))


def in_words(proof: Certificate) -> list[str]:
    """Return the statements of a certificate as sentences."""
    met = proof.kkt_violation <= proof.tol
    ended = "The fit converged" if proof.stop_reason == "converged" else f"The fit ended early ({proof.stop_reason})"
    sentences = [
        f"{ended}: the optimality conditions are violated by at most {proof.kkt_violation:.2g}, "
        f"{'within' if met else 'which is more than'} tol={proof.tol:g}."
    ]
    if proof.parts:
        sentences.append(
            f"The machine consists of {len(proof.parts)} separate problems; these numbers are those of the worst."
        )
    if math.isfinite(proof.relative_gap):
        sentences.append(
            f"The least possible objective lies between {proof.dual:.6g} (dual) and {proof.primal:.6g} (this model): "
            "no model of this machine, kernel, C and data can be better by more than "
            f"{100 * max(proof.relative_gap, 0.0):.2g} %."
        )
    sentences.append(
        "All of this was recomputed in float64 after training."
        if proof.verified
        else "These are the solver's own numbers, not checked in float64."
    )
    return [*sentences, f"Remark: {proof.remark}."] if proof.remark else sentences


def _theory(model: Any, X: Any, y: Any) -> str:
    """Support vectors and, if the report's rows are those that the model was trained on, the generalisation bound."""
    if not isinstance(model, SVC):
        return _paragraph("Nothing: the model is not a single multimargin.SVC.", "note")
    text = _paragraph(str(count_support(model)))
    if X is None or not model._spec.kernel.positive_semidefinite or not _trained_on(model, X, y):
        note = "No bound: it needs a positive semi-definite kernel, and the rows that the model was trained on."
        return text + _paragraph(note, "note")
    found = generalization_bound(model, X, y)
    terms = [
        ("sum of margin violations", f"{found.violations:.4g}"),
        ("largest fat-shattering dimension", f"{max(term.fat for term in found.pairs):.3g}"),
        ("training error", f"{100 * found.training_error:.3g} %"),
        ("without constants and logarithms, DGI11 (7)", f"{found.order:.3g}"),
    ]
    return text + _paragraph(str(found)) + _table(("term", ""), terms, css="names")


def _trained_on(model: SVC, X: Any, y: Any) -> bool:
    """Whether the rows are the model's: they hold its support vectors where it found them, and all its classes."""
    rows = X if is_sparse(X) else np.asarray(X)
    if rows.shape != model.shape_fit_ or not np.array_equal(np.unique(np.asarray(y)), model.classes_):
        return False
    return model.kernel == "precomputed" or same_values(rows[model.support_], model.support_vectors_)


def _usage(model: Any) -> str:
    if model is None:
        return _paragraph("The search has no model of its own (refit=False).", "note")
    parts = [model, *model.get_params().values()]
    imports = {
        f"from {_home(type(part))} import {type(part).__name__}" for part in parts if hasattr(part, "get_params")
    }
    code = (
        "# in the session of the search\nsearch.predict(X_new)\n\n"
        "# the same model again\n" + "\n".join(sorted(imports)) + f"\n\nmodel = {_constructor(model)}\n"
        "model.fit(X, y)\nmodel.predict(X_new)"
    )
    return f"<pre><code>{escape(code)}</code></pre>"


def _home(cls: type) -> str:
    """Return the public module that has the class."""
    package, *rest = cls.__module__.split(".")
    if getattr(sys.modules.get(package), cls.__name__, None) is cls:
        return package
    hidden = [number for number, name in enumerate(rest) if name.startswith("_")]
    return ".".join([package, *rest[: hidden[0] if hidden else None]])


def _constructor(model: Any) -> str:
    """Return the call that makes the estimator: what differs from the defaults, by name."""
    try:
        defaults = type(model)().get_params(deep=False)
    except TypeError:  # a pipeline has none
        return repr(model)
    own = model.get_params(deep=False)
    changed = {name: value for name, value in own.items() if repr(value) != repr(defaults[name])}
    plain = {
        name: value.tolist() if isinstance(value, np.generic | np.ndarray) else value for name, value in changed.items()
    }
    return f"{type(model).__name__}({', '.join(f'{name}={value!r}' for name, value in plain.items())})"


def _data_facts(search: Any, model: Any, X: Any, y: Any) -> list[tuple[str, str]]:
    facts = []
    shape = getattr(model, "shape_fit_", None)
    if shape is not None:
        facts.append(("training data of the model", f"{shape[0]} rows, {shape[1]} columns"))
    elif hasattr(search, "n_features_in_"):
        facts.append(("columns", str(search.n_features_in_)))
    if X is not None:
        facts.append(("data of this report", " x ".join(map(str, getattr(X, "shape", np.shape(X))))))
        for label, count in zip(*np.unique(np.asarray(y), return_counts=True), strict=True):
            facts.append((f"class {label}", f"{count} rows"))
    elif hasattr(search, "classes_"):
        facts.append(("classes", ", ".join(map(str, search.classes_))))
    if hasattr(model, "support_"):
        facts.append(("support vectors", str(len(model.support_))))
    return facts


def _parameters(search: Any) -> list[tuple[str, str]]:
    values = {name: repr(value) for name, value in sorted(search.get_params(deep=False).items())}
    return [(name, text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]} ...") for name, text in values.items()]


def _versions() -> list[tuple[str, str]]:
    found = [("multimargin", __version__), ("Python", platform.python_version())]
    return found + [(package, _version_of(package)) for package in PACKAGES]


def _version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
