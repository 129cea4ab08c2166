"""Gleaner: wide sparse networks for texts and sparse matrices with very many labels.

Model           a trained model that answers in this process
Gleaner         trains on this machine, or with volunteers that join, and answers
GleanerClassifier   the same by the conventions of scikit-learn, which it needs
"""

from .model import Model
from .trainer import Gleaner, TrainingError

__all__ = ["Gleaner", "GleanerClassifier", "Model", "TrainingError"]


def __getattr__(name):
    if name != "GleanerClassifier":
        raise AttributeError(f"module 'gleaner' has no attribute '{name}'")
    from .classifier import GleanerClassifier
    return GleanerClassifier
