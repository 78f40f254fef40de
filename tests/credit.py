"""A credit table that nobody's data went into: mixed columns, and a class that depends on them."""

import numpy as np
import pandas as pd


def credit_table(rows=400, seed=0):
    """Columns ID, age, amount, months, housing, purpose, zip, sex and class, good or bad."""
    random = np.random.default_rng(seed)
    age, months = random.integers(19, 75, rows), random.choice([6, 12, 18, 24, 36, 48], rows)
    amount = random.lognormal(8, 0.7, rows).round(2)
    housing = random.choice(["own", "rent", "free"], rows, p=[0.7, 0.2, 0.1])
    purpose = random.choice(["car", "tv", "business", "education"], rows)
    odds = 0.05 * (months - 24) + 0.0003 * (amount - 3500) - 0.04 * (age - 40)
    odds = odds - 0.8 + 1.2 * (housing == "rent") + 0.6 * (purpose == "car")
    bad = random.random(rows) < 1 / (1 + np.exp(-odds))
    return pd.DataFrame(
        {
            "ID": [f"c{i:05}" for i in range(rows)],
            "age": age,
            "amount": amount,
            "months": months,
            "housing": housing,
            "purpose": purpose,
            "zip": random.choice([10001, 10002, 20001, 30001], rows),
            "sex": random.choice(["f", "m"], rows),
            "class": np.where(bad, "bad", "good"),
        }
    )
