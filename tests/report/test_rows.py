"""Single rows: what is drawn, against scores and pictures made by hand."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

from audits import audit, tabular
from r2et.report import images
from r2et.report.page import html
from r2et.report.rows import row_views, top


def one(scores, after, *, k=2, precision=None, names=None, proved=None, certified=None):
    """An audit with a single row and a single step of radius 0.1."""
    found = audit(shape=(len(scores),), scores_shape=(len(scores),), k=k, worst=1, ordinary=0)
    x = [0.0] * len(scores)
    step = {"radius": 0.1, "x": [0.06, -0.08, *x[2:]], "scores": after, "precision": precision,
            "probability": 0.8, "proved_precision": proved}  # fmt: skip
    row = {"index": 5, "kind": "worst", "target": 0, "label": None, "probability": 0.9, "x": x,
           "scores": scores, "radius_certified": certified, "radius_attacked": None,
           "steps": [step]}  # fmt: skip
    return found | {"shown": [row], "names": names}


def test_ranks_bars_and_words_of_a_known_row():
    (view,) = row_views(
        one([4.0, 3.0, 2.0, 1.0], [1.0, 2.0, 3.0, 4.0], precision=0.0, names=list("abcd"))
    )
    assert view["features"] == [["a", 1, 100], ["b", 2, 75], ["c", 3, 50], ["d", 4, 25]]
    step = view["steps"][1]
    assert step["after"] == [[4, 25, "left"], [3, 50, "left"], [2, 75, "entered"],
                             [1, 100, "entered"]]  # fmt: skip
    assert step["say"] == "0 of 2 reasons stay."
    assert step["moved"] == "Left: a, b. Entered: d, c."
    assert step["changes"] == [["b", "0", "−0.08", "−0.08"], ["a", "0", "0.06", "+0.06"]]  # noqa: RUF001
    assert step["state"] == "broken"
    assert view["start"] == 1
    assert view["about"] == "Decision: repaid (90\u00a0%)"


def test_ties_are_broken_by_the_order_of_features():
    assert top([1.0, 2.0, 2.0, 1.0], 3) == [1, 2, 0]


@pytest.mark.parametrize(
    ("precision", "proved", "certified", "state"),
    [
        (0.5, 1.0, 0.5, "broken"),  # a contradiction is never shown as safe
        (1.0, 1.0, None, "proved"),
        (1.0, 0.5, 0.1, "proved"),
        (1.0, 0.5, 0.09, "unknown"),
        (None, None, None, "unknown"),
        (None, 1.0, None, "proved"),
    ],
)
def test_the_state_of_a_step(precision, proved, certified, state):
    made = one([3.0, 2.0, 1.0], [3.0, 2.0, 1.0], precision=precision, proved=proved,
               certified=certified)  # fmt: skip
    assert row_views(made)[0]["steps"][1]["state"] == state


def test_what_the_audit_says_counts_more_than_scores_that_round_to_a_tie():
    (view,) = row_views(one([3.0, 2.0, 1.0], [3.0, 1.0, 1.5], precision=1.0))
    assert view["steps"][1]["moved"] == ""
    assert view["steps"][1]["say"] == "all 2 reasons stay."


def test_a_row_that_was_not_attacked_says_so():
    made = one([3.0, 2.0, 1.0], [3.0, 2.0, 1.0])
    assert dict(row_views(made)[0]["bracket"])["Changed from"] == "not measured"
    made["shown"][0]["steps"][0]["precision"] = 1.0
    assert dict(row_views(made)[0]["bracket"])["Changed from"] == "none found"
    made["shown"][0]["steps"] = []
    assert dict(row_views(made)[0]["bracket"])["Changed from"] == "not measured"
    assert "Row 5" in html([made])


def test_signed_scores_keep_their_sign():
    (view,) = row_views(one([2.0, 1.0, -4.0], [2.0, 1.0, -4.0], precision=1.0))
    assert [bar for _, _, bar in view["features"]] == [50, 25, -100]
    assert 'class="bar minus"' in html([one([2.0, 1.0, -4.0], [2.0, 1.0, -4.0], precision=1.0)])


def test_an_input_that_is_not_what_is_explained_has_no_feature_names():
    made = audit(shape=(5,), scores_shape=(12,), worst=1)
    changes = row_views(made)[0]["steps"][1]["changes"]
    assert {name for name, *_ in changes} == {f"input {i}" for i in range(5)}


def test_the_audits_radius_is_where_a_row_starts():
    for radius, start in ((0.1, 4), (0.15, 4), (5.0, 8), (0.001, 1)):
        made = tabular()
        made["summary"]["radius"] = radius
        assert {view["start"] for view in row_views(made)} == {start}


def pixels(address):
    kind, _, data = address.partition(",")
    assert kind == "data:image/png;base64"
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")).astype(int)


def test_inputs_are_drawn_as_they_are():
    grey = pixels(images.input_picture([0.0, 0.5, 1.0, 0.25], [1, 2, 2], [0.0, 0.5, 1.0, 0.25]))
    assert grey[..., 0].tolist() == [[0, 128], [255, 64]]
    colour = [0.0] * 4 + [1.0] * 4 + [0.2] * 4
    drawn = pixels(images.input_picture(colour, [3, 2, 2], colour))
    assert drawn[0, 0].tolist() == [0, 255, 51]
    bytes_ = pixels(images.input_picture([0, 51, 255, 102], [2, 2], [0, 51, 255, 102]))
    assert bytes_[..., 0].tolist() == [[0, 51], [255, 102]]
    centred = pixels(images.input_picture([-1, 1, 0, 0], [2, 2], [-1, 1, 0, 0]))
    assert centred[..., 0].tolist() == [[0, 255], [128, 128]]
    assert pixels(images.input_picture([0.3] * 4, [2, 2], [0.3] * 4)).shape == (2, 2, 3)


def test_a_pair_of_inputs_stands_side_by_side():
    pair = pixels(images.input_picture([0, 0, 0, 0, 1, 1, 1, 1], [2, 1, 2, 2], [0, 1]))
    assert pair[..., 0].tolist() == [[0, 0, 255, 255], [0, 0, 255, 255]]


def test_heat_goes_from_dark_to_light_and_sums_channels():
    drawn = pixels(images.heat_map([0.0, 1.0, 2.0, 4.0], [2, 2])).sum(2)
    assert drawn[0, 0] < drawn[0, 1] < drawn[1, 0] < drawn[1, 1]
    assert pixels(images.heat_map([0.0, 1.0, 2.0, 4.0], [2, 2]))[1, 1].tolist() == [255, 236, 140]
    both = images.heat_map([0.0, 1.0, 1.0, 4.0, 0.0, 0.0, 1.0, 0.0], [2, 2, 2])
    assert pixels(both).tolist() == pixels(images.heat_map([0.0, 1.0, 2.0, 4.0], [2, 2])).tolist()
    assert pixels(images.heat_map([0.0] * 4, [2, 2])).tolist() == [[[10, 19, 50]] * 2] * 2


def test_changes_are_white_where_there_is_none():
    drawn = pixels(images.change_picture([0.1, 0.0, 0.0, -0.1], [0.0] * 4, [2, 2]))
    assert min(drawn[0, 1]) >= 245
    assert drawn[0, 0, 0] > drawn[0, 0, 2]  # more: orange
    assert drawn[1, 1, 0] < drawn[1, 1, 2]  # less: blue


def test_large_pictures_are_averaged_down():
    drawn = pixels(images.heat_map(np.tile([0.0, 1.0], 300 * 150).tolist(), [300, 300]))
    assert drawn.shape == (100, 100, 3)


def test_marks_lie_on_their_pixels_and_channels_of_one_pixel_share_one():
    assert images.mark([0, 9], [8, 8], "square").startswith("M0 0m")
    assert "M1 1m" in images.mark([0, 9], [8, 8], "square")
    assert images.mark([5, 64 + 5, 128 + 5], [3, 8, 8], "cross").count("M") == 1


@pytest.mark.parametrize(
    ("shape", "answer"),
    [([8, 8], True), ([3, 8, 8], True), ([12], False), ([1, 12], False), ([64, 8, 8], False)],
)
def test_what_is_drawn_as_a_picture(shape, answer):
    assert images.is_map(shape) == answer
