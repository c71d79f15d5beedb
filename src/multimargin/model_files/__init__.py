"""Models as files: our own format, LIBSVM's and LIBLINEAR's texts, ONNX."""

from multimargin.model_files.errors import ModelFileError
from multimargin.model_files.libsvm import dump_libsvm, load_libsvm
from multimargin.model_files.onnx_export import export_onnx
from multimargin.model_files.saving import load_model, save_model
from multimargin.model_files.skops_types import SKOPS_TYPES

__all__ = ["SKOPS_TYPES", "ModelFileError", "dump_libsvm", "export_onnx", "load_libsvm", "load_model", "save_model"]
