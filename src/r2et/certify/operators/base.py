"""What an operator is: one operation of a network or of its backward pass, with all its bounds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from r2et.certify.bounds.interval_bounds import Ball, Box, added
from r2et.certify.bounds.linear_bounds import LinearBound, linear_bound
from r2et.certify.bounds.rounding import rounding

# The entries of a matrix W as they are, their sizes |W|, or their squares.
Entries: TypeAlias = Literal["signed", "absolute", "square"]
Shape: TypeAlias = tuple[int, ...]


def entries(weight: Tensor, kind: Entries) -> Tensor:
    """W, |W| or W * W."""
    if kind == "signed":
        return weight
    return weight.abs() if kind == "absolute" else weight.square()


class Operator(ABC):
    """y = f(inputs), row by row. Each bound holds for f and for its evaluation in floats.

    name: what messages call it.
    kinked: whether its derivative jumps somewhere, so that Hessians do not describe it.
    whole: it makes whole numbers, which only choose among others.
    """

    name: str = "an operator"
    kinked: bool = False
    whole: bool = False

    @abstractmethod
    def interval(self, ball: Ball, *inputs: Box) -> Box:
        """The box of y for inputs in these boxes."""

    @abstractmethod
    def linear(self, ball: Ball, *inputs: LinearBound, side: Tensor | None = None) -> LinearBound:
        """The linear bound of y.

        side: (B, units), 1 or -1 where the last input is known to be above or below 0, else 0.
        """

    @abstractmethod
    def jacobian(self, values: Sequence[Box], jacobians: Sequence[Box]) -> Box:
        """The box of dy/dx (B or 1, n, ...), from those of the inputs and of their derivatives."""

    def adjoint(self, values: Sequence[Box], adjoint: Box) -> list[Box | None]:
        """The box of d gradient / d input for each input that y is linear in, else None.

        adjoint: that of d gradient / dy (B or 1, n, ...). Chained back, products of weights cancel
        before they are bounded; where it ends, derivatives by x take over.
        """
        del adjoint
        return [None] * len(values)


class LinearOperator(Operator):
    """y = W v + b, W and b the same for all rows.

    terms: the longest sum in W v; 0 where numbers are only moved.
    local: each y depends on one v only, so that a ball stays a ball of other scale.
    """

    terms: int = 1
    local: bool = False

    @abstractmethod
    def push(self, v: Tensor, kind: Entries = "signed") -> Tensor:
        """W v of a batch (B, ...)."""

    def shift(self) -> Tensor | None:
        """b, in a shape that broadcasts over rows."""
        return None

    def shift_size(self) -> Tensor | None:
        """|b|, or more where b itself is a difference."""
        bias = self.shift()
        return None if bias is None else bias.abs()

    def value(self, v: Tensor) -> Tensor:
        """W v + b."""
        moved, shift = self.push(v), self.shift()
        return moved if shift is None else moved + shift

    def noise(self, unit: float, size: Tensor) -> Tensor | None:
        """What a float evaluation adds, for |v| up to size; None for nothing."""
        if not unit or not self.terms:
            return None
        total, extra = self.push(size, "absolute"), self.shift_size()
        return rounding(self.terms + 4, unit, total if extra is None else total + extra)

    def along(self, slope: Tensor, kind: Entries = "signed") -> Tensor:
        """W applied to each direction of a slope (B, n, ...)."""
        moved = self.push(slope.flatten(0, 1), kind)
        return moved.view(*slope.shape[:2], *moved.shape[1:])

    def interval(self, ball: Ball, *inputs: Box, centre: Tensor | None = None) -> Box:
        """centre: of y, where it is known already."""
        (box,) = inputs
        centre = self.value(box.centre) if centre is None else centre
        spread = scale = None
        if box.scale is not None:
            if ball.norm == "l2" and not self.local:
                squares = self.push(box.scale.square(), "square").clamp(min=0)
                none = squares == 0  # there the root has no slope; that of a dead unit is 0
                spread = torch.where(none, 0.0, torch.where(none, 1.0, squares).sqrt())
            else:
                spread = self.push(box.scale, "absolute")
            scale = spread if self.local else None
            spread = ball.over_rows(centre) * spread
            if ball.unit and box.spread is not None:
                # The local operators before, if any, were rounded, too.
                left = box.spread - ball.over_rows(box.centre) * box.scale
                spread = spread + self.push(left.clamp(min=0), "absolute")
        elif box.spread is not None:
            spread = self.push(box.spread, "absolute")
        noise = self.noise(ball.unit, box.size) if ball.unit else None
        return Box(centre, added(spread, noise), scale)

    def linear(self, ball: Ball, *inputs: LinearBound, side: Tensor | None = None) -> LinearBound:
        del side
        (bound,) = inputs
        spread, inside = self.push(bound.spread, "absolute"), bound.box
        assert inside.spread is not None
        box = Box(self.value(inside.centre), self.push(inside.spread, "absolute"))
        noise = self.noise(ball.unit, bound.size)
        if noise is not None:
            spread, box = spread + noise, box.widened(noise)
        return linear_bound(self.value(bound.centre), self.along(bound.slope), spread, ball, box)

    def jacobian(self, values: Sequence[Box], jacobians: Sequence[Box]) -> Box:
        del values
        (first,) = jacobians
        spread = None if first.spread is None else self.along(first.spread, "absolute")
        return Box(self.along(first.centre), spread)

    def adjoint(self, values: Sequence[Box], adjoint: Box) -> list[Box | None]:
        (value,) = values
        pull = self._transposed(value.centre[:1])
        spread = None if adjoint.spread is None else pull(adjoint.spread, "absolute")
        return [Box(pull(adjoint.centre, "signed"), spread)]

    def _transposed(self, like: Tensor) -> Callable[[Tensor, Entries], Tensor]:
        """W' applied to each direction of (B, n, ...); like: one row of v."""

        def pull(directions: Tensor, kind: Entries) -> Tensor:
            flat = directions.flatten(0, 1)
            with torch.enable_grad():
                v = like.new_zeros(len(flat), *like.shape[1:]).requires_grad_()
                (moved,) = torch.autograd.grad(self.push(v, kind), v, flat)
            return moved.view(*directions.shape[:2], *moved.shape[1:])

        return pull


class LinearCombination(Operator):
    """A linear function of several values, such as a sum.

    terms: the longest sum; 0 where numbers are only put together.
    """

    terms: int = 0

    @abstractmethod
    def combined(self, parts: Sequence[Tensor], kind: Entries, *, shift: bool = True) -> Tensor:
        """y of these parts, or with the sizes of its weights; shift: with its constants."""
