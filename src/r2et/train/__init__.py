"""Training: data, model, recipe -> a trained model."""

from r2et.train.fit import Fit, fit
from r2et.train.recipe import RECIPES, Recipe, recipe
from r2et.train.report import Report, report
from r2et.train.select import Selection, select
from r2et.train.trained import Trained, load_trained
from r2et.train.weight_search import WeightSearch, WeightTrial

__all__ = [
    "RECIPES",
    "Fit",
    "Recipe",
    "Report",
    "Selection",
    "Trained",
    "WeightSearch",
    "WeightTrial",
    "fit",
    "load_trained",
    "recipe",
    "report",
    "select",
]
