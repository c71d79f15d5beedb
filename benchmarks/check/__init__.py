"""An independent checker of certificates: separate arithmetic, from public attributes alone; see ``__main__``."""
