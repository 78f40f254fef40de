"""What is measured, made again by hand: which rows, which attack, which explanation."""

from dataclasses import replace

import pytest
import torch

from r2et.attack import ERAttack, MSEAttack, StrongAttack
from r2et.bench.registry import find_benchmark
from r2et.bench.table_measurements import MEASUREMENTS
from r2et.data import Split
from r2et.explain import Gradient
from r2et.metrics import auc
from r2et.region import L2

ROWS, STEPS, K = 6, 4, 8
OWN = find_benchmark("adult")
SCORES = Gradient(of="probability")


@pytest.fixture(scope="module")
def data():
    """Other rows to test on than to validate on, and few of each."""
    whole = OWN.load()
    test, val = whole.test, Split(whole.test.x[-60:], whole.test.y[-60:])
    return replace(whole, test=Split(test.x[:50], test.y[:50]), val=val)


@pytest.fixture(scope="module")
def network(data):
    """Untrained, with weights large enough that an attack has something to change."""
    untrained = OWN.network(data, 3)
    with torch.no_grad():
        for weights in untrained.parameters():
            weights.mul_(2.0)
    return untrained.eval()


@pytest.mark.parametrize(
    ("kind", "attack", "part"),
    [("validation", ERAttack, "val"), ("er", ERAttack, "test"), ("mse", MSEAttack, "test")],
)
def test_the_papers_attacks(kind, attack, part, data, network):
    """As many steps as fill the budget, on rows of the part that the record names."""
    options = {"rows": ROWS, "steps": STEPS}
    measured = MEASUREMENTS[kind](OWN, network, data, **options)
    used = attack(L2(1.0), steps=STEPS, step_size=1.0 / STEPS, norm="l2", flip_below=1.0)

    def by_hand(split):
        return float(used(network, SCORES, split.x[:ROWS], k=K).precision.mean())

    other = {"val": "test", "test": "val"}[part]
    assert by_hand(getattr(data, part)) != by_hand(getattr(data, other))  # or it would not show
    assert measured["precision"] == pytest.approx(by_hand(getattr(data, part)))
    settings = MEASUREMENTS[kind].settings(OWN, **options)
    assert settings["part"] == {"val": "validation", "test": "test"}[part]
    assert settings["attack"] == used
    assert (settings["explainer"], settings["rows"]) == (SCORES, ROWS)
    if kind == "validation":
        assert measured["auc_validation"] == auc(network, *data.val) != auc(network, *data.test)


def test_the_whole_attack_reaches_the_budget():
    for name, steps in (("adult", 1000), ("compas", 1000)):
        attack = find_benchmark(name).attack("er")
        assert attack.steps == steps
        assert attack.steps * attack.step_size == pytest.approx(attack.region.radius)
    digits = find_benchmark("mnist").attack("er")  # sign steps: a fifth of the budget each
    assert digits.step_size == pytest.approx(digits.region.radius / 5)


@pytest.mark.slow
def test_strong_attack_is_on_log_odds(data, network):
    """Of a network so sure that its probabilities are flat: there all features would tie."""
    sure = OWN.network(data, 3)
    sure.load_state_dict(network.state_dict())
    with torch.no_grad():
        for weights in list(sure.parameters())[-2:]:
            weights.mul_(1e4)
    x = data.test.x[:ROWS]
    by_hand = {
        of: StrongAttack(L2(1.0), budget="standard")(sure, Gradient(of=of), x, k=K).precision.mean()
        for of in ("log_odds", "probability")
    }
    assert by_hand["log_odds"] != by_hand["probability"]
    measured = MEASUREMENTS["strong"](OWN, sure, data, rows=ROWS)
    assert measured["precision"] == pytest.approx(float(by_hand["log_odds"]))
    assert MEASUREMENTS["strong"].settings(OWN, rows=ROWS)["explainer"] == Gradient()


def test_thickness_is_the_share_of_pairs_in_order(data, network):
    """Pair by pair, at 200 points of the way and at its end."""
    measured = MEASUREMENTS["thickness"](OWN, network, data, rows=ROWS, steps=STEPS)
    used = ERAttack(L2(1.0), steps=STEPS, step_size=1.0 / STEPS, norm="l2", flip_below=1.0)
    x = data.test.x[:ROWS]
    x_adv = used(network, SCORES, x, k=K).x_adv
    shares = [(i + 0.5) / 200 for i in range(200)] + [1.0]
    for row in range(ROWS):
        scores = SCORES.at(network, x[row : row + 1])
        order = scores(x[row : row + 1])[0].argsort(descending=True, stable=True)
        kept = total = 0
        for t in shares:
            ranked = scores(x[row : row + 1] + t * (x_adv - x)[row : row + 1])[0][order]
            pairs = ranked[:K, None] >= ranked[None, K:]
            kept, total = kept + int(pairs.sum()), total + pairs.numel()
        assert measured["adversarial_rows"][row] == pytest.approx(kept / total, abs=2e-4)
    assert measured["points"] == len(shares)
    assert min(measured["adversarial_rows"]) < 1
    assert measured["adversarial_rows"] != measured["adversarial_gap_rows"]
