"""What skops.io has to be told to trust, to read our estimators from its files."""

from __future__ import annotations

from multimargin.machines import MACHINES

BUILDERS = [machine.components for machine in MACHINES.values()]
# Estimators, and the plain classes that a fit leaves in them; none of them runs anything when it is made.
SKOPS_TYPES = (
    "multimargin.calibration.BinaryCalibrator",
    "multimargin.calibration.Isotonic",
    "multimargin.calibration.OneVsRestCalibrator",
    "multimargin.calibration.PairCalibrator",
    "multimargin.calibration.Sigmoid",
    "multimargin.certificate.Certificate",
    "multimargin.certificate_table.CertificateTable",
    "multimargin.estimators.SVC",
    "multimargin.fitting.Recipe",
    "multimargin.kernels.KernelSpec",
    "multimargin.linear.estimator.LinearSVC",
    "multimargin.linear.fitting.LinearDual",
    "multimargin.linear.model.LinearModel",
    "multimargin.machines.ComponentTable",
    "multimargin.machines.Machine",
    "multimargin.model.KernelModel",
    "multimargin.pair_model.PairModel",
    "multimargin.selection.pair_selection.PerPairSVC",
    "scipy.sparse._csr.csr_array",
    "scipy.sparse._csr.csr_matrix",
    # the functions that make the tables of the published machines
    *sorted({f"{build.__module__}.{build.__name__}" for build in BUILDERS if callable(build)}),
)
