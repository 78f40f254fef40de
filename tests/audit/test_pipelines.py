"""audit and reasons of estimators: Pipelines, searches, skorch nets and networks behind steps."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from torch import nn

from r2et import R2ETClassifier, audit, reasons
from r2et.audit.subject import Subject
from r2et.errors import InputError
from r2et.models import MLP
from r2et.region import L2

pytestmark = pytest.mark.usefixtures("short_attacks")


class Net(ClassifierMixin, BaseEstimator):
    """What a fitted skorch.NeuralNetClassifier shows of itself: its network is `module_`."""

    def fit(self, x, y):
        torch.manual_seed(0)
        self.module_ = MLP(x.shape[1], (4,), classes=2)
        self.classes_ = np.unique(y)
        return self


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    numbers = pd.DataFrame(rng.normal(size=(60, 3)) * [1, 50, 0.1], columns=["a", "b", "c"])
    job = rng.choice(["clerk", "cook", "pilot"], 60)
    return numbers.assign(job=job), (numbers["a"] + rng.normal(size=60) > 0).astype(int).to_numpy()


def encoder(**settings):
    words = ("onehot", OneHotEncoder(**settings), ["job"])
    return ColumnTransformer([words, ("num", StandardScaler(), ["a", "b", "c"])])


NAMES = ["onehot__job_clerk", "onehot__job_cook", "onehot__job_pilot", "num__a", "num__b", "num__c"]


def test_a_pipeline_is_audited_on_what_its_steps_make_of_the_rows(table):
    x, y = table
    pipe = make_pipeline(encoder(), Net()).fit(x, y)
    found = audit(pipe, x[:12], y[:12], k=2, budget="fast")
    rows = encoder().fit(x).transform(x[:12])
    direct = audit(pipe[-1].module_, np.asarray(rows), y[:12], k=2, budget="fast")
    assert found.summary() == direct.summary()
    assert found.result["names"] == NAMES
    assert found.result["name"] == "Net"


def test_a_network_itself_may_be_the_last_step(table):
    x, y = table[0][["a", "b", "c"]], table[1]
    network = MLP(3, (4,), classes=2)
    pipe = Pipeline([("none", "passthrough"), ("scale", StandardScaler().fit(x)), ("net", network)])
    found = audit(pipe, x[:8], y[:8], k=1, budget="fast")
    rows = torch.tensor(StandardScaler().fit(x).transform(x[:8])).float()
    assert found.summary() == audit(network, rows, y[:8], k=1, budget="fast").summary()
    assert found.result["names"] == ["a", "b", "c"]
    # Rows given as a tensor are raw ones, too.
    bare = Pipeline([("scale", StandardScaler().fit(x.to_numpy())), ("net", network)])
    again = Subject.of(bare).inputs(torch.tensor(x[:8].to_numpy()))
    np.testing.assert_allclose(again, rows, atol=1e-6)


def test_a_sparse_step_is_written_out(table):
    x, _ = table
    steps = encoder()
    steps.set_params(sparse_threshold=1.0)
    pipe = make_pipeline(steps, Net())
    pipe.steps[0][1].fit(x)
    pipe.steps[1][1].fit(np.zeros((2, 6)), [0, 1])
    assert hasattr(steps.transform(x), "toarray")
    found = audit(pipe, x[:4], k=2, budget="fast").summary()
    dense = steps.transform(x[:4]).toarray()
    assert found == audit(pipe[-1].module_, dense, k=2, budget="fast").summary()


def test_a_pipeline_or_search_that_ends_in_ours_is_audited_as_ours(table):
    x, y = table[0], np.where(table[1], "yes", "no")
    ours = R2ETClassifier(2, "vanilla", 0.2, 0, epochs=1, baselines=False)
    pipe = make_pipeline(encoder(sparse_output=False).set_output(transform="pandas"), ours)
    pipe.fit(x[:40], y[:40])
    found = audit(pipe, x[34:48], y[34:48], budget="fast")
    before = pipe[:-1].transform(x[34:48])
    assert found.summary() == pipe[-1].audit(before, y[34:48], budget="fast").summary()
    assert found.summary()["rows"] == 8
    assert found.result["settings"]["k"] == 2
    assert (found.result["names"], found.result["classes"]) == (NAMES, ["no", "yes"])
    search = GridSearchCV(pipe, {"r2etclassifier__epochs": [1]}, cv=2).fit(x[:40], y[:40])
    assert audit(search, x[34:48], y[34:48], budget="fast").summary() == found.summary()
    with pytest.raises(InputError, match=r"^audit: y must be of no, yes, got \['maybe'\]\.$"):
        audit(pipe, x, ["maybe"] * 60)
    told = reasons(search, x[:3], k=2, toward="no")
    assert {column for person in told for column in person.columns} <= {"job", "a", "b", "c"}


def test_names_are_those_of_the_step_before_even_where_it_gives_an_array(table):
    x, y = table
    ours = R2ETClassifier(2, "vanilla", epochs=1, baselines=False)
    pipe = make_pipeline(encoder(), ours).fit(x, y)
    assert list(Subject.of(pipe).feature_names) == NAMES
    assert Subject.of(make_pipeline(Net()).fit(np.eye(2), [0, 1])).feature_names is None


def test_bad_input_is_one_sentence(table):
    x, y = table[0][["a", "b", "c"]], table[1]
    kinds = "a fitted R2ETClassifier, skorch net or Pipeline that ends in one of these, got "
    for model in (
        make_pipeline(StandardScaler(), LogisticRegression()).fit(x, y),
        make_pipeline(StandardScaler(), R2ETClassifier()),
        R2ETClassifier(),
        LogisticRegression(),
        Net(),
        "model",
    ):
        with pytest.raises(InputError, match=f"^audit: model must be a torch.nn.Module, .*{kinds}"):
            audit(model, x, y, k=1)
    fresh = Pipeline([("scale", StandardScaler()), ("net", nn.Linear(3, 2))])
    expected = "^audit: x must be rows that the Pipeline's steps take, got an error: "
    with pytest.raises(InputError, match=f"{expected}This StandardScaler instance is not fitted"):
        audit(fresh, x, y, k=1)
    with pytest.raises(InputError, match=f"{expected}.*feature names should match"):
        audit(make_pipeline(StandardScaler(), Net()).fit(x, y), x[["a"]], y, k=1, region=L2(1.0))
    with pytest.raises(InputError, match="k must be given for a model whose training is not known"):
        audit(make_pipeline(StandardScaler(), Net()).fit(x, y), x, y)


def test_a_real_skorch_net(table):
    skorch = pytest.importorskip("skorch", reason="skorch is not installed")
    x, y = table[0][["a", "b", "c"]].to_numpy(np.float32), table[1]
    net = skorch.NeuralNetClassifier(
        MLP(3, (4,), classes=2), criterion=nn.CrossEntropyLoss, max_epochs=1, verbose=0
    )
    pipe = make_pipeline(StandardScaler(), net).fit(x, y)
    found = audit(pipe, x[:8], y[:8], k=1, budget="fast")
    rows = pipe[:-1].transform(x[:8])
    assert found.summary() == audit(net.module_, rows, y[:8], k=1, budget="fast").summary()
