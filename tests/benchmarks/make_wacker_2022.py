"""Write the suites `wacker-2022` and `wacker-2022-regression` from the source's raw rows.

    python tests/benchmarks/make_wacker_2022.py FOLDER

FOLDER has letter.csv, magic.csv, yacht.csv, energy.csv and protein.csv of the folder
csv/gaussian_approx of github.com/joneswack/dp-rfs (Apache-2.0), with the columns method, proj,
comp, D, seed, kernel_len, kernel_var, alpha, k_rel_frob_error, test_error and dummy_error.
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
PROJECTIONS = {"countsketch_scatter": "countsketch"}
HEADER = """\
# Published errors of random features for the Gaussian kernel: Wacker, Kanagawa and Filippone,
# "Improved random features for dot product kernels", arXiv 2201.08712 (2022). The values are
# means over the ten seeds of github.com/joneswack/dp-rfs, csv/gaussian_approx (Apache-2.0).
# Written by tests/benchmarks/make_wacker_2022.py.
#
# A random tenth of the rows is tested, inputs are standardised by the training set, and the
# bandwidth is the median distance of the source, which hardly depends on the seed. The error
# is |K' - K| / |K| in the Frobenius norm, on up to 5,000 rows of the test set. D counts a
# complex feature once; it is two columns here. The splits are others than those of the source.
#
# Left open by the source's paper, and taken from its code: the sketch of the series has
# degree 4 and adds the constant as an input before it pads to a power of two; the optimised
# series has degrees 2 to 10, and its constant is one of the D features.
{learner}#
# Complex features have no published {figure} here: the source's regression on complex features
# has complex weights, and differs from one on their real and imaginary parts.
"""
LEARNERS = {
    "wacker-2022": """\
#
# The learner is the source's: a Gaussian process for each class on transformed labels (Milios
# et al. 2018), with the parameter of the transform that the source chose. The prior mean is the
# mean of all transformed labels: with that of the source's code, which depends on the shares of
# classes, the variances of the kernels in its rows could not be the same for all seeds.
""",
    "wacker-2022-regression": """\
#
# The learner is the source's: a Gaussian process on the features, of centred targets, with the
# noise variance that the source chose, here in units of the targets' variance, and with the
# targets' variance as that of the function. r2 is 1 - test_error / dummy_error of the source.
#
# r2 needs the targets of the source: those of yacht and protein are exp(y) of the collection,
# but for a line, which r2 does not see. Energy has no published r2: the kernel variances of the
# source are those of both its targets together, heating and cooling, and the collection has
# heating only.
""",
}
OTHER_TARGETS = {"energy"}
FIGURES = {"wacker-2022": "accuracy", "wacker-2022-regression": "r2"}


def line(method, projection, is_complex, n, bandwidth):
    """One feature map, as a line of a suite."""
    common = f"bandwidth = {bandwidth:.4f}, bandwidth_factor = 1.0"
    label = f"{method}-{PROJECTIONS.get(projection, projection)}"
    label += f"-{'complex' if is_complex else 'real'}-{n}"
    width = n * (1 + is_complex)
    if method == "rff":
        name, more = "rff", ', form = "pairs"'
        if projection != "gaussian":
            name, more = "sorf", ", least_inputs = 1"
    else:
        given = PROJECTIONS.get(projection, projection)
        more = f', projection = "{given}", complex_to_real = {str(bool(is_complex)).lower()}'
        more += ', kernel = "gaussian"'
        if method == "n_sketch":
            name, more = "polynomial-sketch-rademacher", f"{more}, degree = 4"
        else:
            name, more = "optimized-maclaurin", f"{more}, max_degree = 10"
            width -= is_complex  # the constant has no imaginary part
    label = label.replace("_", "-")
    return label, (
        f'    {{ name = "{name}", label = "{label}", n_components = {width}, {common}{more} }},'
    )


def learner_of(rows, metric):
    """The source's learner of one dataset, as a label and a line of a suite."""
    (alpha,) = rows["alpha"].unique()
    if metric == "accuracy":
        return (
            "dirichlet-gp",
            f'{{ name = "dirichlet-gp", label = "dirichlet-gp", alpha = {alpha} }}',
        )
    noise = alpha / rows["kernel_var"].mean()
    return "gp", (
        f'{{ name = "bayesian-linear", label = "gp", noise_variance = {noise:.6f}, '
        "weight_variance = 1.0, fit_intercept = false }"
    )


def figures_of(dataset, rows, metric):
    """The published values of one method that can be compared, by metric."""
    found = {"gram_error_frobenius": rows["k_rel_frob_error"]}
    if dataset not in OTHER_TARGETS and not rows["comp"].any():
        error = rows["test_error"]
        found[metric] = 1.0 - (error if metric == "accuracy" else error / rows["dummy_error"])
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    for suite, sets in SETS.items():
        metric = FIGURES[suite]
        blocks, figures = [], []
        for dataset, data in sets.items():
            rows = pd.read_csv(folder / f"{dataset}.csv")
            bandwidth = rows["kernel_len"].mean()
            learner, learner_line = learner_of(rows, metric)
            lines = []
            for key, group in rows.groupby(["method", "proj", "comp", "D"], sort=True):
                label, written = line(*key, bandwidth)
                lines.append(written)
                for compared, values in figures_of(dataset, group, metric).items():
                    value, sd, n = values.mean(), values.std(ddof=1), len(values)
                    figures.append(
                        f"{dataset},{label},{learner},{compared},{value:.7f},{sd:.7f},{n},"
                        "arXiv 2201.08712"
                    )
            blocks.append(
                "\n".join(
                    [
                        "[[block]]",
                        f"datasets = [{data}]",
                        "feature_maps = [",
                        *lines,
                        "]",
                        f"learners = [{learner_line}]",
                    ]
                )
            )
        top = [
            HEADER.format(learner=LEARNERS[suite], figure=metric),
            'description = "Wacker et al. (2022): Gram matrix errors of random features and '
            'sketches of the Gaussian kernel"',
            f'published = "{suite}.csv"',
            'metric = { name = "gram_error_frobenius", better = "lower" }',
        ]
        if suite.endswith("regression"):
            top.append(
                'data_source_hint = "The sets are in https://github.com/treforevans/uci_datasets; '
                "its data.csv.gz needs a line of names, x1 ... xd and y, and yacht and protein "
                'exp(y) in the place of y: the collection has taken logarithms."'
            )
        top += [
            "",
            "[protocol]",
            'cv = "holdout"',
            "test_size = 0.1",
            'scaling = "standard"',
            "gram_error_rows = 5000",
            "",
            "[limits]",
            "n_splits = 10",
            "",
        ]
        (SUITES / f"{suite}.toml").write_text("\n".join(top) + "\n" + "\n\n".join(blocks) + "\n")
        head = ["# Means over ten seeds; source and licence: see the suite of this name."]
        head.append("dataset,feature_map,learner,metric,value,sd,n_runs,source")
        (SUITES / f"{suite}.csv").write_text("\n".join(head + figures) + "\n")


if __name__ == "__main__":
    main()
