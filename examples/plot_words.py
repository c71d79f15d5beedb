"""
Can a kernel compare words?
===========================

A kernel need not be of numbers: here it counts the pairs of letters that two words share. Its matrix goes to
``SVC(kernel="precomputed")``, which tests that it is positive semi-definite and certifies the optimum.
"""

import matplotlib.pyplot as plt
import numpy as np

from multimargin import SVC, verify

WORDS = {
    "English": "the with which their would about there other these first water people where after through many",
    "Deutsch": "und nicht auch nach wird sich einer durch wenn noch werden haben schon zwischen sehr dieser",
    "italiano": "della come anche sono nella alla degli questo quando fatto tutto molto ancora dalla essere perche",
}
words = [word for line in WORDS.values() for word in line.split()]
labels = np.repeat(list(WORDS), [len(line.split()) for line in WORDS.values()])


def pairs_of(word):
    """The pairs of neighbouring letters, the ends marked."""
    marked = f" {word} "
    return {marked[i : i + 2] for i in range(len(marked) - 1)}


shared = np.array([[len(pairs_of(a) & pairs_of(b)) for b in words] for a in words], dtype=float)
size = np.sqrt(np.diag(shared))
K = shared / np.outer(size, size)
clf = SVC(kernel="precomputed", multi_class="ww", C=10).fit(K, labels)

# Each word left out once: the rows and columns of the others are their kernel matrix.
right = []
for left_out in range(len(words)):
    rest = np.arange(len(words)) != left_out
    model = SVC(kernel="precomputed", multi_class="ww", C=10).fit(K[np.ix_(rest, rest)], labels[rest])
    right.append(model.predict(K[[left_out]][:, rest])[0] == labels[left_out])

figure, ax = plt.subplots(figsize=(6, 5), layout="constrained")
image = ax.imshow(K, cmap="Greys", vmax=0.6)
ends = np.cumsum([len(line.split()) for line in WORDS.values()])
ax.set_yticks(ends - 8, WORDS)
ax.set_xticks([])
figure.colorbar(image, label="share of common pairs of letters")

print(
    f"Reading: {np.mean(right):.0%} of the held-out words are classified correctly by their pairs of letters; "
    f"verify calls the machine of all words {'optimal' if verify(clf, K, labels).optimal else 'not optimal'}."
)
