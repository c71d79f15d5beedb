"""Data files: LIBSVM's and svmlight's text (also compressed), CSV, Parquet and npz, read and written."""

from multimargin.data_files.errors import DataFileError
from multimargin.data_files.reading import read_data
from multimargin.data_files.table import Table
from multimargin.data_files.writing import write_data

__all__ = ["DataFileError", "Table", "read_data", "write_data"]
