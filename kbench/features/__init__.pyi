from kbench import machine
from kbench.api.inputs import (
    check_limit,
    chosen_suite,
    imported_rows,
    known_suite,
    notices,
    option_names,
    own_methods,
    stored_results,
)
from kbench.api.running import run_shown
from kbench.cli import completion, printing, show
from kbench.cli.echo import echo
from kbench.cli.feature_options import given
from kbench.cli.options import Data as DataOption
from kbench.cli.options import (
    Datasets,
    Delimiter,
    FeatureMaps,
    Form,
    Format,
    Fresh,
    Group,
    Ignore,
    JsonEvents,
    Learners,
    Nominal,
    Offline,
    Open,
    OrderBy,
    Outdated,
    Quiet,
    Store,
    Target,
)
from kbench.cli.options import Task as TaskOption
from kbench.cli.pages import command_of
from kbench.cli.printing import write_file as write_output
from kbench.errors import FeatureError, KbenchError, SuiteError
from kbench.evaluation.assignment import Assignment, Visible, assign
from kbench.evaluation.definitions import COMPUTED, MEASURES, NEVER_RANKED, SEARCHED
from kbench.evaluation.evaluate import parts
from kbench.evaluation.inner_parts import inner_parts
from kbench.evaluation.measures import COMPUTE, Criterion, applies, rows_of, takes_weights
from kbench.evaluation.method import Method as FitMethod
from kbench.evaluation.method import learner_side, map_side, search_side
from kbench.evaluation.outputs import (
    Predictions,
    check_embedding,
    checked_labels,
    checked_numbers,
    predictions_of,
    restored,
)
from kbench.evaluation.preprocessing import Imputer, missing_rows, refuse_missing
from kbench.evaluation.refit import fit_and_predict
from kbench.evaluation.row_hashes import SALT, hashed, row_hashes
from kbench.evaluation.rows import BLOCK_ROWS
from kbench.evaluation.scores import scores as split_scores
from kbench.evaluation.search import (
    Candidate,
    Data,
    LinearModels,
    Sample,
    candidates,
    fit_map,
    is_number,
    labels,
    search,
)
from kbench.evaluation.search._passes import MAX_COLUMNS, WHOLE_BYTES
from kbench.evaluation.sizes import holdout_sizes
from kbench.evaluation.splits import derive_seed, strata, stratified_folds
from kbench.evaluation.sums import Sums, Targets
from kbench.evaluation.targets import Scale, Truth
from kbench.execution import components
from kbench.execution.components import parameter_mistakes
from kbench.execution.engine import Answer, Engine, EngineOffer, LocalEngine, Terms, ThisMachine
from kbench.execution.engine.local import over_slots
from kbench.execution.engine.request import (
    Assignments,
    Host,
    Request,
    measure,
    measure_here,
    now_ms,
)
from kbench.execution.engine.this_machine import LOCK
from kbench.execution.fetching import LOAD_TIME_S, Fetching, load_memory_mb, opened
from kbench.execution.handover import Handover, send_scored
from kbench.execution.plugins import import_registry, importable, load_registry
from kbench.execution.sandbox import CallOutcome
from kbench.execution.session import lock_name
from kbench.execution.warm_parents import Preload, WarmParents, preload_of, preload_of_measures
from kbench.hookspecs import hookimpl
from kbench.machine import cluster_id, machine_id
from kbench.planning.cells import WIDTH, cells, given_width, of_width
from kbench.planning.files import in_folder
from kbench.planning.lines import LISTS, labelled, parameter_problems
from kbench.planning.planned import PlannedCell, task_key
from kbench.planning.planner import (
    Planner,
    deciding_kinds,
    how_many_splits,
    key_of_json,
    line_key,
    with_expanded,
)
from kbench.planning.plans import Plans, checksums, store_of
from kbench.planning.present import Present
from kbench.planning.raw import experiment_of, has_rules, is_share, lists_of, parsed, runnable
from kbench.planning.raw import tables_of as tables_of_file
from kbench.planning.recall import Validity, recall, recall_added
from kbench.planning.schema import BlockTable, ProtocolTable, StrictTable, SuiteFile
from kbench.planning.schema import explained as explained_mistakes
from kbench.planning.strategy import Strategy, n_candidates, n_missing
from kbench.planning.suite_file import checked as checked_suite
from kbench.planning.suite_file import context_of, find, of_block, own_or_shared, read, suite_of
from kbench.planning.tasks import with_measure
from kbench.records import (
    Added,
    Cell,
    Cost,
    DatasetFacts,
    Delivered,
    Limits,
    Manifest,
    Measure,
    Missing,
    Problem,
    Ref,
    Result,
    Suite,
    Task,
    Trial,
)
from kbench.registry.callables import Reference, makers, resolve
from kbench.registry.collecting import Kind
from kbench.registry.features import CORE_COMMANDS, Feature, features
from kbench.registry.features import FILE as FEATURE_FILE
from kbench.registry.features import read as read_feature
from kbench.registry.installed import DISABLED, HOST, Plugin, how_to_get, installed
from kbench.registry.notifications import DEADLINE_S, still_working
from kbench.registry.outlines import outline, parameters_of
from kbench.registry.registry import Registry, build
from kbench.registry.source import content_of, folders_of, modules_of, source_of
from kbench.registry.summaries import Summaries, first_sentence
from kbench.registry.verbs import Verbs, implemented
from kbench.report import leaderboard as leaderboard_tables
from kbench.report import lines
from kbench.report.axes import (
    LEFT,
    RIGHT,
    Axis,
    Frame,
    duration,
    linear,
    logarithmic,
    number,
    spans_decade,
)
from kbench.report.axes import WIDTH as CHART_WIDTH
from kbench.report.charts import MOST_LINES
from kbench.report.content import ALPHA, ROPE, ReportData, machine_facts, name_of
from kbench.report.escaping import environment_of_pages
from kbench.report.figures import KINDS as PICTURES
from kbench.report.figures import picture
from kbench.report.looks import Looks
from kbench.report.page import Block, Lead, page
from kbench.report.paper import as_float, chosen_datasets, chosen_methods, listed, turned
from kbench.report.sections import Chart, Folded, Heading, Note, Part, Section
from kbench.report.svg import document, element, escape, text, width_of
from kbench.report.tables import check_table, headings_of, table_named, table_names, tables_of
from kbench.report.text import (
    Column,
    Table,
    beside,
    decimals,
    heading,
    joined,
    latex_text,
    named,
    p_value,
    share,
    shown,
    signed,
    write,
)
from kbench.results import order, sources, stats
from kbench.results.budget_curves import mean_curve
from kbench.results.certainty import compared_rows, shared_splits, split_values
from kbench.results.imported import (
    HERE,
    VERDICTS,
    Check,
    ImportedRow,
    Verdict,
    as_one_side,
    comparable,
    without_times,
)
from kbench.results.leaderboard import leaderboard
from kbench.results.order import by_dataset, newest
from kbench.results.rows import (
    LABELS,
    PLAIN,
    TEXTS,
    TIMES,
    Labels,
    Method,
    Row,
    columns,
    known_measure,
    task_of,
)
from kbench.results.sources import by_split, of_cell_in_full, of_cell_with_splits
from kbench.results.stats import (
    NO_TEST,
    Array,
    CorrectedT,
    Scores,
    Standing,
    corrected_t,
    holdout_ratio,
    holm,
    on_dataset,
    ranks,
    scores,
    unit_of,
)
from kbench.results.stored import Query, StoredResults
from kbench.runner import Options, Report, Run, Watcher, execute
from kbench.storage.datacache import FILE_PARAMETERS, DataCache
from kbench.storage.datacache import default_root as default_cache
from kbench.storage.files import read_file, write_file
from kbench.storage.journal import Journal, state_folder
from kbench.storage.locks import Holder
from kbench.storage.locks import named as named_holder
from kbench.storage.predictions import DamagedPredictionsError, blob_of_seed, most_bytes, unpacked

