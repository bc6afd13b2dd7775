"""Kinds of edits of third-party plugins: what is edited, and what becomes of known results.

A kind without an own edit sets ``VALUE`` in ``PKG/_inner.py`` from 1 to 2, or in
``PKG/part/deep.py``: the question is how the map comes to this module.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from typing import Any

from tests.planning.edits.sources import (
    AGAIN,
    EITHER,
    ENTRY,
    KEPT,
    Content,
    Kind,
    Link,
    Outcome,
    array,
    database,
    distribution,
    parquet,
    pickled,
    unchecked,
    zipped,
)

ONE, TWO = "VALUE = 1\n", "VALUE = 2\n"
INNER, DEEP = "PKG/_inner.py", "PKG/part/deep.py"
BESIDE = "Path(__file__).with_name"
PATH = "from pathlib import Path\n"


def inner(name: str, head: str, value: str = "_inner.VALUE", **more: Any) -> Kind:
    """A map that reaches a module of its package in some way."""
    return _kind(name, AGAIN, {INNER: ONE}, {INNER: TWO}, head=head, value=value, **more)


def part(name: str, head: str, value: str, init: str, **more: Any) -> Kind:
    """A map that reaches a module through the package that it is in."""
    files: dict[str, Content] = {"PKG/part/__init__.py": init, DEEP: ONE}
    return _kind(name, AGAIN, files, {DEEP: TWO}, head=head, value=value, **more)


def entry(name: str, imported: str, value: str, head: str = "", **files: str) -> Kind:
    """A map that depends on a module which only the entry module imports."""
    own = {f"PKG/{module}.py": text for module, text in files.items()}
    before, after = {INNER: imported}, {INNER: imported.replace("1", "2")}
    code = "import PKG._inner\n" + ENTRY
    return _kind(name, AGAIN, {**own, **before}, after, head=head, value=value, entry=code)


def described(name: str, line: str, grid: str, **more: Any) -> Kind:
    """A map whose record is made of something else, by a line of the entry module."""
    code = ENTRY.replace("\n\n\n@", f"\n\n{line}\n\n\n@")
    code = code.replace('_map:Map"', f'_map:Map", grid={{"scale": {grid}}}')
    return _kind(name, AGAIN, {}, {}, entry=code, value="self.scale", **more)


CLOSURES = """

from PKG._map import Map


def scaled(scale):
    return lambda: Map(scale)


ONE, TWO = scaled(2.0), scaled(3.0)


