"""Fits a network to a set in libsvm's form and prints its precision on another. Takes gleaner."""

import argparse
import time

from gleaner import Gleaner, Model
from sklearn.datasets import load_svmlight_file

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("train")
parser.add_argument("test")
parser.add_argument("model", help="folder")
arguments = parser.parse_args()

X_train, Y_train = load_svmlight_file(arguments.train, multilabel=True)
X_test, Y_test = load_svmlight_file(arguments.test, multilabel=True, n_features=X_train.shape[1])
print(f"{X_train.shape[0]} examples to fit, {X_test.shape[0]} to measure")

begin = time.time()
model = Gleaner(arguments.model, threads=2, seed=1)
model.fit(X_train, Y_train)
print(f"fitted in {time.time() - begin:.1f} s")

best = model.predict(X_test, k=5)
for number, labels in enumerate(best[:3]):
    print(f"example {number}:", ", ".join(f"{label} {probability:.3f}" for label, probability in labels))

for k in (1, 3, 5):
    print(f"P@{k} {model.precision_at_k(X_test, Y_test, k):.4f}")
