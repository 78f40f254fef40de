"""What is to be proved: a network in float64, its rows, their clean top k; or a refusal."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from r2et.certify.boxes import Ball, Norm
from r2et.certify.rounding import limits, unit_of
from r2et.certify.steps import Program
from r2et.certify.tracing import trace
from r2et.checks import check_k, check_model_input
from r2et.errors import require
from r2et.explain import Explainer, Gradient
from r2et.explain.base import Of
from r2et.models.output import logits, target_classes, target_rows
from r2et.rank import top_k_mask

PLAIN = "Gradient with reduce abs or signed, and no part"


@dataclass(frozen=True)
class Question:
    """program: in float64. x: (B, ...). top: (B, n) bool, the clean top k as the model's own
    arithmetic finds it. side: (B, n) signs of its gradient. unit: the spacing of the model's
    numbers around 1.
    """

    program: Program
    x: Tensor
    target: Tensor
    top: Tensor
    side: Tensor
    clean: Tensor  # (B, n) the gradient itself, up to the factor that of has to the log-odds
    of: Of
    signed: bool
    normalized: bool
    unit: float

    @staticmethod
    def pose(
        where: str,
        model: nn.Module,
        explainer: Explainer,
        x: Tensor,
        k: int,
        target: Tensor | int | None,
    ) -> Question:
        """Refuse what cannot be certified, and read the network's steps, then in float64."""
        check_model_input(where, model, x)
        plain = isinstance(explainer, Gradient) and explainer.part is None
        require(
            plain and explainer.reduce in ("abs", "signed"), where, "explainer", PLAIN, explainer
        )
        assert isinstance(explainer, Gradient)
        check_k(where, k, x[0].numel())
        training = [name or "the model" for name, m in model.named_modules() if m.training]
        if training:
            found = f"{training[0]} in train mode"
            require(False, where, "model", "in eval mode (call model.eval())", found)
        kinds = {t.dtype for t in (*model.parameters(), *model.buffers()) if t.is_floating_point()}
        good = x.dtype in (torch.float32, torch.float64) and kinds <= {x.dtype}
        require(good, where, "model", "of float32 or float64, as x is", sorted(map(str, kinds)))
        _check_precision(where, x)
        given = target_rows(where, target, x)
        with torch.inference_mode(False), torch.no_grad():
            x = x.detach().clone()
            out = logits(model, x, where)
            chosen = target_classes(where, given, out)
            scores = explainer(model, x, chosen)
            # The log-odds' gradient is that of probability and loss, but for a factor.
            of: Of = "logit" if explainer.of == "logit" else "log_odds"
            raw = replace(explainer, reduce="signed", normalize=False, of=of)(model, x, chosen)
            plain_gradient = raw.double() * (-1.0 if explainer.of == "loss" else 1.0)
            program = trace(where, model, x).exact()
            same = torch.equal(out, logits(model, x, where))
            require(same, where, "model", "one that gives equal rows equal logits", "other ones")
        side = torch.where(plain_gradient < 0, -1.0, 1.0).double()
        return Question(
            program,
            x.double(),
            chosen,
            top_k_mask(scores, k),
            side,
            plain_gradient,
            explainer.of,
            explainer.reduce == "signed",
            explainer.normalize,
            unit_of(x.dtype),
        )

    def rows(self, chosen: Tensor) -> Question:
        """The same about some of the rows."""
        return replace(
            self,
            x=self.x[chosen],
            target=self.target[chosen],
            top=self.top[chosen],
            side=self.side[chosen],
            clean=self.clean[chosen],
        )

    def visible(self, low: Tensor, high: Tensor) -> Tensor:
        """(B,) gaps above which features stay apart, for gradients in low..high (B, n).

        The probability's and the loss's gradient is the log-odds' times a factor that the explainer
        keeps above the square root of the smallest normal number, and `normalize` divides by the
        sum: either may leave the normal numbers, and features tie.
        """
        tiny, huge = limits(self.unit)
        size = torch.maximum(low.abs(), high.abs()).sum(1)
        least = torch.zeros_like(size)
        if self.of in ("probability", "loss"):
            least = least + 4 * math.sqrt(tiny)
        if self.normalized:
            least = least + torch.where(size <= huge, 4 * tiny * size, torch.inf)
        return least

    def ball(self, radius: Tensor, norm: Norm) -> Ball:
        """Balls of these radii (B,) around the rows."""
        return Ball(self.x, radius, norm, self.unit)


def _check_precision(where: str, x: Tensor) -> None:
    """Products of float32 must be products of float32: no TF32, no bfloat16 in their place."""
    precision = torch.get_float32_matmul_precision()
    name = "torch.set_float32_matmul_precision"
    require(precision == "highest", where, name, "highest", precision)
    if x.is_cuda:
        rough = torch.backends.cudnn.allow_tf32
        require(not rough, where, "torch.backends.cudnn.allow_tf32", "False", rough)
