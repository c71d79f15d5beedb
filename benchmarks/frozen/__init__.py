"""Small problems whose optima were certified once and are stored; all estimators and solvers replay them; see
``__main__``."""
