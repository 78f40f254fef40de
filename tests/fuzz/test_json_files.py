"""Audits, records, claims, panels, unfinished audits and schemas, mutated: only our own errors."""

import io
import json
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from audits import image, tabular
from mutated import mutated_bytes, mutated_json, only_ours
from r2et.audit.checkpoint import AuditCheckpoint
from r2et.audit.measures import MeasuredChunk
from r2et.bench.claim import Claim, SeedValues, load_claims, save_claims
from r2et.bench.evaluation import leaderboards
from r2et.bench.panel import Panel
from r2et.bench.record import Record, Records
from r2et.bench.result_table import make_table
from r2et.bench.run import BenchOutcome, _stored
from r2et.bench.table_formats import latex, markdown
from r2et.bench.table_formats import page as page_of
from r2et.bench.table_plan import TableSpec, precision
from r2et.cli.bench import show
from r2et.config import config_key
from r2et.data import Column, Schema
from r2et.report import page, read_audit
from r2et.train.weight_search import _trial

CONFIG = {"name": "train", "version": 1, "data": "adult", "seed": 0, "recipe": {"weight": 0.1}}
RECORD = Record(CONFIG, {"auc": 0.9, "rows": [1.0, 0.5]}, {"auc": 0.8}, ("few rows",), None, {
    "r2et": "0.1", "torch": "2", "python": "3.11", "date": "2026-01-01", "seconds": 3.0,
})  # fmt: skip
CLAIM = Claim(
    "table1", "adult", "r2et", {"weight": 0.1}, (),
    {"precision": SeedValues((0.5, 0.6), 0.7, (0.5,), ("a", "b"))},
    {"k": 8, "seeds": 2, "regime": "long"}, {"r2et": "0.1", "date": "2026-01-01", "seconds": 3.0},
    ("c",), ("d",), {"0.1": 0.5},
)  # fmt: skip
SPEC = TableSpec("table1", "Title", (precision("Precision", "er", None),))
OPEN = Claim(
    "open", "adult", "mine", {}, (),
    {
        "proved": SeedValues((0.5,), 12.0), "strongattack": SeedValues((0.6,), rows=(0.5, 0.7)),
        "cauc": SeedValues((0.9,)), "sets": SeedValues((3,), failed=None, unreliable=("few",)),
    },
    {"k": 8, "seeds": 1, "linear": False, "by": "me", "source": "there"}, CLAIM.made,
)  # fmt: skip
PANEL = Panel("figure2", "adult", "r2et", {"x": [1.0]}, ("a",), None, {"r2et": "0.1"}, ())
SCHEMA = Schema(
    (
        Column("age", "integer", low=20, high=60, fill=30.0, flag=True),
        Column("pay", "number", low=-1.0, high=3.0),
        Column("since", "date", low=0, high=10),
        Column("job", "category", categories=("clerk", "cook", "diver")),
    ),
    "paid",
    ("no", "yes"),
)
RAW = {"age": [30, None], "pay": [1.0, 2.0], "since": ["1970-01-02"] * 2, "job": ["cook", "clerk"]}


