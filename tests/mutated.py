"""Files as accidents and people with bad intent leave them, for hypothesis to draw."""

import copy
import json
import warnings

from hypothesis import strategies as st

from r2et.errors import R2ETError

DEEP = 3000


def nested(depth, inner="0"):
    return "[" * depth + inner + "]" * depth


# As JSON spells them: Python reads NaN, Infinity and integers of any length.
HOSTILE = (
    "null", "true", "-1", "0", "3.5", "1e400", "-1e400", "NaN", "Infinity", "1" + "0" * 400,
    "1" * 5000, '""', '"x"', '"../../etc/passwd"', '"\\u0000"', '"\\ud800"', "[]", "{}", "[[]]",
    '{"a": null}', nested(60), nested(DEEP), '"' + "long " * 2000 + '"', "[1, 2, 3]", '["a", 1]',
)  # fmt: skip
MARK = "(here stands the hostile one)"


def places(value, place=()):
    """Where something stands in plain data: keys and numbers that lead there."""
    yield place
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(part, (*place, key))


def at(value, place):
    for key in place:
        value = value[key]
    return value


@st.composite
def mutated_json(draw, value):
    """Text of JSON data in which one entry is something else, is gone, or has another name."""
    place = draw(st.sampled_from(list(places(value))))
    hostile = draw(st.sampled_from(HOSTILE))
    if not place:
        return hostile
    changed = copy.deepcopy(value)
    holder, key = at(changed, place[:-1]), place[-1]
    how = draw(st.sampled_from(["replace", "replace", "replace", "remove", "rename", "repeat"]))
    if how == "remove":
        del holder[key]
    elif how == "rename" and isinstance(holder, dict):
        holder[draw(st.text(max_size=5))] = holder.pop(key)
    elif how == "repeat" and isinstance(holder, list):
        holder.insert(key, holder[key])
    else:
        holder[key] = MARK
    return json.dumps(changed).replace(json.dumps(MARK), hostile)


@st.composite
def mutated_bytes(draw, content):
    """Bytes cut, flipped, doubled, filled or with others among them."""
    start = draw(st.integers(0, len(content)))
    stop = min(len(content), start + draw(st.integers(0, 40)))
    how = draw(st.sampled_from(["cut", "truncate", "flip", "insert", "double", "fill", "random"]))
    if how == "truncate":
        return content[:start]
    if how == "random":
        return draw(st.binary(max_size=200))
    middle = {
        "cut": b"",
        "flip": bytes(b ^ (1 << draw(st.integers(0, 7))) for b in content[start:stop]),
        "insert": draw(st.binary(min_size=1, max_size=20)) + content[start:stop],
        "double": 2 * content[start:stop],
        "fill": draw(st.sampled_from([b"\0", b"\xff", b"9", b'"', b"\n", b","])) * (stop - start),
    }[how]
    return content[:start] + middle + content[stop:]


def only_ours(function):
    """Whether a call was refused: in one printable line of ours. Any other error comes through."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # said of rows that are left out
            function()
    except R2ETError as error:
        text = str(error)
        assert text
        assert "\n" not in text, text
        assert len(text) < 3000, text
        return True
    return False
