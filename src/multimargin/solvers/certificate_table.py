"""The certificates of very many problems as columns: one row for each, a Certificate made when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from multimargin.solvers.certificate import LARGEST_RELATIVE_GAP, Certificate
from multimargin.solvers.report import StopReason

NUMBERS = ("primal", "dual", "gap", "relative_gap", "kkt_violation", "tol", "seconds")
COUNTS = ("n_iter", "kernel_rows", "cache_hits", "blocks", "exact_blocks", "feature_sweeps")
FLAGS = ("verified", "float64_rows")
TEXTS = ("stop_reason", "solver", "solver_reason", "remark")


class CertificateTable(Sequence[Certificate]):
    """A sequence of certificates that have no parts; ``columns`` by the names of their fields, texts as codes."""

    def __init__(self, columns: dict[str, NDArray[Any]], texts: dict[str, tuple[str, ...]]) -> None:
        self.columns = columns
        self.texts = texts

    @classmethod
    def of(cls, parts: Sequence[Certificate]) -> CertificateTable:
        """Return certificates of any kind as columns."""
        if isinstance(parts, CertificateTable):
            return parts
        columns = {name: np.array([getattr(each, name) for each in parts]) for name in (*NUMBERS, *COUNTS, *FLAGS)}
        texts: dict[str, tuple[str, ...]] = {}
        for name in TEXTS:
            codes: dict[str, int] = {}
            columns[name] = np.array([codes.setdefault(getattr(each, name), len(codes)) for each in parts])
            texts[name] = tuple(codes)
        return cls(columns, texts)

    def put(self, index: int, part: Certificate) -> None:
        """Let a row be that of a certificate."""
        for name in (*NUMBERS, *COUNTS, *FLAGS):
            self.columns[name][index] = getattr(part, name)
        for name in TEXTS:
            text = getattr(part, name)
            if text not in self.texts[name]:
                self.texts[name] = (*self.texts[name], text)
            self.columns[name][index] = self.texts[name].index(text)

    def __len__(self) -> int:
        return len(self.columns["verified"])

    @overload
    def __getitem__(self, index: int) -> Certificate: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Certificate, ...]: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(len(self))[index])
        i = range(len(self))[index]
        values = {name: self.columns[name][i].item() for name in (*NUMBERS, *COUNTS, *FLAGS)}
        return Certificate(**values, **{name: self.texts[name][self.columns[name][i]] for name in TEXTS})

    def __iter__(self) -> Iterator[Certificate]:
        return (self[i] for i in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(Certificate.__eq__, self, other))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"CertificateTable({len(self)} certificates)"

    @property
    def optimal(self) -> NDArray[np.bool_]:
        """``Certificate.optimal`` of all."""
        found = self.columns
        good = found["verified"] & (found["kkt_violation"] <= found["tol"]) & np.isfinite(found["dual"])
        return np.asarray(good & ~(found["relative_gap"] > LARGEST_RELATIVE_GAP))

    def are(self, stop_reason: str) -> NDArray[np.bool_]:
        """Return which of them ended so."""
        known = self.texts["stop_reason"]
        code = known.index(stop_reason) if stop_reason in known else -1
        return np.asarray(self.columns["stop_reason"] == code)

    @property
    def reasons(self) -> set[str]:
        """The stop reasons that occur."""
        return {self.texts["stop_reason"][code] for code in np.unique(self.columns["stop_reason"]).tolist()}


def worst_of(parts: Sequence[Certificate]) -> Certificate:
    """Return the certificate of a machine made of several problems: as good as the worst of them."""
    table = CertificateTable.of(parts)
    found = table.columns
    early, violation = ~table.are(StopReason.CONVERGED.value), found["kkt_violation"]
    # The first of those that are worst by these one after the other; one that is not a number is never larger.
    worst = np.arange(len(table))
    for badness in (early, ~found["verified"], ~table.optimal, np.where(np.isnan(violation), -np.inf, violation)):
        worst = worst[badness[worst] == badness[worst].max()]
    sums = {name: found[name].sum().item() for name in ("n_iter", "seconds", *COUNTS[1:])}
    return replace(table[int(worst[0])], **sums, float64_rows=bool(found["float64_rows"].any()), parts=table)


def stop_reasons(certificate: Certificate) -> set[str]:
    """Return those of a certificate and of all its parts."""
    if isinstance(certificate.parts, CertificateTable):
        return {certificate.stop_reason} | certificate.parts.reasons
    return {part.stop_reason for part in (certificate, *certificate.parts)}
