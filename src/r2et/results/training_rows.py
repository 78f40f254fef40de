"""What an audit says of rows that its model was trained on."""

from __future__ import annotations

from r2et.results.audit_schema import INCLUDED, AuditResult, TrainingRows
from r2et.wording import rows_text


def is_included(audit: AuditResult) -> bool:
    """Whether the figures are of rows that the model was trained on, too."""
    known = audit.get("training_rows")
    return known is not None and known["included"] and known["training"] + known["validation"] > 0


def is_held_out(audit: AuditResult) -> bool:
    """Whether it is known that the figures are of rows that the training has not seen."""
    return audit.get("training_rows") is not None and not is_included(audit)


def training_sentence(audit: AuditResult) -> str:
    """How many rows the training has seen, and what became of them; empty for none."""
    return counted_sentence(audit.get("training_rows"), audit["summary"]["rows"])


def counted_sentence(known: TrainingRows | None, rows: int) -> str:
    """The same of the counts alone. rows: how many were looked at."""
    if known is None:
        return ""
    seen = known["training"] + known["validation"]
    of_given = f"of the {rows_text(known['given'])} given"
    trained = f"{known['training']} to train on, {known['validation']} to validate"
    if seen and known["included"]:
        return f"{INCLUDED}: {seen} {of_given} were used in training ({trained})."
    if seen:
        others = known["given"] - seen
        some = "" if rows == others else f"{rows} of "
        left = f"the figures are of {some}the other {others}"
        return f"{seen} {of_given} were used in training ({trained}) and are left out; {left}."
    return ""


def chance_sentence(audit: AuditResult) -> str:
    """How many rows that were kept only look like those of the training; empty for none."""
    known = audit.get("training_rows")
    if known is None or not known["alike"]:
        return ""
    return (
        f"{known['alike']} of the {rows_text(known['given'])} given are the same as a training row"
        " in every column, no more than chance allows, and are kept"
    )
