"""A digest of a value that is the same in every process, and another one for every value that may act differently.

Data go by their bytes, functions by their code and all that it refers to: defaults, closures, globals, the object that
a method belongs to. Other objects go by what pickle would write, since a worker gets no more of them either. What an
installed library names is known by that name and the library's version. Where a value cannot be seen through, that is
said: a digest that leaves something out would be believed.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import importlib
import struct
import types
from collections.abc import Callable, Iterator
from importlib.util import resolve_name
from typing import Any

import numpy as np
from scipy import sparse

from multimargin.model_selection.libraries import PYTHON, file_digest, find, library_version, module_of

ATOMS = (type(None), bool, int, str, bytes, type(Ellipsis), type(NotImplemented))
DESCRIPTORS = (
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
)
# Attributes of a class that do not describe its behaviour, or repeat it.
BESIDE_THE_CLASS = {
    "__abstractmethods__", "__annotate__", "__annotate_func__", "__annotations__", "__annotations_cache__",
    "__classdictcell__", "__dataclass_fields__", "__dataclass_params__", "__dict__", "__doc__", "__firstlineno__",
    "__match_args__", "__module__", "__parameters__", "__qualname__", "__static_attributes__", "__type_params__",
    "__weakref__", "_abc_impl",
}  # fmt: skip
# By these names code reaches what its own text does not show.
OUTSIDE = {"__import__", "eval", "exec", "globals", "input", "open"}


class OpaqueError(Exception):
    """A value whose state cannot be read; the message names it."""


def digest_of(value: Any) -> str:
    """Return the digest; raise OpaqueError where part of the value cannot be seen."""
    try:
        return _Reader().read(value).hex()
    except RecursionError:
        raise OpaqueError("something that is nested too deeply") from None


class _Reader:
    """Reads a value part by part; each part has a digest of its own, made of its kind and its parts' digests."""

    def __init__(self) -> None:
        # By id; the object is kept, so that no other one gets its id.
        self._done: dict[int, tuple[Any, bytes]] = {}
        self._open: dict[int, int] = {}

    def read(self, value: Any) -> bytes:
        if type(value) in ATOMS:
            return _hash(type(value).__name__, repr(value).encode())
        if type(value) is float:
            return _hash("float", struct.pack("<d", value))
        place = id(value)
        if place in self._done:
            return self._done[place][1]
        if place in self._open:  # a circle
            return _hash("above", str(len(self._open) - self._open[place]).encode())
        self._open[place] = len(self._open)
        try:
            digest = self._hash_parts(value)
        finally:
            del self._open[place]
        self._done[place] = value, digest
        return digest

    def _hash_parts(self, value: Any) -> bytes:
        if isinstance(value, np.generic) or type(value) is np.ndarray:
            if not value.dtype.hasobject:
                return _hash_array(value)
        elif type(value) in (dict, types.MappingProxyType):
            return _hash("dict", *sorted(self.read(key) + self.read(each) for key, each in value.items()))
        elif type(value) in (set, frozenset):
            return _hash("set", *sorted(self.read(each) for each in value))
        elif type(value) in (list, tuple):
            return _hash(type(value).__name__, *(self.read(each) for each in value))
        for kinds, read in READERS:
            if isinstance(value, kinds):
                return read(self, value)
        return self._hash_object(value)

    def _hash_csr(self, matrix: Any) -> bytes:
        # The width of indices is no part of the matrix.
        parts = (matrix.data, matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64))
        return _hash("csr", repr(tuple(map(int, matrix.shape))).encode(), *(self.read(part) for part in parts))

    def _hash_method(self, method: Any) -> bytes:
        return _hash("method", self.read(getattr(method, "__func__", method.__name__)), self.read(method.__self__))

    def _hash_builtin(self, function: Any) -> bytes:
        owner = function.__self__
        return self._hash_named(function) if owner is None or _is_module(owner) else self._hash_method(function)

    def _hash_property(self, value: property) -> bytes:
        return _hash("property", *(self.read(each) for each in (value.fget, value.fset, value.fdel)))

    def _hash_wrapper(self, value: Any) -> bytes:
        """Return the digest of a decorated function, without what a cache has seen."""
        inner = value.func if isinstance(value, functools.cached_property) else value.__wrapped__
        return _hash(type(value).__name__, self.read(inner))

    def _hash_function(self, function: types.FunctionType) -> bytes:
        known = _known_by_name(function)
        if known is not None:
            return known
        state = (function.__code__, function.__defaults__, function.__kwdefaults__, function.__dict__)
        names = _all_names(function)
        parts = [self.read(each) for each in state]
        parts += [self._hash_cell(cell, names) for cell in function.__closure__ or ()]
        # A library's inner function refers to its library. (__module__ is no witness: functools.wraps copies it.)
        if library_version(str(function.__globals__.get("__name__"))) is None:
            parts += self._read_globals(function)
        return _hash("function", *parts)

    def _hash_cell(self, cell: types.CellType, names: tuple[str, ...]) -> bytes:
        try:
            value = cell.cell_contents
        except ValueError:  # nothing in it yet
            return _hash("cell")
        return _hash("cell", self._hash_module(value, names) if _is_module(value) else self.read(value))

    def _hash_bytecode(self, code: types.CodeType) -> bytes:
        # Neither names nor line numbers: a function that was moved is the same.
        state = (
            code.co_code, code.co_consts, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars,
            code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags, code.co_exceptiontable,
        )  # fmt: skip
        return _hash("code", PYTHON.encode(), *(self.read(part) for part in state))

    def _read_globals(self, function: types.FunctionType) -> Iterator[bytes]:
        """Yield digests of all that the code refers to by name, its inner functions included."""
        space, names = function.__globals__, _all_names(function)
        codes = list(_codes(function.__code__))
        for name in sorted({name for code in codes for name in _asked_for(code)}):
            if name in OUTSIDE and name not in space:
                raise OpaqueError(f"{_shown(function)}, which calls {name}()")
            yield name.encode()
            if _is_module(space.get(name)):
                yield self._hash_module(space[name], names)
            elif name in space:
                yield self.read(space[name])
        for name in sorted({name for code in codes for name in _imported(code, space)}):
            try:
                module = importlib.import_module(name)
            except ImportError:
                raise OpaqueError(f"{_shown(function)}, which imports {name!r}, which is not there") from None
            yield self._hash_module(module, names)

    def _hash_module(self, module: types.ModuleType, names: tuple[str, ...] | None = None) -> bytes:
        """Return the digest of a library by its version, of one's own module by what is used of it: these names."""
        version = library_version(module.__name__)
        if version is not None:
            return _hash("library", module.__name__.encode(), version.encode())
        if names is None:
            raise OpaqueError(f"the module {module.__name__!r} as a value")
        if id(module) in self._open:  # modules that import each other
            return _hash("module", module.__name__.encode())
        self._open[id(module)] = len(self._open)
        parts = [file_digest(module.__name__)]
        for name in names:
            if name in vars(module):
                inner = vars(module)[name]
                parts += [name.encode(), self._hash_module(inner, names) if _is_module(inner) else self.read(inner)]
        del self._open[id(module)]
        return _hash("module", module.__name__.encode(), *parts)

    def _hash_class(self, cls: type) -> bytes:
        known = _known_by_name(cls)
        if known is not None:
            return known
        parts = [_name(cls), *(self.read(base) for base in (type(cls), *cls.__bases__))]
        for name, each in sorted(vars(cls).items()):
            if name not in BESIDE_THE_CLASS:
                parts += [name.encode(), self.read(each)]
        return _hash("class", *parts)

    def _hash_named(self, value: Any, name: str = "") -> bytes:
        """Return the digest of compiled code: that of the module that has it under a name."""
        known = _known_by_name(value)
        if known is not None:
            return known
        name = name or getattr(value, "__qualname__", getattr(value, "__name__", ""))
        module = module_of(value, name)
        if find(module, name) is not value:
            raise OpaqueError(f"{_shown(value)}, which no module has under its name")
        return _hash("compiled", f"{module}.{name}".encode(), file_digest(module))

    def _hash_object(self, value: Any) -> bytes:
        """Return the digest of what pickle would write."""
        try:
            reduced = value.__reduce_ex__(4)
        except RecursionError:
            raise
        except Exception:
            raise OpaqueError(f"{_shown(value)}, whose state cannot be read") from None
        if isinstance(reduced, str):
            return self._hash_named(value, reduced)
        made, arguments, *rest = reduced
        state, items, pairs, setter = (*rest, None, None, None, None)[:4]
        parts = (made, arguments, state, items and list(items), pairs and [list(pair) for pair in pairs], setter)
        return _hash("object", *(self.read(part) for part in parts))


