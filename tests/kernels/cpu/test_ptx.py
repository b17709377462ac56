"""Inline PTX: one instruction as C++, and nothing where the meaning would differ. The meaning is the PTX ISA manual's."""

from __future__ import annotations

import pytest

from dice.kernels.cpu.ptx import translate
from dice.kernels.source.lexer import read_tokens


def cpp(assembly: str) -> str | None:
    return translate(read_tokens(assembly), assembly)


@pytest.mark.parametrize(
    ("assembly", "code"),
    [
        ('asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 2))', "(y) = exp2f((x * 2))"),
        ('asm volatile("rcp.approx.f32 %0, %1;" : "=f"(y[i]) : "f"(x))', "(y[i]) = 1.0f / ((x))"),
        ('asm("add.u32 %0, %1, %2;" : "=r"(a) : "r"(b), "r"(f(c, d)))', "(a) = ((b)) + ((f(c, d)))"),
        ('asm("sub.s64 %0, %1, -3;" : "=l"(a) : "l"(b))', "(a) = ((b)) - (-3)"),
        ('asm("mul.lo.s32 %0, %1, 0x10;" : "=r"(a) : "r"(b))', "(a) = ((b)) * (0x10)"),
        ('asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(d) : "f"(a), "f"(b), "f"(c))', "(d) = fmaf((a), (b), (c))"),
        ('asm("max.f32 %0, %1, 0f3F800000;" : "=f"(d) : "f"(a))', "(d) = fmaxf((a), __uint_as_float(0x3F800000u))"),
        ('asm("min.ftz.f32 %0, %0, %1;" : "+f"(d) : "f"(a))', "(d) = fminf((d), (a))"),
        ('asm("mov.u32 %0, %%laneid;" : "=r"(a))', "(a) = dice_cpu_thread()->lane"),
        ('asm("mov.u32 %0, %%tid.y;" : "=r"(a))', "(a) = dice_cpu_thread()->thread_index.y"),
        ('asm("mov.u64 %0, %%globaltimer;" : "=l"(a) :: "memory")', "(a) = clock64()"),
        ('asm("{ mov.b32 %0, %1; }" : "=r"(a) : "r"(b))', "(a) = (b)"),
        ('asm("mov.b32 %0, %1;" : "=r"(a) : "f"(b))', "(a) = __float_as_uint((b))"),
        ('asm("mov.b64 %0, %1;" : "=d"(a) : "l"(b))', "(a) = __longlong_as_double((b))"),
        ('asm("mov.b32 %0, 0f3F800000;" : "=r"(a))', "(a) = __float_as_uint(__uint_as_float(0x3F800000u))"),
        ('asm("ld.global.b32 %0, [%1];" : "=f"(a) : "l"(p))', "(a) = *reinterpret_cast<const float*>((p))"),
        ('asm("st.global.b64 [%0], %1;" :: "l"(p), "d"(a))', "*reinterpret_cast<double*>((p)) = (a)"),
        ('asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(c ? a : b))', "(y) = exp2f((c ? a : b))"),
        ('asm("add.f32 %0, %1, %2;" : "=f"(n::y) : "f"(std::max(a, b)), "f"(n::x))',
         "(n::y) = ((std::max(a, b))) + ((n::x))"),
        ('asm("ld.global.nc.f32 %0, [%1];" : "=f"(a) : "l"(p))', "(a) = *reinterpret_cast<const float*>((p))"),
        ('asm("ld.global.nc.L1::no_allocate.u64 %0, [%1];" : "=l"(a) : "l"(p))',
         "(a) = *reinterpret_cast<const unsigned long long*>((p))"),
        ('asm volatile("st.global.cs.s32 [%0], %1;" :: "l"(p), "r"(a))', "*reinterpret_cast<int*>((p)) = (a)"),
        ('asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(a) : "l"(p))',
         "(a) = *reinterpret_cast<const volatile unsigned*>((p))"),
        ('asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(a) : "l"(p))',
         "(a) = *reinterpret_cast<const volatile int*>((p)), __threadfence()"),
        ('asm volatile("st.release.gpu.global.u32 [%0], %1;" :: "l"(p), "r"(a))',
         "__threadfence(), *reinterpret_cast<unsigned*>((p)) = (a)"),
        ('asm("popc.b32" " %0,\\n\\t %1;" : "=r"(a) : "r"(b))', "(a) = __popc((b))"),
        ('asm volatile("membar.gl;" ::: "memory")', "__threadfence()"),
        ('asm volatile("prefetch.global.L2 [%0];" :: "l"(p))', "__threadfence()"),
        ('asm volatile("bar.sync 0;")', "__syncthreads()"),
        ('asm("trap;")', "__trap()"),
    ],
)  # fmt: skip
def test_what_is_translated(assembly: str, code: str) -> None:
    assert cpp(assembly) == code


@pytest.mark.parametrize(
    "instruction",
    [
        "add.sat.f32 %0, %1, %2;",  # clamped to [0, 1]
        "fma.rn.sat.f32 %0, %1, %1, %2;",
        "add.rz.f32 %0, %1, %2;",
        "add.cc.u32 %0, %1, %2;",
        "mul.hi.u32 %0, %1, %2;",
        "mul.wide.u32 %0, %1, %2;",
        "add.f16x2 %0, %1, %2;",
        "add.u32 %0, %1;",
        "mov.u32 %0, %1, %2;",
        "fma.rn.f32 %0, %1, %2;",
        "max.f32 %0, %1;",
        "ld.shared.f32 %0, [%1];",
        "ld.global.v2.f32 {%0, %1}, [%2];",
        "ld.global.u8 %0, [%1];",
        "ld.volatile.global.u32 %0, [%1];",
        "membar.gl; mov.u32 %0, %1;",
        "ld.global.f32 %0, [%1+4];",
        "st.volatile.shared.u32 [%1], %0;",
        "bar.sync 1;",
        "bar.sync 0, 64;",
        "mov.u32 %0, %9;",
        "mov.u32 %0, %%nosuch;",
        "@%1 mov.u32 %0, %2;",
        "mov.u32 %0, %1; add.u32 %0, %0, %2;",
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 %0, %1, %2, %0;",
        "vote.ballot.b32 %0, %1;",
        "",
    ],
)
def test_what_is_not(instruction: str) -> None:
    assert cpp(f'asm("{instruction}" : "=r"(a) : "r"(b), "r"(c))') is None


@pytest.mark.parametrize(
    "assembly",
    [
        'asm("popc.b32 %0, %1;" : "=r"(a) : "f"(x))',  # of the bits, not of the number
        'asm("mov.b32 %0, %1;" : "=r"(a) : "l"(b))',
        "asm",
    ],
)
def test_what_is_not_for_its_operands(assembly: str) -> None:
    assert cpp(assembly) is None


def test_long_assembly_is_read_once() -> None:
    assert cpp('asm("mov.u32 ' + "," * 200_000 + '");') is None
