"""An audit of the reasons that people are given, and of the refused alone."""

import json
import re
from dataclasses import replace

import pytest
import torch

from credit_table import credit, frame
from r2et import audit, cli, reasons
from r2et.audit.contributions import POINTS, enough_points
from r2et.audit.raw_values import column_values
from r2et.errors import InputError
from r2et.explain import IntegratedGradients
from r2et.models import TableMLP
from r2et.models.output import batched_logits, classes
from r2et.region import Feasible
from r2et.results import check_audit
from r2et.train import fit

FEW = {"budget": "fast", "rows": 6}


@pytest.fixture(scope="module")
def data():
    return credit(200)


@pytest.fixture(scope="module")
def trained(data):
    return fit(None, data, "linear", epochs=2, progress=False, baselines=False).trained


@pytest.fixture(scope="module")
def result(data, trained):
    region = Feasible(data.schema, moves={"age": 2})
    return audit(trained, region=region, explainer="reasons", only="bad", **FEW)


def decided(model, x):
    return classes(batched_logits(model, x))


def test_only_rows_of_the_class_are_audited(data, trained, result):
    own = decided(trained.model, data.test.x)
    bad = data.classes.index("bad")
    assert 0 < int((own == bad).sum()) < len(own)
    assert all(int(own[row["index"]]) == bad for row in result.rows)
    assert result.result["settings"]["only"] == "bad"
    text = str(result)
    assert "decided bad" in text.splitlines()[0]
    assert "AUC, rows decided bad" in text or "AUC" not in text
    assert "only rows decided bad were audited" in text
    assert "not that of logistic regression: the two are no comparison here" in text
    assert "BELOW LOGISTIC" not in text


def test_whether_reasons_carry_the_decision_is_measured(trained, result):
    summary = result.summary()
    assert summary["comprehensiveness"] is not None
    assert summary["sufficiency"] is not None
    assert not any(skipped["what"] == "faithfulness" for skipped in result.skipped)
    baseline = result.result["config"]["baseline"]
    assert baseline == pytest.approx(trained.mean.tolist())  # what reasons are compared with


@pytest.mark.usefixtures("short_attacks")
def test_classes_by_number_and_cut_off(data, trained):
    likely = batched_logits(trained.model, data.test.x).softmax(1)[:, 1]
    cutoff = float(likely.median()) + 1e-4
    assert abs(cutoff - 0.5) > 1e-3  # another decision than the likelier class
    zero = audit(trained, data.test.x, k=2, only=0, all_rows=True, cutoff=cutoff, **FEW)
    assert len(zero.rows) == 6
    assert all(likely[row["index"]] < cutoff for row in zero.rows)


@pytest.mark.usefixtures("short_attacks")
def test_a_stream_is_chosen_from_as_an_array_is(data, trained):
    x = data.test.x
    own = (decided(trained.model, x) == 1).nonzero().flatten().tolist()
    parts = [x[i : i + 7] for i in range(0, len(x), 7)]
    streamed = audit(trained.model, iter(parts), k=2, only=1, budget="fast", rows=4)
    assert [row["index"] for row in streamed.rows] == own[:4]


def test_what_cannot_be_chosen_is_one_sentence(data, trained):
    with pytest.raises(InputError, match=r"only must be a class of the model \(bad, good\), got x"):
        audit(trained, only="x", **FEW)
    with pytest.raises(InputError, match=r"a class of the model \(by its number, 0, 1, ...\)"):
        audit(trained.model, data.test.x, k=2, only="bad", **FEW)
    other = data.test.x[decided(trained.model, data.test.x) == 0][:3]
    for rows in (other, iter([other])):
        expected = "only must be a class that some rows are decided for, got good, none of 3"
        with pytest.raises(InputError, match=expected):
            audit(trained, rows, only="good", all_rows=True, **FEW)
    with pytest.raises(InputError, match="explainer must be an Explainer or 'reasons', got reason"):
        audit(trained, explainer="reason", **FEW)
    with pytest.raises(InputError, match="explainer must be an Explainer for a model whose"):
        audit(trained.model, data.test.x, explainer="reasons", **FEW)


