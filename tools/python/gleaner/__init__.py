"""Gleaner: wide sparse networks for texts and sparse matrices with very many labels.

Model           a trained model that answers in this process
Gleaner         trains on this machine, or with volunteers that join, and answers
GleanerClassifier   the same by the conventions of scikit-learn, which it needs
precision_at, ndcg_at   scorers for its searches: scoring=precision_at(5)
"""

import importlib
import sys

try:
    importlib.import_module("._gleaner", __name__)
except ImportError as error:
    raise ImportError(
        f"gleaner has no module for this Python ({sys.executable}, {sys.version_info[0]}.{sys.version_info[1]}): "
        "run 'pip install ./tools/python' in the source tree; or 'tools/dev/build release gleaner_python', which "
        f"builds it for /usr/bin/python3 in build/release/python ({error})") from None

from .model import Model
from .trainer import Gleaner, TrainingError

__all__ = ["Gleaner", "GleanerClassifier", "Model", "TrainingError", "ndcg_at", "precision_at"]


def __getattr__(name):
    if name not in ("GleanerClassifier", "precision_at", "ndcg_at"):
        raise AttributeError(f"module 'gleaner' has no attribute '{name}'")
    from . import classifier
    return getattr(classifier, name)