READERS: tuple[tuple[Any, Callable[[_Reader, Any], bytes]], ...] = (
    ((sparse.csr_array, sparse.csr_matrix), _Reader._hash_csr),
    (types.ModuleType, _Reader._hash_module),
    (type, _Reader._hash_class),
    (types.FunctionType, _Reader._hash_function),
    (types.CodeType, _Reader._hash_bytecode),
    ((types.MethodType, types.MethodWrapperType), _Reader._hash_method),
    (DESCRIPTORS, lambda _, value: _hash("descriptor", value.__name__.encode(), _name(value.__objclass__))),
    (types.BuiltinFunctionType, _Reader._hash_builtin),
    (np.ufunc, _Reader._hash_named),
    (property, _Reader._hash_property),
    ((functools.cached_property, functools._lru_cache_wrapper, classmethod, staticmethod), _Reader._hash_wrapper),
)


def _hash(kind: str, *parts: bytes) -> bytes:
    digest = hashlib.sha256(kind.encode())
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.digest()


def _hash_array(array: Any) -> bytes:
    digest = hashlib.sha256(f"{type(array).__name__} {array.shape} {array.dtype.descr}".encode())
    if array.size:
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.digest()


def _known_by_name(value: Any) -> bytes | None:
    """Return the digest of something that a library has under its name; None for others."""
    name = getattr(value, "__qualname__", getattr(value, "__name__", ""))
    module = module_of(value, name)
    version = library_version(module)
    if version is None or find(module, name) is not value:
        return None
    return _hash("named", f"{module}.{name}".encode(), version.encode())


