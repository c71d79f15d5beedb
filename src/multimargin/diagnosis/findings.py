"""The findings of a diagnosis, and how they are shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

# An error: no fit is possible. A warning: it costs accuracy or time. A note: good to know.
SEVERITIES = ("error", "warning", "note")
MARKS = {"error": "✗", "warning": "!", "note": "·"}


@dataclass(frozen=True)
class Finding:
    """One finding.

    Parameters
    ----------
    severity : {"error", "warning", "note"}
    topic : str
        What it is about: a word that stays the same over versions.
    text : str
        What was found, with names and numbers.
    line : str
        The line of code that fixes it; empty where nothing is to be done.
    """

    severity: str
    topic: str
    text: str
    line: str = ""


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What ``diagnose`` found, the most serious first.

    Attributes
    ----------
    findings : tuple of Finding
    n_samples, n_features, n_classes : int
    seconds, megabytes : float
        The forecast for a fit of the estimator; nan where there is none.
    """

    findings: tuple[Finding, ...]
    n_samples: int
    n_features: int
    n_classes: int
    seconds: float = float("nan")
    megabytes: float = float("nan")

    @property
    def healthy(self) -> bool:
        """Whether there is nothing but notes."""
        return all(finding.severity == "note" for finding in self.findings)

    def of(self, topic: str) -> tuple[Finding, ...]:
        """Return the findings about a topic."""
        return tuple(finding for finding in self.findings if finding.topic == topic)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return asdict(self) | {"findings": [asdict(finding) for finding in self.findings], "healthy": self.healthy}

    def _head(self) -> str:
        size = f"{self.n_samples:,} rows, {self.n_features:,} columns, {self.n_classes:,} classes"
        serious = sum(finding.severity != "note" for finding in self.findings)
        return f"{size}: " + ("nothing found" if not serious else f"{serious} to check")

    def __str__(self) -> str:
        lines = [self._head()]
        for finding in self.findings:
            lines.append(f"  {MARKS[finding.severity]} {finding.text}.")
            if finding.line:
                lines.append(f"      {finding.line}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{finding.severity}</td><td style='text-align:left'>{escape(finding.text)}."
            + (f"<br><code>{escape(finding.line)}</code>" if finding.line else "")
            + "</td></tr>"
            for finding in self.findings
        )
        return f"<p>{escape(self._head())}</p><table>{rows}</table>"


def sorted_findings(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return findings with the most serious first, else in their order."""
    return tuple(sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity)))


def some_of(names: Sequence[Any], most: int = 5) -> str:
    """Return a few of many names."""
    shown = ", ".join(str(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"
