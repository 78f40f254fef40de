"""Attacks on random networks in random regions keep what every attack promises."""

from hypothesis import given
from hypothesis import strategies as st

from contracts import keeps_attack_promises
from drawn import SEEDS, balls, groupings, networks, unless_dead
from nets import randn
from r2et.attack import ERAttack, MSEAttack, RandomSearch
from r2et.explain import Gradient, GradientTimesInput


@given(st.data())
def test_every_promise_wherever_it_may_go(data):
    n = data.draw(st.integers(3, 6))
    model = data.draw(networks(n))
    groups = data.draw(groupings(n))
    columns = n if groups is None else n - sum(len(group) - 1 for group in groups)
    if columns < 2:
        groups, columns = None, n
    explainer = data.draw(st.sampled_from([Gradient, GradientTimesInput]))(groups=groups)
    region = data.draw(balls(n))
    attack = data.draw(
        st.sampled_from(
            [
                RandomSearch(region, points=12),
                ERAttack(region, steps=2, step_size=0.3),
                MSEAttack(region, steps=2, step_size=0.3, keep="last"),
            ]
        )
    )
    k = data.draw(st.integers(1, columns - 1))
    x = randn(data.draw(st.integers(1, 4)), n, seed=data.draw(SEEDS)).clamp(-3, 3)
    with unless_dead():
        keeps_attack_promises(attack, model, explainer, x, k)
