"""Isolation of a candidate, layer by layer, each recorded as in force or missing with its reason.

Three processes take part, all forked from the fork server: the fork server's own file system is narrowed once (`enter_jail`:
only what Python, PyTorch and CUDA need is visible, read-only); `supervise` runs as process 1 of a new PID namespace,
keeps the rights needed to end everything and reports how the candidate ended; `confine` runs in the candidate's
process and gives up every right before a line of its code is read.

Where the machine forbids a layer the next ones still apply: a plain container without namespaces keeps its limits, its
seccomp filter and the kill of the whole process tree. Sources for the design: bubblewrap's and nsjail's layering.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from dice.kernels.sandbox import linux, seccomp

SCRATCH = "/scratch"
"""Where the candidate lives inside the jail; without a jail it is a folder below the fork server's own."""

_DEVICES = ("null", "zero", "full", "random", "urandom")
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/run/opengl-driver")
_ETC = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime", "nsswitch.conf", "OpenCL", "nvidia")


class SandboxSpec(BaseModel):
    """What one candidate gets."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    scratch_bytes: int
    file_bytes: int
    processes: int
    open_files: int = 1024
    data_bytes: int | None
    """Private writable memory of one process (RLIMIT_DATA); None: unlimited."""
    output_bytes: int
    """Of stdout and stderr together, kept; the rest is read and dropped."""
    cuda_visible_devices: str
    cuda_connections: int | None = None
    """Hardware queues of the CUDA context; None: the driver's default of 8, whose making takes three times as long."""
    threads: int


