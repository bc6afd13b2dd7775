"""Write the suites `wacker-2022` and `wacker-2022-regression` from the source's raw rows.

    python tests/benchmarks/make_wacker_2022.py FOLDER

FOLDER has letter.csv, magic.csv, yacht.csv, energy.csv and protein.csv of the folder
csv/gaussian_approx of github.com/joneswack/dp-rfs (Apache-2.0), with the columns method, proj,
comp, D, seed, kernel_len and k_rel_frob_error.
"""

import argparse
from pathlib import Path

import pandas as pd

SUITES = Path(__file__).parents[2] / "suites" / "kbench_suites"
SETS = {
    "wacker-2022": {
        "letter": '{ name = "openml", data_id = 6, label = "letter" }',
        "magic": '{ name = "openml", data_id = 1120, label = "magic" }',
    },
    "wacker-2022-regression": {
        name: f'{{ name = "csv", label = "{name}", path = "{name}/data.csv.gz", target = "y", '
        'task = "regression" }'
        for name in ("yacht", "energy", "protein")
    },
}
LEARNERS = {"wacker-2022": "majority", "wacker-2022-regression": "mean"}
PROJECTIONS = {"countsketch_scatter": "countsketch"}
HEADER = """\
# Published errors of Gaussian Gram matrices: Wacker, Kanagawa and Filippone, "Improved random
# features for dot product kernels", arXiv 2201.08712 (2022). The figures are means over the ten
# seeds of github.com/joneswack/dp-rfs, csv/gaussian_approx (Apache-2.0). Written by
# tests/benchmarks/make_wacker_2022.py.
#
# A random tenth of the rows is tested, inputs are standardised by the training part, and the
# bandwidth is the median distance of the source, which hardly depends on the seed. The error
# is |K' - K| / |K| in the Frobenius norm, on up to 5,000 rows of the test part. D counts a
# complex feature once; it is two columns here. The splits are others than those of the source.
#
# Left open by the source's paper, and taken from its code: the sketch of the series has
# degree 4 and adds the constant as an input before it pads to a power of two; the optimised
# series has degrees 2 to 10, and its constant is one of the D features.
"""


def line(method, projection, is_complex, n, bandwidth):
    """One feature map, as a line of a suite."""
    common = f"bandwidth = {bandwidth:.4f}, bandwidth_factor = 1.0"
    label = f"{method}-{PROJECTIONS.get(projection, projection)}"
    label += f"-{'complex' if is_complex else 'real'}-{n}"
    width = n * (1 + is_complex)
    if method == "rff":
        name, more = ("rff", ', form = "pairs"') if projection == "gaussian" else ("sorf", "")
    else:
        given = PROJECTIONS.get(projection, projection)
        more = f', projection = "{given}", complex_to_real = {str(bool(is_complex)).lower()}'
        more += ', kernel = "gaussian"'
        if method == "n_sketch":
            name, more = "product-sketch", f"{more}, degree = 4"
        else:
            name, more = "optimized-maclaurin", f"{more}, max_degree = 10"
            width -= is_complex  # the constant has no imaginary part
    label = label.replace("_", "-")
    return label, (
        f'    {{ name = "{name}", label = "{label}", n_components = {width}, {common}{more} }},'
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    for suite, sets in SETS.items():
        learner = LEARNERS[suite]
        blocks, figures = [], []
        for dataset, data in sets.items():
            rows = pd.read_csv(folder / f"{dataset}.csv")
            bandwidth = rows["kernel_len"].mean()
            lines = []
            keys = ["method", "proj", "comp", "D"]
            for key, group in rows.groupby(keys, sort=True)["k_rel_frob_error"]:
                label, written = line(*key, bandwidth)
                lines.append(written)
                value, sd, n = group.mean(), group.std(ddof=1), len(group)
                figures.append(
                    f"{dataset},{label},{learner},gram_error_frobenius,{value:.7f},{sd:.7f},{n},"
                    "arXiv 2201.08712"
                )
            blocks.append(
                "\n".join(["[[block]]", f"datasets = [{data}]", "feature_maps = [", *lines, "]"])
            )
        top = [
            HEADER,
            'description = "Published errors of Gaussian Gram matrices: random features, sketches '
            'and optimised Maclaurin series"',
            f'published = "{suite}.csv"',
            'measure = { name = "gram_error_frobenius", better = "lower" }',
        ]
        if suite.endswith("regression"):
            top.append(
                'data_from = "The sets are in https://github.com/treforevans/uci_datasets; its '
                'data.csv.gz needs a line of names: x1 ... xd and y."'
            )
        top += [
            f'learners = ["{learner}"]',
            "",
            "[protocol]",
            'splits = "holdout"',
            "test_size = 0.1",
            'preprocess = "standard"',
            "gram_rows = 5000",
            "",
            "[limits]",
            "n_splits = 10",
            "",
        ]
        (SUITES / f"{suite}.toml").write_text("\n".join(top) + "\n" + "\n\n".join(blocks) + "\n")
        head = ["# Means over ten seeds; source and licence: see the suite of this name."]
        head.append("dataset,feature_map,learner,measure,value,sd,n_runs,source")
        (SUITES / f"{suite}.csv").write_text("\n".join(head + figures) + "\n")


if __name__ == "__main__":
    main()
