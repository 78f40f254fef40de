"""What makes docs/results.md of the records that are kept; no part of the package."""
