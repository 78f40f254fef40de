"""The benchmark: grids of data, recipe and seed -> records -> the papers' tables and figures."""