def _is_module(value: Any) -> bool:
    return isinstance(value, types.ModuleType)


def _all_names(function: types.FunctionType) -> tuple[str, ...]:
    """Return all names in the code, those of attributes included."""
    return tuple(sorted({name for code in _codes(function.__code__) for name in code.co_names}))


def _name(cls: type) -> bytes:
    return f"{cls.__module__}.{cls.__qualname__}".encode()


def _shown(value: Any) -> str:
    name = getattr(value, "__qualname__", None)
    return repr(name) if isinstance(name, str) else f"an object of type {type(value).__name__!r}"


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """Yield the code and that of all functions within it."""
    yield code
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield from _codes(each)


def _asked_for(code: types.CodeType) -> set[str]:
    """Return the names that the code reads from outside."""
    return {
        step.argval
        for step in dis.get_instructions(code)
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
    }


def _imported(code: types.CodeType, space: dict[str, Any]) -> set[str]:
    """Return the modules that the code imports when it runs."""
    steps = list(dis.get_instructions(code))
    names = set()
    for position, step in enumerate(steps):
        if step.opname == "IMPORT_NAME":
            level = steps[position - 2].argval  # the two constants before are the level and the names
            relative = isinstance(level, int) and level > 0
            names.add(resolve_name("." * level + step.argval, space["__package__"]) if relative else step.argval)
    return names