class Layers:
    """Which layers are in force (`names`) and which could not be had (`missing`, with the reason)."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.missing: list[str] = []

    def attempt(self, name: str, act: Callable[[], object]) -> bool:
        """Run `act`; note the layer as in force, or as missing when the system refuses."""
        try:
            act()
        except OSError as error:
            self.missing.append(f"{name} ({error.strerror or error})")
            return False
        self.names.append(name)
        return True


# ---- the fork server's part -----------------------------------------------------------------------------------------


def enter_user_namespace() -> None:
    """Become user 0 of a new user namespace, to hold the rights that the other layers need. Raises OSError.

    Returns in a new process, number 1 of a PID namespace that belongs to the new user namespace: only such a one may
    be left and entered again. The old process waits for it and ends as it does. Must run while there is one thread.
    The outer user stays what it is: no right is gained outside.
    """
    uid, gid = os.geteuid(), os.getegid()
    linux.unshare(linux.CLONE_NEWUSER)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
    Path("/proc/self/gid_map").write_text(f"0 {gid} 1")
    linux.unshare(linux.CLONE_NEWPID)
    pid = os.fork()
    if pid:
        os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) & 0xFF)
    linux.die_with_parent(signal.SIGKILL)


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
    """Make a root of its own for this process: `visible` and the system's folders read-only, nothing else.

    `base`: an empty folder to build it on. What is not visible does not exist for this process and its children: no
    results, no caches, no home folders, no other user's files. Raises OSError.
    """
    linux.unshare(linux.CLONE_NEWNS)
    linux.mount("none", "/", flags=linux.MS_REC | linux.MS_PRIVATE)
    linux.mount("jail", base, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "size=16m,mode=755")
    shown = [*_SYSTEM, *(f"/etc/{name}" for name in _ETC), *visible, "/sys"]
    for path in in_order(path for path in shown if os.path.lexists(path)):
        _show(base, path)
    os.makedirs(f"{base}/dev", exist_ok=True)
    _make_gpu_devices()
    for name in [*_DEVICES, *(name for name in os.listdir("/dev") if name.startswith(("nvidia", "dri")))]:
        _show_device(base, f"/dev/{name}")
    os.symlink("/proc/self/fd", f"{base}/dev/fd")
    os.symlink(f"{SCRATCH}/shm", f"{base}/dev/shm")
    for name in ("proc", SCRATCH.lstrip("/"), "tmp", "old"):
        os.makedirs(f"{base}/{name}", exist_ok=True)
    linux.mount("/proc", f"{base}/proc", flags=linux.MS_BIND | linux.MS_REC)
    linux.pivot_root(base, f"{base}/old")
    os.chdir("/")
    linux.unmount("/old")
    os.rmdir("/old")
    linux.mount("none", "/", flags=linux.MS_REMOUNT | linux.MS_BIND | linux.MS_RDONLY | linux.MS_NOSUID)


def own_proc_is_possible() -> bool:
    """Whether a process in a new PID namespace may mount its /proc here; containers that mask theirs refuse."""
    pid = os.fork()
    if pid == 0:
        try:
            linux.unshare(linux.CLONE_NEWPID | linux.CLONE_NEWNS)
            first = os.fork()
            if first == 0:
                linux.mount("proc", "/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV)
                os._exit(0)
            os._exit(os.waitstatus_to_exitcode(os.waitpid(first, 0)[1]) & 0xFF)
        except OSError:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


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
    try:
        linux.bind_read_only(path, target)
    except OSError:
        # A user namespace may not clear flags (nodev, noexec) that the outer mount has: keep those.
        linux.mount(path, target, flags=linux.MS_BIND | linux.MS_REC)
        flags = os.statvfs(path).f_flag & (os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC | os.ST_NOATIME | os.ST_RELATIME)
        linux.mount(path, target, flags=flags | linux.MS_BIND | linux.MS_REMOUNT | linux.MS_RDONLY)


def _show_device(base: str, path: str) -> None:
    target = base + path
    if os.path.isdir(path):
        os.makedirs(target, exist_ok=True)
    elif os.path.exists(path):
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
    else:
        return
    linux.mount(path, target, flags=linux.MS_BIND | linux.MS_REC)


# ---- process 1: between the fork server and the candidate -----------------------------------------------------------


def prepare_namespaces(layers: Layers, spec: SandboxSpec, folder: str | None, uid: int) -> str:
    """New network, IPC and host-name namespaces, a private /proc, and the scratch folder. Returns its path.

    Runs as process 1 of the new PID namespace, before the candidate's process is made. `folder`: where to make a plain
    scratch folder when there is no jail; None inside the jail, where the scratch folder is a file system of its own.
    """
    layers.attempt("no_network", lambda: linux.unshare(linux.CLONE_NEWNET))
    layers.attempt("ipc_namespace", lambda: linux.unshare(linux.CLONE_NEWIPC))
    if layers.attempt("uts_namespace", lambda: linux.unshare(linux.CLONE_NEWUTS)):
        linux.set_hostname("candidate")
    if folder is not None:
        return _plain_scratch(folder, uid)
    # The jail proves that mounting is allowed here: a failure below is a fault of the machine, not a missing layer.
    linux.unshare(linux.CLONE_NEWNS)
    layers.names.append("mount_namespace")
    layers.attempt("readonly_root", lambda: _require_read_only("/usr"))
    if "pid_namespace" in layers.names:
        layers.attempt("private_proc", lambda: linux.mount("proc", "/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV))
    options = f"size={spec.scratch_bytes},nr_inodes=65536,mode=700,uid={uid},gid={uid}"
    linux.mount("scratch", SCRATCH, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, options)
    layers.names.append("scratch_quota")
    _make_folders(SCRATCH, uid)
    _cover_tmp(f"{SCRATCH}/tmp")
    return SCRATCH


def _cover_tmp(folder: str) -> None:
    """Make `folder` the candidate's /tmp, and show there what the jail shows there, e.g. an interpreter below /tmp.

    It is shown in /tmp only, not in `folder` too: a candidate that deletes its scratch folder must not walk through the
    interpreter's fifty thousand files, each of which it may not delete.
    """
    shown = os.open("/tmp", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)  # still leads there when /tmp is covered
    linux.mount(folder, "/tmp", flags=linux.MS_BIND)
    for name in os.listdir(shown):
        _show_again(f"/proc/self/fd/{shown}/{name}", f"/tmp/{name}")
    os.close(shown)


def _show_again(path: str, target: str) -> None:
    """The same file or folder at a second place, read-only as it is at the first."""
    if os.path.islink(path):
        os.symlink(os.readlink(path), target)
        return
    if os.path.isdir(path):
        os.mkdir(target)
    else:
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY))
    linux.mount(path, target, flags=linux.MS_BIND | linux.MS_REC)


def _require_read_only(path: str) -> None:
    if not os.statvfs(path).f_flag & os.ST_RDONLY:
        raise OSError(0, f"{path} is writable")


def _make_folders(scratch: str, uid: int) -> None:
    for name in ("tmp", "shm", "home"):
        os.mkdir(f"{scratch}/{name}", 0o700)
        os.chown(f"{scratch}/{name}", uid, uid)


def _plain_scratch(folder: str, uid: int) -> str:
    scratch = tempfile.mkdtemp(prefix="scratch-", dir=folder)
    os.chown(scratch, uid, uid)
    _make_folders(scratch, uid)
    return scratch


def own_uid(unique: int) -> int:
    """An unprivileged user for one candidate. `unique`: a small number that no other live candidate has.

    Taken from the top of what this user namespace maps, far from real accounts; its own user means that process
    limits, signals and files of candidates do not mix. In a namespace with one user there is only 0.
    """
    mapped = [tuple(map(int, line.split())) for line in Path("/proc/self/uid_map").read_text().splitlines()]
    first, _, count = max(mapped, key=lambda entry: entry[2])
    if count < 65536:
        return os.geteuid()
    # Below 2^31: some tools read user numbers as signed.
    top = min(first + count, 2_000_000_000)
    room = min(top - first - 60_000, 4_194_304)
    return top - 1 - unique % room if room > 0 else top - 1


# ---- the candidate's process -----------------------------------------------------------------------------------


def confine(layers: Layers, spec: SandboxSpec, scratch: str, uid: int) -> None:
    """Give up every right: limits, user, capabilities, system calls. The last act before the candidate's code."""
    os.chdir(f"{scratch}/home")
    os.environ.clear()
    os.environ.update(environment(spec, scratch))
    tempfile.tempdir = None  # the fork server may have settled on its own
    limits = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: spec.file_bytes,
        resource.RLIMIT_NOFILE: spec.open_files,
        resource.RLIMIT_NPROC: spec.processes,
    }
    if spec.data_bytes is not None:
        limits[resource.RLIMIT_DATA] = spec.data_bytes
    for kind, value in limits.items():
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))
    layers.names += ["rlimit_fsize", "rlimit_nofile", "rlimit_nproc"]
    if spec.data_bytes is not None:
        layers.names.append("rlimit_data")
    layers.attempt("killed_first_when_memory_is_short", lambda: Path("/proc/self/oom_score_adj").write_text("1000"))
    root = os.geteuid() == 0
    if root:
        layers.attempt("no_capability_bounds", linux.drop_bounding_set)
    if root and uid != 0:
        layers.attempt("own_user", lambda: _become(uid))
    else:
        layers.missing.append(f"own_user ({'this user namespace has one user' if root else 'only root may change it'})")
    if layers.attempt("no_new_privileges", linux.no_new_privileges):
        program = seccomp.filter_program(allow_internet_sockets="no_network" in layers.names)
        layers.attempt("no_capabilities", linux.drop_capabilities)
        if layers.attempt("seccomp", lambda: linux.install_seccomp(program)) and "no_network" not in layers.names:
            layers.names.append("no_internet_sockets")
    # The change of user made /proc/self root's; the CUDA driver and dlopen by descriptor read it.
    linux.set_dumpable(True)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def _become(uid: int) -> None:
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


