"""Tests of the number of usable cores: affinity and the quota of control groups, version 1 and 2."""

import os

import pytest

from pufferlib.machine.cpus import has_bfloat16, usable_cpus


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Return a function that writes control groups of a machine with 8 cores and returns the usable cores."""

    def build(membership, files):
        files = {f"sys/fs/cgroup/{name}": text for name, text in files.items()}
        for name, text in {"proc/self/cgroup": membership, **files}.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        return usable_cpus(tmp_path)

    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    return build


@pytest.mark.parametrize(
    ("membership", "files", "expected"),
    [
        ("0::/\n", {}, 8),
        ("0::/\n", {"cpu.max": "max 100000\n"}, 8),
        ("0::/\n", {"cpu.max": "250000 100000\n"}, 2),
        ("0::/\n", {"cpu.max": "50000 100000\n"}, 1),
        ("0::/\n", {"cpu.max": "3200000 100000\n"}, 8),
        ("0::/a/b\n", {"a/cpu.max": "300000 100000\n", "a/b/cpu.max": "max 100000\n"}, 3),
        ("4:cpu,cpuacct:/a\n", {"cpu/a/cpu.cfs_quota_us": "400000\n", "cpu/a/cpu.cfs_period_us": "100000\n"}, 4),
        ("4:cpu:/\n3:memory:/\n", {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 8),
    ],
)
def test_usable_cpus_respects_quota(machine, membership, files, expected):
    assert machine(membership, files) == expected


def test_usable_cpus_without_control_groups(tmp_path):
    assert usable_cpus(tmp_path) == len(os.sched_getaffinity(0))


def test_usable_cpus_without_affinity_counts_all_cores(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity")
    assert usable_cpus(tmp_path) == os.cpu_count()


def test_has_bfloat16_is_false_without_cpuinfo(tmp_path):
    assert not has_bfloat16(tmp_path)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [("fpu avx512f avx512_bf16 sse", True), ("avx512f amx_bf16", True), ("asimd bf16", True), ("avx512f avx2", False)],
)
def test_has_bfloat16_reads_cpu_flags(tmp_path, flags, expected):
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text(f"processor : 0\nflags : {flags}\n")
    assert has_bfloat16(tmp_path) is expected