def test_scores_are_those_that_reasons_are_read_from(data, trained, result):
    assert result.result["names"] == [column.name for column in data.schema.columns]
    assert result.summary()["k"] == 4
    for shown in result.result["shown"]:
        (told,) = reasons(
            trained, data.test.x[shown["index"]][None], k=7, toward=data.classes.index("bad")
        )
        ours = dict(zip(result.result["names"], shown["scores"], strict=True))
        assert told.columns[0] == max(ours, key=ours.get)
        assert told.reasons[0].contribution == pytest.approx(max(ours.values()), rel=1e-4)
        own = {reason.column: reason.value for reason in told.reasons}
        values = dict(zip(result.result["names"], shown["values"], strict=True))
        assert own.items() <= values.items()


def test_values_are_in_the_words_of_the_table(data):
    table = frame(200)
    x = data.test.x
    texts = [column_values(data.schema, row) for row in x]
    ages = [int(text[0]) for text in texts]
    assert set(ages) <= set(table["age"])
    assert {text[4] for text in texts} <= set(table["employment"])
    assert "missing" in {text[3] for text in texts}


def test_the_page_leads_with_the_people_and_names_what_they_hold(result, tmp_path):
    result.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert re.search(r"change of at most 2 in age that keeps the decision", page)
    assert "decided bad, for these changes" in page
    shown = result.result["shown"][0]
    best = max(range(len(shown["scores"])), key=lambda i: shown["scores"][i])
    assert f"{result.result['names'][best]}: {shown['values'][best]}" in page
    assert "as accurate here" not in page


def test_half_a_list_of_values_is_refused(result):
    plain = json.loads(json.dumps(result.to_dict()))
    plain["shown"][0]["values"] = plain["shown"][0]["values"][:2]
    with pytest.raises(InputError, match=r"shown\[0\].values must be a list of 7 texts"):
        check_audit("page", plain)


def test_the_command(data, tmp_path, monkeypatch, capsys):
    fit(None, data, "linear", epochs=2, out=tmp_path / "m", progress=False, baselines=False)
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        usual = ["r2et", "audit", "m", "--engine", "serial", "--budget", "fast", "--rows", "4"]
        monkeypatch.setattr("sys.argv", [*usual, *arguments])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        return stop.value.code, *capsys.readouterr()

    code, out, _ = run("--reasons", "--only", "bad", "--moves", "age=1")
    assert code == 0
    assert "decided bad" in out
    code, _, err = run("--only", "worse")
    assert (code, "only must be a class of the model (bad, good), got worse" in err) == (2, True)


@pytest.mark.parametrize("kinks", [0, 12])
def test_as_many_points_as_make_contributions_add_up(kinks):
    """A column's function of many kinks takes more of them than one without."""
    torch.manual_seed(0)
    model = TableMLP(2, [max(kinks, 1), 1], (8,), additive=True)
    weight = (
        torch.randn(2, len(model.encoding)) if kinks else torch.tensor([[0.0, 0.0], [1.0, 1.0]])
    )
    model.start_at(weight, torch.zeros(2))
    with torch.no_grad():
        model.linears[-1].weight.zero_()
    x = torch.rand(50, 2)
    method = IntegratedGradients(baseline=[0.05, 0.5], reduce="signed")
    found, off = enough_points(model, method, x)
    assert (found.points > POINTS[0]) == bool(kinks)
    assert (off > 0) <= (found.points == POINTS[-1])
    assert found == replace(method, points=found.points)
    # Of rows that nobody kept nothing is known: the most there are.
    for nothing in (None, x[:0]):
        assert enough_points(model, method, nothing)[0].points == POINTS[-1]


def test_an_audit_is_of_reasons_with_so_many_points(data, trained):
    """Those of `reasons`: few of a linear model, more of one that bends at its bins."""
    bent = fit(None, data, "vanilla", epochs=2, progress=False, baselines=False).trained
    for model, least, most in ((trained, 16, 16), (bent, 32, 128)):
        audited = audit(model, explainer="reasons", **FEW).result
        points = audited["config"]["explainer"]["points"]
        assert least <= points <= most
        assert f"{points} points" in reasons(model, data.test.x[:2]).explainer


def test_contributions_that_miss_are_said_to(data, monkeypatch):
    bent = fit(None, data, "vanilla", epochs=2, progress=False, baselines=False).trained
    monkeypatch.setattr("r2et.audit.contributions.POINTS", (1,))
    (note,) = [n for n in reasons(bent, data.test.x[:2]).notes if "add up" in n]
    assert "1 points" in note
    monkeypatch.setattr("r2et.audit.contributions.OFF", 100.0)
    assert not any("add up" in n for n in reasons(bent, data.test.x[:2]).notes)
