"""Training: data, model, recipe -> a trained model."""

from r2et.train.fit import Fit, fit
from r2et.train.recipe import RECIPES, Recipe, recipe
from r2et.train.select import Selection, select

__all__ = ["RECIPES", "Fit", "Recipe", "Selection", "fit", "recipe", "select"]