__all__ = [
    "ALPHA",
    "BLOCK_ROWS",
    "CHART_WIDTH",
    "COMPUTE",
    "COMPUTED",
    "CORE_COMMANDS",
    "DEADLINE_S",
    "DISABLED",
    "FEATURE_FILE",
    "FILE_PARAMETERS",
    "HERE",
    "HOST",
    "LABELS",
    "LEFT",
    "LISTS",
    "LOAD_TIME_S",
    "LOCK",
    "MAX_COLUMNS",
    "MEASURES",
    "MOST_LINES",
    "NEVER_RANKED",
    "NO_TEST",
    "PICTURES",
    "PLAIN",
    "RIGHT",
    "ROPE",
    "SALT",
    "SEARCHED",
    "TEXTS",
    "TIMES",
    "VERDICTS",
    "WHOLE_BYTES",
    "WIDTH",
    "Added",
    "Answer",
    "Array",
    "Assignment",
    "Assignments",
    "Axis",
    "Block",
    "BlockTable",
    "CallOutcome",
    "Candidate",
    "Cell",
    "Chart",
    "Check",
    "Column",
    "CorrectedT",
    "Cost",
    "Criterion",
    "DamagedPredictionsError",
    "Data",
    "DataCache",
    "DataOption",
    "DatasetFacts",
    "Datasets",
    "Delimiter",
    "Delivered",
    "Engine",
    "EngineOffer",
    "Feature",
    "FeatureError",
    "FeatureMaps",
    "Fetching",
    "FitMethod",
    "Folded",
    "Form",
    "Format",
    "Frame",
    "Fresh",
    "Group",
    "Handover",
    "Heading",
    "Holder",
    "Host",
    "Ignore",
    "ImportedRow",
    "Imputer",
    "Journal",
    "JsonEvents",
    "KbenchError",
    "Kind",
    "Labels",
    "Lead",
    "Learners",
    "Limits",
    "LinearModels",
    "LocalEngine",
    "Looks",
    "Manifest",
    "Measure",
    "Method",
    "Missing",
    "Nominal",
    "Note",
    "Offline",
    "Open",
    "Options",
    "OrderBy",
    "Outdated",
    "Part",
    "PlannedCell",
    "Planner",
    "Plans",
    "Plugin",
    "Predictions",
    "Preload",
    "Present",
    "Problem",
    "ProtocolTable",
    "Query",
    "Quiet",
    "Ref",
    "Reference",
    "Registry",
    "Report",
    "ReportData",
    "Request",
    "Result",
    "Row",
    "Run",
    "Sample",
    "Scale",
    "Scores",
    "Section",
    "Standing",
    "Store",
    "StoredResults",
    "Strategy",
    "StrictTable",
    "Suite",
    "SuiteError",
    "SuiteFile",
    "Summaries",
    "Sums",
    "Table",
    "Target",
    "Targets",
    "Task",
    "TaskOption",
    "Terms",
    "ThisMachine",
    "Trial",
    "Truth",
    "Validity",
    "Verbs",
    "Verdict",
    "Visible",
    "WarmParents",
    "Watcher",
    "applies",
    "as_float",
    "as_one_side",
    "assign",
    "beside",
    "blob_of_seed",
    "build",
    "by_dataset",
    "by_split",
    "candidates",
    "cells",
    "check_embedding",
    "check_limit",
    "check_table",
    "checked_labels",
    "checked_numbers",
    "checked_suite",
    "checksums",
    "chosen_datasets",
    "chosen_methods",
    "chosen_suite",
    "cluster_id",
    "columns",
    "command_of",
    "comparable",
    "compared_rows",
    "completion",
    "components",
    "content_of",
    "context_of",
    "corrected_t",
    "deciding_kinds",
    "decimals",
    "default_cache",
    "derive_seed",
    "document",
    "duration",
    "echo",
    "element",
    "environment_of_pages",
    "escape",
    "execute",
    "experiment_of",
    "explained_mistakes",
    "features",
    "find",
    "first_sentence",
    "fit_and_predict",
    "fit_map",
    "folders_of",
    "given",
    "given_width",
    "has_rules",
    "hashed",
    "heading",
    "headings_of",
    "holdout_ratio",
    "holdout_sizes",
    "holm",
    "hookimpl",
    "how_many_splits",
    "how_to_get",
    "implemented",
    "import_registry",
    "importable",
    "imported_rows",
    "in_folder",
    "inner_parts",
    "installed",
    "is_number",
    "is_share",
    "joined",
    "key_of_json",
    "known_measure",
    "known_suite",
    "labelled",
    "labels",
    "latex_text",
    "leaderboard",
    "leaderboard_tables",
    "learner_side",
    "line_key",
    "linear",
    "lines",
    "listed",
    "lists_of",
    "load_memory_mb",
    "load_registry",
    "lock_name",
    "logarithmic",
    "machine",
    "machine_facts",
    "machine_id",
    "makers",
    "map_side",
    "mean_curve",
    "measure",
    "measure_here",
    "missing_rows",
    "modules_of",
    "most_bytes",
    "n_candidates",
    "n_missing",
    "name_of",
    "named",
    "named_holder",
    "newest",
    "notices",
    "now_ms",
    "number",
    "of_block",
    "of_cell_in_full",
    "of_cell_with_splits",
    "of_width",
    "on_dataset",
    "opened",
    "option_names",
    "order",
    "outline",
    "over_slots",
    "own_methods",
    "own_or_shared",
    "p_value",
    "page",
    "parameter_mistakes",
    "parameter_problems",
    "parameters_of",
    "parsed",
    "parts",
    "picture",
    "predictions_of",
    "preload_of",
    "preload_of_measures",
    "printing",
    "ranks",
    "read",
    "read_feature",
    "read_file",
    "recall",
    "recall_added",
    "refuse_missing",
    "resolve",
    "restored",
    "row_hashes",
    "rows_of",
    "run_shown",
    "runnable",
    "scores",
    "search",
    "search_side",
    "send_scored",
    "share",
    "shared_splits",
    "show",
    "shown",
    "signed",
    "source_of",
    "sources",
    "spans_decade",
    "split_scores",
    "split_values",
    "state_folder",
    "stats",
    "still_working",
    "store_of",
    "stored_results",
    "strata",
    "stratified_folds",
    "suite_of",
    "table_named",
    "table_names",
    "tables_of",
    "tables_of_file",
    "takes_weights",
    "task_key",
    "task_of",
    "text",
    "turned",
    "unit_of",
    "unpacked",
    "width_of",
    "with_expanded",
    "with_measure",
    "without_times",
    "write",
    "write_file",
    "write_output",
]
