# The whole study: data, training, kernels, verdicts, tables, figures, paper.
#
#   snakemake --cores all results/table1.csv          the tiny scale: two CPU cores, no GPU
#   snakemake --workflow-profile profiles/nano tables  one GPU; likewise released and paper
#
# Every rule calls one `dice <stage>` with its whole configuration as canonical JSON. A digest of the source files that the
# stage can reach is a parameter too, so a rerun happens exactly when something that matters has changed
# (docs/guides/workflow.md).
import sys
from pathlib import Path

from snakemake.utils import min_version

min_version("9.19")


include: "experiments/rules/common.smk"
include: "experiments/rules/data.smk"
include: "experiments/rules/train.smk"
include: "experiments/rules/evaluate.smk"
include: "experiments/rules/servers.smk"
include: "experiments/rules/report.smk"


wildcard_constraints:
    dataset="[a-z0-9_]+",
    unit="[\\w.@-]+",
    seed="\\d+",
    shard="\\d+",
    table=one_of(map(str, PLAN.registry.tables)),
    figure=one_of(map(str, PLAN.registry.figures)),


onstart:
    begin_run()


onsuccess:
    RUN.end()


onerror:
    RUN.end()
    logger.error(parting_words(STUDY.results))


localrules:
    all,
    tables,
    figures,


rule all:
    default_target: True
    input:
        PLAN.tables,
        strata_tables(PLAN),
        PLAN.figures,
        PLAN.path("check.csv"),
        PLAN.path("claims.csv"),


rule tables:
    input:
        PLAN.tables,
        strata_tables(PLAN),


rule figures:
    input:
        PLAN.figures,
