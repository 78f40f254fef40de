"""Stored networks, trained folders, weights and checkpoints, mutated: only our own errors."""

import hashlib
import io
import json
import pickle
import shutil

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save, save_file

from fuzz_factory import factory
from mutated import mutated_bytes, mutated_json, only_ours
from r2et.audit.loading import open_model, open_rows
from r2et.audit.subject import Subject
from r2et.data import load_table
from r2et.errors import InputError
from r2et.models import load_model
from r2et.train import fit, load_trained
from r2et.train.checkpoint import NAME, Folder

CSV = "age,job,paid\n" + "".join(f"{20 + i},{'abc'[i % 3]},{i % 2}\n" for i in range(60))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder of a training on a small table, and the table."""
    place = tmp_path_factory.mktemp("trained")
    (place / "people.csv").write_text(CSV)
    data = load_table(place / "people.csv", target="paid")
    fit(None, data, "vanilla", out=place / "model", k=1, epochs=2, progress=False)
    assert (place / "model" / NAME).is_file()
    return place / "model", place / "people.csv"


def use(folder, table):
    """Everything that reads a trained folder."""
    subject = load_trained(folder)
    subject.model(torch.zeros(1, len(subject.names)))
    assert subject.mean is None or subject.mean.ndim == 1
    assert subject.baselines is None or subject.baselines.logistic is not None
    subject.read(table)
    opened = open_model(str(folder))
    open_rows(opened, None)
    Subject(opened.model, opened.trained).test_rows("audit", "DATA")


def weights_of(folder):
    (path,) = folder.glob("weights-*.safetensors")
    return path


@pytest.fixture
def copied(trained, tmp_path):
    """The folder again and again, as it was."""

    def again():
        shutil.rmtree(tmp_path / "copy", ignore_errors=True)
        shutil.copytree(trained[0], tmp_path / "copy")
        return tmp_path / "copy"

    return again


def test_the_folder_as_it_was_is_used(trained, copied):
    use(copied(), trained[1])


@given(st.data())
def test_descriptions(trained, copied, data):
    folder = copied()
    whole = json.loads((folder / "model.json").read_text())
    text = data.draw(mutated_json(whole))
    (folder / "model.json").write_text(text)
    only_ours(lambda: use(folder, trained[1]))


@given(st.data())
def test_bytes_of_descriptions(trained, copied, data):
    folder = copied()
    content = data.draw(mutated_bytes((folder / "model.json").read_bytes()))
    (folder / "model.json").write_bytes(content)
    only_ours(lambda: use(folder, trained[1]))


@given(st.data())
def test_weights_that_pretend_to_be_whole(copied, data):
    folder = copied()
    path = weights_of(folder)
    blob = data.draw(mutated_bytes(path.read_bytes()))
    path.unlink()
    digest = hashlib.sha256(blob).hexdigest()
    (folder / f"weights-{digest[:16]}.safetensors").write_bytes(blob)
    text = (folder / "model.json").read_text()
    old = json.loads(text)["weights"]
    (folder / "model.json").write_text(text.replace(old, digest))
    only_ours(lambda: load_model(folder))


@given(st.data())
def test_rows_that_pretend_to_be_whole(trained, copied, data):
    folder = copied()
    (path,) = folder.glob("rows-*.safetensors")
    if data.draw(st.booleans()):
        blob = data.draw(mutated_bytes(path.read_bytes()))
    else:
        tensors = load_file(path)
        name = data.draw(st.sampled_from(sorted(tensors)))
        tensors[name] = data.draw(
            st.sampled_from(
                [torch.zeros(0), torch.zeros(2, 3, 4), torch.tensor([torch.nan]), torch.ones(3)]
            )
        )
        blob = save(tensors)
    name = f"rows-{hashlib.sha256(blob).hexdigest()[:16]}.safetensors"
    text = (folder / "model.json").read_text().replace(path.name, name)
    (folder / "model.json").write_text(text)
    (folder / name).write_bytes(blob)

    def recognise():
        use(folder, trained[1])
        subject = load_trained(folder)
        x, y = subject.read(trained[1])
        if subject.seen is not None:
            subject.seen.parts(x, y)

    only_ours(recognise)


@given(st.data())
def test_weights_for_somebodys_network(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("weights") / "w.safetensors"
    save_file(factory().state_dict(), path)
    path.write_bytes(data.draw(mutated_bytes(path.read_bytes())))
    only_ours(lambda: open_model("fuzz_factory:factory", str(path)))


@pytest.mark.parametrize("kind", ["pickle", "legacy", "zip"])
def test_pickles_are_never_loaded(kind, tmp_path):
    """A pickle that would write a file when it is loaded."""
    witness = tmp_path / "ran"

    class Evil:
        def __reduce__(self):
            return open, (str(witness), "w")

    path = tmp_path / "model.safetensors"
    if kind == "pickle":
        path.write_bytes(pickle.dumps(Evil()))
    else:
        torch.save({"w": Evil()}, path, _use_new_zipfile_serialization=kind == "zip")
    with pytest.raises(InputError, match="never loaded"):
        open_model("fuzz_factory:factory", str(path))
    (tmp_path / "training").mkdir()
    shutil.copy(path, tmp_path / "training" / NAME)
    with pytest.raises(InputError, match="cannot be read"):
        Folder(tmp_path / "training", {"format": "any"}).load()
    assert not witness.exists()


@given(st.data())
def test_checkpoints(trained, copied, data):
    folder = copied()
    table = load_table(trained[1], target="paid")
    if data.draw(st.booleans()):
        content = data.draw(mutated_bytes((folder / NAME).read_bytes()))
    else:
        state = torch.load(folder / NAME, weights_only=True)
        part = data.draw(st.sampled_from(sorted(state)))
        hostile = [None, 3, "x", [], {}, {"step": -1}, torch.zeros(2), {"a": torch.ones(1)}]
        state[part] = data.draw(st.sampled_from(hostile))
        blob = io.BytesIO()
        torch.save(state, blob)
        content = blob.getvalue()
    (folder / NAME).write_bytes(content)
    only_ours(lambda: fit(None, table, "vanilla", out=folder, k=1, epochs=2, progress=False))