@pytest.mark.parametrize("make", [tabular, image])
@given(data=st.data())
def test_audits(make, tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("audit")
    (folder / "audit.json").write_text(data.draw(mutated_json(make())))
    only_ours(lambda: page([read_audit(folder / "audit.json")], folder / "page.html"))


@given(st.data())
def test_bytes_of_audits(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("audit")
    content = data.draw(mutated_bytes(json.dumps(tabular()).encode()))
    (folder / "audit.json").write_bytes(content)
    only_ours(lambda: page([read_audit(folder / "audit.json")], folder / "page.html"))


@given(st.data())
def test_records(tmp_path_factory, data):
    """One that cannot be read is set aside, never removed; the rest are there."""
    folder = tmp_path_factory.mktemp("bench")
    Records(folder)
    name = f"train-{config_key(CONFIG)}"
    text = RECORD.to_json()
    if data.draw(st.booleans()):
        content = data.draw(mutated_json(RECORD.to_dict())).encode("utf-8", "surrogatepass")
    else:
        content = data.draw(mutated_bytes(text.encode()))
    (folder / "records" / f"{name}.json").write_bytes(content)
    other = {**CONFIG, "seed": 1}
    (folder / "records" / f"train-{config_key(other)}.json").write_text(
        Record(other, RECORD.measured, made=RECORD.made).to_json()
    )
    notes = []

    def read():
        records = Records(folder, notes.append)
        assert records.find(f"train-{config_key(other)}") is not None
        records.find(name)

    assert not only_ours(read)
    left = [path.read_bytes() for path in (folder / "records").iterdir() if name in path.name]
    assert left == [content]


@pytest.mark.parametrize("stored", [CLAIM, PANEL], ids=["claim", "panel"])
@given(data=st.data())
def test_claims_and_panels(stored, tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("claims")
    path = folder / stored.name
    path.parent.mkdir()
    if data.draw(st.booleans()):
        path.write_text(data.draw(mutated_json(stored.to_dict())))
    else:
        path.write_bytes(data.draw(mutated_bytes(stored.to_json().encode())))
    only_ours(lambda: _stored(type(stored), stored.name, folder))
    if stored is CLAIM:
        other = replace(CLAIM, recipe="sp")
        claims = []
        only_ours(lambda: claims.extend(load_claims(folder, "table1")))
        for every in (claims, [*claims, other]):
            shown(lambda own=every: [make_table(SPEC, "adult", "adult", own)])


@given(data=st.data())
def test_leaderboards(tmp_path_factory, data):
    """Somebody's claim beside one of ours, in every format and on the terminal."""
    folder = tmp_path_factory.mktemp("claims")
    save_claims([replace(OPEN, recipe="other"), OPEN], folder)
    (folder / OPEN.name).write_text(data.draw(mutated_json(OPEN.to_dict())))
    shown(lambda: leaderboards(folder))


def shown(tables):
    """Whether tables are shown in every format; nothing in them is a code to a terminal."""
    screen = io.StringIO()

    def show_all():
        made = tables()
        texts = [page_of("Title", made), *map(markdown, made), *map(latex, made)]
        show(Console(file=screen, width=100), BenchOutcome(made))
        assert not any("\x1b" in text or "\0" in text for text in (*texts, screen.getvalue()))

    return not only_ours(show_all)


def test_claims_that_are_not_changed_are_shown(tmp_path):
    assert shown(lambda: [make_table(SPEC, "adult", "adult", [CLAIM])])
    save_claims([OPEN], tmp_path)
    assert shown(lambda: leaderboards(tmp_path))


@given(st.data())
def test_unfinished_audits(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("partial") / "audit.partial"
    identity = {"weights": "ab", "settings": {"k": 3}}
    kept = AuditCheckpoint(path, identity)
    for number in range(2):
        kept.add(MeasuredChunk(number, f"rows {number}", {"top": torch.rand(2, 3)}, {}, {}, {}))
    kept.close()
    if data.draw(st.booleans()):
        lines = path.read_bytes().splitlines()
        which = data.draw(st.integers(0, 2))
        lines[which] = data.draw(mutated_json(json.loads(lines[which]))).encode()
        path.write_bytes(b"\n".join(lines) + b"\n")
    else:
        path.write_bytes(data.draw(mutated_bytes(path.read_bytes())))

    def go_on():
        again = AuditCheckpoint(path, identity)
        assert all(chunk.number == number for number, chunk in again.done.items())
        again.close()

    only_ours(go_on)


@given(st.data())
def test_schemas(data):
    text = data.draw(mutated_json(SCHEMA.to_json()))

    def use():
        schema = Schema.from_json(json.loads(text))
        x = schema.encode({column.name: RAW.get(column.name, [0, 1]) for column in schema.columns})
        assert x.isfinite().all()
        schema.decode(x[0])
        assert len(schema.groups) <= len(schema.columns)
        assert len(schema.names) == x.shape[1]

    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return
    only_ours(use)


@given(st.data())
def test_trials_of_a_search(tmp_path_factory, data):
    """One that is broken is measured again."""
    path = tmp_path_factory.mktemp("trial") / "trial.json"
    stored = {"key": "8 0.1 3", "proved": 0.5, "attacked": None, "distinct": 7}
    text = data.draw(mutated_json(stored))
    path.write_bytes(data.draw(st.sampled_from([text.encode(), text.encode()[:20], b"\xff"])))
    trial = _trial(path)
    assert trial == {} or {"proved", "attacked", "distinct"} <= set(trial)
