"""Names that a candidate must not call, replace, derive from or import, and the finding for each."""

from __future__ import annotations

import sys

from dice.kernels.source.lexer import words

TIMERS = (
    "torch.cuda.Event",
    "torch.cuda.Stream",
    "torch.cuda.synchronize",
    "torch.cuda.current_stream",
    "torch.cuda.stream",
    "torch.cuda.streams",
    "torch.cuda.default_stream",
    "torch.profiler",
    "torch.autograd.profiler",
    "torch.utils.benchmark",
    "triton.testing",
    "time",
    "timeit",
)
SETTINGS = ("torch.backends", "torch._dynamo.config", "torch._inductor.config", "torch.utils.cpp_extension")
"""Attributes below these names are settings; an assignment to them patches nothing."""
STDLIB = frozenset(sys.stdlib_module_names) - {"__future__"}

CALLS: dict[str, str] = {
    "gc.get_objects": "gc_access",
    "gc.get_referrers": "gc_access",
    "gc.get_referents": "gc_access",
    "gc.unfreeze": "gc_access",
    "sys._getframe": "frame_access",
    "sys._current_frames": "frame_access",
    "inspect.stack": "frame_access",
    "inspect.currentframe": "frame_access",
    "inspect.getouterframes": "frame_access",
    "inspect.getinnerframes": "frame_access",
    "inspect.trace": "frame_access",
    "traceback.walk_stack": "frame_access",
    "traceback.extract_stack": "frame_access",
    "traceback.format_stack": "frame_access",
    "traceback.print_stack": "frame_access",
    "faulthandler.dump_traceback": "frame_access",
    "torch._C._profiler.gather_traceback": "frame_access",
    "threading.Thread": "background_thread",
    "threading.Timer": "background_thread",
    "_thread.start_new_thread": "background_thread",
    "_thread.start_new": "background_thread",
    "_thread.start_joinable_thread": "background_thread",
    "threading._start_new_thread": "background_thread",
    "threading._start_joinable_thread": "background_thread",
    "concurrent.futures.ThreadPoolExecutor": "background_thread",
    "torch.jit.fork": "background_thread",
    "concurrent.futures.thread.ThreadPoolExecutor": "background_thread",
    "multiprocessing.pool.ThreadPool": "background_thread",
    "multiprocessing.Process": "process_spawned",
    "multiprocessing.Pool": "process_spawned",
    "torch.multiprocessing.Process": "process_spawned",
    "torch.multiprocessing.spawn": "process_spawned",
    "concurrent.futures.ProcessPoolExecutor": "process_spawned",
    "os.system": "process_spawned",
    "os.popen": "process_spawned",
    "os.fork": "process_spawned",
    "os.forkpty": "process_spawned",
    "os.kill": "process_spawned",
    "os.killpg": "process_spawned",
    "os.posix_spawn": "process_spawned",
    "os.posix_spawnp": "process_spawned",
    "pty.spawn": "process_spawned",
    "signal.pthread_kill": "process_spawned",
    "signal.raise_signal": "process_spawned",
    "os._exit": "early_exit",
    "os.abort": "early_exit",
    "sys.exit": "early_exit",
    "exit": "early_exit",
    "quit": "early_exit",
    "exec": "dynamic_code",
    "eval": "dynamic_code",
    "compile": "dynamic_code",
    "marshal.loads": "dynamic_code",
    "importlib.util.spec_from_file_location": "dynamic_code",
    "importlib.machinery.SourceFileLoader": "dynamic_code",
    "runpy.run_path": "dynamic_code",
    "runpy.run_module": "dynamic_code",
    "builtins.exec": "dynamic_code",
    "builtins.eval": "dynamic_code",
    "builtins.compile": "dynamic_code",
    "types.FunctionType": "dynamic_code",
    "types.CodeType": "dynamic_code",
    "importlib.reload": "modules_tampered",
    "imp.reload": "modules_tampered",
    "sys.meta_path.insert": "modules_tampered",
    "sys.meta_path.append": "modules_tampered",
    "sys.path_hooks.insert": "modules_tampered",
    "sys.path_hooks.append": "modules_tampered",
    "signal.signal": "process_hook",
    "signal.setitimer": "process_hook",
    "signal.alarm": "process_hook",
    "atexit.register": "process_hook",
    "threading._register_atexit": "process_hook",
    "multiprocessing.util.Finalize": "process_hook",
    "multiprocessing.util._exit_function": "process_hook",
    "gc.callbacks.append": "process_hook",
    "gc.callbacks.insert": "process_hook",
    "sys.settrace": "process_hook",
    "sys.setprofile": "process_hook",
    "threading.settrace": "process_hook",
    "threading.setprofile": "process_hook",
    "sys.addaudithook": "process_hook",
    "os.nice": "process_hook",
    "os.setpriority": "process_hook",
    "os.sched_setaffinity": "process_hook",
    "copyreg.pickle": "process_hook",
    "torch.save": "stored_results",
    "torch.load": "stored_results",
    "numpy.save": "stored_results",
    "numpy.load": "stored_results",
    "pickle.dump": "stored_results",
    "pickle.load": "stored_results",
    "pickle.loads": "stored_results",
    "shelve.open": "stored_results",
    "os.write": "result_forging",
    "os.writev": "result_forging",
    "os.pwrite": "result_forging",
    "os.dup2": "result_forging",
    "os.fdopen": "result_forging",
    "os.sendfile": "result_forging",
    "mmap.mmap": "memory_tampering",
    "os.getppid": "environment_sniffing",
    "socket.gethostname": "environment_sniffing",
    "platform.node": "environment_sniffing",
    "sys.gettrace": "environment_sniffing",
    "sys.getprofile": "environment_sniffing",
}
IMPORTS: dict[str, str] = {
    name: kind
    for kind, names in {
        "process_spawned": "system popen fork vfork clone execve execv execvp execvpe execl execlp posix_spawn "
        "posix_spawnp kill killpg tgkill",
        "network_access": "socket connect getaddrinfo",
        "memory_tampering": "dlsym dlvsym mprotect ptrace process_vm_readv process_vm_writev mremap dl_iterate_phdr "
        "syscall",
        "process_hook": "signal sigaction on_exit at_quick_exit prctl",
        "early_exit": "_exit _Exit quick_exit",
        "result_forging": "dup2 dup3 pwrite pwrite64 writev",
        "environment_sniffing": "getppid gethostname",
    }.items()
    for name in names.split()
}
"""Functions of the C library, as an object that calls them imports them, however its source spells the call."""
C_FUNCTIONS = frozenset(IMPORTS) | {"sleep"}
"""Those, and what only a text and an object together show to be called."""
CALL_PREFIXES: dict[str, str] = {
    "torch.nn.modules.module.register_module_": "torch_patched",
    "torch.utils._traceback.": "frame_access",
    "torch.utils._python_dispatch.": "environment_sniffing",
    "torch._C._dispatch_tls_": "environment_sniffing",
    "torch._C._len_torch_": "environment_sniffing",
    "torch._C._get_dispatch": "environment_sniffing",
    "torch._C._set_": "global_precision_switch",
    "subprocess.": "process_spawned",
    "os.exec": "process_spawned",
    "os.spawn": "process_spawned",
    "cffi.": "memory_tampering",
    "socket.": "network_access",
    "urllib.request.": "network_access",
    "http.client.": "network_access",
    "requests.": "network_access",
    "ftplib.": "network_access",
    "smtplib.": "network_access",
}
BASES: dict[str | None, str] = {
    "torch.Tensor": "lazy_output",
    "torch._C.TensorBase": "lazy_output",
    "torch.nn.Parameter": "lazy_output",
    "threading.Thread": "background_thread",
    "multiprocessing.Process": "process_spawned",
    "torch.overrides.TorchFunctionMode": "torch_patched",
    "torch.utils._python_dispatch.TorchDispatchMode": "torch_patched",
}
"""Finding for a class that derives from one of these."""
RAW_MEMORY = words(
    "CDLL PyDLL cdll pythonapi memmove memset string_at wstring_at from_address from_buffer addressof LibraryLoader"
)
"""Parts of ctypes with access to memory or code; types, byref and sizeof are harmless."""
FRAME_ATTRIBUTES = words(
    "f_back f_locals f_globals f_builtins tb_frame gi_frame cr_frame findCaller __globals__ __closure__ __self__"
)
"""`__self__` of a bound method is an object that need not be the candidate's."""
_TELLING = ("cmdline", "environ", "comm", "status", "cgroup")
"""Files of `/proc` that tell what a process is; others give access to it."""
HARNESSES = (
    "dice",
    "kernelbench",
    "KernelBench",
    "src.eval",
    "src.utils",
    "robust_kbench",
    "flashinfer_bench",
    "eval",
)
PICKLE_HOOKS = words("__reduce__ __reduce_ex__ __setstate__")
VERDICT_WORDS = words("correct correctness compiled passed status runtime speedup reward score success")
EVALUATION_VARIABLES = ("BENCH", "EVAL", "POPCORN", "GRADE", "GRADING", "JUDGE", "SCORE", "PYTEST", "DICE", "REWARD")
"""Parts of names of environment variables that tell a program that it is being tested."""
SHADOWS = frozenset({"torch", "numpy", "sitecustomize", "usercustomize", "conftest", "dice", "triton"} | STDLIB)


def proc_finding(path: str) -> str | None:
    """The finding for a text that names a file of `/proc`; None for any other text."""
    if not path.startswith("/proc/"):
        return None
    return "environment_sniffing" if path.endswith(_TELLING) else "memory_tampering"
