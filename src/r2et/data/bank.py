"""Bank marketing (UCI 2014): does a client take out a term deposit? docs/data/bank.md."""

from __future__ import annotations

from r2et.data.column import Column
from r2et.data.dataset import Data, DatasetEntry, Origin
from r2et.data.published_table import as_data, rows_of
from r2et.data.sources import Address, File, Package, read

SOURCE = Origin(
    where="UCI Machine Learning Repository, Bank Marketing, https://doi.org/10.24432/C5K306",
    credit="S. Moro, P. Rita and P. Cortez (2014)",
    licence="CC BY 4.0",
    changes="10 of 20 columns, categories grouped, rows shuffled and split",
)
MEMBER = "bank-additional/bank-additional-full.csv"
FILES = (
    File(
        "bank/bank-additional-full.csv",
        "74adfc578bf77a7ff4bb1ba4a9f8709d9e3c6907342959c2c8416847e0afb4d8",
        5834924,
        (
            Address(
                (f"bank-additional.zip!/{MEMBER}",),
                url="https://archive.ics.uci.edu/static/public/222/bank+marketing.zip",
            ),
            Address(
                (MEMBER,),
                url="https://archive.ics.uci.edu/ml/machine-learning-databases/00222/bank-additional.zip",
            ),
            Package(
                ("aif360/data/raw/bank/bank-additional-full.csv",), name="aif360", version="0.2.3"
            ),
        ),
    ),
)
K = 8

COLUMNS = (
    Column("age", "integer"),
    Column("marital status", "category", categories=("divorced", "married", "single or unknown")),
    Column(
        "education",
        "category",
        categories=("basic", "high school", "professional", "university", "unknown"),
    ),
    Column("housing loan", "binary", categories=("no", "yes"), other="no"),
    Column("personal loan", "binary", categories=("no", "yes"), other="no"),
    Column("contact", "binary", categories=("telephone", "cellular")),
    Column("calls in this campaign", "integer"),
    Column("last campaign", "category", categories=("none", "failure", "success")),
    Column("Euribor 3 months", "number"),
    Column("consumer confidence", "number"),
)
# Column of the file, and our words for its labels; what is not listed keeps its own.
ORIGINAL: dict[str, tuple[str, dict[str, str]]] = {
    "age": ("age", {}),
    "marital status": (
        "marital",
        {"single": "single or unknown", "unknown": "single or unknown"},
    ),
    "education": (
        "education",
        {
            **dict.fromkeys(("illiterate", "basic.4y", "basic.6y", "basic.9y"), "basic"),
            "high.school": "high school",
            "professional.course": "professional",
            "university.degree": "university",
        },
    ),
    "housing loan": ("housing", {}),
    "personal loan": ("loan", {}),
    "contact": ("contact", {}),
    "calls in this campaign": ("campaign", {}),
    "last campaign": ("poutcome", {"nonexistent": "none"}),
    "Euribor 3 months": ("euribor3m", {}),
    "consumer confidence": ("cons.conf.idx", {}),
    "term deposit": ("y", {}),
}
DROPPED = (
    ("duration", "known only when the call has ended, and with it nearly the answer"),
    ("job", "twelve categories that add nothing to the AUC beside the others"),
    ("default", "three clients of 41188 have one; the rest is whether it is known"),
    ("month", "the date of the call, as are the rates"),
    ("day_of_week", "adds nothing to the AUC"),
    ("pdays", "999, meaning never, in 96 % of the rows"),
    ("previous", "0 exactly where the last campaign is none"),
    ("emp.var.rate", "moves with the Euribor rate"),
    ("cons.price.idx", "moves with the Euribor rate, though less"),
    ("nr.employed", "moves with the Euribor rate"),
)


def load_bank() -> Data:
    """All 41188 calls as 18 features in 0..1, split 70:15:15; y is 1 where the client agreed."""
    (contents,) = read("bank", FILES)
    rows = rows_of("bank", contents)
    raw = {
        name: [words.get(row[column], row[column]) for row in rows]
        for name, (column, words) in ORIGINAL.items()
    }
    return as_data(
        "bank",
        raw,
        COLUMNS,
        target="term deposit",
        classes=("no", "yes"),
        k=K,
        source=SOURCE,
        dropped=DROPPED,
    )


ENTRIES = {
    "bank": DatasetEntry(
        "term deposit or not from 18 features of a call",
        load_bank,
        FILES,
        SOURCE,
        "(B, 18)",
        K,
    ),
}