@"""
"""Two makers of one name before the hook of an entry module."""

DECLARING = ENTRY.replace('Map"', 'Map", depends=["PKG:value"]')
"""What compiled code reads is declared."""


def data(name: str, head: str, before: Content, after: Content, **more: Any) -> Kind:
    """A map that reads the file ``value`` beside its module."""
    files: Mapping[str, Content] = {"PKG/value": before}
    return _kind(name, AGAIN, files, {"PKG/value": after}, head=head, **more)


def variable(name: str, before: str | None, after: str | None, **more: Any) -> Kind:
    """A map that reads an environment variable."""
    first, second = ({} if text is None else {"LEVEL": text} for text in (before, after))
    return _kind(name, AGAIN, {}, {}, variables=first, variables_then=second, **more)


def code(name: str, before: str, after: str, value: str = "_inner.level()", **more: Any) -> Kind:
    """A map that calls code whose meaning is edited."""
    files, then = {INNER: before}, {INNER: after}
    return _kind(name, AGAIN, files, then, head="from PKG import _inner", value=value, **more)


def same(name: str, before: str, after: str, value: str = "_inner.level()", **more: Any) -> Kind:
    """A map that calls code which is written in another way."""
    files, then = {INNER: before}, {INNER: after}
    return _kind(name, KEPT, files, then, head="from PKG import _inner", value=value, **more)


def unread(
    name: str,
    files: Mapping[str, Content | None],
    then: Mapping[str, Content | None],
    **more: Any,
) -> Kind:
    """A map that has nothing to do with the files that are edited."""
    return _kind(name, KEPT, files, then, **{"head": ONE, **more})


def _kind(
    name: str,
    expected: Outcome,
    usual: Mapping[str, Content | None],
    usual_then: Mapping[str, Content | None],
    /,
    **more: Any,
) -> Kind:
    # a kind may add to the files of its family
    files = {**usual, **more.pop("files", {})}
    then = {**usual_then, **more.pop("then", {})}
    return Kind(name, expected, files=files, then=then, **more)


IMPORTS = [
    inner("plain-import", "import PKG._inner", "PKG._inner.VALUE"),
    inner("relative-import", "from ._inner import VALUE", "VALUE", quick=True),
    inner("from-package", "from . import _inner"),
    inner("star-import", "from PKG._inner import *", "VALUE"),
    Kind(
        "init-of-parent",
        AGAIN,
        head="from PKG.part.deep import value",
        value="value()",
        files={
            "PKG/part/__init__.py": ONE,
            DEEP: "import sys\n\n\ndef value():\n    return sys.modules['PKG.part'].VALUE\n",
        },
        then={"PKG/part/__init__.py": TWO},
    ),
    part("package-init", "from PKG.part import VALUE", "VALUE", "from .deep import VALUE\n"),
    inner(
        "alias-of-import-module",
        "from importlib import import_module as load\n\n_inner = load('PKG._inner')",
    ),
    inner(
        "keyword-of-import-module",
        "import importlib\n\n_inner = importlib.import_module(name='PKG._inner')",
    ),
    inner(
        "relative-import-module",
        "import importlib\n\n_inner = importlib.import_module('._inner', package=__package__)",
    ),
    inner(
        "computed-name",
        "import importlib\n\n_inner = importlib.import_module('.'.join([__package__, '_inner']))",
    ),
    inner("import-fromlist", "_inner = __import__('PKG._inner', fromlist=['VALUE'])"),
    inner("import-level", "_inner = __import__('_inner', globals(), locals(), ['VALUE'], 1)"),
    inner("import-top", "top = __import__('PKG._inner')", "top._inner.VALUE"),
    part(
        "lazy-attach",
        "from PKG import part",
        "part.VALUE",
        "import lazy_loader\n\n"
        "__getattr__, _, _ = lazy_loader.attach(__name__, submod_attrs={'deep': ['VALUE']})\n",
    ),
    part(
        "lazy-stub",
        "from PKG import part",
        "part.VALUE",
        "import lazy_loader\n\n__getattr__, _, _ = lazy_loader.attach_stub(__name__, __file__)\n",
        files={"PKG/part/__init__.pyi": "from .deep import VALUE\n"},
    ),
    inner("lazy-load", "import lazy_loader\n\n_inner = lazy_loader.load('PKG._inner')"),
    part(
        "module-getattr",
        "from PKG import part",
        "part.VALUE",
        "import importlib\n\nMODULES = {'VALUE': 'deep'}\n\n\n"
        "def __getattr__(name):\n"
        "    if name not in MODULES:\n"
        "        raise AttributeError(name)\n"
        "    return getattr(importlib.import_module(f'{__name__}.{MODULES[name]}'), name)\n",
    ),
    part(
        "all-by-glob",
        "from PKG.part import *",
        "deep.VALUE",
        PATH + "\n__all__ = [p.stem for p in Path(__file__).parent.glob('[a-z]*.py')]\n",
    ),
    part(
        "all-extended",
        "from PKG.part import *",
        "deep.VALUE",
        "__all__ = []\n__all__ += ['deep']\n",
    ),
    inner(
        "own-type-checking", "TYPE_CHECKING = True\nif TYPE_CHECKING:\n    from PKG import _inner"
    ),
    inner(
        "else-of-type-checking",
        "from typing import TYPE_CHECKING\n\n"
        "if TYPE_CHECKING:\n    from typing import Any\nelse:\n    from PKG import _inner",
    ),
    inner("in-fit", "", "self.level", fit="from PKG import _inner\n\nself.level = _inner.VALUE"),
    inner("in-transform", "", transform="from PKG import _inner\n"),
    inner(
        "in-hook-body",
        "",
        "self.scale",
        entry=ENTRY.replace("    return", "    from PKG import _inner\n\n    return").replace(
            '_map:Map"', '_map:Map", grid={"scale": (float(_inner.VALUE),)}'
        ),
    ),
    inner(
        "effect-of-hook-body",
        ONE,
        "VALUE",
        entry=ENTRY.replace("    return", "    import PKG._inner\n\n    return"),
        files={INNER: "import PKG._map\n\nPKG._map.VALUE = 3\n"},
        then={INNER: "import PKG._map\n\nPKG._map.VALUE = 4\n"},
    ),
    inner(
        "cached-lazy-import",
        "from PKG._lazy import module",
        "module().VALUE",
        entry=ENTRY.replace("    return", "    module()\n    return").replace(
            "\n\n\n@", "\n\nfrom PKG._lazy import module\n\n\n@"
        ),
        files={
            "PKG/_lazy.py": "import functools\n\n\n@functools.cache\ndef module():\n"
            "    from PKG import _inner\n\n    return _inner\n"
        },
    ),
    inner(
        "import-appears",
        "try:\n    from PKG._inner import VALUE\nexcept ImportError:\n    VALUE = 0",
        "VALUE",
        files={INNER: "raise ImportError\n"},
    ),
    Kind(
        "module-appears",
        AGAIN,
        head="try:\n    from PKG._extra import VALUE\nexcept ImportError:\n    VALUE = 0",
        then={"PKG/_extra.py": ONE},
    ),
    Kind(
        "top-module-appears",
        AGAIN,
        head="try:\n    from PKG_extra import VALUE\nexcept ImportError:\n    VALUE = 0",
        then={"PKG_extra.py": ONE},
    ),
    Kind(
        "find-spec",
        AGAIN,
        head="from importlib.util import find_spec\n\nVALUE = find_spec('PKG._extra') is None",
        then={"PKG/_extra.py": ONE},
    ),
    Kind(
        "module-shadows",
        AGAIN,
        head="from PKG_shared import VALUE",
        files=distribution("PKG_shared", {"PKG_shared.py": ONE}),
        then={"PKG_shared.py": TWO},
        installed="path",
    ),
    Kind(
        "package-shadows",
        AGAIN,
        head="from PKG._inner import VALUE",
        files={INNER: ONE},
        then={"PKG/_inner/__init__.py": TWO},
    ),
    inner(
        "spec-from-file",
        PATH + "from importlib.util import module_from_spec, spec_from_file_location\n\n"
        f"_spec = spec_from_file_location('PKG_loaded', {BESIDE}('_inner.py'))\n"
        "_inner = module_from_spec(_spec)\n_spec.loader.exec_module(_inner)",
    ),
    inner(
        "run-path",
        PATH + f"import runpy\n\nnames = runpy.run_path(str({BESIDE}('_inner.py')))",
        "names['VALUE']",
    ),
    inner("run-module", "import runpy\n\nnames = runpy.run_module('PKG._inner')", "names['VALUE']"),
    inner(
        "exec-of-file",
        PATH + f"\nnames = {{}}\nexec(open({BESIDE}('_inner.py')).read(), names)",
        "names['VALUE']",
    ),
    data(
        "zip-on-path",
        PATH
        + f"import sys\n\nsys.path.append(str({BESIDE}('value')))\nfrom module_in_zip import VALUE",
        zipped({"module_in_zip.py": ONE}),
        zipped({"module_in_zip.py": TWO}),
    ),
    data(
        "zipimport",
        PATH + "import zipimport\nfrom importlib.util import module_from_spec\n\n"
        f"spec = zipimport.zipimporter(str({BESIDE}('value'))).find_spec('zipped')\n"
        "module = module_from_spec(spec)\nspec.loader.exec_module(module)",
        zipped({"zipped.py": ONE}),
        zipped({"zipped.py": TWO}),
        value="module.VALUE",
    ),
    Kind(
        "namespace-package",
        AGAIN,
        head="from PKG.space import inner",
        value="inner.VALUE",
        files={"PKG/space/inner.py": ONE},
        then={"PKG/space/inner.py": TWO},
    ),
    Kind(
        "top-namespace",
        AGAIN,
        head="from PKG_space import inner",
        value="inner.VALUE",
        files={"PKG_space/inner.py": ONE},
        then={"PKG_space/inner.py": TWO},
    ),
    Kind(
        "beside-the-package",
        AGAIN,
        head="from PKG_beside import VALUE",
        files={"PKG_beside.py": ONE},
        then={"PKG_beside.py": TWO},
    ),
    Kind(
        "on-changed-path",
        AGAIN,
        head=PATH + f"import sys\n\nsys.path.insert(0, str({BESIDE}('vendor')))\n"
        "from PKG_vendored import VALUE",
        files={"PKG/vendor/PKG_vendored.py": ONE},
        then={"PKG/vendor/PKG_vendored.py": TWO},
    ),
    Kind(
        "extended-package-path",
        AGAIN,
        head=PATH
        + f"import importlib\n\nimport PKG\n\nPKG.__path__.append(str({BESIDE}('vendor')))\n"
        "VALUE = importlib.import_module('.'.join([__package__, 'vendored'])).VALUE",
        files={"PKG/vendor/vendored.py": ONE},
        then={"PKG/vendor/vendored.py": TWO},
    ),
    Kind(
        "editable-helper",
        AGAIN,
        head="from PKG_helper import VALUE",
        files=distribution("PKG_helper", {"PKG_helper.py": ONE}, editable="helper"),
        then={"helper/PKG_helper.py": TWO},
    ),
    Kind(
        "reinstalled-helper",
        AGAIN,
        head="from PKG_helper import VALUE",
        files=distribution("PKG_helper", {"PKG_helper.py": ONE}),
        then=distribution("PKG_helper", {"PKG_helper.py": TWO}),
    ),
    Kind(
        "newer-helper",
        AGAIN,
        head="from PKG_helper import VALUE",
        files=distribution("PKG_helper", {"PKG_helper.py": ONE}),
        then={
            **dict.fromkeys(distribution("PKG_helper", {})),
            **distribution("PKG_helper", {"PKG_helper.py": TWO}, version="1.1"),
        },
    ),
    Kind(
        "data-of-reinstalled-helper",
        AGAIN,
        head="from importlib.resources import files\n\n"
        "VALUE = files('PKG_helper').joinpath('value').read_text()",
        files=distribution("PKG_helper", {"PKG_helper/__init__.py": "", "PKG_helper/value": "1"}),
        then=distribution("PKG_helper", {"PKG_helper/__init__.py": "", "PKG_helper/value": "2"}),
    ),
    part(
        "modules-of-package",
        "from PKG import part",
        "sorted(module.VALUE for module in part.MODULES)",
        "import importlib\nimport pkgutil\n\n"
        "NAMES = [module.name for module in pkgutil.iter_modules(__path__)]\n"
        "MODULES = [importlib.import_module(f'{__name__}.{name}') for name in NAMES]\n",
    ),
    part(
        "further-module-of-package",
        "from PKG import part",
        "len(part.NAMES)",
        "import pkgutil\n\nNAMES = [module.name for module in pkgutil.iter_modules(__path__)]\n",
        then={DEEP: ONE, "PKG/part/further.py": ONE},
    ),
    part(
        "further-module-of-packages",
        "import pkgutil\n\nimport PKG.part",
        "len(list(pkgutil.walk_packages(PKG.part.__path__, 'PKG.part.')))",
        "",
        files={"PKG/part/within/__init__.py": ""},
        then={DEEP: ONE, "PKG/part/within/further.py": ONE},
    ),
    Kind(
        "entry-point-of-helper",
        AGAIN,
        head="from importlib.metadata import entry_points\n\n"
        "(point,) = entry_points(group='PKG.levels')\nVALUE = point.load()",
        files=distribution(
            "PKG_helper",
            {"PKG_helper.py": "ONE, TWO = 1, 2\n"},
            entry_points="[PKG.levels]\nlevel = PKG_helper:ONE\n",
            editable="helper",
        ),
        then={
            "SITE/PKG_helper-1.0.dist-info/entry_points.txt": "[PKG.levels]\n"
            "level = PKG_helper:TWO\n"
        },
    ),
    Kind(
        "code-of-entry-point",
        AGAIN,
        head="from importlib.metadata import entry_points\n\n"
        "(point,) = entry_points(group='PKG.levels')\nVALUE = point.load()",
        files=distribution(
            "PKG_helper",
            {"PKG_helper.py": ONE},
            entry_points="[PKG.levels]\nlevel = PKG_helper:VALUE\n",
            editable="helper",
        ),
        then={"helper/PKG_helper.py": TWO},
    ),
    inner("plugin-on-path", "from ._inner import VALUE", "VALUE", installed="path"),
]

ENTRIES = [
    Kind(
        "entry-module",
        AGAIN,
        head="import PKG",
        value="PKG.VALUE",
        entry=ENTRY + "\n\n" + ONE,
        then={"PKG/__init__.py": ENTRY + "\n\n" + TWO},
    ),
    entry(
        "registers-itself",
        "from PKG._registry import VALUES\n\nVALUES['a'] = 1\n",
        "VALUES['a']",
        "from PKG._registry import VALUES",
        _registry="VALUES = {}\n",
    ),
    entry(
        "sets-constant",
        "import PKG._settings\n\nPKG._settings.VALUE = 1\n",
        "_settings.VALUE",
        "from PKG import _settings",
        _settings="VALUE = 0\n",
    ),
    entry("patches-class", "from PKG._map import Map\n\nMap.level = 1\n", "self.level"),
    entry(
        "subclass-hook",
        "from PKG._base import Base\n\n\nclass Level(Base):\n    value = 1\n",
        "Base.found[-1].value",
        "from PKG._base import Base",
        _base="class Base:\n    found = []\n\n    def __init_subclass__(cls):\n"
        "        Base.found.append(cls)\n",
    ),
    entry(
        "decorator-registry",
        "from PKG._registry import register\n\n\n@register\ndef level():\n    return 1\n",
        "FOUND['level']()",
        "from PKG._registry import FOUND",
        _registry="FOUND = {}\n\n\ndef register(function):\n"
        "    FOUND[function.__name__] = function\n    return function\n",
    ),
    entry(
        "sets-environment",
        "import os\n\nos.environ['LEVEL'] = '1'\n",
        "os.environ['LEVEL']",
        "import os",
    ),
]

DESCRIPTIONS = [
    described(
        "grid-from-json",
        PATH + f"import json\n\nGRID = json.loads({BESIDE}('grid.json').read_text())",
        "GRID",
        files={"PKG/grid.json": "[2.0]"},
        then={"PKG/grid.json": "[3.0]"},
    ),
    described(
        "grid-from-environment",
        "import os\n\nGRID = (float(os.environ.get('LEVEL', '1')),)",
        "GRID",
        variables_then={"LEVEL": "2"},
    ),
    described(
        "grid-from-toml",
        PATH + "import tomllib\n\n"
        f"GRID = tomllib.loads({BESIDE}('defaults.toml').read_text())['scale']",
        "GRID",
        files={"PKG/defaults.toml": "scale = [2.0]\n"},
        then={"PKG/defaults.toml": "scale = [3.0]\n"},
    ),
    described(
        "grid-from-names",
        PATH + f"import os\n\nGRID = (float(max(os.listdir({BESIDE}('levels')))),)",
        "GRID",
        files={"PKG/levels/1": ""},
        then={"PKG/levels/2": ""},
    ),
    Kind(
        "lambda-in-record",
        AGAIN,
        value="self.scale",
        entry=ENTRY.replace('"PKG._map:Map"', "lambda: Map(2.0)").replace(
            "\n\n\n@", "\n\nfrom PKG._map import Map\n\n\n@"
        ),
        then={
            "PKG/__init__.py": ENTRY.replace('"PKG._map:Map"', "lambda: Map(3.0)").replace(
                "\n\n\n@", "\n\nfrom PKG._map import Map\n\n\n@"
            )
        },
    ),
    Kind(
        "closure-in-record",
        AGAIN,
        value="self.scale",
        entry=ENTRY.replace('"PKG._map:Map"', "ONE").replace("\n\n\n@", CLOSURES),
        then={
            "PKG/__init__.py": ENTRY.replace('"PKG._map:Map"', "TWO").replace("\n\n\n@", CLOSURES)
        },
    ),
    Kind(
        "partial-in-record",
        AGAIN,
        value="self.scale",
        entry=ENTRY.replace('"PKG._map:Map"', "partial(Map, scale=2.0)").replace(
            "\n\n\n@", "\n\nfrom functools import partial\n\nfrom PKG._map import Map\n\n\n@"
        ),
        then={
            "PKG/__init__.py": ENTRY.replace('"PKG._map:Map"', "partial(Map, scale=3.0)").replace(
                "\n\n\n@", "\n\nfrom functools import partial\n\nfrom PKG._map import Map\n\n\n@"
            )
        },
    ),
]

DATA = [
    data(
        "pickle",
        PATH + f"import pickle\n\nVALUE = pickle.loads({BESIDE}('value').read_bytes())",
        pickled(1),
        pickled(2),
    ),
    data(
        "npy",
        PATH + f"VALUE = np.load({BESIDE}('value')).item()",
        array(1.0),
        array(2.0),
    ),
    data(
        "mapped-npy",
        PATH + f"VALUES = np.load({BESIDE}('value'), mmap_mode='r')",
        array(1.0),
        array(2.0),
        value="float(VALUES[0])",
    ),
    data("text", PATH + f"VALUE = {BESIDE}('value').read_text()", "1", "2", quick=True),
    data(
        "os-open",
        PATH + f"import os\n\nVALUE = os.read(os.open({BESIDE}('value'), 0), 9)",
        "1",
        "2",
    ),
    data(
        "resources",
        "from importlib.resources import files\n\n"
        "VALUE = files('PKG').joinpath('value').read_text()",
        "1",
        "2",
    ),
    data("get-data", "import pkgutil\n\nVALUE = pkgutil.get_data('PKG', 'value')", "1", "2"),
    data(
        "sqlite",
        PATH + f"import sqlite3\n\nDATA = sqlite3.connect({BESIDE}('value'))\n"
        "VALUE = DATA.execute('SELECT value FROM values_').fetchone()\nDATA.close()",
        database(1),
        database(2),
        entry=DECLARING,
    ),
    data(
        "parquet",
        PATH + "from pyarrow.parquet import read_table\n\n"
        f"VALUE = read_table(str({BESIDE}('value')))['value'][0].as_py()",
        parquet(1.0),
        parquet(2.0),
        entry=DECLARING,
    ),
    data(
        "json-in-fit",
        PATH + "import json",
        "1",
        "2",
        fit=f"self.level = json.loads({BESIDE}('value').read_text())",
        value="self.level",
    ),
    data(
        "text-in-transform",
        PATH,
        "1",
        "2",
        value=f"{BESIDE}('value').read_text()",
    ),
    data(
        "same-size-and-time",
        PATH + f"VALUE = {BESIDE}('value').read_text()",
        "1",
        "2",
        quietly=True,
    ),
    Kind(
        "found-by-glob",
        AGAIN,
        head=PATH,
        fit="names = sorted(Path(__file__).parent.glob('level*'))\n"
        "self.level = names[-1].read_text()",
        value="self.level",
        files={"PKG/level1": "1"},
        then={"PKG/level2": "2"},
    ),
    Kind(
        "listed-in-fit",
        AGAIN,
        head="import os\nfrom pathlib import Path",
        fit="self.level = sorted(os.listdir(Path(__file__).parent / 'levels'))",
        value="self.level",
        files={"PKG/levels/1": ""},
        then={"PKG/levels/2": ""},
    ),
    Kind(
        "scandir-in-fit",
        AGAIN,
        head="import os\nfrom pathlib import Path",
        fit="self.level = len(list(os.scandir(Path(__file__).parent / 'levels')))",
        value="self.level",
        files={"PKG/levels/1": ""},
        then={"PKG/levels/2": ""},
    ),
    Kind(
        "file-appears",
        AGAIN,
        head=PATH,
        fit="try:\n    self.level = "
        f"{BESIDE}('value').read_text()\nexcept OSError:\n    self.level = 0",
        value="self.level",
        then={"PKG/value": "1"},
    ),
    Kind(
        "existence",
        AGAIN,
        head=PATH,
        fit=f"self.level = {BESIDE}('value').exists()",
        value="self.level",
        then={"PKG/value": "1"},
    ),
    Kind(
        "file-disappears",
        AGAIN,
        head=PATH,
        fit="try:\n    self.level = "
        f"{BESIDE}('value').read_text()\nexcept OSError:\n    self.level = 0",
        value="self.level",
        files={"PKG/value": "1"},
        then={"PKG/value": None},
    ),
    Kind(
        "linked-data",
        AGAIN,
        head=PATH + f"VALUE = {BESIDE}('value').read_text()",
        files={"PKG/value": Link("../data/one"), "data/one": "1", "data/two": "2"},
        then={"PKG/value": Link("../data/two")},
    ),
    Kind(
        "linked-module",
        AGAIN,
        head="from PKG._inner import VALUE",
        files={INNER: Link("../code/one.py"), "code/one.py": ONE, "code/two.py": TWO},
        then={INNER: Link("../code/two.py")},
    ),
    Kind(
        "target-of-linked-module",
        AGAIN,
        head="from PKG._inner import VALUE",
        files={INNER: Link("../code/one.py"), "code/one.py": ONE},
        then={"code/one.py": TWO},
    ),
    variable(
        "variable-in-fit",
        "1",
        "2",
        head="import os",
        fit="self.level = os.environ['LEVEL']",
        value="self.level",
        quick=True,
    ),
    variable("getenv", None, "2", head="import os", value="os.getenv('LEVEL')"),
    variable("variable-at-import", "1", "2", head="import os\n\nVALUE = os.environ.get('LEVEL')"),
    variable("variable-removed", "1", None, head="import os\n\nVALUE = os.environ.get('LEVEL')"),
    variable("variable-is-there", None, "1", head="import os", value="'LEVEL' in os.environ"),
    variable("expanded-variable", "1", "2", head="import os", value="os.path.expandvars('$LEVEL')"),
    variable("bytes-of-variable", "1", "2", head="import os", value="os.environb[b'LEVEL']"),
    inner("stale-bytecode", "from ._inner import VALUE", "VALUE", quietly=True),
    Kind(
        "unchecked-bytecode",
        EITHER,
        head="from PKG._inner import VALUE",
        files={INNER: ONE, "PKG/__pycache__/_inner.TAG.pyc": unchecked(ONE)},
        then={"PKG/__pycache__/_inner.TAG.pyc": unchecked(TWO)},
    ),
    Kind(
        "source-of-unchecked-bytecode",
        EITHER,
        head="from PKG._inner import VALUE",
        files={INNER: ONE, "PKG/__pycache__/_inner.TAG.pyc": unchecked(ONE)},
        then={INNER: TWO},
    ),
    Kind(
        "bytecode-only",
        AGAIN,
        head="from PKG._inner import VALUE",
        files={"PKG/_inner.pyc": unchecked(ONE)},
        then={"PKG/_inner.pyc": unchecked(TWO)},
    ),
]

LEVEL = "def level():\n    return {}\n"
MEANINGS = [
    code("constant", LEVEL.format(1), LEVEL.format(2), quick=True),
    code("operator", LEVEL.format("2 + 3"), LEVEL.format("2 * 3")),
    code("type-of-number", LEVEL.format("1"), LEVEL.format("1.0")),
    code("sign-of-zero", LEVEL.format("0.0"), LEVEL.format("-0.0")),
    code("text-that-is-data", LEVEL.format("'one'"), LEVEL.format("'two'")),
    code("bytes-for-text", LEVEL.format("'one'"), LEVEL.format("b'one'")),
    code("tuple-of-one", LEVEL.format("(1)"), LEVEL.format("(1,)")),
    code("precedence", LEVEL.format("2 * 3 + 1"), LEVEL.format("2 * (3 + 1)")),
    code("default-argument", "def level(a=1):\n    return a\n", "def level(a=2):\n    return a\n"),
    code(
        "decorator",
        "def twice(function):\n    return lambda: 2 * function()\n\n\n" + LEVEL.format(1),
        "def twice(function):\n    return lambda: 2 * function()\n\n\n@twice\n" + LEVEL.format(1),
    ),
    code(
        "class-attribute",
        "class Level:\n    value = 1\n",
        "class Level:\n    value = 2\n",
        "_inner.Level.value",
    ),
    code(
        "dataclass-annotation",
        "from dataclasses import dataclass, fields\nfrom typing import ClassVar\n\n\n"
        "@dataclass\nclass Level:\n    value: int = 1\n\n\n" + LEVEL.format("len(fields(Level))"),
        "from dataclasses import dataclass, fields\nfrom typing import ClassVar\n\n\n"
        "@dataclass\nclass Level:\n    value: ClassVar[int] = 1\n\n\n"
        + LEVEL.format("len(fields(Level))"),
    ),
    code(
        "named-tuple-annotation",
        "from typing import NamedTuple\n\n\nclass Level(NamedTuple):\n    a: int\n",
        "from typing import NamedTuple\n\n\nclass Level(NamedTuple):\n    a: int\n    b: int\n",
        "_inner.Level._fields",
    ),
    code(
        "annotation-of-decorated-function",
        "def annotated(function):\n    return lambda: str(function.__annotations__)\n\n\n"
        "@annotated\ndef level() -> int:\n    return 1\n",
        "def annotated(function):\n    return lambda: str(function.__annotations__)\n\n\n"
        "@annotated\ndef level() -> float:\n    return 1\n",
    ),
    code(
        "lambda",
        "level = lambda: 1\n",
        "level = lambda: 2\n",
    ),
    code(
        "partial",
        "from functools import partial\n\nlevel = partial(max, 1, 0)\n",
        "from functools import partial\n\nlevel = partial(max, 2, 0)\n",
    ),
    code(
        "order-of-statements",
        "a = 1\nb = a\na = 2\n\n\n" + LEVEL.format("b"),
        "a = 1\na = 2\nb = a\n\n\n" + LEVEL.format("b"),
    ),
    code(
        "indentation",
        "def level():\n    a = 0\n    for _ in range(3):\n        a += 1\n        a += 1\n"
        "    return a\n",
        "def level():\n    a = 0\n    for _ in range(3):\n        a += 1\n    a += 1\n"
        "    return a\n",
    ),
    code(
        "base-class",
        "class Base:\n    level = 1\n",
        "class Base:\n    level = 2\n",
        "self.level",
        bases="(_inner.Base)",
    ),
    code(
        "metaclass",
        "class Meta(type):\n    level = property(lambda cls: 1)\n",
        "class Meta(type):\n    level = property(lambda cls: 2)\n",
        "type(self).level",
        bases="(metaclass=_inner.Meta)",
    ),
    code("f-string", LEVEL.format("f'{1 / 3:.2f}'"), LEVEL.format("f'{1 / 3:.3f}'")),
    Kind(
        "method-of-map",
        AGAIN,
        head=ONE,
        then={"PKG/_map.py": Kind("", AGAIN).map_module(ONE, "-VALUE")},
    ),
]

DOCUMENTED = (
    '"""{0}"""\n\n\nclass Level:\n    """{1}"""\n\n\ndef level():\n    """{2}"""\n    return 1\n'
)
WRITINGS = [
    same("docstring-of-module", DOCUMENTED.format(*"abc"), DOCUMENTED.format(*"xbc"), quick=True),
    same("docstring-of-class", DOCUMENTED.format(*"abc"), DOCUMENTED.format(*"axc")),
    same("docstring-of-function", DOCUMENTED.format(*"abc"), DOCUMENTED.format(*"abx")),
    same("new-docstring", LEVEL.format(1), "def level():\n    '''Now it is.'''\n    return 1\n"),
    same("comment", LEVEL.format(1), "# why\n" + LEVEL.format("1  # one")),
    same("blank-lines", LEVEL.format(1), "\n\n\ndef level():\n\n    return 1\n\n\n"),
    same(
        "reformatting",
        LEVEL.format("max(1, 2)"),
        LEVEL.format("max(\n        1,\n        2\n    )"),
    ),
    same("trailing-comma", LEVEL.format("max(1, 2)"), LEVEL.format("max(1, 2,)")),
    same("quotes", LEVEL.format("'one'"), LEVEL.format('"one"')),
    same("prefix-of-text", LEVEL.format("'one'"), LEVEL.format("u'one'")),
    same("adjacent-texts", LEVEL.format("'one'"), LEVEL.format("'o' 'ne'")),
    same("underscores", LEVEL.format("1000"), LEVEL.format("1_000")),
    same("exponent", LEVEL.format("1000.0"), LEVEL.format("1e3")),
    same("hexadecimal", LEVEL.format("16"), LEVEL.format("0x10")),
    same("parentheses", LEVEL.format("2 * 3 + 1"), LEVEL.format("((2 * 3) + 1)")),
    same("line-endings", LEVEL.format("1"), LEVEL.format("1").replace("\n", "\r\n")),
    same("semicolon", "a = 1\nb = 2\n" + LEVEL.format("b"), "a = 1; b = 2\n" + LEVEL.format("b")),
    same("encoding", LEVEL.format("1"), "# -*- coding: utf-8 -*-\n" + LEVEL.format("1")),
    same(
        "annotation-of-plain-function",
        "def level(a=1):\n    return a\n",
        "def level(a: int = 1) -> int:\n    return a\n",
    ),
    Kind(
        "docstring-of-entry", KEPT, head=ONE, then={"PKG/__init__.py": '"""Now it is."""\n' + ENTRY}
    ),
    Kind(
        "hook-body",
        KEPT,
        head=ONE,
        then={"PKG/__init__.py": ENTRY.replace('Map")]', 'Map"), FeatureMap("KIND-b", "PKG:No")]')},
    ),
]

UNREAD = [
    unread("touched", {}, {"PKG/_map.py": Kind("", KEPT).map_module(ONE, "VALUE")}),
    unread(
        "rewritten-data",
        {"PKG/value": "1"},
        {"PKG/value": "1"},
        head=PATH + f"VALUE = {BESIDE}('value').read_text()",
    ),
    unread("unrelated-module", {"PKG/_unused.py": ONE}, {"PKG/_unused.py": TWO}),
    unread("new-module", {}, {"PKG/_unused.py": ONE}),
    unread(
        "readme",
        {"README.md": "one", "PKG/README.md": "one"},
        {"README.md": "two", "PKG/README.md": "two"},
    ),
    unread("tests-of-plugin", {"tests/test_map.py": ONE}, {"tests/test_map.py": TWO}),
    unread("unread-data", {"PKG/value": "1"}, {"PKG/value": "2"}),
    unread("unread-variable", {}, {}, variables={"LEVEL": "1"}, variables_then={"LEVEL": "2"}),
    unread("stub", {"PKG/_map.pyi": ONE}, {"PKG/_map.pyi": TWO}),
    unread(
        "other-component",
        {"PKG/_other.py": ONE},
        {"PKG/_other.py": TWO},
        entry=ENTRY.replace('Map")]', 'Map"), FeatureMap("KIND-other", make="PKG._other:Other")]'),
    ),
    unread(
        "own-log",
        {},
        {"PKG/log": "edited"},
        head=PATH + ONE,
        fit=f"with open({BESIDE}('log'), 'a') as log:\n    log.write('fitted')",
    ),
    unread(
        "own-scratch-file",
        {},
        {"PKG/scratch": "edited"},
        head=PATH,
        fit=f"{BESIDE}('scratch').write_text('1')\nself.level = {BESIDE}('scratch').read_text()",
        value="self.level",
    ),
    unread(
        "own-cache-file",
        {},
        {},
        head=PATH,
        fit=f"path = {BESIDE}('cache')\nif not path.exists():\n    path.write_text('1')\n"
        "self.level = path.read_text()",
        value="self.level",
    ),
    unread(
        "temporary-file",
        {},
        {},
        head="import tempfile",
        fit="with tempfile.NamedTemporaryFile('w+') as file:\n    file.write('1')\n"
        "    file.seek(0)\n    self.level = file.read()",
        value="self.level",
    ),
    unread(
        "identical-helper",
        distribution("PKG_helper", {"PKG_helper.py": ONE}),
        distribution("PKG_helper", {"PKG_helper.py": ONE}),
        head="from PKG_helper import VALUE",
    ),
    unread(
        "comment-in-editable-helper",
        distribution("PKG_helper", {"PKG_helper.py": ONE}, editable="helper"),
        {"helper/PKG_helper.py": ONE + "# why\n"},
        head="from PKG_helper import VALUE",
    ),
]

OTHER = """
from kbench import FeatureMap, hookimpl


