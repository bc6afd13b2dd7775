"""The Balcan maps F1, F2, F3, the built-in kernels, and the paper's datasets.

M.-F. Balcan, A. Blum and S. Vempala, "Kernels as features: On kernels,
margins, and low-dimensional mappings", Machine Learning 65 (2006).
"""

from kbench import KernelSpec, hookimpl
from kbench.kernels import KERNELS


@hookimpl
def kbench_kernels():
    """List the kernels of `kbench.kernels`."""
    return [
        KernelSpec(name, make=f"kbench.kernels:{kernel.__name__}")
        for name, kernel in KERNELS.items()
    ]
