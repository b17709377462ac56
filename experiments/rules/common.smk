# The scale's configuration, and the few helpers that all rules share. Everything of substance is in dice.study.
from dice.errors import DiceError
from dice.study.code import code_of, stage_code
from dice.study.config import check_schema, load_study, merged
from dice.study.plan import Plan, canonical
from dice.study.registry import load_registry
from dice.study.resume import RunLock, jobs_prefix, parting_words, slurm_jobs
from dice.study.workflow import (
    check_command_line,
    images,
    is_dry_run,
    overrides_of,
)


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
        raise WorkflowError(str(error))


def say(sentence):
    """A sentence for whoever started the run."""
    print(sentence, file=sys.stderr)


def begin_run():
    """Let no second run work on the same results; called when a run starts, so not by a dry run, nor by a job."""
    queued = (lambda: slurm_jobs(Path.cwd())) if workflow.non_local_exec else None
    try:
        RUN.begin(queued)
    except DiceError as error:
        raise WorkflowError(str(error))


PLAN = load_plan()
STUDY = PLAN.study
IMAGES = images(Path(workflow.basedir) / "containers" / "images.yaml")
TABLES = [PLAN.path(f"table{number}.csv") for number in PLAN.registry.tables]
FIGURES = [PLAN.path(f"figure{number}.csv") for number in PLAN.registry.figures]


RUN = RunLock(STUDY.results, say)
shell.prefix(jobs_prefix(STUDY.results))


def code(stage):
    """Source files of `dice <stage>`, as input of its rule; relative, so that a moved checkout reruns nothing."""
    return [
        (
            str(Path(path).relative_to(Path.cwd()))
            if Path(path).is_relative_to(Path.cwd())
            else path
        )
        for path in stage_code(stage)
    ]


def one_of(names):
    """A wildcard constraint that matches exactly these names."""
    import re

    return "|".join(re.escape(name) for name in names) or "(?!)"


def image(kind):
    """Container image of a rule; used only with --software-deployment-method apptainer.

    Where containers/images.yaml has none, the name of a local build.
    """
    return IMAGES.get(kind, f"docker://localhost/dice-{kind}")


def present(paths):
    """Those of a user's files that are there; a rule says what is missing when it runs, not when it is planned."""
    return [path for path in paths if Path(path).exists()]


def evidence_from(stage):
    """Whether the rules of `stage` run here, or their results come from the archive."""
    order = ["scratch", "checkpoints", "generations", "verdicts"]
    return order.index(STUDY.start_from) <= order.index(stage)


if is_dry_run(sys.argv) and STUDY.gpus:
    hours = PLAN.hours(PLAN.units)
    print(
        f"scale {STUDY.scale}, all tables, estimated GPU-hours: {sum(hours.values()):.1f} ("
        + ", ".join(f"{stage} {value:.1f}" for stage, value in hours.items())
        + ")",
        file=sys.stderr,
    )