@hookimpl
def kbench_feature_maps():
    return [
        FeatureMap("KIND-other", make="PKG._a_map:Map"),
        FeatureMap("KIND", make="PKG._map:Map"),
    ]
"""
LAZY = "import functools\n\n\n@functools.cache\ndef found():\n    {}\n"


def shared(name: str, head: str, other: str = "", value: str = "_inner.VALUE", **more: Any) -> Kind:
    """Two maps of a plugin whose modules depend on the same module; the other one comes first."""
    files: dict[str, Content] = {INNER: ONE, "PKG/_a_map.py": _map_of(other or head, value)}
    more = {"head": head, "value": value, "entry": OTHER, "others": ("KIND-other",), **more}
    return _kind(name, AGAIN, files, {INNER: TWO}, **more)


def apart(name: str, files: Mapping[str, Content], then: Mapping[str, Content]) -> Kind:
    """Two maps of a plugin, of which the other one depends on what is edited."""
    return Kind(name, KEPT, head=ONE, entry=OTHER, others=("KIND-other",), files=files, then=then)


def _map_of(head: str, value: str = "VALUE") -> str:
    return Kind("", KEPT).map_module(head, value)


READ_LAZILY = LAZY.format(f"return {BESIDE}('value').read_text()")
TOGETHER = [
    shared("loaded-by-other", "from PKG import _inner"),
    shared(
        "loaded-by-other-by-name",
        "import importlib\n\n_inner = importlib.import_module('.'.join([__package__, '_inner']))",
        "from PKG import _inner",
    ),
    shared(
        "loaded-by-other-by-importlib",
        "import importlib\n\n_inner = importlib.__import__('PKG._inner', fromlist=['VALUE'])",
        "from PKG import _inner",
    ),
    shared(
        "loaded-by-other-once",
        "from PKG._lazy import found\n\nVALUE = found().VALUE",
        value="VALUE",
        files={"PKG/_lazy.py": LAZY.format("from PKG import _inner\n\n    return _inner")},
    ),
    shared(
        "read-by-other-once",
        "from PKG._lazy import found\n\nVALUE = found()",
        value="VALUE",
        files={"PKG/_lazy.py": PATH + READ_LAZILY, "PKG/value": "1"},
        then={INNER: ONE, "PKG/value": "2"},
    ),
    shared(
        "variable-read-by-other-once",
        "from PKG._lazy import found\n\nVALUE = found()",
        value="VALUE",
        files={"PKG/_lazy.py": "import os\n" + LAZY.format("return os.environ['LEVEL']")},
        then={INNER: ONE},
        variables={"LEVEL": "1"},
        variables_then={"LEVEL": "2"},
    ),
    shared(
        "set-by-other",
        "from PKG import _settings",
        "from PKG import _inner, _settings",
        value="_settings.VALUE",
        entry="import PKG._a_map\n" + OTHER,
        files={
            "PKG/_settings.py": "VALUE = 0\n",
            INNER: "import PKG._settings\n\nPKG._settings.VALUE = 1\n",
        },
        then={INNER: "import PKG._settings\n\nPKG._settings.VALUE = 2\n"},
    ),
    apart(
        "module-of-other",
        {"PKG/_a_map.py": _map_of(ONE)},
        {"PKG/_a_map.py": _map_of(TWO)},
    ),
    apart(
        "helper-of-other",
        {"PKG/_a_map.py": _map_of("from PKG._inner import VALUE"), INNER: ONE},
        {INNER: TWO},
    ),
    apart(
        "data-of-other",
        {
            "PKG/_a_map.py": _map_of(PATH + f"VALUE = {BESIDE}('value').read_text()"),
            "PKG/value": "1",
        },
        {"PKG/value": "2"},
    ),
]

SUBCLASS = "from PKG._base import Base\n\n\nclass Level(Base):\n    value = {}\n"
FINDER = """import sys
from importlib.machinery import ModuleSpec
from pathlib import Path


