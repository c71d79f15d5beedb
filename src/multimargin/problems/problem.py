"""The dual quadratic program as a value: examples, kernel store, machine, loss and bias rule."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import numpy as np

from multimargin import _core
from multimargin._typing import FloatArray, IntArray
from multimargin.base.resources import check_room
from multimargin.kernels.spec import KernelSpec
from multimargin.kernels.store import KernelStore
from multimargin.problems.coupling import Structure, component_mask, derive_structure
from multimargin.problems.machines import MACHINES, Bound, Machine
from multimargin.problems.training_set import TrainingSet


class Loss(Enum):
    """Cost of a margin that is short by xi: C xi, or C xi^2."""

    HINGE = "hinge"
    SQUARED_HINGE = "squared_hinge"


class Bias(Enum):
    """How the bias b_c of f_c is trained.

    None (DGI11 section 3), one that is regularised like the weights: the kernel k + 1 (HL02 (10)), or a free one,
    which adds the constraints sum_i beta_ic = 0 to the dual (WWDOC Problem 2).
    """

    NONE = "none"
    REGULARIZED = "regularized"
    EXACT = "exact"


@dataclass(frozen=True, eq=False)
class DualProblem:
    r"""Maximise :math:`\sum t a - \frac12 \sum_c \beta_c' K \beta_c` under the machine's bounds.

    Parameters
    ----------
    data : TrainingSet
    machine : Machine
    kernel : KernelSpec
        Without the bias; ``store`` adds the constant of the bias rule.
    loss : Loss
    bias : Bias
    given_bias : ndarray of shape (n_classes,) or None
        Constants b that the scores have already: targets become t - m(b).
    given_store : KernelStore or None
        A store of all rows of X with the trained kernel, where there is one already.
    """

    data: TrainingSet
    machine: Machine
    kernel: KernelSpec
    loss: Loss = Loss.HINGE
    bias: Bias = Bias.NONE
    given_bias: FloatArray | None = None
    given_store: KernelStore | None = None

    def __post_init__(self) -> None:
        """Refuse problems that would not fit into memory, before training; sizes were counted at 5,000 classes."""
        n, d = self.n_examples, self.n_classes
        by_class = self.machine is MACHINES["ova"]  # solved a class at a time
        check_room(
            (4.0 if by_class else 8.0) * d * (8 * n + 14 * d),
            f"The variables of {d} classes and {n} rows, which multi_class={self.machine.name!r} trains together,",
            "train fewer classes at once, or use LinearSVC or OnlineSVC with multi_class='ova'",
        )

    @cached_property
    def store(self) -> KernelStore:
        if self.given_store is not None:
            return self.given_store
        return KernelStore(self.data.kernel_data, self.trained_kernel)

    @property
    def trained_kernel(self) -> KernelSpec:
        return self.kernel.with_offset(self.kernel.offset + 1.0) if self.bias is Bias.REGULARIZED else self.kernel

    @property
    def n_examples(self) -> int:
        return len(self.data.y)

    @property
    def n_classes(self) -> int:
        return self.data.n_classes

    @property
    def n_components(self) -> int:
        """Columns of an array of dual variables: the most components that a class has."""
        return int(self.machine.table(self.n_classes).class1.shape[1])

    @cached_property
    def structure(self) -> Structure:
        return derive_structure(self.machine, self.n_classes)

    @cached_property
    def mask(self) -> np.ndarray:
        return component_mask(self.machine, self.data.y, self.n_classes)

    @property
    def targets(self) -> FloatArray:
        """Target margins, (n_examples, n_components), 0 where an example has no such component."""
        return np.where(self.mask, self._target_table[self.data.y], 0.0)

    @cached_property
    def _target_table(self) -> FloatArray:
        table = self.machine.table(self.n_classes)
        return table.target if self.given_bias is None else table.target - table.margins(self.given_bias)

    @property
    def cap(self) -> FloatArray:
        """Upper bounds of the variables (box) or of their sums (simplex): infinite for the squared hinge."""
        return self.data.C if self.loss is Loss.HINGE else np.full(self.n_examples, np.inf)

    def to_core(self) -> _core.Machine:
        table, structure = self.machine.table(self.n_classes), self.structure
        entries = np.stack(
            [
                table.class1,
                table.value1,
                table.class2,
                table.value2,
                self._target_table,
                structure.private_value**2,
                structure.weight,
            ],
            axis=2,
            dtype=np.float64,
        )
        bound = _core.Bound.box if self.machine.bound is Bound.BOX else _core.Bound.simplex
        return _core.make_machine(
            bound,
            self.machine.sum_to_zero,
            structure.structured,
            np.ascontiguousarray(entries),
            table.n_components,
            structure.sigma,
        )

    def count_components(self) -> IntArray:
        """Components of each example, (n_examples,)."""
        return self.machine.table(self.n_classes).n_components[self.data.y]
