"""A root file system for one process: the files of this machine that it needs, read-only, and nothing else.

What is shown: the system's folders, those that the caller names, a few devices. Sources for the design: bubblewrap's and
nsjail's. Every function raises OSError where the machine forbids it.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from dice.kernels.sandbox import linux

SCRATCH = "/scratch"
"""Where the candidate lives inside the jail; without a jail it is a folder below the fork server's own."""

_DEVICES = ("null", "zero", "full", "random", "urandom")
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/run/opengl-driver")
_ETC = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime", "nsswitch.conf", "OpenCL", "nvidia")


def runtime_paths() -> list[str]:
    """Folders and files that this very process runs from: interpreter, packages, mapped libraries, compilers."""
    paths: set[str] = {sys.prefix, sys.base_prefix, sys.exec_prefix, os.path.dirname(os.path.realpath(sys.executable))}
    paths.update(entry for entry in sys.path if entry and os.path.exists(entry))
    for name in ("LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH"):
        paths.update(entry for entry in os.environ.get(name, "").split(":") if os.path.isdir(entry))
    for line in Path("/proc/self/maps").read_text().splitlines():
        name = line.partition("/")[2]
        if name and not name.endswith(" (deleted)"):
            paths.add(os.path.dirname("/" + name))
    for module in list(sys.modules.values()):  # packages that are links into another tree, and editable installs
        origin = getattr(module, "__file__", None)
        if origin and "." not in module.__name__:
            paths.add(os.path.dirname(origin))
    usable = {form for path in paths for form in (os.path.abspath(path), os.path.realpath(path))}
    return sorted(path for path in usable if path != "/" and not path.startswith(("/proc", "/sys", "/dev")))


def _outermost(paths: Iterable[str]) -> list[str]:
    kept: list[str] = []
    for path in sorted(set(paths)):
        if not any(path == other or path.startswith(other + "/") for other in kept):
            kept.append(path)
    return kept


def in_order(paths: Iterable[str]) -> list[str]:
    """`paths`, and where those of them that are links lead, none below another: folders and files first, then links.

    So a folder is shown whole before a link into it (`/bin` to `/usr/bin`) could make a part of it.
    """
    paths = set(paths)
    return sorted(_outermost(paths | {os.path.realpath(path) for path in paths}), key=os.path.islink)


def enter_jail(base: str, visible: Iterable[str]) -> None:
    """Give this process and its children their own root file system, with GPUs: `visible` and the system's folders read-only.

    What is not visible does not exist there: no results, no caches, no home folders, no other user's files. `base`: an
    empty folder. Raises OSError.
    """
    build_root(base, [*visible, "/sys"])
    _make_gpu_devices()
    for name in os.listdir("/dev"):
        if name.startswith(("nvidia", "dri")):
            _show_device(base, f"/dev/{name}")
    linux.mount("/proc", f"{base}/proc", flags=linux.MS_BIND | linux.MS_REC)
    enter_root(base)


def build_root(base: str, visible: Iterable[str]) -> None:
    """Build a root on the empty folder `base`, in a new mount namespace of this process: `visible` and the system's
    folders, read-only. Its /proc is empty. Raises OSError."""
    linux.unshare(linux.CLONE_NEWNS)
    linux.mount("none", "/", flags=linux.MS_REC | linux.MS_PRIVATE)
    linux.mount("jail", base, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "size=16m,mode=755")
    shown = [*_SYSTEM, *(f"/etc/{name}" for name in _ETC), *visible]
    for path in in_order(path for path in shown if os.path.lexists(path)):
        _show(base, path)
    os.makedirs(f"{base}/dev", exist_ok=True)
    for name in _DEVICES:
        _show_device(base, f"/dev/{name}")
    os.symlink("/proc/self/fd", f"{base}/dev/fd")
    os.symlink(f"{SCRATCH}/shm", f"{base}/dev/shm")
    for name in ("proc", SCRATCH.lstrip("/"), "tmp"):
        os.makedirs(f"{base}/{name}", exist_ok=True)


def enter_root(base: str) -> None:
    """Make what `build_root` built the read-only root of this process; nothing else stays mounted. Raises OSError."""
    os.chdir(base)
    linux.pivot_root(".", ".")  # the old root lies above the new one for a moment: man 2 pivot_root
    linux.unmount(".")
    os.chdir("/")
    linux.mount("none", "/", flags=linux.MS_REMOUNT | linux.MS_BIND | linux.MS_RDONLY | linux.MS_NOSUID)


def _make_gpu_devices() -> None:
    """Have the driver make its device files where nothing has used CUDA since boot: later is too late for the jail."""
    if os.path.exists("/dev/nvidiactl") and not os.path.exists("/dev/nvidia-uvm"):
        with contextlib.suppress(FileNotFoundError):
            subprocess.run(["nvidia-modprobe", "-u", "-c", "0"], capture_output=True, timeout=30, check=False)


def _show(base: str, path: str) -> None:
    target = base + path
    if not os.path.exists(path):
        return  # a link that leads nowhere
    os.makedirs(os.path.dirname(target), mode=0o755, exist_ok=True)
    if os.path.lexists(target):
        return
    if os.path.islink(path):
        os.symlink(os.path.realpath(path), target)
        return
    if os.path.isdir(path):
        os.mkdir(target, 0o755)
    else:
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
    linux.mount(path, target, flags=linux.MS_BIND | linux.MS_REC)
    read_only = linux.MS_BIND | linux.MS_REMOUNT | linux.MS_RDONLY
    try:
        linux.mount(path, target, flags=read_only | linux.MS_NOSUID)
    except OSError:
        # A user namespace may not clear flags (nodev, noexec) that the outer mount has: keep those.
        flags = os.statvfs(path).f_flag & (os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC | os.ST_NOATIME | os.ST_RELATIME)
        linux.mount(path, target, flags=flags | read_only)


def _show_device(base: str, path: str) -> None:
    target = base + path
    if os.path.isdir(path):
        os.makedirs(target, exist_ok=True)
    elif os.path.exists(path):
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
    else:
        return
    linux.mount(path, target, flags=linux.MS_BIND | linux.MS_REC)
