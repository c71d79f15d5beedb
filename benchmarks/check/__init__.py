"""An independent checker of certificates: own arithmetic, from published attributes alone; see ``__main__``."""
