"""Parts of pages about certificates: how tight, what each way buys, beside others, the hunt."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from statistics import mean
from typing import Any

from result_pages.perf_parts import made_with, record, table

WAYS = ("interval", "linear", "split", "symbols", "hessian")
SMOOTH = ("softplus", "tanh", "gelu")
GREY_LEVEL = 1 / 255  # the finest step of an ordinary picture in 0..1


def certify_tightness() -> str:
    """How near the proved radius comes to the attacked one, for tables."""
    stored = record("certify")
    return f"{_ratios(stored['tightness'], WAYS)}\n\n{made_with(stored)}"


def certify_images() -> str:
    """The same for pictures, and the radii themselves in grey levels."""
    stored = record("certify")
    cases = stored["images"]
    ratios = _ratios(cases, WAYS[:-1])
    rows = []
    for case in cases:
        radius = max(case["certified"].values())
        rows.append(
            [
                case["kind"],
                case["activation"],
                f"{radius:.5f}",
                f"{radius / GREY_LEVEL:.2g}",
                f"{case['attacked'] / GREY_LEVEL:.2g}",
                _in_float32(case),
            ]
        )
    head = ["network", "activation", "proved, median", "in grey levels", "attacked, in grey levels"]
    head.append("rows with a radius in float32")
    return f"{ratios}\n\n{table(head, rows)}\n\n{made_with(stored)}"


def _in_float32(case: dict[str, Any]) -> str:
    if "proved_in_float32" not in case:  # measured in float32
        return ""
    return f"{case['proved_in_float32']} of {case['rows']}"


def _ratios(cases: Iterable[dict[str, Any]], titles: Iterable[str]) -> str:
    rows = []
    for case in cases:
        ratios = [f"{case['ratio'][t]:.3f}" if t in case["ratio"] else "" for t in titles]
        name = [case["data"], case["kind"], case["activation"], str(case["layers"])]
        attacked = f"{case['attacked']:.4f}"
        rows.append([*name, str(case["rows"]), attacked, *ratios, _against_goal(case)])
    head = ["data", "network", "activation", "layers", "rows", "attacked, median", *titles, "goal"]
    return table(head, rows)


def _against_goal(case: dict[str, Any]) -> str:
    goals = {"softplus": (3,), "tanh": (2, 3), "gelu": (2, 3)}  # hidden layers
    if case["kind"] == "cnn":
        goal = 0.9
    elif case["layers"] in goals.get(case["activation"], ()):
        goal = 0.8
    else:
        return ""
    return f"{goal}, {'met' if max(case['ratio'].values()) >= goal else 'missed'}"


GROUPS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "tables, LeakyReLU, one hidden layer": lambda c: _is(c, "table", False, (1,)),
    "tables, LeakyReLU, two and three": lambda c: _is(c, "table", False, (2, 3)),
    "tables, smooth, one": lambda c: _is(c, "table", True, (1,)),
    "tables, smooth, two": lambda c: _is(c, "table", True, (2,)),
    "tables, smooth, three": lambda c: _is(c, "table", True, (3,)),
    "CNN, ReLU and LeakyReLU": lambda c: _is(c, "cnn", False, (2,)),
    "CNN, smooth": lambda c: _is(c, "cnn", True, (2,)),
    "ResNet, ReLU and LeakyReLU": lambda c: _is(c, "resnet", False, (5,)),
    "ResNet, smooth": lambda c: _is(c, "resnet", True, (5,)),
}


def _is(case: dict[str, Any], kind: str, smooth: bool, layers: tuple[int, ...]) -> bool:
    of = case["kind"] if case["data"] == "digits" else "table"
    return of == kind and (case["activation"] in SMOOTH) == smooth and case["layers"] in layers


def certify_ways() -> str:
    """What each way to bound proves, and what it costs."""
    stored = record("certify")
    cases = stored["tightness"] + stored["images"]
    rows = []
    for title, belongs in GROUPS.items():
        group = [case for case in cases if belongs(case)]
        cells = []
        for way in WAYS:
            some = [case for case in group if way in case["ratio"]]
            ratio = [case["ratio"][way] for case in some]
            taken = [case["ms_per_row"][way] for case in some]
            cells.append(f"{mean(ratio):.2f}, {mean(taken):.0f} ms" if some else "")
        rows.append([title, str(len(group)), *cells])
    return table(["networks", "how many", *WAYS], rows)


def certify_others() -> str:
    """Ours beside auto_LiRPA's bounds of Jacobians and plain intervals."""
    stored = record("others")
    ways = list(stored["cases"][0]["ways"])
    blocks = []
    for norm, radii in stored["radii"].items():
        rows = []
        for case in stored["cases"]:
            if case["norm"] != norm:
                continue
            name = [case["activation"], str(case["layers"]), f"{case['attacked']:.4f}"]
            found = [case["ways"][way] for way in ways]
            ratios = [f"{way['ratio']:.3f}" for way in found]
            shares = [
                " / ".join(f"{way['shares'][place]:.0%}" for way in found)
                for place in range(len(radii))
            ]
            times = " / ".join(f"{way['ms_per_row']:.0f}" for way in found)
            rows.append([*name, *ratios, *shares, times])
        head = ["activation", "layers", f"attacked, {norm}", *ways]
        head += [f"proved at {radius:g}" for radius in radii] + ["ms per row"]
        blocks.append(table(head, rows))
    rows_of = stored["cases"][0]["rows"]
    about = f"{rows_of} test rows of Adult, k = {stored['k']}; the last columns in the order "
    about += f"{' / '.join(ways)}. auto_LiRPA {stored['auto_LiRPA']}. {made_with(stored)}"
    alpha = [case["alpha"] for case in stored["cases"] if "alpha" in case]
    further, tried = (sum(a[n] for a in alpha) for n in ("proved_5_percent_further", "rows"))
    about += ' With optimised slopes (alpha-CROWN), auto_LiRPA\'s "jacobian" proves a radius 5 % '
    about += f"larger on {further} of {tried} rows (l2)."
    return "\n\n".join([*blocks, about])


