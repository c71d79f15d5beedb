"""Models as files: our own format, LIBSVM's and LIBLINEAR's texts, ONNX."""

from multimargin.model_files.faults import ModelFileError
from multimargin.model_files.onnx_export import export_onnx
from multimargin.model_files.saving import load_model, save_model
from multimargin.model_files.skops_types import SKOPS_TYPES
from multimargin.model_files.texts import dump_libsvm, load_libsvm

__all__ = ["SKOPS_TYPES", "ModelFileError", "dump_libsvm", "export_onnx", "load_libsvm", "load_model", "save_model"]
