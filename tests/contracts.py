"""What every attack and every penalty promises, ours or anybody's, on any model."""

import copy

import torch

from r2et.models import predict
from r2et.rank import precision_at_k


def state_of(model):
    """Weights, statistics, modes and hooks of a model: what a call must leave as it was."""
    modes = [module.training for module in model.modules()]
    hooks = [
        len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules()
    ]
    return copy.deepcopy(model.state_dict()), modes, hooks


def assert_untouched(model, before):
    weights, modes, hooks = before
    now, modes_now, hooks_now = state_of(model)
    assert modes == modes_now
    assert hooks == hooks_now
    assert all(torch.equal(value, now[name]) for name, value in weights.items())
    assert all(p.grad is None for p in model.parameters())


def keeps_attack_promises(attack, model, explainer, x, k):
    """Stays in the region, keeps the prediction, says the truth, repeats, leaves no trace."""
    before, given = state_of(model), x.clone()
    result = attack(model, explainer, x, k=k)
    assert torch.equal(x, given)
    assert_untouched(model, before)

    assert result.x_adv.shape == x.shape
    assert attack.region.contains(result.x_adv, x).all()
    assert torch.equal(predict(model, result.x_adv), predict(model, x))
    assert result.kept.all() or attack.keep == "last"
    assert torch.equal(result.x_adv[~result.kept], x[~result.kept])
    again = explainer.at(model, x)(result.x_adv)
    torch.testing.assert_close(result.precision, precision_at_k(explainer(model, x), again, k))
    assert (result.precision[~result.kept] == 1).all()
    torch.testing.assert_close(result.distance, attack.region.distance(result.x_adv, x))
    assert (result.first_flip[result.precision < 1] > 0).all()
    assert result.radius.isinf().equal(result.precision == 1)

    same = attack(model, explainer, x, k=k)
    assert all(torch.equal(a, b) for a, b in zip(result, same, strict=True))
    return result


def keeps_penalty_promises(penalty, model, x):
    """One finite number a row, with a slope in the weights; repeats and leaves no trace."""
    before, random = state_of(model), torch.get_rng_state()
    noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(1))
    rows = penalty(model, x, noise=noise)
    assert rows.shape == (len(x),)
    assert torch.isfinite(rows).all()
    assert_untouched(model, before)
    assert not x.requires_grad
    assert x.grad is None
    assert torch.equal(random, torch.get_rng_state())
    rows.mean().backward()
    assert any(p.grad is not None and bool(p.grad.any()) for p in model.parameters())
    assert all(p.grad is None or bool(torch.isfinite(p.grad).all()) for p in model.parameters())
    torch.testing.assert_close(penalty(model, x, noise=noise), rows)
    return rows
