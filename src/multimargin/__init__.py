"""Exact kernel support vector machines for many classes, each with a proof of optimality."""

from multimargin._core import __version__
from multimargin.diagnosis import Diagnosis, diagnose
from multimargin.estimators.c_path import SVMPath, svm_path
from multimargin.estimators.linear_svc import LinearSVC
from multimargin.estimators.linear_svc_cv import LinearSVCCV
from multimargin.estimators.svc import SVC
from multimargin.model_files import (
    ModelFileError,
    dump_libsvm,
    export_onnx,
    load_libsvm,
    load_model,
    save_model,
)
from multimargin.model_files.bridges import from_sklearn, to_sklearn
from multimargin.model_selection.compare import compare_machines
from multimargin.model_selection.comparison import MachineComparison
from multimargin.model_selection.estimator import SVCCV
from multimargin.model_selection.selection_display import MachinesDisplay, SelectionDisplay
from multimargin.online.active import ActiveLearning, active_learning_loop
from multimargin.online.estimator import OnlineSVC
from multimargin.online.monitoring import StreamHistory
from multimargin.online.online_display import OnlineDisplay
from multimargin.plotting.convergence import ConvergenceDisplay
from multimargin.plotting.decision_display import DecisionDisplay
from multimargin.plotting.path_display import PathDisplay
from multimargin.problems.machines import MACHINES, Bound, ComponentTable, Machine
from multimargin.solvers.certificate import Certificate
from multimargin.solvers.report import Progress
from multimargin.solvers.trace import Trace
from multimargin.verification.models import verify

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
