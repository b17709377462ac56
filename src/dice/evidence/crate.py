"""`dice crate`: a recorded study as a Workflow Run RO-Crate, for archives and catalogues.

    dice crate results/recorded/tiny --out build/crate

Provenance Run Crate 0.5 (https://w3id.org/ro/wfrun/provenance/0.5): the workflow, a step and a tool for each stage, and an
action for each manifest, with what it read, what it wrote, when it began and when it ended. The files of the recorded study
come along; of what was left out the crate has name and hash. Everything is taken from the manifests, so the same study gives
the same crate.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dice.errors import DiceError
from dice.evidence.chain import inputs_of
from dice.evidence.recording import INDEX, Record, check_replaced, read_record, unpack
from dice.manifest import MANIFEST_SUFFIX, MODEL_MANIFEST, Manifest, read_manifest

if TYPE_CHECKING:
    from rocrate.rocrate import ROCrate

PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": "Process Run Crate",
    "https://w3id.org/ro/wfrun/workflow/0.5": "Workflow Run Crate",
    "https://w3id.org/ro/wfrun/provenance/0.5": "Provenance Run Crate",
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": "Workflow RO-Crate",
}
_VERSION = "1.1"
"""Of RO-Crate: the one that the profiles build on. Its context lacks `sha256`, which later ones have."""
_WORKFLOW = "Snakefile"
_ENGINE = "#snakemake"
_LICENCE = "https://www.apache.org/licenses/LICENSE-2.0"


@dataclass(frozen=True)
class Ran:
    """One stage that ran."""

    path: str
    """What it made, a file or a model's folder."""
    manifest: Manifest

    @property
    def started(self) -> datetime:
        """When it began."""
        return datetime.fromisoformat(self.manifest.started)

    @property
    def ended(self) -> datetime:
        """When it ended."""
        return self.started + timedelta(seconds=round(self.manifest.wall_s))


def runs(record: Record, root: Path) -> list[Ran]:
    """The stages whose manifests the record has, in the order in which they began. Raises DiceError where there is none."""
    found = []
    for path in record.files:
        if path.endswith(f"/{MODEL_MANIFEST}"):
            made = str(Path(path).parent)
        elif path.endswith(MANIFEST_SUFFIX):
            made = path.removesuffix(MANIFEST_SUFFIX)
        else:
            continue
        manifest = read_manifest(root / made)
        if manifest is not None:
            found.append(Ran(made, manifest))
    if not found:
        raise DiceError("the recorded study has no manifest, so nothing is known of how it was made.")
    return sorted(found, key=lambda run: (run.started, run.path))


