"""Everything above, brought together about one model."""

from r2et.audit.bracket import Bracket, bracket

__all__ = ["Bracket", "bracket"]
