"""MNIST pairs, CIFAR-10 in its three containers, and retinal scans."""

import io
import json

import numpy as np
import pytest
import torch
from PIL import Image

from r2et.data import load
from r2et.data.cifar10 import from_lines, from_sheet
from r2et.data.mnist import idx
from r2et.data.retina import kermany
from r2et.data.sources import PlaceError
from r2et.errors import InputError, UnavailableError
from real_data import real


def png(pixels):
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG", compress_level=0)
    return out.getvalue()


def test_mnist_pairs():
    data = real("mnist")
    for part, count in zip((data.train, data.val, data.test), (2400, 300, 600), strict=True):
        assert part.x.shape == (count, 2, 1, 28, 28)
        assert part.x.dtype == torch.float32
        assert (float(part.x.min()), float(part.x.max())) == (0.0, 1.0)
        assert float(part.y.float().mean()) == 0.5
    assert data.k == 50
    assert data.classes == ("different", "same")


def test_no_mnist_image_is_in_two_parts():
    data = real("mnist")
    images = [
        {image.numpy().tobytes() for image in part.x.flatten(0, 1)}
        for part in (data.train, data.val, data.test)
    ]
    assert not images[0] & images[1]
    assert not images[0] & images[2]
    assert not images[1] & images[2]


def test_no_mnist_image_is_paired_with_itself():
    x = real("mnist").train.x
    assert not (x[:, 0] == x[:, 1]).flatten(1).all(1).any()


def test_idx():
    array = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    head = bytes([0, 0, 8, 3]) + np.array([2, 3, 4], ">i4").tobytes()
    assert np.array_equal(idx(head + array.tobytes()), array)


def test_both_containers_of_cifar_give_the_official_records():
    generator = np.random.default_rng(0)
    pixels = generator.integers(0, 256, (10000, 3, 32, 32), dtype=np.uint8)
    labels = generator.integers(0, 10, 30000, dtype=np.uint8)
    sheet = np.zeros((3200, 3200, 3), np.uint8)
    for number, image in enumerate(pixels):  # image by image, as the layout is described
        row, column = divmod(number, 100)
        place = np.s_[row * 32 : row * 32 + 32, column * 32 : column * 32 + 32]
        sheet[place] = np.moveaxis(image, 0, -1)
    lines = np.moveaxis(pixels.reshape(10000, 3, 1024), 1, -1)
    stored = io.BytesIO()
    np.savez(stored, y_train=labels)
    records = b"".join(
        bytes([label]) + image.tobytes()
        for label, image in zip(labels[10000:20000], pixels, strict=True)
    )
    assert from_sheet([png(sheet), stored.getvalue()], "y_train", 10000) == records
    text = json.dumps(labels.tolist()).encode()
    assert from_lines([png(np.ascontiguousarray(lines)), text], 10000) == records


def test_a_picture_of_another_shape():
    with pytest.raises(PlaceError, match=r"its picture has the shape \(5, 5, 3\)"):
        from_lines([png(np.zeros((5, 5, 3), np.uint8)), b"[]"], 0)
    with pytest.raises(PlaceError, match="its picture cannot be read"):
        from_lines([b"no picture", b"[]"], 0)


def labels_file(**arrays):
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (b"", "its y_train cannot be read"),
        (b"PK\x03\x04 junk", "its y_train cannot be read"),
        (labels_file(other=np.zeros(9)), "its y_train cannot be read"),
        (labels_file(y_train=np.zeros(99, np.uint8)), "its labels are not 10000 whole numbers"),
        (labels_file(y_train=np.zeros(10000)), "its labels are not 10000 whole numbers in 0..9"),
        (labels_file(y_train=np.full(10000, 11)), "its labels are not 10000 whole numbers in 0..9"),
        (labels_file(y_train=np.array(3)), "its y_train cannot be read"),
    ],
)
def test_labels_that_are_none(labels, message):
    sheet = png(np.zeros((3200, 3200, 3), np.uint8))
    with pytest.raises(PlaceError, match=message):
        from_sheet([sheet, labels], "y_train", 0)


@pytest.mark.parametrize("labels", [b"", b"{}", b"7", b"[1, [2]]", b'["a"]', b"[" * 100_000])
def test_json_labels_that_are_none(labels):
    lines = png(np.zeros((10000, 1024, 3), np.uint8))
    with pytest.raises(PlaceError, match="its labels "):
        from_lines([lines, labels], 0)


