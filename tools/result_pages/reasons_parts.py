"""Parts of pages about the reasons that people are given: perf/records/reasons.json."""

from __future__ import annotations

from typing import Any

from result_pages.perf_parts import made_with, record, table

TITLES = {
    "adult": "Adult, all columns",
    "credit": "German credit",
    "bank": "Bank, without the call's length",
    "compas": "COMPAS",
}
MAIN = (
    "vanilla",
    "linear",
    "certified",
    "r2et-reasons",
    "certified-reasons",
    "default network",
)
BROKEN, PROVED, AUC, SETS = 0.10, 0.80, 0.005, 0.5  # what is asked of a recipe


def reasons() -> str:
    """Proved and broken at one and two units, beside AUC and different sets."""
    stored = record("reasons")
    rows = [_line(stored, name, network) for name in TITLES for network in MAIN]
    told = [row for row in rows if row]
    met = [TITLES[n] for n in TITLES if _meets(stored, n, "certified-reasons")]
    others = [TITLES[n] for n in TITLES if TITLES[n] not in met]
    sentence = (
        f"Asked for at one unit: at most {BROKEN:.0%} broken, at least {PROVED:.0%} proved, an AUC"
        f" at most {AUC} below Vanilla's, at least half of its sets. `certified-reasons` reaches"
        f" that on {' and '.join(met) or 'none'}; not on {' and '.join(others) or 'none'}."
    )
    head = ("table", "network", "one unit: proved", "broken", "two: proved", "broken", "AUC")
    return f"{table((*head, 'sets'), told)}\n\n{sentence} {made_with(stored)}"


def reasons_front() -> str:
    """Other settings of `certified-reasons`, at one unit."""
    stored = record("reasons")
    entries = [e for e in stored["entries"] if e["units"] == 1]
    networks = dict.fromkeys(e["network"] for e in entries if e["network"] not in MAIN)
    rows = []
    for name, title in TITLES.items():
        for network in ("certified-reasons", *networks):
            entry = _entry(stored, name, network, 1)
            if entry is not None:
                own = "as it is" if network == "certified-reasons" else network
                mark = "yes" if _meets(stored, name, network) else ""
                cells = (f"{100 * entry['proved']:.1f}", f"{100 * entry['broken']:.1f}")
                rows.append(
                    (title, own, *cells, f"{entry['auc']:.3f}", f"{entry['sets']:.0f}", mark)
                )
    return table(("table", "settings", "proved", "broken", "AUC", "sets", "all asked for"), rows)


def _entry(stored: dict[str, Any], name: str, network: str, units: float) -> dict[str, Any] | None:
    """What was measured of a network, if it was."""
    asked = (name, network, units)
    chosen = (e for e in stored["entries"] if (e["table"], e["network"], e["units"]) == asked)
    return next(chosen, None)


def _line(stored: dict[str, Any], name: str, network: str) -> tuple[str, ...]:
    one, two = (_entry(stored, name, network, units) for units in (1, 2))
    if one is None or two is None:
        return ()
    shares = [f"{100 * e[key]:.1f}" for e in (one, two) for key in ("proved", "broken")]
    return (TITLES[name], network, *shares, f"{one['auc']:.3f}", f"{one['sets']:.0f}")


def _meets(stored: dict[str, Any], name: str, network: str) -> bool:
    """Whether a network has all that is asked for, beside Vanilla of the same table."""
    own, plain = (_entry(stored, name, n, 1) for n in (network, "vanilla"))
    if own is None or plain is None:
        return False
    stable = own["broken"] <= BROKEN and own["proved"] >= PROVED
    return bool(stable and own["auc"] >= plain["auc"] - AUC and own["sets"] >= SETS * plain["sets"])
