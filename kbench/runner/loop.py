"""The steps of a run: fetch, plan, compute, notify the features.

A result is in the journal before anything else is done with it.
"""

import math
import time
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial

from kbench.errors import ClusterError
from kbench.execution.engine import Engine
from kbench.execution.request import note_problems, write_result
from kbench.planning import planned
from kbench.records import Added, Delivered, Problem, Status
from kbench.runner.run import Report, Run


def preview(run: Run) -> Report:
    """Plan a run, with predicted costs, without fetching or computing anything."""
    with closing(run.session):
        run.session.expand()
        _plan(run)
        run.session.check_parameters(run.cells, light=True)
    return _report(run)


def execute(run: Run) -> Report:
    """Fetch the data, compute what is missing, and notify the features.

    Raises SuiteError if a parameter of a component does not exist, and ClusterError where
    the cluster cannot be used; nothing has run then. A ClusterError also says that all hosts
    were lost; earlier results are kept and delivered.
    """
    interrupted, lost, added = False, None, list[Added]()
    strategy: planned.Strategy | None = None
    with ExitStack() as stack:
        # release this machine or the cluster before delivery
        computing = stack.enter_context(ExitStack())
        computing.callback(run.session.close)
        engine = run.connect()
        computing.callback(engine.close)
        stack.enter_context(run.session.hold_lock(run.location))
        try:
            _fetch(run)
            _plan(run)
            strategy = run.verbs.one("kbench_strategy", run=run) or _usual(run)
            n_tasks = strategy.n_tasks
            lost = _compute(run, strategy, engine)
            added = _complete(run)
            if n_tasks and (changed := run.plan.recheck(run.cells)):
                run.notice(changed)
        except KeyboardInterrupt:
            interrupted = True
        computing.close()
        if interrupted and not (run.cells or run.imported):  # before the plan: known ones are shown
            run.use(run.plan.cells()[0])
        if strategy is not None:
            run.cells = strategy.kept(run.cells)
        run.watch.on_delivering()
        answers = run.notifications.finish(run=run, report=_report(run, interrupted, added))
    for notice in planned.notices_of_cpus(run.cells):
        run.notice(notice)
    if lost is not None:
        raise lost
    for cell in run.cells if interrupted else ():
        if cell.missing:  # after delivery, which leaves out what is to come
            status: Status = "unfinished" if cell.results else "not_run"
            cell.problem = Problem(status, "the run was interrupted before")
    return _report(run, interrupted, added, tuple(answer for _, answer in answers))


def _fetch(run: Run) -> None:
    run.session.expand()
    if missing := run.plan.missing:
        run.notifications.send("kbench_run_started", run=run)
        run.session.check_parameters()
        run.session.machine.acquire()
        for ref in missing:
            run.watch.on_loading(ref.label)
            run.plan.datasets[ref.label] = run.session.fetching.fetch(ref)
        run.plan.refuse_mistakes()


def _plan(run: Run) -> None:
    """Plan the cells, with their cached results; the datasets decide what is compared."""
    run.plan.settle_metric()
    cells, notice = run.plan.cells()
    if notice:
        run.notice(notice)
    run.use(cells)


def _usual(run: Run) -> planned.Strategy:
    # the longest first keeps all slots busy; one slot is never idle
    cells = run.cells if run.options.jobs == 1 else planned.longest_first(run.cells, run.registry)
    # of repeated folds, an interrupted run has the first splits of all cells
    return planned.InOrder(cells, by_split=run.suite.repeats_folds)


def _compute(run: Run, strategy: planned.Strategy, engine: Engine) -> ClusterError | None:
    """Compute the tasks of a strategy; return the error that ended it, if all hosts were lost."""
    n_tasks = strategy.n_tasks
    if n_tasks:
        run.notifications.send("kbench_run_started", run=run)
        run.session.check_parameters()
        engine.prepare(run.session.terms(run.until if strategy.cuts_off else math.inf))
    note_problems(run.journal, run.cells)
    run.plan.keep(run.location, run.cells)
    for notice in planned.notices_of_reuse(run.cells) if run.options.exclusive else ():
        run.notice(notice)
    run.watch.on_planned(run.cells, n_tasks, run.suite.compared)
    if not n_tasks:
        return None
    predict = partial(run.verbs.one, "kbench_task_cost", run=run)
    tasks = (
        replace(run.plan.planner.task(cell, index), predicted=predict(cell=cell))
        for cell, index in strategy.steps()
    )
    try:
        for task, answer in engine.run(tasks):
            if answer.is_cut_off:
                continue
            same = run.same(task)
            cell = same[0]
            result = write_result(run.journal, task, answer, run.suite.limits, run.options)
            cell.results[task.split_index] = result  # cells of one key share them
            strategy.tell(cell, result)
            run.watch.on_finished(cell, result)
            run.notifications.send("kbench_result", run=run, cell=cell, result=result)
            # a cell that lacks the metric of a plugin is not finished yet
            for each in same if cell.is_finished and not run.plan.late else ():
                run.notifications.send("kbench_cell_finished", run=run, cell=each)
    except ClusterError as error:
        return error
    return None


def _complete(run: Run) -> list[Added]:
    answers = run.verbs.each("kbench_results_complete", run=run)
    added = [each for _, results in answers for each in results]
    for name in {*run.plan.late} - {each.metric for each in added}:
        run.notice(f"{name} is not computed: no feature adds metrics of plugins to results")
    return added


def _report(
    run: Run,
    interrupted: bool = False,
    added: list[Added] | None = None,
    deliveries: tuple[Delivered, ...] = (),
) -> Report:
    return Report(
        run.suite,
        run.cells,
        time.monotonic() - run.begun,
        run.place,
        deliveries,
        interrupted,
        tuple(added or ()),
        tuple(run.imported),
        run.notifications.failed,
    )
