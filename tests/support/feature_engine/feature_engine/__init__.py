"""Each task as a job, started by a command: ``kbench suite SUITE --batch FOLDER``."""

import json
import subprocess
import sys
from pathlib import Path

import kbench
from kbench.features import Answer, EngineOffer, Request, cluster_id, hookimpl, over_slots


class BatchEngine:
    def __init__(self, folder, run):
        self.folder, self.run_, self.jobs = Path(folder), run, set()

    def prepare(self, terms):
        self.folder.mkdir(parents=True, exist_ok=True)
        self.terms = terms

    def run(self, tasks):
        return over_slots(tasks, self.answer, self.run_.jobs)

    def answer(self, task, slot):
        preload = self.terms.preload.get(task.plugins, ())
        request = Request(task, self.terms.limits, self.terms.offline, preload)
        path = self.folder / f"{task.cell_key}-{task.split_index}.json"
        path.write_text(json.dumps(request.to_json()))
        command = [sys.executable, "-m", "feature_engine.job", path]  # sbatch --wait, qsub ...
        job = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.jobs.add(job)
        self.run_.started(task, slot)
        errors = job.communicate()[1]
        if job.returncode:
            return Answer.lost(f"exit code {job.returncode}: {errors[-4000:]}")
        return Answer.from_json(json.loads(path.with_suffix(".answer").read_text()))

    def close(self):
        for job in self.jobs:
            job.kill()


@hookimpl
def kbench_engine(options):
    folder = options.given.get("batch")
    if not folder:
        return None
    if options.exclusive:
        raise kbench.KbenchError("--timing exclusive applies to this machine only; omit --batch")
    return EngineOffer(cluster_id(), lambda run: BatchEngine(folder, run))
