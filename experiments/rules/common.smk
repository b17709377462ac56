# The scale's configuration, and the few helpers that all rules share. Everything of substance is in dice.study.
import re

from snakemake.logging import logger

from dice.config import canonical
from dice.errors import DiceError
from dice.study.claims import claims_inputs, claims_spec
from dice.study.code import code_digest
from dice.study.config import check_schema, load_study
from dice.study.costs import hours, job_costs, job_seconds, licences
from dice.study.exams import examined, exams_inputs, exams_path, exams_spec
from dice.study.memory import gpu_memory
from dice.study.plan import Plan
from dice.study.registry import load_registry
from dice.study.reports import (
    check_inputs,
    check_spec,
    explorer_spec,
    figure_inputs,
    figure_spec,
    table_inputs,
    table_spec,
)
from dice.study.resume import RunLock, jobs_prefix, parting_words, slurm_jobs
from dice.study.strata import (
    leaks_spec,
    strata_inputs,
    strata_path,
    strata_spec,
    strata_tables,
)
from dice.study.units import asked
from dice.study.workflow import check_command_line, images, is_dry_run, overrides_of


def load_plan():
    """The plan of the scale that the command line names; what is wrong with it becomes one sentence."""
    try:
        check_command_line(sys.argv, workflow.basedir)
        experiments = Path(workflow.basedir) / "experiments"
        study = load_study(
            experiments / "config", config.get("scale", "tiny"), overrides_of(config)
        )
        check_schema(
            study, Path(workflow.basedir) / "docs" / "schema" / "study.schema.json"
        )
        return Plan(study, load_registry(experiments))
    except DiceError as error:
        sys.exit(f"snakemake: {error}")


def begin_run():
    """Let no second run work on the same results; called when a run starts, so not by a dry run, nor by a job."""
    queued = (lambda: slurm_jobs(Path.cwd())) if workflow.non_local_exec else None
    try:
        RUN.begin(queued)
    except DiceError as error:
        sys.exit(f"snakemake: {error}")
    if not workflow.non_local_exec:
        # Its limit of new jobs a second has Snakemake look at all ready jobs and their inputs each second.
        workflow.scheduler.job_rate_limiter = None
    logger.info(f"scale {STUDY.scale}", extra={"job_seconds": job_seconds(PLAN)})


def one_of(names):
    """A wildcard constraint that matches exactly these names."""
    return "|".join(re.escape(name) for name in names) or "(?!)"


def image(kind):
    """Container image of a rule; used only with --software-deployment-method apptainer.

    Where containers/images.yaml has none, the name of a local build.
    """
    return IMAGES.get(kind, f"docker://localhost/dice-{kind}")


def present(paths):
    """Results, and those of a user's files that are there: a rule says what is missing when it runs, not when planned."""
    return [path for path in paths if PLAN.made(path) or Path(path).exists()]


def archived(*parts):
    """A path in the archive of an earlier run."""
    return str(Path(STUDY.archive or "archive", *parts))


PLAN = load_plan()
STUDY = PLAN.study
IMAGES = images(Path(workflow.basedir) / "containers" / "images.yaml")
RUN = RunLock(STUDY.results, logger.warning)
shell.prefix(jobs_prefix(STUDY.results))

if is_dry_run(sys.argv) and STUDY.gpus:
    GPU_HOURS = hours(PLAN, PLAN.units)
    parts = ", ".join(f"{stage} {value:.1f}" for stage, value in GPU_HOURS.items())
    logger.info(
        f"scale {STUDY.scale}, all tables, estimated GPU-hours: {sum(GPU_HOURS.values()):.1f} ({parts})",
        extra={
            "job_costs": job_costs(PLAN),
            "gpu_memory": gpu_memory(PLAN),
            "licences": licences(PLAN),
        },
    )
