"""Exact kernel support vector machines for many classes, each with a proof of optimality."""

from multimargin._core import __version__
from multimargin.bridges import from_sklearn, to_sklearn
from multimargin.certificate import Certificate
from multimargin.convergence import ConvergenceDisplay
from multimargin.diagnosis import Diagnosis, diagnose
from multimargin.estimators import SVC
from multimargin.linear.cross_validation import LinearSVCCV
from multimargin.linear.estimator import LinearSVC
from multimargin.machines import MACHINES, Bound, ComponentTable, Machine
from multimargin.model_files import (
    ModelFileError,
    dump_libsvm,
    export_onnx,
    load_libsvm,
    load_model,
    save_model,
)
from multimargin.online.active import ActiveLearning, active_learning_loop
from multimargin.online.estimator import OnlineSVC
from multimargin.online.monitoring import StreamHistory
from multimargin.online.online_display import OnlineDisplay
from multimargin.path import SVMPath, svm_path
from multimargin.path_display import PathDisplay
from multimargin.plots.decision_display import DecisionDisplay
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
    "ActiveLearning",
    "Bound",
    "Certificate",
    "ComponentTable",
    "ConvergenceDisplay",
    "DecisionDisplay",
    "Diagnosis",
    "LinearSVC",
    "LinearSVCCV",
    "Machine",
    "MachineComparison",
    "MachinesDisplay",
    "ModelFileError",
    "OnlineDisplay",
    "OnlineSVC",
    "PathDisplay",
    "Progress",
    "SVMPath",
    "SelectionDisplay",
    "StreamHistory",
    "Trace",
    "__version__",
    "active_learning_loop",
    "compare_machines",
    "diagnose",
    "dump_libsvm",
    "export_onnx",
    "from_sklearn",
    "load_libsvm",
    "load_model",
    "save_model",
    "svm_path",
    "to_sklearn",
    "verify",
]
