"""The device side of a split source: nvcc's cubin, checked against the host's stubs, as an object to link."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dice.kernels.builder.compiler import ToolRun, Workbench, first_error
from dice.kernels.builder.device_image import Symbol, host_symbols, image_assembly, image_symbols, readable_names
from dice.kernels.builder.device_unit import explicit_instantiation, render_device
from dice.kernels.builder.final_refusal import FinalRefusals
from dice.kernels.builder.flags import BuildFlags, standards
from dice.kernels.builder.host_unit import scoped_name
from dice.kernels.builder.precompiled import Precompiled
from dice.kernels.builder.request_sources import Sources
from dice.kernels.source.cuda_source import CudaSource
from dice.kernels.source.lexer import SplitRefused


class _Refused(SplitRefused):
    """nvcc refuses the unit, and stock may not."""


@dataclass
class DeviceBuild:
    """Compiles the device side of one candidate."""

    precompiled: Precompiled
    final: FinalRefusals
    bench: Workbench

    def run(self, split: CudaSource, sources: Sources, host_object: Path, flags: BuildFlags) -> str:
        """Compile the device code that `host_object` launches; returns the object that embeds and lists it.

        Raises SplitRefused, FinalRefusal or OutOfLimits.
        """
        templates = frozenset(
            scoped_name(item)
            for item in split.of_kind("kernel")
            if item.function is not None and item.function.is_template
        )
        symbols = host_symbols(self.bench, host_object, templates)
        instances = (symbol.name for symbol in symbols if symbol.kind == "kernel" and symbol.weak)
        instantiations = [explicit_instantiation(name) for name in readable_names(self.bench, instances)]
        if flags.architectures and not self._same_architecture(flags.architectures):
            raise SplitRefused("architecture flags")
        try:
            images, defined = self._images(split, sources, instantiations, flags, frozenset())
        except _Refused:  # perhaps for a header that PyTorch's headers bring along
            headers = self.precompiled.vocabulary().device_headers
            images, defined = self._images(split, sources, instantiations, flags, headers)
        missing = sorted({symbol.name for symbol in symbols} - defined)
        if missing:
            raise SplitRefused(f"device code lacks {missing[0]}")
        return self._embed(images, symbols)

    def _images(
        self,
        split: CudaSource,
        sources: Sources,
        instantiations: Sequence[str],
        flags: BuildFlags,
        headers: frozenset[str],
    ) -> tuple[list[str], set[str]]:
        """fatbinary's arguments for the cubin of each architecture, and the symbols that all cubins define."""
        place = sources.cuda_name, sources.cuda_first_line
        (self.bench.folder / "device.cu").write_text(render_device(split, *place, instantiations, headers))
        if _differs_for_the_host(split):
            # Without the instantiations: what it reads for the host, nvcc does not instantiate.
            (self.bench.folder / "plain.cu").write_text(render_device(split, *place, [], headers))
            self._check_as_host(split, flags, bool(headers))
        tools = self.precompiled.toolchain
        command = [tools.nvcc, *tools.nvcc_flags, *self._standard(flags), *flags.device]
        images, defined = [], list[set[str]]()
        for arch in tools.arches:
            number = arch.replace(".", "")
            mode = [f"-gencode=arch=compute_{number},code=sm_{number}", "-cubin", "device.cu"]
            self._demand(self.bench.run([*command, *mode, "-o", f"device_{number}.cubin"]), split, bool(headers))
            defined.append(image_symbols(self.bench, self.bench.folder / f"device_{number}.cubin"))
            images.append(f"--image3=kind=elf,sm={number},file=device_{number}.cubin")
        return images, set.intersection(*defined)

    def _standard(self, flags: BuildFlags) -> list[str]:
        """PyTorch adds its -std only when the candidate gives none."""
        return [] if standards(flags.device) else [self.precompiled.toolchain.standard]

    def _same_architecture(self, words: Sequence[str]) -> bool:
        """Whether the candidate's architecture flags name exactly the GPUs that are built for anyway."""
        named = set(re.findall(r"(?:sm|compute)_(\w+)", " ".join(words)))
        real = set(re.findall(r"sm_(\w+)", " ".join(words)))
        ours = {arch.replace(".", "") for arch in self.precompiled.toolchain.arches}
        return named == ours and real == ours

    def _check_as_host(self, split: CudaSource, flags: BuildFlags, all_headers: bool) -> None:
        """Let nvcc's front end read the device code as it does for the host, which -cubin leaves out."""
        tools = self.precompiled.toolchain
        number = tools.arches[-1].replace(".", "")
        command = [tools.nvcc, *tools.nvcc_flags, *self._standard(flags), *flags.device, f"-arch=sm_{number}"]
        dry = self.bench.run([*command, "--dryrun", "-c", "plain.cu", "-o", "plain.o"])
        steps = [shlex.split(line[3:]) for line in dry.output.splitlines() if line.startswith("#$ ")]
        front_end = next((i for i, words in enumerate(steps) if words and words[0].endswith("cudafe++")), None)
        if not dry.ok or front_end is None:
            self._demand(dry, split, all_headers)
            raise SplitRefused("nvcc's front end cannot be called by itself")
        folder = tools.nvcc.rsplit("/", 1)[0]
        for words in (steps[front_end - 1], steps[front_end]):
            words = [self._local(word) for word in words]
            program = f"{folder}/cudafe++" if words[0].endswith("cudafe++") else words[0]
            self._demand(self.bench.run([program, *words[1:]]), split, all_headers)

    def _local(self, word: str) -> str:
        """nvcc's temporary files, in the work folder."""
        return re.sub(r"^.*/(?=tmpxft)", "", word)

    def _demand(self, done: ToolRun, split: CudaSource, all_headers: bool) -> None:
        if done.ok:
            return
        self.final.check_device(done.output, split, all_headers)
        raise _Refused(f"device code: {first_error(done.output)}")

    def _embed(self, images: Sequence[str], symbols: Sequence[Symbol]) -> str:
        folder = self.precompiled.toolchain.nvcc.rsplit("/", 1)[0]
        (self.bench.folder / "image.s").write_text(image_assembly("image.fatbin", symbols))
        for command in (
            [f"{folder}/fatbinary", "-64", "--create=image.fatbin", *images],
            ["as", "image.s", "-o", "image.o"],
        ):
            done = self.bench.run(command)
            if not done.ok:
                raise SplitRefused(f"{command[0]} failed: {done.output.strip()[:300]}")
        return "image.o"


def _differs_for_the_host(split: CudaSource) -> bool:
    """Whether nvcc may find in its reading for the host what it does not find in that for the GPU.

    Templates that nobody instantiates, what depends on `__CUDA_ARCH__`, and the one function that PyTorch's headers
    declare for the GPU alone.
    """
    words = {word for item in split.items if item.kind != "include" for word in item.identifiers}
    templates = any(item.function is not None and item.function.is_template for item in split.items)
    return templates or "__CUDA_ARCH__" in split.text or {"__ldg", "Half"} <= words