def test_junk_beside_the_sheets_is_one_warning_and_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("R2ET_DATA", str(tmp_path))
    monkeypatch.setenv("R2ET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("R2ET_OFFLINE", "1")
    (tmp_path / "cifar10").mkdir()
    for sheet in ("train_0", "test"):
        picture = png(np.zeros((3200, 3200, 3), np.uint8))
        (tmp_path / "cifar10" / f"{sheet}.webp").write_bytes(picture)
    (tmp_path / "cifar10" / "labels.npz").write_bytes(b"junk")
    with (
        pytest.warns(UserWarning, match=r"train_0\.webp is not used: its y_train cannot be read"),
        pytest.raises(UnavailableError, match=r"^cifar10-10k: cifar10/data_batch_1\.bin"),
    ):
        load("cifar10-10k")


def test_cifar_first_batch():
    data = real("cifar10-10k")
    sizes = [part.x.shape for part in (data.train, data.val, data.test)]
    assert sizes == [(9000, 3, 32, 32), (1000, 3, 32, 32), (10000, 3, 32, 32)]
    assert torch.equal(data.test.y.bincount(), torch.full((10,), 1000))
    assert data.train.y.bincount().min() > 800
    assert data.k == 100


@pytest.mark.parametrize(
    ("name", "side", "rows"), [("oct-kermany", 224, 500), ("oct-kermany-64", 64, 8000)]
)
def test_retinal_scans(name, side, rows):
    data = real(name)
    parts = (data.train, data.val, data.test)
    assert sum(len(part.y) for part in parts) == rows
    for part in parts:
        assert part.x.shape[1:] == (1, side, side)
        assert 0 <= part.x.min() < part.x.max() <= 1
        assert (part.y.bincount(minlength=4) > 0).all()
    assert len(data.train.y) == pytest.approx(0.70 * rows, rel=0.03)
    assert "ROCT" not in data.name
    assert "stands in for the papers' ROCT (OCTID), and is not it" in str(data)
    assert data.notes == ()


def scans(patients, **changes):
    x = np.arange(len(patients), dtype=np.uint8)[:, None, None] * np.ones((1, 8, 8), np.uint8)
    classes = np.array(list("abcd"))
    return {"x": x, "y": x[:, 0, 0] % 4, "patient": patients, "classes": classes, **changes}


@pytest.fixture
def scans_file(tmp_path, monkeypatch):
    monkeypatch.setenv("R2ET_DATA", str(tmp_path))
    (tmp_path / "oct").mkdir()
    return tmp_path / "oct" / "oct_kermany_500_224.npz"


def test_a_patient_is_in_one_part_only(scans_file):
    patients = np.repeat(np.arange(100, 140), 5)
    np.savez(scans_file, **scans(patients))
    data = kermany("oct-kermany")()
    owners = [{patients[round(float(image.max()) * 255)] for image in p.x} for p in data.parts]
    assert [len(people) for people in owners] == [28, 6, 6]
    assert len(set.union(*owners)) == 40
    assert data.notes[0].startswith("your own copy of oct/oct_kermany_500_224.npz, SHA-256")


TWENTY = np.arange(20)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": np.zeros((3, 8, 8), np.uint8)}, "the file must be as docs/data/oct.md describes"),
        (scans(TWENTY, x=np.zeros((20, 8, 8))), "x must be bytes (images, H, W), got float64"),
        (scans(TWENTY, x=np.zeros((0, 8, 8), np.uint8)), "x must be bytes (images, H, W), got"),
        (
            scans(TWENTY, x=np.zeros((20, 7, 7), np.uint8)),
            "an image must be one of more than k = 50 pixels, got 49 pixels.",
        ),
        (scans(TWENTY, y=TWENTY), "y must be in 0..3, got 19."),
        (scans(TWENTY, y=TWENTY % 2 - 1), "y must be in 0..3, got -1."),
        (scans(TWENTY, y=TWENTY % 2 / 2), "y must be whole numbers, got 0.5 in place 1."),
        (scans(TWENTY, y=np.array(3)), "y must be an array of shape (images,), got ()."),
        (scans(TWENTY, y=TWENTY[:9]), "y must be one number for each of 20 images, got 9."),
        (
            scans(TWENTY * 0),
            "patient must be 7 different ones or more, for three parts, got 1.",
        ),
        (scans(TWENTY, classes=np.array("a")), "classes must be a list of names, got <U1 ()."),
        (scans(TWENTY, classes=np.arange(4)), "classes must be a list of names, got int64 (4,)."),
        (
            scans(TWENTY, classes=np.array(list("aabc"))),
            "classes must be two names or more, all different, got",
        ),
    ],
)
def test_scans_in_another_form_are_refused(scans_file, arrays, message):
    np.savez(scans_file, **arrays)
    with pytest.raises(InputError) as caught:
        load("oct-kermany")
    assert str(caught.value).startswith(f"oct-kermany: {message}")


def test_octid_from_a_folder_of_images(tmp_path, monkeypatch):
    monkeypatch.setenv("R2ET_DATA", str(tmp_path))
    with pytest.raises(
        UnavailableError, match=r"octid: oct/octid is not .* stand-in 'oct-kermany'"
    ):
        load("octid")
    for label in ("AMRD", "NORMAL"):
        folder = tmp_path / "oct" / "octid" / label
        folder.mkdir(parents=True)
        for number in range(10):
            (folder / f"{number}.png").write_bytes(png(np.full((20, 30, 3), number, np.uint8)))
        (folder / "notes.txt").write_text("not an image")
    data = load("octid")
    assert data.train.x.shape == (14, 1, 257, 386)
    assert data.classes == ("AMRD", "NORMAL")
    (tmp_path / "oct" / "octid" / "AMRD" / "bad.png").write_bytes(b"no image")
    with pytest.raises(InputError, match=r"octid: bad\.png must be an image"):
        load("octid")


def test_octid_is_a_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("R2ET_DATA", str(tmp_path))
    (tmp_path / "oct").mkdir()
    (tmp_path / "oct" / "octid").write_text("a file")
    with pytest.raises(InputError, match=r"^octid: oct/octid must be a folder of folders, got a f"):
        load("octid")
