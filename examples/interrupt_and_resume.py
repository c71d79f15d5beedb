"""Can a long fit be stopped in time and continued later without losing what was done?

Fits with a short time limit, predicts with the unfinished model, goes on with ``warm_start`` and compares
with a fit in one go. Run it with ``python examples/interrupt_and_resume.py``.
Ctrl-C in a part keeps what it has.
"""

from __future__ import annotations

import time
import warnings

from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

from multimargin import SVC

PART = 0.3  # seconds for each part of the fit


def main() -> None:
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X / 16, y, test_size=0.3, random_state=0)

    begin = time.perf_counter()
    whole = SVC(C=10, gamma=0.1, multi_class="llw").fit(X_train, y_train)
    print(f"in one go   {time.perf_counter() - begin:5.2f} s  {whole.certificate_}")

    clf = SVC(C=10, gamma=0.1, multi_class="llw", max_time=PART, warm_start=True, on_interrupt="keep")
    parts = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # each part but the last ends early, as asked
        while parts == 0 or clf.certificate_.stop_reason == "max_time":
            clf.fit(X_train, y_train)
            parts += 1
            reached, accuracy = clf.certificate_, clf.score(X_test, y_test)
            print(f"part {parts:<3} {reached.seconds:8.2f} s  {reached}; accuracy {accuracy:.3f}")

    difference = abs(clf.certificate_.dual - whole.certificate_.dual) / whole.certificate_.dual
    print(
        f"Reading: {parts} parts of at most {PART} s end {clf.certificate_.stop_reason}, and the dual "
        f"objective differs from that of the fit in one go by {difference:.0e} of its value."
    )


if __name__ == "__main__":
    main()
