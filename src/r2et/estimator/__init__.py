"""The face for scikit-learn: a classifier whose explanations hold still."""

from r2et.estimator.classifier import R2ETClassifier

__all__ = ["R2ETClassifier"]