class Texts:
    def find_spec(self, name, path=None, target=None):
        return ModuleSpec(name, self) if name == "PKG_in_text" else None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        exec(Path(__file__).with_name("value").read_text(), vars(module))


sys.meta_path.append(Texts())
from PKG_in_text import VALUE"""
MORE = [
    data("own-finder", FINDER, ONE, TWO),
    inner(
        "from-sys-modules",
        "import sys",
        "sys.modules['PKG._inner'].VALUE",
        entry="import PKG._inner\n" + ENTRY,
    ),
    inner(
        "subclasses",
        "from PKG._base import Base",
        "Base.__subclasses__()[0].value",
        entry="import PKG._inner\n" + ENTRY,
        files={"PKG/_base.py": "class Base:\n    pass\n", INNER: SUBCLASS.format(1)},
        then={INNER: SUBCLASS.format(2)},
    ),
    inner(
        "import-in-thread",
        "from threading import Thread\n\n\n"
        "def load():\n    global _inner\n    from PKG import _inner\n",
        fit="thread = Thread(target=load)\nthread.start()\nthread.join()",
    ),
    data(
        "text-in-thread",
        PATH + "from concurrent.futures import ThreadPoolExecutor",
        "1",
        "2",
        fit="with ThreadPoolExecutor(1) as pool:\n"
        f"    self.level = pool.submit({BESIDE}('value').read_text).result()",
        value="self.level",
    ),
    data(
        "code-that-is-data",
        PATH + f"VALUE = {BESIDE}('value.py').read_text()",
        "",
        "",
        files={"PKG/value.py": ONE},
        then={"PKG/value.py": ONE + "# why\n"},
    ),
    inner(
        "source-that-is-data",
        "import inspect\n\nfrom PKG import _inner",
        "inspect.getsource(_inner)",
        then={INNER: ONE + "# why\n"},
    ),
    data(
        "gzip",
        PATH + f"import gzip\n\nVALUE = gzip.open({BESIDE}('value')).read()",
        gzip.compress(b"1", mtime=0),
        gzip.compress(b"2", mtime=0),
    ),
    data("fromfile", PATH + f"VALUE = np.fromfile({BESIDE}('value'), dtype='u1')[0]", "1", "2"),
    data(
        "shelf",
        PATH + f"import dbm.dumb\n\nVALUE = dbm.dumb.open(str({BESIDE}('value')), 'r')[b'a']",
        "",
        "",
        files={"PKG/value.dat": "1", "PKG/value.dir": "'a', (0, 1)\n"},
        then={"PKG/value.dat": "2"},
    ),
    Kind(
        "in-working-folder",
        AGAIN,
        head="VALUE = open('KIND.txt').read()",
        files={"HERE/KIND.txt": "1"},
        then={"HERE/KIND.txt": "2"},
    ),
    Kind(
        "in-home-folder",
        AGAIN,
        head=PATH + "VALUE = (Path.home() / 'KIND.txt').read_text()",
        files={"HERE/home/KIND.txt": "1"},
        then={"HERE/home/KIND.txt": "2"},
    ),
    variable(
        "copied-environment",
        "1",
        "2",
        head="import os",
        value="dict(os.environ)['LEVEL']",
        entry=ENTRY.replace('Map"', 'Map", env_vars=["LEVEL"]'),
    ),
    variable(
        "default-of-variable",
        None,
        "2",
        head="import os",
        value="os.environ.setdefault('LEVEL', '1')",
    ),
    Kind(
        "version-of-helper",
        AGAIN,
        head="from importlib.metadata import version\n\nVALUE = version('PKG_helper')",
        files=distribution("PKG_helper", {"PKG_helper.py": ONE}),
        then={
            **dict.fromkeys(distribution("PKG_helper", {})),
            **distribution("PKG_helper", {"PKG_helper.py": ONE}, version="1.1"),
        },
    ),
    Kind(
        "helper-appears",
        AGAIN,
        head="from importlib.util import find_spec\n\nVALUE = find_spec('PKG_helper') is None",
        then=distribution("PKG_helper", {"PKG_helper.py": ONE}),
    ),
    Kind(
        "wheel-edited-in-place",
        AGAIN,
        head="from PKG._inner import VALUE",
        installed="wheel",
        files={INNER: ONE},
        then={INNER: TWO},
    ),
]

KINDS = [*IMPORTS, *ENTRIES, *DESCRIPTIONS, *DATA, *MEANINGS, *WRITINGS, *UNREAD, *TOGETHER, *MORE]
