"""``python -m multimargin`` is the command ``multimargin``."""

from multimargin.cli import main

if __name__ == "__main__":
    main()
