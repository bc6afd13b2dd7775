"""Pictures of the documentation's pages on maps: draw them again after a change of a map.

    python tests/benchmarks/draw_gallery.py [--map NAME ...] [--folder docs/images/maps]

Each picture has a feature of the map over the plane, the inner products of all points with one of
them, and the kernel that these approximate, where the map declares one. Maps have about 64
features, otherwise their default parameters, and the seed 0. They were fitted on two moons.
"""

import argparse
import io
from functools import cache
from pathlib import Path

import matplotlib
import numpy as np
from canon import records, unfitted
from matplotlib.figure import Figure
from PIL import Image
from sklearn.datasets import make_moons

from kbench.evaluation.preprocessing import Preprocessing
from kbench.registry.callables import resolve

FOLDER = Path(__file__).parents[2] / "docs" / "images" / "maps"
PIXELS = 90
"""Points of the grid along each side."""
COLUMNS = 64
"""About so many features, so that pictures show what maps with few features do."""


@cache
def plane():
    """Return the rows that maps are fitted on with their labels, and a grid around them."""
    X, y = make_moons(n_samples=240, noise=0.12, random_state=0)
    low, high = X.min(axis=0), X.max(axis=0)
    sides = [np.linspace(low[i], high[i], PIXELS) for i in range(2)]
    grid = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2)
    return X, y, grid


def panels(name):
    """Return the images of a map by title, each of shape (PIXELS, PIXELS)."""
    record = records()[name]
    X, y, grid = plane()
    steps = Preprocessing("minmax", record.requires)
    rows = steps.fit_transform(X, y)
    grid, marked = steps.transform(grid), rows[:1]
    map_ = unfitted(name, COLUMNS).fit(rows, y)
    features, there = (_dense(map_.transform(each)) for each in (grid, marked))
    column = np.argmax(features.std(axis=0))
    found = {"a feature": features[:, column], "inner products with +": features @ there[0]}
    if record.kernel:
        gram = resolve(record.kernel)(map_, grid, marked)
        found["kernel with +"] = np.asarray(gram)[:, 0]
    return {title: values.reshape(PIXELS, PIXELS) for title, values in found.items()}


def _dense(features):
    return features.toarray() if hasattr(features, "toarray") else np.asarray(features)


def draw(name, path):
    """Write the picture of a map as PNG with few colours."""
    found = panels(name)
    X, y, grid = plane()
    box = [grid[0, 0], grid[-1, 0], grid[0, 1], grid[-1, 1]]
    with matplotlib.rc_context({"font.size": 8, "font.family": "DejaVu Sans"}):
        figure = Figure(figsize=(2.1 * len(found), 1.75), dpi=100, layout="constrained")
        axes = figure.subplots(1, len(found))
        shared = [values for title, values in found.items() if title != "a feature"]
        limits = {"vmin": min(map(np.min, shared)), "vmax": max(map(np.max, shared))}
        for axis, (title, values) in zip(axes, found.items(), strict=True):
            scale = {} if title == "a feature" else limits
            axis.imshow(values, origin="lower", extent=box, aspect="auto", cmap="viridis", **scale)
            if title == "a feature":
                for label, colour in ((0, "white"), (1, "black")):
                    axis.plot(*X[y == np.unique(y)[label]].T, ".", color=colour, markersize=1.5)
            else:
                axis.plot(*X[0], "+", color="red", markersize=8)
            axis.set_title(title)
            axis.set_xticks([])
            axis.set_yticks([])
        drawn = io.BytesIO()
        figure.savefig(drawn, format="png", metadata={"Software": None})
    image = Image.open(drawn).convert("RGB").quantize(48, dither=Image.Dither.NONE)
    image.save(path, optimize=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--map", action="append", dest="maps")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    for name in given.maps or records():
        path = given.folder / f"{name}.png"
        draw(name, path)
        print(f"{path.name}: {path.stat().st_size:,} bytes", flush=True)


if __name__ == "__main__":
    main()
