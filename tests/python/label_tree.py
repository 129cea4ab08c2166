"""Fits a label tree to a set in libsvm's form and prints its precision on another. Takes napkinXC."""

import argparse
import time

from napkinxc.datasets import load_libsvm_file
from napkinxc.measures import precision_at_k
from napkinxc.models import PLT

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("train")
parser.add_argument("test")
parser.add_argument("model", help="folder")
arguments = parser.parse_args()

X_train, Y_train = load_libsvm_file(arguments.train)
X_test, Y_test = load_libsvm_file(arguments.test)
print(f"{X_train.shape[0]} examples to fit, {X_test.shape[0]} to measure")

begin = time.time()
model = PLT(arguments.model, threads=2, seed=1)
model.fit(X_train, Y_train)
print(f"fitted in {time.time() - begin:.1f} s")

best = model.predict_proba(X_test, top_k=5)
for number, labels in enumerate(best[:3]):
    print(f"example {number}:", ", ".join(f"{label} {probability:.3f}" for label, probability in labels))

Y_best = model.predict(X_test, top_k=5)
precision = precision_at_k(Y_test, Y_best, k=5)
for k in (1, 3, 5):
    print(f"P@{k} {precision[k - 1]:.4f}")
