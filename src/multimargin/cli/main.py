"""The entry point: gathers the commands and turns every way out into an exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from multimargin import __version__
from multimargin.cli.demo import demo
from multimargin.cli.info import info

FAILED = 1
INTERRUPTED = 130


class Commands(click.Group):
    """Exit codes as LIBSVM's tools have them: 0 success, 1 any error, a bad option included, 130 Ctrl-C."""

    def main(self, args: Sequence[str] | None = None, **options: Any) -> Any:  # type: ignore[override]
        """Run a command; ``standalone_mode=False`` lets exceptions through, as click's own does."""
        standalone = options.pop("standalone_mode", True)
        options["standalone_mode"] = False
        if not standalone:
            return super().main(args, **options)
        try:
            code = super().main(args, **options)
        except click.ClickException as error:
            error.show()
            code = FAILED
        except (click.Abort, KeyboardInterrupt):
            click.echo("Interrupted.", err=True)
            code = INTERRUPTED
        sys.exit(code if isinstance(code, int) else 0)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="multimargin", message="%(prog)s %(version)s")
def main() -> None:
    """Exact kernel support vector machines for many classes, each with a proof of optimality."""


main.add_command(demo)
main.add_command(info)
