"""A factory of somebody's network, for `r2et audit fuzz_factory:factory --weights FILE`."""

from r2et.models import MLP


def factory() -> MLP:
    return MLP(3, (4,))
