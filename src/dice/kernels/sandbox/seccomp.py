"""A seccomp filter for candidates: refuses system calls that CUDA programs do not need and attacks use.

Refused with EPERM, or with ENOSYS where callers have a fallback: looking into other processes, mounts and
namespaces, kernel interfaces with a history of holes, memory that cannot be counted, and sockets of families that
network namespaces do not cover (vsock reaches the hypervisor). Everything else is allowed: this is a second layer
behind namespaces, users and limits.
"""

from __future__ import annotations

import platform
import struct

# Name -> (x86-64, aarch64) number; None: the architecture lacks the call.
_REFUSED: dict[str, tuple[int | None, int | None]] = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "setns": (308, 268),
    "unshare": (272, 97),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsmount": (432, 432),
    "mount_setattr": (442, 442),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "open_by_handle_at": (304, 265),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "sethostname": (170, 161),
    "personality": (135, 92),
}
_ABSENT: dict[str, tuple[int | None, int | None]] = {
    # Passes its flags by pointer, out of the filter's sight; without it libc uses clone.
    "clone3": (435, 435),
    # Memory that no process's resident size shows and no quota bounds.
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
}
_SOCKET = (41, 198)
_CLONE = (56, 220)
_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32_BIT = 0x40000000
_NEW_NAMESPACES = 0x7E020000  # all CLONE_NEW* flags: NS, CGROUP, UTS, IPC, USER, PID, NET

_LOAD, _JUMP_EQUAL, _JUMP_GREATER_EQUAL, _JUMP_SET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_EPERM, _ENOSYS = 1, 38
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16


def _statement(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, value)


def _return(action: int) -> bytes:
    return _statement(_RETURN, action)


def filter_program(allow_internet_sockets: bool, machine: str | None = None) -> bytes:
    """The filter as BPF bytes for this machine. `allow_internet_sockets` only inside an empty network namespace.

    Raises OSError on an architecture without a table.
    """
    machine = machine or platform.machine()
    if machine not in _AUDIT_ARCH:
        raise OSError(0, f"no system call table for {machine}")
    column = 0 if machine == "x86_64" else 1
    program = [
        _statement(_LOAD, 4),
        _statement(_JUMP_EQUAL, _AUDIT_ARCH[machine], 1, 0),
        _return(_KILL),
        _statement(_LOAD, 0),
    ]
    if machine == "x86_64":
        program += [_statement(_JUMP_GREATER_EQUAL, _X32_BIT, 0, 1), _return(_KILL)]
    for calls, error in ((_REFUSED, _EPERM), (_ABSENT, _ENOSYS)):
        for numbers in calls.values():
            number = numbers[column]
            if number is not None:
                program += [_statement(_JUMP_EQUAL, number, 0, 1), _return(_ERRNO | error)]
    program += [
        _statement(_JUMP_EQUAL, _CLONE[column], 0, 4),
        _statement(_LOAD, 16),
        _statement(_JUMP_SET, _NEW_NAMESPACES, 0, 1),
        _return(_ERRNO | _EPERM),
        _return(_ALLOW),
    ]
    families = [_AF_UNIX, _AF_NETLINK] + ([_AF_INET, _AF_INET6] if allow_internet_sockets else [])
    program += [_statement(_JUMP_EQUAL, _SOCKET[column], 0, 2 * len(families) + 2), _statement(_LOAD, 16)]
    for family in families:
        program += [_statement(_JUMP_EQUAL, family, 0, 1), _return(_ALLOW)]
    program += [_return(_ERRNO | _EPERM), _return(_ALLOW)]
    return b"".join(program)
