"""What all commands share: exit codes, where messages go, and help that rich lays out."""

from __future__ import annotations

import inspect
import io
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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
    """An option that is shown under a heading of its own in the help."""

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


@contextmanager
def told_warnings() -> Iterator[None]:
    """Show Python's warnings as lines on stderr, each once."""
    told: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        line = " ".join(str(message).split())
        if line not in told:
            told.add(line)
            click.echo(f"Warning: {line}", err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        for category in (DeprecationWarning, ResourceWarning):  # for those who write programs
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
        try:
            with told_warnings():
                code = super().main(args, **options)
        except click.ClickException as error:
            error.show()
            code = FAILED
        except (click.Abort, KeyboardInterrupt):
            click.echo("Interrupted.", err=True)
            code = INTERRUPTED
        except (ValueError, OSError, ImportError, MemoryError) as error:
            click.echo(sentence(error), err=True)
            code = FAILED
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: click.Context) -> Any:
        """Run, and end without a word if whoever reads our results has seen enough."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - for the flush at the end of the process
            ctx.exit(FAILED)
        return result

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help with rich; click takes the colours out where there is no terminal."""
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
