"""Exact kernel support vector machines for many classes, each with a proof of optimality."""

from multimargin._core import __version__
from multimargin.bridges import from_sklearn, to_sklearn
from multimargin.certificate import Certificate
from multimargin.convergence import ConvergenceDisplay
from multimargin.estimators import SVC
from multimargin.linear.cross_validation import LinearSVCCV
from multimargin.linear.estimator import LinearSVC
from multimargin.machines import MACHINES, Bound, ComponentTable, Machine
from multimargin.path import SVMPath, svm_path
from multimargin.path_display import PathDisplay
from multimargin.selection.compare import compare_machines
from multimargin.selection.comparison import MachineComparison
from multimargin.selection.estimator import SVCCV
from multimargin.selection.selection_display import MachinesDisplay, SelectionDisplay
from multimargin.solver import Progress
from multimargin.trace import Trace
from multimargin.verification import verify

__all__ = [
    "MACHINES",
    "SVC",
    "SVCCV",
    "Bound",
    "Certificate",
    "ComponentTable",
    "ConvergenceDisplay",
    "LinearSVC",
    "LinearSVCCV",
    "Machine",
    "MachineComparison",
    "MachinesDisplay",
    "PathDisplay",
    "Progress",
    "SVMPath",
    "SelectionDisplay",
    "Trace",
    "__version__",
    "compare_machines",
    "from_sklearn",
    "svm_path",
    "to_sklearn",
    "verify",
]
