"""Shared by all commands: exit codes, messages on stderr, and help formatted by rich."""

from __future__ import annotations

import inspect
import io
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from multimargin.data_files import DataFileError

FAILED = 1
INTERRUPTED = 130
WIDEST_HELP = 100
OPTIONS = "Options"

Function = TypeVar("Function", bound=Callable[..., Any])


class Option(click.Option):
    """An option with the heading under which the help shows it."""

    def __init__(self, *args: Any, panel: str = OPTIONS, **options: Any) -> None:
        super().__init__(*args, **options)
        self.panel = panel


def option(*declarations: str, **attributes: Any) -> Callable[[Function], Function]:
    """Return click's decorator for an ``Option``."""
    return click.option(*declarations, cls=Option, **attributes)


def sentence(error: BaseException) -> str:
    """Return an error as one line for people."""
    if isinstance(error, DataFileError):
        return str(error)
    if isinstance(error, MemoryError):
        return f"Error: the memory is not enough ({error}); use fewer rows or columns."
    if isinstance(error, OSError) and error.strerror:
        return f"Error: {error.filename or 'a file'}: {error.strerror}; give the names of files that you may use."
    return f"Error: {error}"


def tell(line: str) -> None:
    """Print a message on stderr; errors of stderr itself are ignored."""
    try:
        click.echo(line, err=True)
    except (OSError, ValueError):  # full, closed, or a pipe without a reader
        _silence("stderr")


def _silence(name: str) -> None:
    """Replace a stream that failed by os.devnull, so that the flush at exit does not fail again."""
    setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - for the rest of the process


class _Watched:
    """A stream that records its own error, to distinguish it from an error of a file."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.fault: OSError | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> Any:
        return self._watch(lambda: self._stream.write(text))

    def writelines(self, lines: Iterable[str]) -> Any:
        return self._watch(lambda: self._stream.writelines(lines))

    def flush(self) -> Any:
        return self._watch(self._stream.flush)

    def _watch(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except OSError as error:
            self.fault = error
            raise


@contextmanager
def _watched_stdout() -> Iterator[None]:
    """Record errors of stdout, to report at the end whether all output was written."""
    stream = sys.stdout
    if stream is None:
        yield
        return
    watched = _Watched(stream)
    sys.stdout = watched
    try:
        yield
    finally:
        if sys.stdout is watched:
            sys.stdout = stream


def _fault_of_stdout() -> OSError | None:
    """Return the error that kept output from being written, or None."""
    with suppress(OSError):
        if sys.stdout is not None:
            sys.stdout.flush()
    return getattr(sys.stdout, "fault", None)


def _open_closed_streams() -> None:
    """Open closed standard descriptors (0, 1, 2) on os.devnull, so that output is not written into a file opened
    later."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free descriptor


@contextmanager
def told_warnings() -> Iterator[None]:
    """Show Python's warnings as lines on stderr, each once."""
    printed_lines: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        line = " ".join(str(message).split())
        if line not in printed_lines:
            printed_lines.add(line)
            tell(f"Warning: {line}")

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        for category in (DeprecationWarning, ResourceWarning):  # addressed to programmers
            warnings.simplefilter("ignore", category)
        warnings.showwarning = show
        yield


class _ExitCodes(click.Command):
    """Exit codes as LIBSVM's tools have them: 0 success, 1 any error, a bad option included, 130 Ctrl-C."""

    def main(self, args: Sequence[str] | None = None, **options: Any) -> Any:  # type: ignore[override]
        """Run; ``standalone_mode=False`` lets exceptions through, as click's own does."""
        standalone = options.pop("standalone_mode", True)
        options["standalone_mode"] = False
        if not standalone:
            return super().main(args, **options)
        _open_closed_streams()
        try:
            with told_warnings(), _watched_stdout():
                code = super().main(args, **options)
        except click.ClickException as error:
            with suppress(OSError):
                error.show()
            code = FAILED
        except (click.Abort, KeyboardInterrupt):
            tell("Interrupted.")
            code = INTERRUPTED
        except (ValueError, OSError, ImportError, MemoryError) as error:
            tell(sentence(error))
            code = FAILED
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: click.Context) -> Any:
        """Run; output that cannot be written is a failure, reported unless the reader of a pipe has closed it."""
        try:
            result = super().invoke(ctx)
        except OSError as error:
            if not self._printed() or isinstance(error, BrokenPipeError):
                ctx.exit(FAILED)
            raise
        except (Exception, KeyboardInterrupt):
            self._printed()
            raise
        if not self._printed():
            ctx.exit(FAILED)
        return result

    @staticmethod
    def _printed() -> bool:
        """Return whether all output was written; report it if not."""
        fault = _fault_of_stdout()
        if fault is None:
            return True
        _silence("stdout")
        if not isinstance(fault, BrokenPipeError):
            tell(f"Error: stdout cannot be written ({fault.strerror}); free some space, or print elsewhere.")
        return False

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help with rich; click removes the colours where there is no terminal."""
        page = io.StringIO()
        console = Console(file=page, force_terminal=True, color_system="standard", width=_width(formatter))
        console.print(Text.assemble(("Usage: ", "bold"), self.get_usage(ctx).removeprefix("Usage: ")))
        console.print()
        paragraphs = inspect.cleandoc(self.help or "").split("\n\n")
        console.print(Text("\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)))
        for heading, entries in self._entries(ctx).items():
            console.print()
            console.print(Text(heading, style="bold yellow"))
            console.print(_two_columns(entries))
        formatter.write(page.getvalue())

    def _entries(self, ctx: click.Context) -> dict[str, list[tuple[str, str]]]:
        """Return the lines of the help by heading."""
        found: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                found.setdefault(getattr(parameter, "panel", OPTIONS), []).append(record)
        if isinstance(self, click.Group):
            commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
            listed = [(name, command.get_short_help_str(120)) for name, command in commands if command is not None]
            found = {"Commands": listed} | found
        return found


def _width(formatter: click.HelpFormatter) -> int:
    return min(max(formatter.width, 60), WIDEST_HELP)


def _two_columns(entries: list[tuple[str, str]]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 2))
    table.add_column(style="cyan", no_wrap=True)
    table.add_column()
    for name, text in entries:
        table.add_row(Text(name), Text(text))
    return table


class Command(_ExitCodes):
    """A command, also on its own."""


class Commands(_ExitCodes, click.Group):
    """A command with subcommands."""

    command_class = Command
