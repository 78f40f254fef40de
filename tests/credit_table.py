"""A credit table of mixed columns, made up: numbers, whole numbers, categories, gaps."""

import numpy as np
import pandas as pd

from r2et.data import Data, load_table

EMPLOYMENT = ("A71", "A72", "A73", "A74", "A75")
HOUSING = ("own", "rent", "free")


def frame(rows: int = 300, seed: int = 0) -> pd.DataFrame:
    """Amounts with cents, years, months, words, and an income that is missing for some."""
    random = np.random.default_rng(seed)
    age, months = random.integers(19, 75, rows), random.integers(4, 61, rows)
    amount = random.uniform(250, 18000, rows).round(2)
    employment, housing = random.integers(0, 5, rows), random.integers(0, 3, rows)
    foreign = random.integers(0, 2, rows)
    income = random.integers(900, 9000, rows).astype(float)
    odds = 0.05 * (months - 30) + amount / 6000 - 0.5 * employment - income / 4000 + foreign
    bad = odds + random.normal(0, 1.5, rows) > np.median(odds)
    income[random.random(rows) < 0.1] = np.nan
    return pd.DataFrame(
        {
            "age": age,
            "duration in months": months,
            "amount": amount,
            "income": income,
            "employment": np.array(EMPLOYMENT)[employment],
            "housing": np.array(HOUSING)[housing],
            "foreign": np.where(foreign == 1, "yes", "no"),
            "risk": np.where(bad, "bad", "good"),
        }
    )


def credit(rows: int = 300, seed: int = 0) -> Data:
    return load_table(frame(rows, seed), target="risk")
