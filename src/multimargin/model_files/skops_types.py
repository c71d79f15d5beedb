"""The types that skops.io must trust to read our estimators from its files."""

from __future__ import annotations

from multimargin.problems.machines import MACHINES

BUILDERS = [machine.components for machine in MACHINES.values()]
# Estimators, and the plain classes that a fit leaves in them; none of them executes code on construction.
SKOPS_TYPES = (
    "multimargin.models.calibration.BinaryCalibrator",
    "multimargin.models.calibration.Isotonic",
    "multimargin.models.calibration.OneVsRestCalibrator",
    "multimargin.models.calibration.PairCalibrator",
    "multimargin.models.calibration.Sigmoid",
    "multimargin.solvers.certificate.Certificate",
    "multimargin.solvers.certificate_table.CertificateTable",
    "multimargin.estimators.svc.SVC",
    "multimargin.fitting.spec.FitSpec",
    "multimargin.kernels.spec.KernelSpec",
    "multimargin.estimators.linear_svc.LinearSVC",
    "multimargin.fitting.linear.LinearDual",
    "multimargin.models.linear_model.LinearModel",
    "multimargin.problems.machines.ComponentTable",
    "multimargin.problems.machines.Machine",
    "multimargin.models.kernel_model.KernelModel",
    "multimargin.models.pair_model.PairModel",
    "multimargin.model_selection.pair_selection.PerPairSVC",
    "scipy.sparse._csr.csr_array",
    "scipy.sparse._csr.csr_matrix",
    # the functions that make the tables of the published machines
    *sorted({f"{build.__module__}.{build.__name__}" for build in BUILDERS if callable(build)}),
)