def certify_floats() -> str:
    """Whether gradients were seen outside the bounds, ours and auto_LiRPA's."""
    stored = record("others")
    rows = []
    for activation in ("relu", "tanh", "sigmoid"):
        cases = [case for case in stored["cases"] if case["activation"] == activation]
        for way, titles in (("jacobian", ("jacobian", "pairs")), ("r2et", ("interval", "r2et"))):
            found = [case["outside"][way] for case in cases]
            total = sum(case["rows"] for case in cases)
            claims = [case["ways"][title] for case in cases for title in titles]
            rows.append(
                [
                    activation,
                    way,
                    *(
                        f"{sum(f[f'rows_{kind}'] for f in found)} of {total}"
                        for kind in ("float32", "float64")
                    ),
                    *(
                        f"{max(f[f'excess_{kind}'] for f in found):.1g}"
                        for kind in ("float32", "float64")
                    ),
                    str(sum(claim["broken"] for claim in claims)),
                ]
            )
    head = ["activation", "bounds", "rows outside, float32", "float64", "by at most, float32"]
    lines = [table([*head, "float64", "top k broken"], rows), ""]
    for activation, unit in stored["units"].items():
        last = unit["ends_past_inflection"][1]
        lines.append(
            f"- auto_LiRPA's bounds of the derivative of one {activation} unit, over "
            f"{unit['intervals']} intervals that end within 0.03 of its left inflection point: "
            f"{unit['missed']} miss a value, by up to {unit['excess']:.2g}, and all of these end "
            f"at most {last:g} past that point; {unit['empty']} have a lower bound above the "
            "upper one"
        )
    return "\n".join(lines)


def certify_hunt() -> str:
    """Speed, and whether anything was stored inside a claimed radius."""
    stored = record("certify")
    lines = []
    for case in stored["speed"]["certify"]:
        rate = f"{case['seconds']:.2f} s of processor time"
        lines.append(f"- {case['rows']} rows of Adult, {case['activation']}: {rate}")
    step = stored["speed"]["step"]
    lines.append(
        f"- a certified step of 28 - 32 - 2 on a batch of 256: {step['ratio_64_rows']} plain steps "
        f"with 64 rows penalised, {step['ratio_256_rows']} with all"
    )
    hunt = record("hunt")["totals"]
    million = {name: f"{hunt[name] / 1e6:.0f} million" for name in hunt if "points" in name}
    lines.append(
        f"- {hunt['broken']} counter-examples in {hunt['rows']} rows of {hunt['networks']} "
        f"networks: {million['points']} random points in the claimed regions, "
        f"{million['grid_points']} on grids, `MinimumNorm` at {hunt['minimum_norm_rows']} rows "
        f"(fast) and {hunt['standard_minimum_norm_rows']} (standard), `StrongAttack` at "
        f"{hunt['strong_rows']} (thorough) and {hunt['standard_strong_rows']} (standard); nearest: "
        f"{hunt['closest']:.4f} of an attacked radius"
    )
    lines.append(
        f"- beyond the radius, what `precision_at` proves: {million['partial_points']} points, "
        f"`StrongAttack` (fast) at {hunt['partial_rows']} rows"
    )
    return "\n".join(lines)
