"""Audits of changes that a row could really have, against brute force on tiny tables."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from credit_table import credit
from r2et import audit
from r2et.audit import Audit
from r2et.audit.concatenate import check_bracket
from r2et.audit.measures import feasible_proofs
from r2et.certify import IntervalCertifier
from r2et.data import Column, Schema
from r2et.errors import InputError
from r2et.explain import Gradient, SmoothGrad
from r2et.models import MLP
from r2et.region import L2, Feasible
from real_data import real

TINY = Schema(
    (
        Column("age", "integer", low=20, high=30),
        Column("hours", "integer", low=0, high=8, fill=4.0, flag=True),
        Column("debt", "number", low=0.0, high=50.0),
        Column("job", "category", categories=("clerk", "cook", "none")),
        Column("married", "binary", categories=("no", "yes")),
    )
)
NO_PROOF = SmoothGrad(samples=2, of="probability")
JOBS = ("clerk", "cook", "none")


def network(inputs, seed=0, scale=2.0):
    """Bent enough that reasons differ from row to row."""
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(inputs, 12), nn.Softplus(beta=5), nn.Linear(12, 2))
    with torch.no_grad():
        net[0].weight.mul_(scale)
    return net.double().eval()


def people(rows, seed=0):
    """Raw rows, some of whose hours are missing."""
    random = np.random.default_rng(seed)
    hours = random.integers(0, 9, rows).astype(float)
    hours[::4] = np.nan
    return {
        "age": random.integers(20, 31, rows),
        "hours": hours,
        "debt": random.uniform(0, 50, rows),
        "job": np.array(JOBS)[random.integers(0, 3, rows)],
        "married": np.array(["no", "yes"])[random.integers(0, 2, rows)],
    }


def neighbours(raw, row, years, hours, switches):
    """Every person that the changes allow, from the raw table: nothing of Feasible in it."""
    age, worked = int(raw["age"][row]), float(raw["hours"][row])
    ages = [a for a in range(age - years, age + years + 1) if 20 <= a <= 30]
    spread = range(int(worked) - hours, int(worked) + hours + 1) if worked == worked else [worked]
    spread = [h for h in spread if h != h or 0 <= h <= 8]
    for a, h, job, wed in itertools.product(ages, spread, JOBS, ("no", "yes")):
        if (job != raw["job"][row]) + (wed != raw["married"][row]) <= switches:
            yield {"age": a, "hours": h, "debt": raw["debt"][row], "job": job, "married": wed}


def brute_force(model, raw, row, k, **changes):
    """The worst share of the top k left over all neighbours with the same decision, and how many
    neighbours there are; gradients one by one, with autograd alone."""

    def top(cells, target):
        x = TINY.encode({name: np.array([value]) for name, value in cells.items()}).double()
        x.requires_grad_()
        out = model(x)[0]
        odds = out[1] - out[0]
        score = torch.autograd.grad(odds if target else -odds, x)[0][0].abs()
        best = sorted(range(len(score)), key=lambda i: (-float(score[i]), i))[:k]
        return set(best), int(out.argmax())

    def decision(cells):
        return top(cells, 0)[1]

    clean = {name: values[row] for name, values in raw.items()}
    target = decision(clean)
    reasons = top(clean, target)[0]
    worst, count = 1.0, 0
    for person in neighbours(raw, row, **changes):
        count += 1
        now, decided = top(person, target)
        if decided == target:
            worst = min(worst, len(now & reasons) / k)
    return worst, count


@pytest.mark.parametrize(("switches", "k"), [(0, 2), (1, 2), (2, 3)])
def test_enumeration_and_attack_are_the_brute_force_worst(switches, k, monkeypatch):
    monkeypatch.setattr(feasible_proofs, "CHUNK_NUMBERS", 400)  # several blocks of points
    raw, model = people(12, seed=k), network(8, seed=switches)
    region = Feasible(TINY, moves={"age": 2, "hours": 1}, switches=switches)
    result = audit(model, TINY.encode(raw).double(), k=k, region=region, budget="fast")
    columns, summary = result.result["rows"], result.summary()
    expected = [
        brute_force(model, raw, row, k, years=2, hours=1, switches=switches)
        for row in columns["index"]
    ]
    worst = [share for share, _ in expected]
    assert min(worst) < 1
    assert columns["precision_strong"] == pytest.approx(worst)
    assert columns["certified_precision"] == pytest.approx(worst)
    assert columns["feasible_points"] == [count for _, count in expected]
    assert summary["changed_share"] == pytest.approx(np.mean([w < 1 for w in worst]))
    assert summary["certified_share"] == pytest.approx(np.mean([w == 1 for w in worst]))
    most = max(count for _, count in expected)
    proof = result.result["proof"]
    assert proof.startswith("For all 12 rows every change that is allowed was tried, one by one")
    assert f"(at most {most} each, the row itself included)" in proof


def test_a_network_that_makes_it_all_by_one_category():
    # f = 3 age job_cook + hours / 2 + married / 4: for a cook the age is a reason, for others not.
    class OneJob(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(1, dtype=torch.float64))

        def forward(self, x):
            odds = 3 * x[:, 0] * x[:, 5] + 0.5 * x[:, 1] + 0.25 * x[:, 7]
            return torch.stack([-odds - 9, odds + 9], 1) * self.weight

    raw = {
        "age": np.array([25, 25, 27]),
        "hours": np.array([4.0, 4, 4]),
        "debt": np.array([10.0, 10, 10]),
        "job": np.array(["clerk", "cook", "clerk"]),
        "married": np.array(["no", "no", "no"]),
    }
    x = TINY.encode(raw).double()
    # The clean top 2 of a clerk: the job of a cook (3 age) and hours; of a cook, age and that job.
    still = audit(OneJob().eval(), x, k=2, region=Feasible(TINY, moves={"age": 1}), budget="fast")
    assert still.summary()["certified_share"] == 1
    assert still.summary()["changed_share"] == 0
    moved = audit(OneJob().eval(), x, k=2, region=Feasible(TINY, switches=1), budget="fast")
    assert moved.summary()["certified_share"] == 0
    assert moved.summary()["changed_share"] == 1
    shown = {row["index"]: row["steps"][-1]["changes"] for row in moved.result["shown"]}
    assert shown[0][0] == {
        "column": "job",
        "before": "clerk",
        "after": "cook",
        "change": "switched",
        "possible": True,
    }
    assert "row 0 keeps 1 of 2: job: clerk -> cook" in str(moved)


def test_worst_rows_are_possible_people():
    data = credit(200)
    region = Feasible(data.schema, moves={"age": 2, "amount": 250.0, "income": 100}, switches=1)
    torch.manual_seed(3)
    model = MLP(14).eval()
    result = audit(model, *data.test, k=3, region=region, budget="fast", rows=5)
    worst = [row for row in result.result["shown"] if row["kind"] == "worst"]
    assert worst
    for row in worst:
        x, x_adv = torch.tensor([row["x"]]), torch.tensor([row["steps"][-1]["x"]])
        before, after = (data.schema.decode(v[0]) for v in (x, x_adv))
        for name, reach in (("age", 2), ("amount", 250.01), ("income", 100)):
            if before[name] is None:
                assert after[name] is None
            else:
                assert abs(after[name] - before[name]) <= reach + 1e-2
        labels = ("employment", "housing", "foreign")
        assert sum(before[name] != after[name] for name in labels) <= 1
        changes = row["steps"][-1]["changes"]
        assert all(change["possible"] for change in changes)
        assert {c["column"] for c in changes} <= {"age", "amount", "income", *labels}


def test_numbers_of_any_value_are_certified_switch_by_switch():
    raw, model = people(10, seed=5), network(8, seed=1, scale=0.5)
    x = TINY.encode(raw).double()
    region = Feasible(TINY, moves={"age": 1, "debt": 0.5}, switches=1)
    result = audit(model, x, k=2, region=region, budget="fast")
    proved = torch.tensor(result.result["rows"]["certified_precision"])
    attacked = torch.tensor(result.result["rows"]["precision_strong"])
    assert 0 < float((proved == 1).double().mean()) < 1
    assert bool((proved <= attacked + 1e-9).all())
    assert "around the row with its categories switched in each of 4 ways" in result.result["proof"]
    # A fine grid in place of any value: nothing that was proved may be broken on it.
    index = torch.tensor(result.result["rows"]["index"])
    fine = replace(region, grid={"debt": 0.05})
    gridded = audit(model, x, k=2, region=fine, budget="fast")
    assert gridded.result["rows"]["index"] == index.tolist()
    tried = torch.tensor(gridded.result["rows"]["precision_strong"])
    assert bool((tried >= proved - 1e-9).all())
    assert gridded.result["proof"].startswith("For all 10 rows every change")


def test_a_proof_of_one_number_is_that_of_its_line():
    # No switches: a row is proved exactly where its certified radius along debt is its move.
    x, model = TINY.encode(people(40, seed=6)).double(), network(8, seed=1, scale=2.0)
    region = Feasible(TINY, moves={"debt": 12.0})
    columns = audit(model, x, k=2, region=region, budget="fast").result["rows"]
    proved = torch.tensor(columns["certified_precision"]) == 1
    rows = x[columns["index"]]
    reach = region.box(rows)[:, 3]
    assert torch.equal(
        reach, torch.maximum(rows[:, 3].clamp(max=0.24), (1 - rows[:, 3]).clamp(max=0.24))
    )
    line = L2(1.0, frozen=[i for i in range(8) if i != 3], bounds=(0, 1))
    radius = IntervalCertifier(region=line, limit=1.0)(model, Gradient(), rows, k=2).radius
    assert bool((radius[proved] >= 0.97 * reach[proved]).all())
    assert bool(proved[radius >= 1.03 * reach].all())
    assert 4 < int(proved.sum()) < 36
    broken = torch.tensor(columns["precision_strong"]) < 1
    assert bool(broken.any())
    assert not bool((proved & broken).any())


def test_a_switched_row_whose_top_k_differs_is_not_proved():
    # Certified inside every ball, but the switched copies have other reasons: no proof at all.
    raw, model = people(10, seed=5), network(8, seed=1, scale=1.0)
    x = TINY.encode(raw).double()
    region = Feasible(TINY, moves={"debt": 1e-3}, switches=2)
    columns = audit(model, x, k=2, region=region, budget="fast").result["rows"]
    broken = [p < 1 for p in columns["precision_strong"]]
    assert any(broken)
    pairs = zip(broken, columns["certified_precision"], strict=True)
    assert all(proved < 1 for lost, proved in pairs if lost)


def test_what_cannot_be_proved_is_said(monkeypatch):
    raw, model = people(8), network(8)
    x = TINY.encode(raw).double()
    region = Feasible(TINY, moves={"debt": 1.0}, switches=1)
    smooth = audit(model, x, k=2, region=region, explainer=NO_PROOF, budget="fast")
    assert smooth.summary()["certified_share"] is None
    assert smooth.summary()["certified_precision"] is None
    assert "  not proved: more than 2000 rows are possible, and there is no certificate" in str(
        smooth
    )
    monkeypatch.setitem(feasible_proofs.ALL_CERTIFIED, "fast", 2)
    many = audit(model, x, k=2, region=region, budget="fast")
    assert many.summary()["certified_share"] is None
    line = "not proved: more than 2000 rows are possible, and 4 ways to switch categories are more"
    assert line in str(many)
    # A table of whole numbers needs no certificate, so that any explanation is proved.
    whole = Feasible(TINY, moves={"age": 1}, switches=1)
    result = audit(model, x, k=2, region=whole, explainer=SmoothGrad(samples=2), budget="fast")
    assert result.summary()["certified_share"] is not None


def test_rows_that_are_too_many_to_try_count_as_not_proved(monkeypatch):
    raw, model = people(8), network(8, scale=0.2)
    region = Feasible(TINY, moves={"hours": 3}, switches=0)
    monkeypatch.setitem(feasible_proofs.ALL_TRIED, "fast", 4)
    explainer = NO_PROOF
    result = audit(model, TINY.encode(raw).double(), k=2, region=region, explainer=explainer,
                   budget="fast")  # fmt: skip
    # Missing hours stay: one row each. Others have up to seven, and there is no other proof.
    points = dict(
        zip(*(result.result["rows"][n] for n in ("index", "feasible_points")), strict=True)
    )
    few = [row for row, count in points.items() if count <= 4]
    assert 0 < len(few) < 8
    assert result.summary()["certified_share"] <= len(few) / 8
    assert result.result["counts"]["certified_share"] == 8
    assert f"for {len(few)} of 8 rows every change" in result.result["proof"].lower()
    assert f"(for {8 - len(few)} of 8 rows)" in str(result)


def test_what_needs_a_ball_is_skipped_with_a_reason():
    raw, model = people(8), network(8)
    region = Feasible(TINY, moves={"age": 1}, switches=1)
    result = audit(model, TINY.encode(raw).double(), k=2, region=region, budget="fast")
    summary = result.summary()
    names = ("radius", "radius_certified_median", "radius_attacked_median", "thickness",
             "thickness_probability", "precision_er", "sensitivity")  # fmt: skip
    assert [summary[name] for name in names] == [None] * len(names)
    assert {s["what"] for s in result.skipped} >= {"smallest", "thickness", "papers", "radius"}
    assert summary["precision_noise"] >= summary["precision_strong"]
    assert result.result["curve"] == []


def test_files_and_the_page(tmp_path):
    raw, model = people(40), network(8, scale=1.0)
    region = Feasible(TINY, moves={"age": 2}, switches=1)
    x = TINY.encode(raw).double()
    result = audit(model, x, k=2, region=region, budget="fast", names=TINY.names)
    result.to_json(tmp_path / "audit.json")
    again = Audit.from_json(tmp_path / "audit.json")
    assert again.to_dict() == json.loads(json.dumps(result.to_dict()))
    again.to_html(tmp_path / "audit.html")
    page = (tmp_path / "audit.html").read_text()
    assert "change of at most 2 in age and one category that keeps the decision" in page
    change = next(r for r in again.result["shown"] if r["kind"] == "worst")["steps"][-1]["changes"][
        0
    ]
    cells = f"<td>{change['before']}</td><td>{change['after']}</td>"
    assert f'<th scope="row">{change["column"]}</th>{cells}' in page
    assert "radius 1" not in page
    assert "At this radius" not in page
    assert "How it was proved." in page
    assert '<th scope="row">changes allowed</th><td>at most 2 in age and one category</td>' in page
    assert "largest radius searched" not in page
    assert "Schema(" not in page + (tmp_path / "audit.json").read_text()


def test_rows_that_no_table_holds_are_refused():
    region = Feasible(TINY, moves={"age": 1})
    with pytest.raises(InputError, match=r"in 0\.\.1, as the schema encodes rows"):
        audit(network(8), torch.full((4, 8), 1.5).double(), k=2, region=region)


def test_the_bracket_is_checked_without_a_radius():
    columns = {
        "index": torch.arange(2),
        "certified_precision": torch.tensor([1.0, 0.5]),
        "precision_strong": torch.tensor([1.0, 0.0]),
    }
    with pytest.raises(RuntimeError, match="row 1 was changed inside"):
        check_bracket(columns)


def test_time_that_is_up_stops_the_enumeration():
    raw, model = people(8), network(8)
    region = Feasible(TINY, moves={"age": 1}, switches=1)
    x = TINY.encode(raw).double()
    result = audit(model, x, k=2, region=region, budget="fast", minutes=1e-9)
    assert {"what": "certified", "why": "the time was up"} in result.skipped


def test_adult_by_two_years_and_two_hours():
    data = real("adult")
    torch.manual_seed(0)
    model = MLP(28).eval()
    region = Feasible(data.schema, moves={"age": 2, "hours per week": 2}, switches=1)
    result = audit(model, data.test.x[:64], data.test.y[:64], k=8, region=region, budget="fast",
                   explainer=Gradient())  # fmt: skip
    summary = result.summary()
    assert summary["certified_share"] + summary["changed_share"] == pytest.approx(1)
    assert max(result.result["rows"]["feasible_points"]) <= 5 * 5 * 23
    for row in result.result["shown"]:
        for change in row["steps"][-1]["changes"]:
            assert change["possible"]