_KEPT = ("CUDA_", "NVIDIA_", "NCCL_", "NVSHMEM_", "TORCH_SYMM_MEM_", "LD_LIBRARY_PATH", "TORCH_CUDA_ARCH_LIST")


def environment(spec: SandboxSpec, scratch: str) -> dict[str, str]:
    """The candidate's whole environment: fixed values, and what CUDA needs from the machine. No secrets."""
    kept = {name: value for name, value in os.environ.items() if name.startswith(_KEPT)}
    queues = {} if spec.cuda_connections is None else {"CUDA_DEVICE_MAX_CONNECTIONS": str(spec.cuda_connections)}
    return {
        **kept,
        **queues,
        "PATH": os.environ.get("PATH", "/usr/local/cuda/bin:/usr/local/bin:/usr/bin:/bin"),
        "HOME": f"{scratch}/home",
        "TMPDIR": f"{scratch}/tmp",
        "USER": "candidate",
        "LOGNAME": "candidate",
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": str(spec.threads),
        "MAX_JOBS": "1",
        "CUDA_VISIBLE_DEVICES": spec.cuda_visible_devices,
        "CUDA_CACHE_DISABLE": "1",
        "TORCH_EXTENSIONS_DIR": f"{scratch}/home/extensions",
        "TRITON_CACHE_DIR": f"{scratch}/home/triton",
        "TORCHINDUCTOR_CACHE_DIR": f"{scratch}/home/inductor",
    }
