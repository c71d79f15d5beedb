"""Small problems whose optima were certified once and are stored; every way to fit replays them; see ``__main__``."""