class _Writer:
    """The crate of one recorded study while it is filled."""

    def __init__(self, record: Record, folder: Path, root: Path, workflow: Path) -> None:
        from rocrate.rocrate import ROCrate

        self.record, self.folder, self.root = record, folder, root
        self.crate: ROCrate = ROCrate(version=_VERSION)
        self.crate.metadata.extra_terms["sha256"] = "http://schema.org/sha256"
        self.runs = runs(record, root)
        kinds = ["File", "SoftwareSourceCode", "ComputationalWorkflow", "HowTo"]
        commit = self.runs[-1].manifest.git_commit or "no commit"
        described = {"@type": kinds, "name": "the study's workflow", "version": commit}
        self.workflow: Any = self.crate.add_workflow(
            str(workflow), _WORKFLOW, main=True, lang="snakemake", properties=described
        )
        self.entities: dict[str, Any] = {}

    def entity(self, identifier: str, kind: str | list[str], **values: Any) -> Any:
        """Something that the crate says, which is no file of it."""
        from rocrate.model.contextentity import ContextEntity

        return self.crate.add(ContextEntity(self.crate, identifier, {"@type": kind, **values}))

    def data(self, path: str) -> Any:
        """The entity of a file or a model's folder of the study."""
        if path not in self.entities:
            self.entities[path] = self._data(path)
        return self.entities[path]

    def _data(self, path: str) -> Any:
        kept = self.record.files.get(path)
        if kept is not None and not kept.left_out:
            values = {"name": path, "sha256": kept.sha256}
            values |= {} if kept.bytes is None else {"contentSize": str(kept.bytes)}
            return self.crate.add_file(str(self.root / path), str(self.record.place(path)), properties=values)
        inside = [name for name in self.record.files if name.startswith(f"{path}/")]
        if any(not self.record.files[name].left_out for name in inside):
            place = f"{self.record.place(path)}/"
            parts = [self.data(name) for name in inside]
            return self.crate.add_dataset(dest_path=place, properties={"name": path, "hasPart": parts})
        values = {"name": path, "description": "not in the crate"}
        return self.entity(f"#{path}", "CreativeWork", **values, **({"sha256": kept.sha256} if kept else {}))

    def fill(self) -> None:
        """Everything that the profiles ask for."""
        crate, root = self.crate, self.crate.root_dataset
        last = max(run.ended for run in self.runs)
        crate.name = f"A study of DICE, recorded: {self.folder.name}"
        crate.description = "Answers of models, verdicts on their kernels, tables and figures, and how each was made."
        crate.license = self.entity(_LICENCE, "CreativeWork", name="Apache License 2.0")
        crate.datePublished = last
        conforms = [
            self.entity(uri, "CreativeWork", name=name, version=uri.rpartition("/")[2])
            for uri, name in PROFILES.items()
        ]
        root["conformsTo"] = conforms
        for path, kept in self.record.files.items():
            if not kept.left_out:
                self.data(path)
        crate.add_file(str(self.folder / INDEX), INDEX, properties={"name": "index of the recorded study"})
        engine = self.entity(_ENGINE, "SoftwareApplication", name="Snakemake", url="https://snakemake.github.io")
        agent = self.entity("#runner", "Organization", name="whoever ran the study")
        tools, steps = self._tools_and_steps()
        actions = [self._action(run, tools[run.manifest.stage], agent) for run in self.runs]
        made = {run.path for run in self.runs}
        given = [path for path in self.record.files if path not in made and not path.startswith(self.record.results)]
        first = min(run.started for run in self.runs)
        times = {"startTime": first.isoformat(), "endTime": last.isoformat(), "agent": agent}
        results = [self.data(report.out) for report in self.record.reports]
        whole = self.entity(
            "#run",
            "CreateAction",
            name="the study",
            description=f"from {first.isoformat()} to {last.isoformat()}, {len(self.runs)} stages",
            instrument=self.workflow,
            object=[*map(self.data, given)],
            result=results,
            **times,
        )
        controls = [
            self.entity(f"#control/{run.path}", "ControlAction", name=f"{run.manifest.stage} for {run.path}",
                        instrument=steps[run.manifest.stage], object=action)
            for run, action in zip(self.runs, actions, strict=True)
        ]  # fmt: skip
        self.entity(
            "#engine-run",
            "OrganizeAction",
            name="Snakemake runs the stages",
            instrument=engine,
            object=controls,
            result=whole,
            **times,
        )
        root["mentions"] = [whole, *actions]

    def _tools_and_steps(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The tool and the step of each stage that ran; the workflow has them all."""
        stages = dict.fromkeys(run.manifest.stage for run in self.runs)
        versions = {run.manifest.stage: run.manifest.dice_version for run in self.runs}
        tools = {
            stage: self.entity(
                f"#dice-{stage}", "SoftwareApplication", name=f"dice {stage}", softwareVersion=versions[stage]
            )
            for stage in stages
        }
        steps = {
            stage: self.entity(
                f"{_WORKFLOW}#{stage}", "HowToStep", name=stage, position=str(place), workExample=tools[stage]
            )
            for place, stage in enumerate(stages)
        }
        self.workflow["hasPart"], self.workflow["step"] = [*tools.values()], [*steps.values()]
        return tools, steps

    def _action(self, run: Ran, tool: Any, agent: Any) -> Any:
        manifest = run.manifest
        gpus = ", ".join(gpu.name for gpu in manifest.gpus) or "no GPU"
        read = [self.data(path) for path, _ in inputs_of(Path(run.path), manifest, self.root)]
        return self.entity(
            f"#run/{run.path}",
            "CreateAction",
            name=f"dice {manifest.stage}: {run.path}",
            description=f"commit {manifest.git_commit}, {manifest.cpu}, {gpus}, image {manifest.image}; settings: "
            + json.dumps(manifest.spec, sort_keys=True),
            instrument=tool,
            agent=agent,
            object=list({entity.id: entity for entity in read}.values()),
            result=[self.data(run.path)],
            startTime=run.started.isoformat(),
            endTime=run.ended.isoformat(),
        )


def write_crate(folder: Path, out: Path, workflow: Path) -> int:
    """Write the crate of a recorded study to the folder `out`, which is replaced; returns its number of actions.

    Raises DiceError for a folder that is no recorded study, has changed or would be replaced, and where there is no
    workflow file."""
    record = read_record(folder)
    check_replaced(out, folder)
    if not workflow.is_file():
        raise DiceError(f"{workflow}: no workflow there; name it with --workflow.")
    with tempfile.TemporaryDirectory(prefix="dice-crate-") as name:
        root = Path(name)
        if wrong := unpack(record, folder, root):
            raise DiceError(f"{wrong[0]}.")
        writer = _Writer(record, folder, root, workflow)
        writer.fill()
        shutil.rmtree(out, ignore_errors=True)
        writer.crate.write(str(out))
    return len(writer.runs)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `dice crate`."""
    parser.add_argument("recorded", help="a recorded study, such as results/recorded/tiny")
    parser.add_argument("--out", required=True, help="folder to write")
    parser.add_argument("--workflow", default=_WORKFLOW, help="the workflow that the study ran (default: %(default)s)")


def run(args: argparse.Namespace) -> int:
    """Entry point of `dice crate`."""
    actions = write_crate(Path(args.recorded), Path(args.out), Path(args.workflow))
    print(f"{args.out}: a Workflow Run RO-Crate with {actions} actions; check it with rocrate-validator.")
    return 0
