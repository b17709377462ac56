"""Linux calls that Python 3.11 does not wrap, as thin functions that raise OSError. x86-64 and aarch64."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import mmap
import os
import platform
import struct
from collections.abc import Iterator

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REMOUNT = 1, 2, 4, 32
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
MNT_DETACH = 2

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_CHILD_SUBREAPER = 1, 4, 22, 36
_PR_CAPBSET_DROP, _PR_SET_SECUREBITS, _PR_SET_NO_NEW_PRIVS = 24, 28, 38
_SECUREBITS_NO_ROOT = 0b1111  # NOROOT and NO_SETUID_FIXUP, both locked: user 0 gains nothing by exec
_CAPABILITY_VERSION_3 = 0x20080522
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_M_PERTURB = -6

HUGE_PAGES = "THP_MEM_ALLOC_ENABLE"
"""Environment variable that has PyTorch ask for huge pages: the first touch of a gigabyte of small ones takes a second or
more in a virtual machine, and each trial of a large problem touches several."""


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: object) -> int:
    result = getattr(_libc(), name)(*map(_converted, arguments))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def _converted(argument: object) -> object:
    if isinstance(argument, str):
        return argument.encode()
    return ctypes.c_long(argument) if isinstance(argument, int) else argument


def unshare(flags: int) -> None:
    """Leave the namespaces named by `flags` for new ones; for CLONE_NEWPID, the next child does."""
    _call("unshare", flags)


def setns(fd: int, kind: int) -> None:
    """Enter the namespace behind `fd`."""
    _call("setns", fd, kind)


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """mount(2)."""
    _call("mount", source, target, kind or None, flags, options or None)


def unmount(target: str) -> None:
    """Detach whatever is mounted at `target`."""
    _call("umount2", target, MNT_DETACH)


def pivot_root(new_root: str, old_root: str) -> None:
    """Make `new_root` the root of this mount namespace and put the old root at `old_root`."""
    _call("syscall", _PIVOT_ROOT[platform.machine()], new_root, old_root)


def set_hostname(name: str) -> None:
    """sethostname(2)."""
    _call("sethostname", name, len(name))


def die_with_parent(signal_number: int) -> None:
    """Have the kernel send this process a signal when its parent ends."""
    _call("prctl", _PR_SET_PDEATHSIG, signal_number, 0, 0, 0)


def become_subreaper() -> None:
    """Orphans below this process become its children instead of process 1's."""
    _call("prctl", _PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def set_dumpable(value: bool) -> None:
    """Whether processes of the same user may open this one's /proc files."""
    _call("prctl", _PR_SET_DUMPABLE, int(value), 0, 0, 0)


def no_new_privileges() -> None:
    """From now on no exec can add privileges."""
    _call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def drop_bounding_set() -> None:
    """Remove every capability from the bounding set, and the special role of user 0."""
    for capability in range(64):
        try:
            _call("prctl", _PR_CAPBSET_DROP, capability, 0, 0, 0)
        except OSError as error:
            if error.errno != errno.EINVAL or not capability:
                raise
            break  # the kernel has no more of them
    _call("prctl", _PR_SET_SECUREBITS, _SECUREBITS_NO_ROOT, 0, 0, 0)


def drop_capabilities() -> None:
    """Clear the effective, permitted and inheritable sets."""
    header = struct.pack("<Ii", _CAPABILITY_VERSION_3, 0)
    _call("capset", header, bytes(24))


def install_seccomp(program: bytes) -> None:
    """Install a classic BPF filter (`dice.kernels.sandbox.seccomp.filter_program`) for this process and its children."""

    class _Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]

    buffer = ctypes.create_string_buffer(program, len(program))
    description = _Program(len(program) // 8, ctypes.cast(buffer, ctypes.c_char_p))
    _call("prctl", _PR_SET_SECCOMP, 2, ctypes.byref(description), 0, 0)


def map_shared(fd: int, n_bytes: int) -> int:
    """Map a file that other processes map too, for reading and writing; its address. No Python object stands for it."""
    call = _libc().mmap
    call.restype, call.argtypes = (
        ctypes.c_void_p,
        [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long],
    )
    address = call(None, n_bytes, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, fd, 0)
    if address in (None, ctypes.c_void_p(-1).value):
        number = ctypes.get_errno()
        raise OSError(number, f"mmap: {os.strerror(number)}")
    return address


@contextlib.contextmanager
def perturbed_malloc(fill: int) -> Iterator[None]:
    """In the block, glibc fills new memory with a byte, and freed memory with its complement."""
    libc = _libc()
    try:
        libc.mallopt(_M_PERTURB, 0x100 | (fill ^ 0xFF))  # "on", and the complement of the byte
        yield
    finally:
        libc.mallopt(_M_PERTURB, 0)
