"""Isolation of a candidate, layer by layer, each recorded as in force or missing with its reason.

Three processes take part. The fork server narrows its own file system once (`enter_jail`: only what Python, PyTorch and
CUDA need is visible, read-only). `supervise` runs in a fork of it, as process 1 of a new PID namespace, keeps the rights
needed to end everything and reports how the candidate ended. `confine` runs in the candidate's process, a fork of that one,
and gives up every right before a line of its code is read.

Where the machine forbids a layer the next ones still apply: a plain container without namespaces keeps its limits, its
seccomp filter and the kill of the whole process tree. Sources for the design: bubblewrap's and nsjail's layering.
"""

from __future__ import annotations

import os
import resource
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from dice.kernels.sandbox import linux, seccomp
from dice.kernels.sandbox.jail import SCRATCH


class SandboxSpec(BaseModel):
    """What one candidate gets."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    scratch_bytes: int
    file_bytes: int
    processes: int
    open_files: int = 1024
    data_bytes: int | None
    """Private writable memory of one process (RLIMIT_DATA); None: unlimited."""
    cuda_visible_devices: str
    cuda_connections: int | None = None
    """Hardware queues of the CUDA context; None: the driver's default of 8, whose making takes three times as long."""
    threads: int


class Layers:
    """Which layers are in force (`names`) and which could not be had (`missing`, with the reason)."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.missing: list[str] = []

    def copy(self) -> Layers:
        """Layers that go on apart from these."""
        other = Layers()
        other.names, other.missing = list(self.names), list(self.missing)
        return other

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
    """Give up every right: limits, user, capabilities, system calls. The last step before the candidate's code."""
    os.chdir(f"{scratch}/home")
    os.environ.clear()
    os.environ.update(environment(spec, scratch))
    tempfile.tempdir = None  # the fork server may have settled on its own
    limits = {"fsize": spec.file_bytes, "nofile": spec.open_files, "nproc": spec.processes}
    if spec.data_bytes is not None:
        limits["data"] = spec.data_bytes
    give_up_rights(layers, limits, uid)
    # The change of user made /proc/self root's; the CUDA driver and dlopen by descriptor read it.
    linux.set_dumpable(True)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def give_up_rights(layers: Layers, limits: dict[str, int], uid: int | None) -> None:
    """Limits, user, capabilities and system calls of this process, for good.

    `limits`: what to limit (`fsize`, `as`, ...) and to how many bytes, seconds or pieces. `uid`: the user to become; None:
    none, for a reason that is noted already.
    """
    for name, value in {"core": 0, **limits}.items():
        kind = getattr(resource, f"RLIMIT_{name.upper()}")
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))
    layers.names += [f"rlimit_{name}" for name in limits]
    layers.attempt("killed_first_when_memory_is_short", lambda: Path("/proc/self/oom_score_adj").write_text("1000"))
    root = os.geteuid() == 0
    if root:
        layers.attempt("no_capability_bounds", linux.drop_bounding_set)
    if root and uid:
        layers.attempt("own_user", lambda: _become(uid))
    elif uid is not None:
        layers.missing.append(f"own_user ({'this user namespace has one user' if root else 'only root may change it'})")
    if layers.attempt("no_new_privileges", linux.no_new_privileges):
        program = seccomp.filter_program(allow_internet_sockets="no_network" in layers.names)
        layers.attempt("no_capabilities", linux.drop_capabilities)
        if layers.attempt("seccomp", lambda: linux.install_seccomp(program)) and "no_network" not in layers.names:
            layers.names.append("no_internet_sockets")


def _become(uid: int) -> None:
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


FOR_CUDA = ("CUDA_", "NVIDIA_", "NCCL_", "NVSHMEM_", "TORCH_SYMM_MEM_", "LD_LIBRARY_PATH")
"""Beginnings of the environment variables that CUDA reads."""


def environment(spec: SandboxSpec, scratch: str) -> dict[str, str]:
    """The candidate's whole environment: fixed values, and what CUDA needs from the machine. No secrets."""
    kept = {name: value for name, value in os.environ.items() if name.startswith(FOR_CUDA)}
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
