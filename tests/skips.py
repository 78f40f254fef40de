"""Tests that may skip, and why. Any other skip fails a run with R2ET_STRICT_SKIPS=1, as CI's is."""

import os
import shutil

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def _no_data() -> bool:
    return not os.environ.get("R2ET_DATA")


def _no_browser() -> bool:
    return not any(map(shutil.which, BROWSERS))


def _always() -> bool:
    return True


# (part of a skip's reason, whether it is expected here, why that is no loss)
EXPECTED = (
    ("set R2ET_DATA to a folder that has it", _no_data, "the real data sets are not ours to ship"),
    ("R2ET_DATA is not set", _no_data, "the real data sets are not ours to ship"),
    ("no browser here", _no_browser, "the page's text is tested without one"),
    ("polars is not installed", _always, "its frames come by the Arrow protocol, as pyarrow's do"),
    ("skorch is not installed", _always, "a class that shows the same of itself stands in"),
    ("lightning is not installed", _always, "its modules are torch's; lightning-fabric is tested"),
    ("onnx is not installed", _always, "what is refused of ONNX is tested without it"),
    ("onnxruntime is not installed", _always, "what is refused of ONNX is tested without it"),
    ("mlflow is not installed", _always, "what would be logged is tested without it"),
    ("all but the blocks that need quantus ran", _always, "the rest of the page is run"),
    ("all but the blocks that need mlflow ran", _always, "the rest of the page is run"),
    ("all but the blocks that need skorch ran", _always, "the rest of the page is run"),
    ("SCIPY_ARRAY_API is not set", _always, "scikit-learn's own check of arrays that are no NumPy"),
)


def is_expected(reason: str) -> bool:
    return any(part in reason and here() for part, here, _ in EXPECTED)
